"""The log state machine: a log and an operation in, the log after it out.

Operations are those of Kafka's RaftLog. An operation that Kafka refuses raises OperationRefusedError.
Sources: KIP-595 (append, truncate), KIP-630 (snapshots), Kafka's KafkaRaftLog and UnifiedLog for limits and
for what a restart finds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kraft_core.raft.batches import Batch, Batches
from kraft_core.raft.epochs import EpochCache, EpochEnd
from kraft_core.raft.log import ReplicaLog, Segment, Snapshot, Validity


class OperationRefusedError(ValueError):
    """The log does not allow the operation; `reason` is one of the words below.

    `log` is the log of a Kafka that continues, if the refused operation has changed it; else None.
    """

    def __init__(self, reason: str, detail: str, log: ReplicaLog | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.log = log


BELOW_LOG_END = "below_log_end"
NEWER_EPOCH = "newer_epoch"
LARGER_THAN_SEGMENT = "larger_than_segment"
BELOW_HIGH_WATERMARK = "below_high_watermark"
ABOVE_HIGH_WATERMARK = "above_high_watermark"
NOT_IN_LOG = "not_in_log"
NOT_ON_BATCH_BOUNDARY = "not_on_batch_boundary"


@dataclass(frozen=True, slots=True)
class AppendAsLeader:
    """The leader's own batches, in the epoch it leads."""

    leader_epoch: int
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class AppendAsFollower:
    """Batches fetched while in `leader_epoch`; those of a newer epoch, and all behind them, are not taken."""

    leader_epoch: int
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """The replica becomes leader: its epoch begins at the log end, its high watermark is unknown."""

    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Resign:
    """The leader gives up its epoch; its high watermark is unknown until it learns one from a leader."""


@dataclass(frozen=True, slots=True)
class UpdateHighWatermark:
    offset: int


@dataclass(frozen=True, slots=True)
class TruncateTo:
    offset: int


