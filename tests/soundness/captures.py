"""Captures of an execution: copies of directories, as facts, without a disk.

The facts are those that kraft_core.evidence.collect reads from the same directories written to disk
(test_soundness compares them); only digests are other names for the same contents.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
from kraft_core.format.capture import CapturedAtSource
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.protocol.lifecycle import durable_vote
from kraft_core.protocol.replica import Replica
from kraft_core.raft.batches import Batch, KRaftVersion, LeaderChange
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import VoterSet
from tests.soundness.execution import Execution, Place
from tests.soundness.missing import NOTHING, Missing, PartialLog, held


@dataclass(frozen=True, slots=True)
class Copy:
    """A directory's copy. Moments are indexes of the execution's.

    log_at: when its segments and checkpoints were copied. files_at: when quorum-state and
    leader-epoch-checkpoint were. begun_at, checkpoints_at: when copying began, and when checkpoints were
    copied, if those were other moments. stated: the time (ms) that capture.json names; None: it has none, and
    the newest file time is `file_time`. life: of a cloned quorum, which of the two. missing: what it lacks.
    early_ms: its stated time is wrong, and lies so long before the newest timestamp inside, if there is one.
    older: an earlier moment, and the offset below which its segments are of that one.
    """

    slot: int
    log_at: int
    files_at: int
    stated: int | None
    file_time: int
    life: int = 0
    missing: Missing = NOTHING
    early_ms: int = 0
    older: tuple[int, int] = (0, 0)
    begun_at: int | None = None
    checkpoints_at: int | None = None

    @property
    def begun(self) -> int:
        """When copying began."""
        return self.log_at if self.begun_at is None else self.begun_at

    @property
    def has_other_checkpoints(self) -> bool:
        """Whether its checkpoints are older or newer than its segments."""
        return self.checkpoints_at not in (None, self.log_at)


def held_by(execution: Execution, copy: Copy) -> PartialLog:
    """The log that a copy holds."""
    log, (moment, end) = held(execution.moments[copy.log_at][copy.slot], copy.missing), copy.older
    if copy.checkpoints_at is not None and not copy.missing.checkpoints:
        log = replace(log, snapshots=execution.moments[copy.checkpoints_at][copy.slot].log.snapshots)
    if not end:
        return log
    then = execution.moments[moment][copy.slot].log
    first = (batch for batch in then.batches if batch.base_offset < end)
    rest = (batch for batch in log.batches if batch.base_offset >= end)
    return replace(log, batches=(*first, *rest), start_offset=then.segments[0].base_offset)


def clock_error(execution: Execution, copy: Copy) -> int:
    """By how much (ms) the clock that states a copy's time is fast; 0 where nothing states it."""
    return 0 if copy.stated is None else copy.stated - execution.at[copy.begun]


def is_disordered(copies: Sequence[Copy]) -> bool:
    """Whether stated times say that a directory's copy was made before another one, and its log was not."""
    stated = [(copy.slot, copy.log_at, copy.stated) for copy in copies if copy.stated is not None]
    return any(
        slot == other and at < later and time > earlier
        for slot, at, time in stated
        for other, later, earlier in stated
    )


