"""A captured log as the engine's value, for the rules of raft.invariants.

Captures come as epoch ranges and control records, so what lies between two control batches is one batch here.
Rules that read a log from its start need it without gaps and with readable voter sets: the log is cut into
sections, and each is checked as a log that begins at its first offset.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, CapturedControlRecord, EpochRange, SnapshotFacts
from kraft_core.evidence.states import record_set
from kraft_core.findings.facts import BatchConflict, Holder
from kraft_core.raft.batches import Batch, Batches, ControlRecord, control_record
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.log import ReplicaLog, Segment, Snapshot
from kraft_core.raft.rules import Violation
from kraft_core.raft.voters import ReplicaKey, VoterSet

# Captures go by time, so that those with equal logs are close together.
KEPT_LOGS = 16
# Stands for the end of a log that goes on behind all that rules look at; no offset.
_BEHIND = -1


@dataclass(frozen=True, slots=True)
class _ControlBatch:
    """A control batch. unreadable: it sets voters or kraft.version, and its record cannot be read."""

    batch: Batch
    unreadable: bool


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """What a captured log is to the rules: captures whose logs are equal share one.

    whole: with its gaps, for rules about its bounds, epochs and snapshots. sections: cut at gaps, and after
    unreadable records that set voters or kraft.version. snapshots: as CapturedLogs.snapshots. entries: of
    leader-epoch-checkpoint, None if unreadable.
    """

    whole: ReplicaLog
    sections: tuple[ReplicaLog, ...]
    snapshots: tuple[SnapshotFacts, ...]
    entries: tuple[tuple[int, int], ...] | None
    _found: dict[Hashable, tuple[Violation, ...]] = field(
        default_factory=dict[Hashable, tuple[Violation, ...]], compare=False
    )

    def violations(self, rule: Callable[[JudgedLog], Iterator[Violation]]) -> tuple[Violation, ...]:
        """What a rule finds; it is asked once."""
        return self._once(rule, lambda: rule(self))

    def in_whole(self, rule: Callable[[ReplicaLog], Iterator[Violation]]) -> tuple[Violation, ...]:
        """What a rule finds in the whole log; it is asked once."""
        return self._once(("whole", rule), lambda: rule(self.whole))

    def in_sections(self, rule: Callable[[ReplicaLog], Iterator[Violation]]) -> tuple[Violation, ...]:
        """What a rule finds in the sections; it is asked once."""
        return self._once(("sections", rule), lambda: chain.from_iterable(map(rule, self.sections)))

    def _once(self, key: Hashable, ask: Callable[[], Iterable[Violation]]) -> tuple[Violation, ...]:
        if key not in self._found:
            self._found[key] = tuple(ask())
        return self._found[key]


class CapturedLogs:
    """The logs of a cluster's captures."""

    def __init__(self, known: Conclusions, conflicts: tuple[BatchConflict, ...]) -> None:
        self._control = _control_batches(known.facts.control_records)
        self._bases = {epoch: [c.batch.base_offset for c in cs] for epoch, cs in self._control.items()}
        self._ends = {epoch: max(c.batch.end_offset for c in cs) for epoch, cs in self._control.items()}
        self._copies = {
            (conflict.leader_epoch, conflict.base_offset): conflict.copies for conflict in conflicts
        }
        # By content, the last used at the end; all logs of a year would fill memory.
        self._logs: OrderedDict[Hashable, JudgedLog] = OrderedDict()
        self._last: tuple[Capture, JudgedLog] | None = None
        # A number for what ranges cover. By the object, too, which is held so that no other one has its id.
        self._numbers: dict[tuple[tuple[int, int, int], ...], int] = {}
        self._numbered: dict[tuple[int, bool], tuple[tuple[EpochRange, ...], int]] = {}
        # By capture id; of a checkpoint whose captures are unknown, by replica.
        self._snapshots: defaultdict[str | ReplicaKey, list[tuple[int, SnapshotFacts]]] = defaultdict(list)
        for nth, snapshot in enumerate(filter(_is_usable, known.facts.snapshots)):
            for holder in dict.fromkeys(snapshot.held_in or map(_replica, snapshot.held_by)):
                self._snapshots[holder].append((nth, snapshot))

    def snapshots(self, capture: Capture) -> list[SnapshotFacts]:
        """The complete checkpoints of a capture; of the bootstrap ones, that with the voters."""
        return [snapshot for _, snapshot in self._held(capture)]

    def _held(self, capture: Capture) -> list[tuple[int, SnapshotFacts]]:
        """Its checkpoints, numbered."""
        held = [*self._snapshots.get(capture.capture_id, ()), *self._snapshots.get(capture.replica, ())]
        return sorted(held, key=itemgetter(0)) if held else held

    def of(self, capture: Capture) -> JudgedLog:
        """The log of a capture; rules ask for it capture by capture."""
        if self._last is None or self._last[0] is not capture:
            self._last = capture, self._shared(capture)
        return self._last[1]

    def content(self, capture: Capture) -> Hashable:
        """What its log is made of: captures of which that is equal, of any replica, have equal logs."""
        return self._content(capture, self._held(capture), with_end=True)

    def outline(self, capture: Capture) -> Hashable:
        """Its content, without the end of a log that goes on behind everything that rules look at in one log.

        That is control batches, ends of checkpoints and entries of leader-epoch-checkpoint: how far a log
        goes on behind these does not matter to whether a rule finds anything in it.
        """
        held = self._held(capture)
        return self._content(capture, held, with_end=not self._goes_on(capture, held))

    def _goes_on(self, capture: Capture, held: Iterable[tuple[int, SnapshotFacts]]) -> bool:
        if not capture.epoch_ranges:
            return False
        last = capture.epoch_ranges[-1]
        return (
            last.end_offset > self._ends.get(last.leader_epoch, 0)
            and all(last.end_offset > snapshot.end_offset for _, snapshot in held)
            and all(last.end_offset > start for _, start in capture.leader_epoch_checkpoint or ())
        )

    def _content(
        self, capture: Capture, held: Iterable[tuple[int, SnapshotFacts]], *, with_end: bool
    ) -> Hashable:
        return (
            capture.log_start_offset,
            capture.leader_epoch_checkpoint,
            self._number(capture.epoch_ranges, with_end),
            tuple(nth for nth, _ in held),
            # Of batches that differ, copies name who holds which.
            capture.replica if self._copies else None,
        )

    def _number(self, epoch_ranges: tuple[EpochRange, ...], with_end: bool) -> int:
        """Of ranges that cover the same offsets of the same epochs. with_end: of the last one, too."""
        known = self._numbered.get((id(epoch_ranges), with_end))
        if known is None:
            places = [(r.leader_epoch, r.first_offset, r.end_offset) for r in epoch_ranges]
            if not with_end:
                places[-1] = *places[-1][:2], _BEHIND
            known = epoch_ranges, self._numbers.setdefault(tuple(places), len(self._numbers))
            self._numbered[id(epoch_ranges), with_end] = known
        return known[1]

    def _shared(self, capture: Capture) -> JudgedLog:
        key = self.content(capture)
        if key not in self._logs:
            self._logs[key] = self._made(capture, tuple(self.snapshots(capture)))
            if len(self._logs) > KEPT_LOGS:
                self._logs.popitem(last=False)
        self._logs.move_to_end(key)
        return self._logs[key]

    def _made(self, capture: Capture, snapshots: tuple[SnapshotFacts, ...]) -> JudgedLog:
        epoch_ranges = sorted(capture.epoch_ranges, key=lambda epoch_range: epoch_range.first_offset)
        held = [(epoch_range, list(self._batches(capture, epoch_range))) for epoch_range in epoch_ranges]
        entries = capture.leader_epoch_checkpoint
        origin = _Origin(capture.log_start_offset or 0, EpochCache(entries or ()), snapshots)
        whole = origin.log([c.batch for _, batches in held for c in batches], origin.log_start_offset)
        return JudgedLog(whole, tuple(_sections(origin, held)), snapshots, entries)

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


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a log has beside its batches. log_start_offset: 0 where no segment was captured."""

    log_start_offset: int
    epochs: EpochCache
    snapshots: tuple[SnapshotFacts, ...]

    def log(self, batches: list[Batch], first_segment: int) -> ReplicaLog:
        start = batches[0].base_offset if batches else self.log_start_offset
        end = batches[-1].end_offset if batches else start
        snapshots = [engine_snapshot(s) for s in self.snapshots if start <= s.end_offset <= end]
        return ReplicaLog(
            start_offset=start,
            end_offset=end,
            high_watermark=start,
            epochs=self.epochs,
            batches=Batches(batches),
            segments=(Segment(first_segment),),
            snapshots=tuple(sorted(snapshots, key=lambda snapshot: snapshot.order)),
        )


def _sections(
    origin: _Origin, held: Iterable[tuple[EpochRange, list[_ControlBatch]]]
) -> Iterator[ReplicaLog]:
    section: list[Batch] = []
    end: int | None = None
    for epoch_range, batches in held:
        if section and epoch_range.first_offset != end:
            yield origin.log(section, section[0].base_offset)
            section = []
        for each in batches:
            section.append(each.batch)
            if each.unreadable:
                yield origin.log(section, section[0].base_offset)
                section = []
        end = epoch_range.end_offset
    if section:
        yield origin.log(section, section[0].base_offset)


def _is_usable(snapshot: SnapshotFacts) -> bool:
    """Whether it is complete and, if it is a bootstrap one, has the voters."""
    return (
        snapshot.complete
        and not snapshot.unfinished
        and (not snapshot.is_bootstrap or snapshot.voters is not None)
    )


def _replica(holder: Holder) -> ReplicaKey:
    return ReplicaKey.of(*holder)


def _control_batches(records: tuple[CapturedControlRecord, ...]) -> dict[int, list[_ControlBatch]]:
    """Control batches by epoch, ordered by base offset, then crc."""
    grouped: defaultdict[tuple[int, int, int], list[CapturedControlRecord]] = defaultdict(list)
    for record in records:
        grouped[record.leader_epoch, record.batch_base_offset, record.batch_crc].append(record)
    found: defaultdict[int, list[_ControlBatch]] = defaultdict(list)
    for (epoch, base, crc), members in sorted(grouped.items()):
        values = [value for r in sorted(members, key=lambda r: r.offset) if (value := _value(r)) is not None]
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
