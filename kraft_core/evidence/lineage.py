"""The epochs of a cluster as one tree, read from the epoch ranges of its captured logs.

Raft's log matching (KIP-595): an epoch has one leader, which only appends; so two logs that hold the same
offset of the same epoch are equal up to there. An epoch's batches therefore form one line, that line hangs
at one offset on one line of an earlier epoch, and every capture shows a part of the same tree. Where
captures contradict that (two digests of the same range, two batches at one offset, two starts of one epoch,
a log that goes back to a lower epoch: no CRC covers that of a batch), the epoch is contested and proves
nothing. Then the captures are of two histories: a cloned or restored cluster, strangers with one cluster id.
What one lacks or overwrote says nothing about the other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from kraft_core.evidence.facts import Capture, CapturedControlRecord, ClusterFacts, EpochRange
from kraft_core.evidence.holdings import cached_epoch


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """An epoch begins at end_offset (exclusive) of the parent epoch's line, by a log that holds both there.

    last_appended_at: of the parent's last batch below, None if that batch was not captured.
    """

    parent: int
    end_offset: int
    last_appended_at: int | None


@dataclass(frozen=True, slots=True)
class EpochLine:
    """What all captures together show of one epoch's batches.

    covered: the offsets that some capture holds, as disjoint (first, end), rising. start: the epoch's first
    offset where it is known exactly. first_batch_end: end of its LEADER_CHANGE batch. appended_by: (end
    offset, ms): batches below that offset were appended by then; both rising. newest_capture_at: of the
    captures that hold any of it and say when they were taken; None if none does.
    """

    leader_epoch: int
    covered: tuple[tuple[int, int], ...]
    links: tuple[Link, ...]
    start: int | None
    first_batch_end: int | None
    first_data_end: int | None
    first_data_appended_at: int | None
    appended_by: tuple[tuple[int, int], ...]
    newest_capture_at: int | None
    contested: bool

    @property
    def first_offset(self) -> int:
        return self.covered[0][0]

    @property
    def end_offset(self) -> int:
        return self.covered[-1][1]

    def covers(self, offset: int) -> bool:
        return any(first <= offset < end for first, end in self.covered)

    def all_appended_by(self, end_offset: int) -> int | None:
        """When (ms) its batches below an offset had been appended; None where no log shows it."""
        nth = bisect_left(self.appended_by, end_offset, key=itemgetter(0))
        return self.appended_by[nth][1] if nth < len(self.appended_by) else None

    @property
    def below(self) -> Link | None:
        """The link to what lies directly below the epoch's first batch, None if that is not known."""
        return next((link for link in self.links if link.end_offset == self.start), None)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The epochs of captured logs, rising, and for each the epochs that begin on its line.

    contested_epochs: rising; () where the captures can be of one history.
    """

    lines: dict[int, EpochLine]
    children: dict[int, tuple[tuple[int, Link], ...]]
    contested_epochs: tuple[int, ...]


@dataclass(slots=True)
class _Line:
    ranges: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    digests: dict[tuple[int, int], str | int] = field(default_factory=dict[tuple[int, int], str | int])
    links: set[Link] = field(default_factory=set[Link])
    starts: set[int] = field(default_factory=set[int])
    first_batches: set[int] = field(default_factory=set[int])
    first_data: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    appended: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    newest_capture_at: int | None = None
    contested: bool = False

    def add(self, epoch_range: EpochRange, captured_until: int | None) -> None:
        bounds = (epoch_range.first_offset, epoch_range.end_offset)
        self.ranges.add(bounds)
        self.contested |= self.digests.setdefault(bounds, epoch_range.digest) != epoch_range.digest
        self.appended.add((epoch_range.end_offset, epoch_range.last_appended_at))
        if epoch_range.first_offset == 0:
            self.starts.add(0)  # whether or not the LEADER_CHANGE comes first (KAFKA-15345)
        if captured_until is not None:
            self.newest_capture_at = max(self.newest_capture_at or 0, captured_until)
        if epoch_range.first_batch_end is not None:
            self.starts.add(epoch_range.first_offset)
            self.first_batches.add(epoch_range.first_batch_end)
            if epoch_range.first_data_end is not None and epoch_range.first_data_appended_at is not None:
                self.first_data.add((epoch_range.first_data_end, epoch_range.first_data_appended_at))


def lineage_of(facts: ClusterFacts) -> Lineage:
    """The tree of a cluster's (distinct) facts."""
    lines: defaultdict[int, _Line] = defaultdict(_Line)
    snapshot_ends = _snapshot_ends(facts)
    for capture, until in _distinct_logs(facts.logs):
        _add_ranges(lines, capture, until)
    for capture in facts.logs if snapshot_ends else ():
        _add_snapshot_link(lines, capture, snapshot_ends)
    _add_control_records(lines, facts.control_records)
    for epoch in facts.contested_epochs:
        lines[epoch].contested = True
    finished = {epoch: _finished(epoch, lines[epoch]) for epoch in sorted(lines) if lines[epoch].ranges}
    children: defaultdict[int, list[tuple[int, Link]]] = defaultdict(list)
    for epoch, line in finished.items():
        for link in line.links:
            children[link.parent].append((epoch, link))
    contested = tuple(epoch for epoch, line in finished.items() if line.contested)
    return Lineage(finished, {parent: tuple(entries) for parent, entries in children.items()}, contested)


