"""Captures of an execution: copies of directories, as facts, without a disk.

The facts are those that kraft_core.evidence.collect reads from the same directories written to disk
(tests/kraft_core/simulation/soundness compares them); only digests are other names for the same contents.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.evidence.facts import (
    Capture,
    CapturedControlRecord,
    ClusterFacts,
    EpochRange,
    SnapshotFacts,
    copied_between,
)
from kraft_core.findings.facts import BatchConflict, BatchCopy, RuleFacts
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.protocol.replica import Replica
from kraft_core.raft.batches import Batch, KRaftVersion, LeaderChange
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import VoterSet
from kraft_core.simulation.soundness.execution import Execution, Place


@dataclass(frozen=True, slots=True)
class Copy:
    """A directory's copy. Moments are indexes of the execution's.

    log_at: when its segments and checkpoints were copied. files_at: when quorum-state and
    leader-epoch-checkpoint were. stated: the time (ms) that capture.json names; None: it has none, and the
    newest file time is `file_time`. life: of a cloned quorum, which of the two.
    """

    slot: int
    log_at: int
    files_at: int
    stated: int | None
    file_time: int
    life: int = 0


def facts_of(lives: tuple[Execution, ...], copies: tuple[Copy, ...]) -> ClusterFacts:
    """The facts of some copies, as production reads them from the directories."""
    captures: list[Capture] = []
    records: list[CapturedControlRecord] = []
    snapshots: list[SnapshotFacts] = []
    for copy in copies:
        execution = lives[copy.life]
        replica = execution.moments[copy.log_at][copy.slot]
        beside = execution.moments[copy.files_at][copy.slot]
        capture = _capture(execution, replica, beside, copy)
        captures.append(capture)
        records += _control_records(execution, replica)
        snapshots += [_snapshot(execution, replica, held, capture) for held in replica.log.snapshots]
    ends = {
        (batch.leader_epoch, batch.end_offset)
        for copy in copies
        for batch in lives[copy.life].moments[copy.log_at][copy.slot].log.batches
    }
    return ClusterFacts(
        lives[0].script.setup.cluster_id,
        tuple(captures),
        tuple(records),
        tuple(
            replace(s, batch_end=s.end_offset if (s.leader_epoch, s.end_offset) in ends else None)
            for s in snapshots
        ),
    )


def _capture(execution: Execution, replica: Replica, beside: Replica, copy: Copy) -> Capture:
    log = replica.log
    at, source = (copy.file_time, "file_time") if copy.stated is None else (copy.stated, "capture.json")
    runs = _runs(execution, tuple(log.batches))
    proving = [snapshot.end_offset for snapshot in log.snapshots if snapshot.end_offset > 0]
    leader_id, voted = beside.leader.leader_id, beside.voted
    leader = -1 if leader_id is None else leader_id
    with_version = beside.kraft_version > 0
    entries = beside.log.epochs.entries
    voted_directory = (voted.directory_id or ZERO_UUID if voted else ZERO_UUID) if with_version else None
    content = (replica.key, runs, log.snapshots, beside.epoch, leader, voted, entries, log.segments)
    headers = [execution.snapshotted_at[s.end_offset, s.leader_epoch] for s in log.snapshots if s.end_offset]
    captured_from, captured_until, time_source = copied_between(at, source, runs, headers)
    return Capture(
        capture_id=f"{hash(content):x}",
        node_id=replica.key.id,
        directory_id=replica.key.directory_id or ZERO_UUID,
        captured_at=at,
        log_start_offset=log.segments[0].base_offset,
        log_end_offset=max([*proving, log.segments[-1].base_offset, *(run.end_offset for run in runs[-1:])]),
        runs=runs,
        quorum_state_epoch=beside.epoch,
        quorum_state_leader_id=leader,
        voted_id=voted.id if voted else -1,
        voted_directory_id=voted_directory,
        current_voters=None if with_version else tuple(beside.voters.ids),
        leader_epoch_checkpoint=entries,
        captured_from=captured_from,
        captured_until=captured_until,
        time_source=time_source,
    )


def _runs(execution: Execution, batches: tuple[Batch, ...]) -> tuple[EpochRange, ...]:
    runs: list[EpochRange] = []
    first = 0
    for nth, batch in enumerate(batches):
        following = batches[nth + 1] if nth + 1 < len(batches) else None
        joined = following is not None and following.leader_epoch == batch.leader_epoch
        if not joined or following is None or following.base_offset != batch.end_offset:
            runs.append(_run(execution, batches[first : nth + 1]))
            first = nth + 1
    return tuple(runs)


def _run(execution: Execution, batches: tuple[Batch, ...]) -> EpochRange:
    first, last = batches[0], batches[-1]
    begins = any(isinstance(record.value, LeaderChange) for record in first.control_records)
    data = next((batch for batch in batches if not batch.control_records), None) if begins else None
    return EpochRange(
        first.leader_epoch,
        first.base_offset,
        last.end_offset,
        str([(batch.base_offset, batch.end_offset, _crc(execution, batch)) for batch in batches]),
        _appended_at(execution, first),
        max(_appended_at(execution, batch) for batch in batches),
        first.end_offset if begins else None,
        data.end_offset if data else None,
        _appended_at(execution, data) if data else None,
    )


def _appended_at(execution: Execution, batch: Batch) -> int:
    return execution.appended_at[batch.base_offset, batch.leader_epoch]


def _crc(execution: Execution, batch: Batch) -> int:
    """That of a real batch covers its timestamps and records, too."""
    content = (batch.crc, batch.control_records, _appended_at(execution, batch))
    return zlib.crc32(repr(content).encode())


def rule_facts_of(lives: tuple[Execution, ...], copies: tuple[Copy, ...]) -> RuleFacts:
    """The batches that differ where offset and epoch are the same, as the lake's queries find them."""
    held: defaultdict[Place, dict[tuple[int, int, int], set[tuple[int, str]]]] = defaultdict(dict)
    for copy in copies:
        execution = lives[copy.life]
        replica = execution.moments[copy.log_at][copy.slot]
        holder = (replica.key.id, replica.key.directory_id or ZERO_UUID)
        for batch in replica.log.batches:
            content = (batch.end_offset, _crc(execution, batch), batch.size_bytes)
            held[batch.base_offset, batch.leader_epoch].setdefault(content, set()).add(holder)
    return RuleFacts(
        tuple(
            BatchConflict(
                epoch,
                base,
                tuple(BatchCopy(*content, tuple(sorted(holders))) for content, holders in contents.items()),
            )
            for (base, epoch), contents in held.items()
            if len(contents) > 1
        )
    )


