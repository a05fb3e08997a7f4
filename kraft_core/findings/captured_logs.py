"""A captured log as the engine's value, for the rules of raft.invariants.

Captures come as epoch ranges and control records, so what lies between two control batches is one batch here.
Rules that read a log from its start need it without gaps and with readable voter sets: the log is cut into
sections, and each is checked as a log that begins at its first offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, CapturedControlRecord, EpochRange, SnapshotFacts
from kraft_core.evidence.states import record_set
from kraft_core.findings.facts import BatchConflict
from kraft_core.raft.batches import Batch, Batches, ControlRecord
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.log import ReplicaLog, Segment, Snapshot
from kraft_core.raft.reading import control_record
from kraft_core.raft.voters import ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True)
class _ControlBatch:
    """A control batch. unreadable: it sets voters or kraft.version, and its record cannot be read."""

    batch: Batch
    unreadable: bool


@dataclass(frozen=True, slots=True)
class _Logs:
    """One captured log, whole and cut."""

    whole: ReplicaLog
    sections: tuple[ReplicaLog, ...]


class CapturedLogs:
    """The logs of a cluster's captures."""

    def __init__(self, known: Conclusions, conflicts: tuple[BatchConflict, ...]) -> None:
        self._control = _control_batches(known.facts.control_records)
        self._bases = {epoch: [c.batch.base_offset for c in cs] for epoch, cs in self._control.items()}
        self._copies = {
            (conflict.leader_epoch, conflict.base_offset): conflict.copies for conflict in conflicts
        }
        self._kept: tuple[Capture, _Logs] | None = None
        self._snapshots: defaultdict[ReplicaKey, list[SnapshotFacts]] = defaultdict(list)
        for snapshot in known.facts.snapshots:
            for holder in snapshot.held_by:
                self._snapshots[ReplicaKey.of(*holder)].append(snapshot)

    def snapshots(self, capture: Capture) -> list[SnapshotFacts]:
        """The complete checkpoints of a capture; of the bootstrap ones, that with the voters."""
        return [
            s
            for s in self._snapshots[capture.replica]
            if s.complete and not s.unfinished and (not s.held_in or capture.capture_id in s.held_in)
            if not s.is_bootstrap or s.voters is not None
        ]

    def whole(self, capture: Capture) -> ReplicaLog:
        """The captured log with its gaps, for rules about its bounds, epochs and snapshots."""
        return self._of(capture).whole

    def sections(self, capture: Capture) -> tuple[ReplicaLog, ...]:
        """The captured log cut at gaps, and after unreadable records that set voters or kraft.version."""
        return self._of(capture).sections

    def _of(self, capture: Capture) -> _Logs:
        """Only the last capture's logs are cached: rules go capture by capture, and all would fill memory."""
        if self._kept is None or self._kept[0] is not capture:
            epoch_ranges = sorted(capture.epoch_ranges, key=lambda epoch_range: epoch_range.first_offset)
            held = [(epoch_range, list(self._batches(capture, epoch_range))) for epoch_range in epoch_ranges]
            whole = self._log(capture, [c.batch for _, batches in held for c in batches])
            whole = replace(whole, segments=(Segment(capture.log_start_offset or 0),))
            self._kept = (capture, _Logs(whole, tuple(self._sections(capture, held))))
        return self._kept[1]

    def _sections(
        self, capture: Capture, held: Iterable[tuple[EpochRange, list[_ControlBatch]]]
    ) -> Iterator[ReplicaLog]:
        section: list[Batch] = []
        end: int | None = None
        for epoch_range, batches in held:
            if section and epoch_range.first_offset != end:
                yield self._log(capture, section)
                section = []
            for each in batches:
                section.append(each.batch)
                if each.unreadable:
                    yield self._log(capture, section)
                    section = []
            end = epoch_range.end_offset
        if section:
            yield self._log(capture, section)

    def _log(self, capture: Capture, batches: list[Batch]) -> ReplicaLog:
        start = batches[0].base_offset if batches else capture.log_start_offset or 0
        end = batches[-1].end_offset if batches else start
        snapshots = [engine_snapshot(s) for s in self.snapshots(capture) if start <= s.end_offset <= end]
        return ReplicaLog(
            start_offset=start,
            end_offset=end,
            high_watermark=start,
            epochs=EpochCache(capture.leader_epoch_checkpoint or ()),
            batches=Batches(batches),
            segments=(Segment(start),),
            snapshots=tuple(sorted(snapshots, key=lambda snapshot: snapshot.order)),
        )

    def _batches(self, capture: Capture, epoch_range: EpochRange) -> Iterator[_ControlBatch]:
        """The batches of an epoch range: its control batches, and one for all that lies between two."""
        at = epoch_range.first_offset
        for held in self._control_of(capture, epoch_range):
            if held.batch.base_offset < at:
                continue
            if at < held.batch.base_offset:
                yield _ControlBatch(Batch(at, held.batch.base_offset - 1, epoch_range.leader_epoch), False)
            yield held
            at = held.batch.end_offset
        if at < epoch_range.end_offset:
            yield _ControlBatch(Batch(at, epoch_range.end_offset - 1, epoch_range.leader_epoch), False)

    def _control_of(self, capture: Capture, epoch_range: EpochRange) -> Iterator[_ControlBatch]:
        bases = self._bases.get(epoch_range.leader_epoch, [])
        first, end = bisect_left(bases, epoch_range.first_offset), bisect_left(bases, epoch_range.end_offset)
        for held in self._control.get(epoch_range.leader_epoch, [])[first:end]:
            copies = self._copies.get((epoch_range.leader_epoch, held.batch.base_offset), ())
            mine = [c.crc for c in copies if (capture.node_id, capture.directory_id) in c.held_by]
            if held.batch.end_offset <= epoch_range.end_offset and (not mine or held.batch.crc in mine):
                yield held


def _control_batches(records: tuple[CapturedControlRecord, ...]) -> dict[int, list[_ControlBatch]]:
    """Control batches by epoch, ordered by base offset, then crc."""
    grouped: defaultdict[tuple[int, int, int], list[CapturedControlRecord]] = defaultdict(list)
    for record in records:
        grouped[record.leader_epoch, record.batch_base_offset, record.batch_crc].append(record)
    found: defaultdict[int, list[_ControlBatch]] = defaultdict(list)
    for (epoch, base, crc), members in sorted(grouped.items()):
        values = [value for r in sorted(members, key=_offset) if (value := _value(r)) is not None]
        end = max(record.batch_end_offset for record in members)
        lost = any(_value(record) is None for record in members if record.type != "LeaderChange")
        found[epoch].append(_ControlBatch(Batch(base, end - 1, epoch, 0, crc, tuple(values)), lost))
    return found


def _value(record: CapturedControlRecord) -> ControlRecord | None:
    """The record as the engine's value, None if it cannot be read or names no voters."""
    if record.value is None or (record.type == "KRaftVoters" and record_set(record) is None):
        return None
    return control_record(record.offset, record.type, record.value)


def engine_snapshot(facts: SnapshotFacts) -> Snapshot:
    """A checkpoint as the engine's value."""
    voters = VoterSet.from_record({"voters": facts.voters}) if facts.voters else None
    return Snapshot(facts.end_offset, facts.leader_epoch, facts.kraft_version, voters)


def _offset(record: CapturedControlRecord) -> int:
    return record.offset