def _distinct_logs(captures: Iterable[Capture]) -> Iterator[tuple[Capture, int | None]]:
    """Of captures with one log and leader-epoch-checkpoint, the first, and captured_until of the last."""
    found: dict[tuple[int | None, int, int], tuple[Capture, int | None]] = {}
    for capture in captures:
        log = capture.log_start_offset, id(capture.epoch_ranges), id(capture.leader_epoch_checkpoint)
        first, until = found.get(log, (capture, None))
        at = capture.captured_until
        found[log] = first, at if until is None or (at is not None and at > until) else until
    yield from found.values()


def _add_ranges(lines: defaultdict[int, _Line], capture: Capture, captured_until: int | None) -> None:
    """captured_until: of the last capture with these ranges.

    Two ranges are linked only if the higher one begins with its LEADER_CHANGE where the lower one ends.

    Else they may be of segments copied at two moments, and what lies between, or above, was truncated; so if
    leader-epoch-checkpoint has another epoch there, or begins above: then it is newer than the segment below.
    """
    previous: EpochRange | None = None
    for epoch_range in capture.epoch_ranges:
        line, end = lines[epoch_range.leader_epoch], epoch_range.first_offset
        line.add(epoch_range, captured_until)
        if previous and previous.leader_epoch > epoch_range.leader_epoch:
            line.contested = lines[previous.leader_epoch].contested = True
        if end != (previous.end_offset if previous else capture.log_start_offset):
            line.contested |= _is_misplaced(epoch_range, capture)
        if previous and previous.leader_epoch < epoch_range.leader_epoch and previous.end_offset == end:
            line.starts.add(end)
            unknown = capture.leader_epoch_checkpoint is None
            agrees = unknown or cached_epoch(capture, end - 1) == previous.leader_epoch
            if epoch_range.first_batch_end is not None and agrees:
                line.links.add(Link(previous.leader_epoch, end, previous.last_appended_at))
        previous = epoch_range


def _is_misplaced(epoch_range: EpochRange, capture: Capture) -> bool:
    """Whether leader-epoch-checkpoint has another start of an epoch than its LEADER_CHANGE has in the log.

    Of one that does not follow what lies below: no CRC covers the offset of a batch. The first entry follows
    the log's start, which may have passed the LEADER_CHANGE.
    """
    first = epoch_range.first_offset
    return epoch_range.first_batch_end is not None and any(
        epoch == epoch_range.leader_epoch and (start < first or (nth > 0 and start != first))
        for nth, (epoch, start) in enumerate(capture.leader_epoch_checkpoint or ())
    )