def facts_of(lives: tuple[Execution, ...], copies: tuple[Copy, ...]) -> ClusterFacts:
    """The facts of some copies, as production reads them from the directories."""
    captures: list[Capture] = []
    records: list[CapturedControlRecord] = []
    snapshots: list[SnapshotFacts] = []
    for copy in copies:
        execution = lives[copy.life]
        log = held_by(execution, copy)
        capture = _capture(execution, log, copy)
        captures.append(capture)
        records += control_records_of(execution, log.batches)
        snapshots += [snapshot_of(execution, one, capture) for one in log.snapshots]
    ends = {
        (batch.leader_epoch, batch.end_offset)
        for copy in copies
        for batch in held_by(lives[copy.life], copy).batches
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


def _capture(execution: Execution, log: PartialLog, copy: Copy) -> Capture:
    key = execution.moments[copy.log_at][copy.slot].key
    beside, missing = execution.moments[copy.files_at][copy.slot], copy.missing
    epoch_ranges = epoch_ranges_of(execution, log.batches)
    ends = [snapshot.end_offset for snapshot in log.snapshots if snapshot.end_offset > 0]
    ends += (
        []
        if log.named_end is None
        else [log.named_end, *(epoch_range.end_offset for epoch_range in epoch_ranges[-1:])]
    )
    entries = None if missing.leader_epoch_checkpoint else beside.log.epochs.entries
    state = _NO_STATE if missing.quorum_state else _quorum_state(beside)
    directory_id = ZERO_UUID if missing.directory_id else key.directory_id or ZERO_UUID
    content = (
        key.id,
        directory_id,
        epoch_ranges,
        log.snapshots,
        log.named_end,
        log.readable,
        *state.values(),
        entries,
    )
    headers = [
        execution.header_timestamp((s.end_offset, s.leader_epoch)) for s in log.snapshots if s.end_offset
    ]
    at, source = _stated_time(
        copy, [*(epoch_range.last_appended_at for epoch_range in epoch_ranges), *headers]
    )
    captured_from, captured_until, time_source = copied_between(at, source, epoch_ranges, headers)
    return Capture(
        capture_id=f"{hash(content):x}",
        node_id=key.id,
        directory_id=directory_id,
        captured_at=at,
        log_start_offset=log.start_offset,
        log_end_offset=max(ends, default=None),
        epoch_ranges=epoch_ranges,
        leader_epoch_checkpoint=entries,
        tail_damaged=log.tail_damaged,
        readable=log.readable,
        captured_from=captured_from,
        captured_until=captured_until,
        time_source=time_source,
        captured_at_source=source,
        **state,
    )


def _stated_time(copy: Copy, inside: list[int]) -> tuple[int, CapturedAtSource]:
    if copy.stated is None:
        return copy.file_time, "file_time"
    return max(inside) - copy.early_ms if copy.early_ms and inside else copy.stated, "capture.json"


_NO_STATE: dict[str, Any] = {}


def _quorum_state(replica: Replica) -> dict[str, Any]:
    """The fields of a capture that quorum-state gives."""
    leader_id, voted = replica.leader.leader_id, durable_vote(replica)
    voters = replica.quorum_state_voters
    voted_directory = voted.directory_id if voted else None
    return {
        "quorum_state_epoch": replica.epoch,
        "quorum_state_leader_id": -1 if leader_id is None else leader_id,
        "voted_id": voted.id if voted else -1,
        "voted_directory_id": voted_directory or ZERO_UUID if voters is None else None,
        "current_voters": voters,
    }


def epoch_ranges_of(execution: Execution, batches: tuple[Batch, ...]) -> tuple[EpochRange, ...]:
    """The epoch ranges of a log's batches."""
    epoch_ranges: list[EpochRange] = []
    first = 0
    for nth, batch in enumerate(batches):
        following = batches[nth + 1] if nth + 1 < len(batches) else None
        joined = following is not None and following.leader_epoch == batch.leader_epoch
        if not joined or following is None or following.base_offset != batch.end_offset:
            epoch_ranges.append(_run(execution, batches[first : nth + 1]))
            first = nth + 1
    return tuple(epoch_ranges)


def _run(execution: Execution, batches: tuple[Batch, ...]) -> EpochRange:
    first, last = batches[0], batches[-1]
    begins = any(isinstance(record.value, LeaderChange) for record in first.control_records)
    data = next((batch for batch in batches if not batch.control_records), None) if begins else None
    return EpochRange(
        first.leader_epoch,
        first.base_offset,
        last.end_offset,
        str([(batch.base_offset, batch.end_offset, batch_crc(execution, batch)) for batch in batches]),
        _appended_at(execution, first),
        max(_appended_at(execution, batch) for batch in batches),
        first.end_offset if begins else None,
        data.end_offset if data else None,
        _appended_at(execution, data) if data else None,
    )


def _appended_at(execution: Execution, batch: Batch) -> int:
    return execution.batch_timestamp((batch.base_offset, batch.leader_epoch))


def batch_crc(execution: Execution, batch: Batch) -> int:
    """That of a real batch covers its timestamps and records, too."""
    content = (batch.crc, batch.control_records, _appended_at(execution, batch))
    return zlib.crc32(repr(content).encode())


def rule_facts_of(lives: tuple[Execution, ...], copies: tuple[Copy, ...]) -> RuleFacts:
    """The batches that differ where offset and epoch are the same, as the lake's queries find them."""
    found: defaultdict[Place, dict[tuple[int, int, int], set[tuple[int, str]]]] = defaultdict(dict)
    for copy in copies:
        execution = lives[copy.life]
        key = execution.moments[copy.log_at][copy.slot].key
        holder = (key.id, ZERO_UUID if copy.missing.directory_id else key.directory_id or ZERO_UUID)
        for batch in held_by(execution, copy).batches:
            content = (batch.end_offset, batch_crc(execution, batch), batch.size_bytes)
            found[batch.base_offset, batch.leader_epoch].setdefault(content, set()).add(holder)
    return RuleFacts(
        tuple(
            BatchConflict(
                epoch,
                base,
                tuple(BatchCopy(*content, tuple(sorted(holders))) for content, holders in contents.items()),
            )
            for (base, epoch), contents in found.items()
            if len(contents) > 1
        )
    )


def control_records_of(execution: Execution, batches: Iterable[Batch]) -> list[CapturedControlRecord]:
    """The control records of batches, with the times at which they were appended."""
    found: list[CapturedControlRecord] = []
    for batch in batches:
        for record in batch.control_records:
            kind, value = _control_value(record.value)
            found.append(
                CapturedControlRecord(
                    record.offset,
                    batch.leader_epoch,
                    batch.base_offset,
                    batch.end_offset,
                    batch_crc(execution, batch),
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


def snapshot_of(execution: Execution, one: Snapshot, capture: Capture) -> SnapshotFacts:
    """A checkpoint that a capture holds."""
    contained = [
        execution.batch_timestamp((base, epoch))
        for base, epoch in execution.appended_at
        if base < one.end_offset and epoch <= one.leader_epoch
    ]
    written_at = execution.header_timestamp((one.end_offset, one.leader_epoch))
    return SnapshotFacts(
        end_offset=one.end_offset,
        leader_epoch=one.leader_epoch,
        content_digest=f"{one.end_offset} {one.leader_epoch} {one.voters}",
        complete=True,
        unfinished=False,
        header_timestamp=written_at,
        last_contained_log_timestamp=max(contained, default=0) if one.end_offset else 0,
        kraft_version=one.kraft_version,
        voters=None if one.voters is None else one.voters.to_record()["voters"],
        metadata_version=None,
        batch_end=None,
        held_by=((capture.node_id, capture.directory_id),),
        first_captured_at=capture.captured_at,
        held_in=(capture.capture_id,),
    )
