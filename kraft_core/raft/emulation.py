"""The stale voter set: where Kafka uses another voter set than its log has.

Kafka keeps voter sets and kraft.version in memory and reads on from `next_offset`
(KRaftControlRecordStateMachine, since 3.9). Three things make it use another set than its log has:
- Truncating the log from E to T drops the entries at and above T, but leaves `next_offset` at E. Records that
  arrive at T <= V < E are never read.
- A fetched snapshot that ends at or below `next_offset` is never read, and no entry is dropped for it.
- Writing a snapshot that ends at X forgets all entries before a VotersRecord at X itself; a truncation to X
  then leaves none, and the static set, or nobody, is in force.
The replica leads, grants and counts majorities by that set, and writes it into its snapshots. A restart fixes
it, unless a snapshot carries it. Kraftlake computes by the log (`voters_of_log`); this module emulates the
defect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kraft_core.raft.batches import Batch
from kraft_core.raft.log import Controls, ReplicaLog, Snapshot, voters_of_log
from kraft_core.raft.replay import CreateSnapshot, Operation, Restart, TruncateTo, TruncateToDivergence, step
from kraft_core.raft.voters import VoterHistory, VoterSet


@dataclass(frozen=True, slots=True)
class ControlReader:
    """Kafka's reader of control records: what it has read, and where it continues.

    `rewinds` and not `forgets` is a Kafka without the fault: truncation moves `next_offset` back, too, and a
    snapshot that ends at X leaves the last entry below X.
    """

    controls: Controls
    next_offset: int = 0
    rewinds: bool = False
    forgets: bool = True


@dataclass(frozen=True, slots=True)
class EmulatedReplica:
    """A log, and what a running Kafka has read of it."""

    log: ReplicaLog
    reader: ControlReader


class ControlReaderError(ValueError):
    """Kafka's reader found a control record at or below one that it has already read, and the process ends.

    It happens after a fetched snapshot truncated the log and the reader kept what lay above. `replica` is the
    log, and how far the reader had come.
    """

    def __init__(self, detail: str, replica: EmulatedReplica) -> None:
        super().__init__(detail)
        self.replica = replica


def start(log: ReplicaLog, *, rewinds: bool = False, forgets: bool = True) -> EmulatedReplica:
    """Kafka started on this log."""
    blank = ControlReader(Controls(VoterHistory(log.static_voters)), rewinds=rewinds, forgets=forgets)
    return EmulatedReplica(log, _read_on(blank, log))


def read_anew(replica: EmulatedReplica) -> EmulatedReplica:
    """The same Kafka, with or without the fault, that reads its log from the beginning."""
    return start(replica.log, rewinds=replica.reader.rewinds, forgets=replica.reader.forgets)


def emulate(replica: EmulatedReplica, operation: Operation) -> EmulatedReplica:
    """The log and Kafka's reading of it after one operation.

    Raises OperationRefusedError as replay.step does, ControlReaderError where the running Kafka ends.
    """
    log = step(replica.log, operation)
    if isinstance(operation, Restart):
        return read_anew(EmulatedReplica(log, replica.reader))
    reader = replica.reader
    if isinstance(operation, TruncateTo | TruncateToDivergence):
        reader = _truncated(reader, log.end_offset)
    if isinstance(operation, CreateSnapshot) and log.snapshots != replica.log.snapshots:
        needless_below = operation.snapshot.end_offset - (0 if reader.forgets else 1)
        reader = replace(reader, controls=reader.controls.prune(needless_below))
    return EmulatedReplica(log, _read_on(reader, log))


def voters_kafka_would_use(replica: EmulatedReplica) -> VoterSet | None:
    """The voter set by which the running Kafka leads, votes and counts."""
    return replica.reader.controls.voters.last


def is_stale(replica: EmulatedReplica) -> bool:
    """Whether Kafka uses another voter set than its log has."""
    return voters_kafka_would_use(replica) != voters_of_log(replica.log)


def snapshot_kafka_would_write(replica: EmulatedReplica, end_offset: int, leader_epoch: int) -> Snapshot:
    """The snapshot with this id as the running Kafka writes it, stale set and all.

    Raises ValueError if the reader has not come as far as `end_offset`.
    """
    if end_offset > replica.reader.next_offset:
        raise ValueError(f"offset {end_offset - 1} is not read yet; next is {replica.reader.next_offset}")
    controls = replica.reader.controls
    kraft_version = controls.kraft_version_at(end_offset - 1)
    if kraft_version == 0:
        return Snapshot(end_offset, leader_epoch)
    return Snapshot(end_offset, leader_epoch, kraft_version, controls.voters.at(end_offset - 1))


def _truncated(reader: ControlReader, end_offset: int) -> ControlReader:
    next_offset = min(reader.next_offset, end_offset) if reader.rewinds else reader.next_offset
    return replace(reader, controls=reader.controls.truncate(end_offset), next_offset=next_offset)


def _read_on(reader: ControlReader, log: ReplicaLog) -> ControlReader:
    """Read a snapshot if the log has moved past the reader, then the log from `next_offset`."""
    latest = log.latest_snapshot
    if latest and (reader.next_offset == 0 or reader.next_offset < log.start_offset):
        controls = reader.controls.read_snapshot(latest)
        reader = replace(reader, controls=controls, next_offset=latest.end_offset)
    if log.end_offset <= reader.next_offset:
        return reader
    for batch in log.batches.starting_at(reader.next_offset):
        reader = _read_batch(reader, batch, log)
    return replace(reader, next_offset=log.end_offset)


def _read_batch(reader: ControlReader, batch: Batch, log: ReplicaLog) -> ControlReader:
    for record in batch.control_records:
        try:
            reader = replace(reader, controls=reader.controls.read(record))
        except ValueError as error:
            raise ControlReaderError(str(error), EmulatedReplica(log, reader)) from error
    return replace(reader, next_offset=batch.end_offset)