def _snapshot_ends(facts: ClusterFacts) -> dict[tuple[int, str, int], int]:
    """Epochs of the snapshots by who holds them and where they end."""
    return {
        (node_id, directory_id, snapshot.end_offset): snapshot.leader_epoch
        for snapshot in facts.snapshots
        if snapshot.proves
        for node_id, directory_id in snapshot.held_by
    }


def _add_snapshot_link(
    lines: defaultdict[int, _Line], capture: Capture, snapshot_ends: dict[tuple[int, str, int], int]
) -> None:
    """A log that begins where the replica's snapshot ends was fetched after that snapshot, and extends it."""
    if not capture.epoch_ranges:
        return
    first = capture.epoch_ranges[0]
    epoch = snapshot_ends.get((capture.node_id, capture.directory_id, first.first_offset))
    if epoch is not None and epoch < first.leader_epoch and first.first_batch_end is not None:
        lines[first.leader_epoch].links.add(Link(epoch, first.first_offset, None))


def _add_control_records(lines: defaultdict[int, _Line], records: Iterable[CapturedControlRecord]) -> None:
    """Control records date the batches below them; two that differ at one place contest their epoch.

    So do two batches: of two quorums with the same ids, LEADER_CHANGEs differ in their timestamps alone. And
    so does one batch at two places: no CRC covers its offset and its epoch, and what is written twice differs
    in its timestamps. A LEADER_CHANGE begins its epoch: what lies below it is not of that.
    """
    values: dict[tuple[int, int], tuple[object, ...]] = {}
    leader_changes: dict[int, int] = {}
    places: dict[tuple[str, int, int], tuple[int, int]] = {}
    for record in records:
        line = lines[record.leader_epoch]
        line.appended.add((record.batch_end_offset, record.appended_at))
        content = (
            record.type,
            record.value,
            record.batch_base_offset,
            record.batch_end_offset,
            record.batch_crc,
        )
        line.contested |= values.setdefault((record.leader_epoch, record.offset), content) != content
        if record.type == "LeaderChange":
            offset = leader_changes.setdefault(record.leader_epoch, record.offset)
            line.contested |= offset != record.offset
            if 0 not in line.starts:  # KAFKA-15345
                line.starts.add(record.batch_base_offset)
        place = (record.leader_epoch, record.batch_base_offset)
        other = places.setdefault((record.type, record.batch_crc, record.appended_at), place)
        if other != place:
            line.contested = lines[other[0]].contested = True


def _finished(epoch: int, line: _Line) -> EpochLine:
    covered = union(line.ranges)
    start = min(line.starts, default=None)
    parents = {link.parent for link in line.links}
    before_start = start is not None and covered[0][0] < start
    first_data = min(line.first_data, default=None)
    return EpochLine(
        epoch,
        covered,
        tuple(sorted(line.links, key=_link_order)),
        start,
        min(line.first_batches, default=None),
        first_data[0] if first_data else None,
        first_data[1] if first_data else None,
        _rising(line.appended),
        line.newest_capture_at,
        line.contested or len(line.starts) > 1 or len(parents) > 1 or before_start,
    )


def _link_order(link: Link) -> tuple[int, int, bool, int]:
    """A total order: by parent and offset; of equal ones, those that know the time first."""
    unknown = link.last_appended_at is None
    return (link.parent, link.end_offset, unknown, link.last_appended_at or 0)


def union(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges (first inclusive, end exclusive) as disjoint ones, rising; those that touch become one."""
    merged: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return tuple(merged)


def _rising(appended: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The (end offset, time) pairs without those that a higher end at an earlier time makes redundant."""
    kept: list[tuple[int, int]] = []
    for end, at in sorted(appended, reverse=True):
        if not kept or at < kept[-1][1]:
            kept.append((end, at))
    return tuple(reversed(kept))