def _control_records(execution: Execution, replica: Replica) -> list[CapturedControlRecord]:
    found: list[CapturedControlRecord] = []
    for batch in replica.log.batches:
        for record in batch.control_records:
            kind, value = _control_value(record.value)
            found.append(
                CapturedControlRecord(
                    record.offset,
                    batch.leader_epoch,
                    batch.base_offset,
                    batch.end_offset,
                    _crc(execution, batch),
                    _appended_at(execution, batch),
                    kind,
                    value,
                )
            )
    return found


def _control_value(value: LeaderChange | KRaftVersion | VoterSet) -> tuple[Any, dict[str, Any]]:
    match value:
        case LeaderChange():
            return "LeaderChange", {
                "version": 0,
                "leaderId": value.leader_id,
                "voters": [{"voterId": voter.id} for voter in value.voters],
                "grantingVoters": [{"voterId": voter.id} for voter in value.granting_voters],
            }
        case KRaftVersion():
            return "KRaftVersion", {"version": 0, "kRaftVersion": value.level}
        case VoterSet():
            return "KRaftVoters", value.to_record()


def _snapshot(execution: Execution, replica: Replica, held: Snapshot, capture: Capture) -> SnapshotFacts:
    contained = [
        at
        for (base, epoch), at in execution.appended_at.items()
        if base < held.end_offset and epoch <= held.leader_epoch
    ]
    written_at = execution.snapshotted_at[held.end_offset, held.leader_epoch]
    return SnapshotFacts(
        end_offset=held.end_offset,
        leader_epoch=held.leader_epoch,
        content_digest=f"{held.end_offset} {held.leader_epoch} {held.voters}",
        complete=True,
        unfinished=False,
        header_timestamp=written_at,
        last_contained_log_timestamp=max(contained, default=0) if held.end_offset else 0,
        kraft_version=held.kraft_version,
        voters=None if held.voters is None else held.voters.to_record()["voters"],
        metadata_version=None,
        batch_end=None,
        held_by=((replica.key.id, replica.key.directory_id or ZERO_UUID),),
        first_captured_at=capture.captured_at,
        held_in=(capture.capture_id,),
    )
