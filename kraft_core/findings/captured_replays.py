"""What a replay of captured logs finds, for the rules 22 and 49, without a lake.

One replay follows the path of the histories (replay_path) and meets most checkpoints on its way, which must
equal it there; those of other logs need a replay of their own. A run into a lake finds the same by columns
(transforms.quality.snapshot_checks, transforms.histories.refused_records).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.epochs import epochs
from kraft_core.evidence.ranges import log_ranges
from kraft_core.findings.captured_order import order_faults
from kraft_core.findings.facts import (
    MOST_REFUSED,
    Holder,
    LogOrderFault,
    RuleFacts,
    SnapshotDeviation,
)
from kraft_core.findings.log_records import CheckpointRecords, LogRecords, key_of
from kraft_core.findings.replay_refusals import replay_refusal
from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.findings.snapshot_replays import (
    CheckpointKey,
    Log,
    Part,
    SnapshotReplay,
    begins,
    comparisons,
    replays,
)
from kraft_core.findings.unread_files import unread_files
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.message_reader import has_unknown_fields
from kraft_core.format.record import Record
from kraft_core.image.change import RefusedRecord
from kraft_core.image.image import Image
from kraft_core.image.refusals import NO_TRANSACTION
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange, Step, replay_path
from kraft_core.image.snapshot_check import deviations


@dataclass(slots=True)
class _Stretch:
    """A log without a gap, to be replayed onto a checkpoint, or from offset 0 onto nothing.

    on_path: whether it is on the path of the histories, where refused records count. compared: the
    checkpoints that must equal the replay at their ends.
    """

    base: CheckpointKey | None
    log: Log
    on_path: bool = False
    compared: set[CheckpointKey] = field(default_factory=set[CheckpointKey])


def file_facts(known: Conclusions, directories: Iterable[tuple[str, ControllerDir]]) -> RuleFacts:
    """What the files of captured directories add to the facts of the captures: what of them cannot be read,
    and what a replay of their records finds (replay_facts). Raises OSError.

    directories: each with the id of its capture, which copies share.
    """
    held = list(directories)
    facts = replay_facts(known, dict(held))
    return replace(facts, unreadable=(*unread_files(held), *facts.unreadable))


def replay_facts(known: Conclusions, directories: Mapping[str, ControllerDir]) -> RuleFacts:
    """Checkpoints that differ from the replay, records that Kafka refuses, values of records, also in
    checkpoints, that cannot be decoded, and batches that are out of order. Raises OSError.

    directories: of the captures by their ids; every record in them is read.
    """
    contested = {epoch for epoch, line in known.lineage.lines.items() if line.contested}
    records = LogRecords(known.facts.captures, known.facts.snapshots, directories, contested)
    deviating: list[SnapshotDeviation] = []
    refused: list[RefusedRecord] = []
    disordered = tuple(order_faults(known.facts.captures, directories))
    steps = _path(known)
    for stretch in _stretches(known, steps, disordered):
        replay = _Replay(records, stretch)
        replay.run()
        deviating += replay.deviations
        refused += replay.refused
    located = (replay_refusal(steps, record) for record in sorted(refused)[:MOST_REFUSED])
    lost = tuple(records.lost_values())
    return RuleFacts(
        order_faults=disordered,
        unreadable=lost,
        snapshot_deviations=tuple(deviating),
        replay_refusals=tuple(each for each in located if each is not None),
    )


def _stretches(
    known: Conclusions, steps: Iterable[Step], disordered: Iterable[LogOrderFault]
) -> list[_Stretch]:
    """The path of the histories (steps), and what else checkpoints are compared with."""
    found = list(_of_path(steps))
    for each in _compared(known, {fault.held_twice for fault in disordered if fault.held_twice}):
        along = (s for s in found if s.on_path and s.base == each.start and begins(each.log, s.log))
        stretch = next(along, None)
        if stretch is None:
            stretch = _Stretch(each.start, each.log)
            found.append(stretch)
        stretch.compared.update(comparison.checkpoint for comparison in each.comparisons)
    return found


def _compared(known: Conclusions, held_twice: set[tuple[int, int]]) -> list[SnapshotReplay]:
    held: defaultdict[Holder, set[CheckpointKey]] = defaultdict(set)
    for snapshot in known.facts.snapshots:
        for holder in snapshot.held_by if snapshot.proves else ():
            held[holder].add(key_of(snapshot))
    return replays(comparisons(known.lineage, held, held_twice), ())


def _path(known: Conclusions) -> list[Step]:
    """The path of the histories."""
    ranges = (
        ReplayRange(r.first_offset, r.end_offset, r.leader_epoch, r.commit_status) for r in log_ranges(known)
    )
    checkpoints = (
        PathCheckpoint(s.end_offset, s.leader_epoch, s.content_digest, s.last_contained_log_timestamp)
        for s in known.facts.snapshots
        if s.proves
    )
    previous = {e.leader_epoch: e.previous_epoch for e in epochs(known) if e.previous_epoch is not None}
    return list(replay_path(ranges, checkpoints, previous))


def _of_path(steps: Iterable[Step]) -> Iterator[_Stretch]:
    """The stretches of the path of the histories, but for those onto which what is missing changed."""
    base: CheckpointKey | None = None
    along: list[ReplayRange] = []
    end: int | None = 0
    for step in steps:
        if isinstance(step, PathCheckpoint):
            if base is not None or along:
                yield _Stretch(base, _log(along), on_path=True)
            base, along = CheckpointKey(step.end_offset, step.leader_epoch, step.content_digest), []
            end = step.end_offset
        elif step.first_offset == end:
            along.append(step)
            end = step.end_offset
        else:
            end = None
    if base is not None or along:
        yield _Stretch(base, _log(along), on_path=True)


def _log(ranges: Iterable[ReplayRange]) -> Log:
    """Ranges that follow each other, as one part for each epoch."""
    parts: list[Part] = []
    for each in ranges:
        if parts and parts[-1].leader_epoch == each.leader_epoch:
            parts[-1] = replace(parts[-1], end_offset=each.end_offset)
        else:
            parts.append(Part(each.leader_epoch, each.first_offset, each.end_offset))
    return tuple(parts)


class _Replay:
    """The replay of a stretch: owns its image, and what was found so far.

    _counts: whether a refused record is one that Kafka refuses: all records so far are understood, and none
    in the checkpoint is refused. Else what they change may explain it.
    """

    def __init__(self, records: LogRecords, stretch: _Stretch) -> None:
        self.deviations: list[SnapshotDeviation] = []
        self.refused: list[RefusedRecord] = []
        self._records = records
        self._stretch = stretch
        self._ahead = sorted(stretch.compared, reverse=True)
        self._image = Image()
        self._counts = stretch.on_path

    def run(self) -> None:
        base, log = self._stretch.base, self._stretch.log
        if base is not None and not self._load(base):
            return
        reached = log[0].first_offset if log else 0
        is_known = True
        for record in self._records.of_log(log):
            if not is_known:
                continue
            # Every record comes here: what few need is asked for in place.
            offset = record.offset
            if self._ahead and self._ahead[-1].end_offset <= offset:
                self._compare(offset)
            if not _is_understood(record):
                self._take_refused()
                self._counts, is_known = False, record.reason is None
                if not is_known:
                    continue
            self._image.pass_over(record)
            reached = offset + 1
        self._compare(reached)
        self._take_refused()

    def _load(self, base: CheckpointKey) -> bool:
        """Start from a checkpoint. Returns whether all of its records could be read."""
        loaded = self._records.of_checkpoint(base)
        if any(record.reason is not None for record in loaded.records):
            return False
        self._image = _image_of(base, loaded)
        self._counts = self._counts and all(map(_is_understood, loaded.records))
        refused = self._image.refusals
        # It is not known to lie outside of a transaction.
        refused[:] = [each for each in refused if each.cause != NO_TRANSACTION]
        in_order = not refused
        self._take_refused(at=base)
        self._counts = self._counts and in_order
        return True

    def _compare(self, reached: int) -> None:
        """Compare the checkpoints that end at or below an offset, up to which (exclusive) all is replayed."""
        while self._ahead and self._ahead[-1].end_offset <= reached:
            key = self._ahead.pop()
            loaded = self._records.of_checkpoint(key)
            if all(record.reason is None for record in loaded.records):
                found = deviations(self._image, _image_of(key, loaded))
                self.deviations += unlawful_deviations(
                    found, key.end_offset, key.leader_epoch, key.content_digest
                )

    def _take_refused(self, at: CheckpointKey | None = None) -> None:
        """Keep what was refused since the last call, of a checkpoint at its last offset."""
        image = self._image
        refused = image.refusals + image.controller_refusals
        for more in image.refused_in_open() if at is None and image.in_transaction else ():
            refused += more
        if self._counts:
            of_kafka = (each for each in refused if each.cause is not None)
            self.refused += (
                each if at is None else replace(each, offset=at.end_offset - 1, leader_epoch=at.leader_epoch)
                for each in of_kafka
            )
        image.refusals.clear()
        image.controller_refusals.clear()


def _image_of(key: CheckpointKey, loaded: CheckpointRecords) -> Image:
    return Image.of_snapshot(loaded.records, key.end_offset, key.leader_epoch, loaded.timestamp)


def _is_understood(record: Record) -> bool:
    return record.reason is None and not has_unknown_fields(record.value)