@dataclass(frozen=True, slots=True)
class TruncateToDivergence:
    """The leader answered that its epoch `leader_epoch` ends at `end_offset` (KIP-595, DivergingEpoch)."""

    end_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CreateSnapshot:
    """The replica writes a snapshot of its own log."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """The replica has fetched a snapshot: if it is ahead of the log, the log restarts at its end."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class DeleteBefore:
    """Raise the log's start to a snapshot's end; older snapshots and whole older segments go."""

    end_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Stop and start; what was not flushed, from `lost_from` on (None: nothing), is gone."""

    lost_from: int | None = None


Operation = (
    AppendAsLeader
    | AppendAsFollower
    | BeginEpoch
    | Resign
    | UpdateHighWatermark
    | TruncateTo
    | TruncateToDivergence
    | CreateSnapshot
    | InstallSnapshot
    | DeleteBefore
    | Restart
)


def step(log: ReplicaLog, operation: Operation) -> ReplicaLog:
    """The log after one operation. Raises OperationRefusedError where Kafka throws."""
    match operation:
        case AppendAsLeader():
            return _append(log, operation.batches)
        case AppendAsFollower():
            return _append_as_follower(log, operation)
        case BeginEpoch():
            epochs = log.epochs.assign(operation.leader_epoch, log.end_offset)
            return replace(log, epochs=epochs, known_high_watermark=None)
        case Resign():
            return replace(log, known_high_watermark=None)
        case UpdateHighWatermark():
            within = min(max(operation.offset, log.start_offset), log.end_offset)
            return replace(log, high_watermark=within, known_high_watermark=operation.offset)
        case TruncateTo():
            return _truncate(log, operation.offset)
        case TruncateToDivergence():
            end = EpochEnd(operation.end_offset, operation.leader_epoch)
            return _truncate(log, log.truncation_offset(end))
        case CreateSnapshot():
            return _create_snapshot(log, operation.snapshot)
        case InstallSnapshot():
            return _truncate_to_latest_snapshot(_with_snapshot(log, operation.snapshot))
        case DeleteBefore():
            return _delete_before(log, EpochEnd(operation.end_offset, operation.leader_epoch))
        case Restart():
            return _restart(log, operation)


def _append_as_follower(log: ReplicaLog, operation: AppendAsFollower) -> ReplicaLog:
    taken: list[Batch] = []
    for batch in operation.batches:
        if batch.leader_epoch > operation.leader_epoch:
            break
        taken.append(batch)
    if not taken:
        raise OperationRefusedError(
            NEWER_EPOCH, f"the first batch is newer than epoch {operation.leader_epoch}"
        )
    return _append(log, tuple(taken))


def _append(log: ReplicaLog, batches: tuple[Batch, ...]) -> ReplicaLog:
    if batches[0].base_offset < log.end_offset:
        raise OperationRefusedError(
            BELOW_LOG_END, f"batch at {batches[0].base_offset}, log end {log.end_offset}"
        )
    epochs = log.epochs
    for batch in batches:
        epochs = epochs.assign(batch.leader_epoch, batch.base_offset)
    size_bytes = sum(batch.size_bytes for batch in batches)
    if size_bytes > log.segment_bytes:
        # UnifiedLog.append compares the size of the whole append, once the epochs have been assigned.
        raise OperationRefusedError(
            LARGER_THAN_SEGMENT,
            f"{size_bytes} bytes at {log.end_offset}, a segment is of {log.segment_bytes}",
            replace(log, epochs=epochs),
        )
    return replace(
        log,
        segments=_grown(log, size_bytes),
        batches=log.batches.extended(batches),
        epochs=epochs,
        end_offset=batches[-1].end_offset,
    )


def _grown(log: ReplicaLog, size_bytes: int) -> tuple[Segment, ...]:
    """The segments with an append of that size, in a new one at the log end if the last has no room."""
    *older, active = log.segments
    if active.size_bytes and active.size_bytes + size_bytes > log.segment_bytes:
        return (*log.segments, Segment(log.end_offset, size_bytes))
    return (*older, Segment(active.base_offset, active.size_bytes + size_bytes))


def _truncate(log: ReplicaLog, end_offset: int) -> ReplicaLog:
    if end_offset < log.high_watermark:
        raise OperationRefusedError(
            BELOW_HIGH_WATERMARK, f"{end_offset}, high watermark {log.high_watermark}"
        )
    if end_offset >= log.end_offset:
        # An epoch that the replica was to lead may stand at the log end without a record.
        return replace(log, epochs=log.epochs.truncate(end_offset))
    return _cut(log, end_offset)


def _cut(log: ReplicaLog, end_offset: int) -> ReplicaLog:
    batches = log.batches.truncated(end_offset)
    *older, active = (segment for segment in log.segments if segment.base_offset <= end_offset)
    size_bytes = sum(batch.size_bytes for batch in batches.starting_at(active.base_offset))
    return replace(
        log,
        batches=batches,
        epochs=log.epochs.truncate(end_offset),
        segments=(*older, Segment(active.base_offset, size_bytes)),
        end_offset=end_offset,
    )


def _create_snapshot(log: ReplicaLog, wanted: Snapshot) -> ReplicaLog:
    if wanted.end_offset < log.start_offset:
        return log  # a later snapshot has made it needless
    if wanted.end_offset > log.high_watermark:
        raise OperationRefusedError(ABOVE_HIGH_WATERMARK, f"{wanted.id}, high watermark {log.high_watermark}")
    if log.validate(wanted.end_offset, wanted.leader_epoch)[0] is not Validity.VALID:
        raise OperationRefusedError(NOT_IN_LOG, f"{wanted.id}")
    batch = log.batches.holding(wanted.end_offset) if wanted.end_offset < log.high_watermark else None
    if batch and batch.base_offset != wanted.end_offset:
        raise OperationRefusedError(NOT_ON_BATCH_BOUNDARY, f"{wanted.id}, batch at {batch.base_offset}")
    return _with_snapshot(log, wanted)


def _with_snapshot(log: ReplicaLog, snapshot: Snapshot) -> ReplicaLog:
    if any(held.id == snapshot.id for held in log.snapshots):
        return log
    return replace(log, snapshots=tuple(sorted((*log.snapshots, snapshot), key=lambda s: s.order)))


def _truncate_to_latest_snapshot(log: ReplicaLog) -> ReplicaLog:
    """Restart the log at the newest snapshot if it is of a later epoch, or further on in the same."""
    latest = log.latest_snapshot
    if latest is None or latest.order <= (log.epochs.last_epoch or 0, log.end_offset):
        return log
    return replace(
        log,
        start_offset=latest.end_offset,
        end_offset=latest.end_offset,
        high_watermark=latest.end_offset,
        known_high_watermark=latest.end_offset,
        epochs=EpochCache(),
        batches=Batches(),
        segments=(Segment(latest.end_offset),),
        snapshots=(latest,),
    )


def _delete_before(log: ReplicaLog, end: EpochEnd) -> ReplicaLog:
    kept = tuple(
        snapshot for snapshot in log.snapshots if snapshot.order >= (end.leader_epoch, end.end_offset)
    )
    latest = log.latest_snapshot
    if (
        latest is None
        or not kept
        or kept[0].id != end
        or not log.start_offset < end.end_offset <= latest.end_offset
    ):
        return log
    if end.end_offset > log.high_watermark:
        raise OperationRefusedError(ABOVE_HIGH_WATERMARK, f"{end}, high watermark {log.high_watermark}")
    segments = log.segments[sum(later.base_offset <= end.end_offset for later in log.segments[1:]) :]
    return replace(
        log,
        start_offset=end.end_offset,
        epochs=log.epochs.raise_start(end.end_offset),
        batches=log.batches.starting_at(segments[0].base_offset),
        segments=segments,
        snapshots=kept,
    )


def _restart(log: ReplicaLog, operation: Restart) -> ReplicaLog:
    start_offset = log.segments[0].base_offset
    lost_from = log.end_offset if operation.lost_from is None else operation.lost_from
    kept = _cut(log, max(start_offset, min(lost_from, log.end_offset)))
    read = replace(
        kept,
        start_offset=start_offset,
        high_watermark=start_offset,
        epochs=kept.epochs.raise_start(start_offset),
    )
    return replace(_truncate_to_latest_snapshot(read), known_high_watermark=None)
