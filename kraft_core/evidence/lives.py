"""The lives of a cluster id: which captures are of one history, and which only bear the same id.

An id copied from a tutorial, a node that was formatted anew, a restored copy that went its own way: one
cluster.id may name several histories, and evidence of one says nothing about another. A life is a set of
captures whose logs are connected.

- Two captures that hold the same batch (offset, epoch, CRC) are of one life, and so is all that is connected
  by such batches: below a batch that two logs share, they are equal (log matching, KIP-595). What differs
  above it is for the rules to judge: a truncated tail, or a clone of the cluster that was captured while both
  still held their common past (rules 1, 3 and 4).
- So are two captures that hold the same checkpoint file above offset 0, and the captures of one directory id,
  since Kafka gives every formatted directory its own (KIP-858). A cloned disk or image keeps the id: it
  connects nothing where that would join logs that contest each other.
- Logs that are not connected contest each other if they hold different batches at one offset, or if what
  lies below in offset was appended later, or in a higher epoch, than what lies above: offsets, epochs
  and, but for the clocks of leaders, times rise together in one history. Logs that contest each other are of
  different lives.
- Where none contest each other, all captures are of one life: logs that were captured years apart may have
  no batch in common. Where some do, captures that nothing connects, those without any batch among them, are
  lives of their own: which one they belong to is not known.

It is safe to tell apart what belongs together: every conclusion holds for a part of the captures, too. So a
log that was truncated to its very first offset counts as another life where no capture shows the way.
The lives depend on the set of captures only. A life is named by its lowest captured batch, and lives are
sorted by the time of their newest record.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from kraft_core.evidence.facts import CLOCK_SKEW_MS


class BatchPlace(NamedTuple):
    """Where a batch is asked for. owner: the capture, or the known life, whose log it is (LoggedCapture)."""

    owner: str
    leader_epoch: int
    base_offset: int


# The CRCs of the batches that were found to begin at a place; none: no batch does.
FoundBatches = Mapping[BatchPlace, frozenset[int]]


@dataclass(frozen=True, slots=True)
class LoggedRange:
    """An epoch range of a captured log (kraft_core.evidence.facts.EpochRange).

    first_batch_crc: CRC-32C of its first batch; None where it was not kept.
    """

    leader_epoch: int
    first_offset: int
    end_offset: int
    first_appended_at: int
    last_appended_at: int
    first_batch_crc: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedCapture:
    """What tells a capture's life.

    batches: (epoch, base offset, CRC) of more batches, as far as they are known. checkpoints: content
    digests of its checkpoints above offset 0. directory: node id and directory id, None where the latter is
    not known. continues: captures of which it repeats some batches. known_life: the life that it is known to
    belong to; captures of one known life hold the same batch where their ranges cover the same offset of an
    epoch. None for a new capture.
    """

    capture_id: str
    ranges: tuple[LoggedRange, ...]
    batches: frozenset[tuple[int, int, int]] = frozenset()
    checkpoints: frozenset[str] = frozenset()
    directory: tuple[int, str] | None = None
    continues: frozenset[str] = frozenset()
    known_life: str | None = None

    @property
    def owner(self) -> str:
        """As BatchPlace names it."""
        return self.capture_id if self.known_life is None else self.known_life


@dataclass(frozen=True, slots=True)
class ClusterLife:
    """One history. capture_ids are sorted.

    first_offset, first_appended_at: of its lowest captured batch; last_appended_at: of its newest (ms by the
    leaders' clocks). None where its captures hold no batch.
    """

    name: str
    capture_ids: tuple[str, ...]
    first_offset: int | None
    first_appended_at: int | None
    last_appended_at: int | None


def lives_of(captures: Iterable[LoggedCapture], found: FoundBatches | None = None) -> list[ClusterLife]:
    """The lives of one cluster id, the newest last; at least one where there are captures.

    found: what was read of places_to_compare(captures). Where it lacks one of them, the logs are not
    connected there.
    """
    lines = _lines(captures, found or {})
    contested = {(a, b) for a, b in combinations(range(len(lines)), 2) if _contest(lines[a], lines[b])}
    if not contested:
        return [_life(lines)] if lines else []  # nothing tells them apart
    groups = _joined_by_directories(lines, contested)
    return sorted(map(_life, groups), key=_by_newest_record)


def places_to_compare(captures: Iterable[LoggedCapture]) -> set[BatchPlace]:
    """The batches that must be read to tell the lives.

    Logs that share a batch of an epoch share the first one that both hold of it, where a range of one of them
    begins. So in epochs of which several lines hold something, all logs are compared at all such offsets.
    """
    every = list(captures)
    lines = _lines(every, {})
    held_by = Counter(epoch for line in lines for epoch in {held.leader_epoch for held, _ in line.ranges})
    firsts: defaultdict[int, set[int]] = defaultdict(set)
    for capture in every:
        for held in capture.ranges:
            if held_by[held.leader_epoch] > 1:
                firsts[held.leader_epoch].add(held.first_offset)
    places: set[BatchPlace] = set()
    ordered = {epoch: sorted(offsets) for epoch, offsets in firsts.items()}
    for capture in every:
        known = {(epoch, offset) for epoch, offset, _ in _known_batches(capture, ())}
        for held in capture.ranges:
            offsets = ordered.get(held.leader_epoch, [])
            low, high = (bisect_left(offsets, bound) for bound in (held.first_offset, held.end_offset))
            places |= {
                BatchPlace(capture.owner, held.leader_epoch, offset)
                for offset in offsets[low:high]
                if (held.leader_epoch, offset) not in known
            }
    if len(lines) > 1:
        # A life is named by its lowest batch.
        lowest = [(_lowest_place(line), line) for line in lines if line.ranges]
        places |= {p for p, line in lowest if (p.leader_epoch, p.base_offset) not in line.batches}
    return places


# --- lines: captures that are connected beyond doubt ---


@dataclass(slots=True)
class _Line:
    """Captures connected by batches and checkpoints.

    ranges: (epoch, first offset) to the ranges of all, those that overlap joined, with an owner that covers
    each. batches: the CRCs of known batches by epoch and offset.
    """

    captures: list[LoggedCapture]
    ranges: list[tuple[LoggedRange, str]]
    batches: dict[tuple[int, int], set[int]]


@dataclass(slots=True)
class _Sets:
    """Disjoint sets of numbers from 0."""

    parents: list[int]

    def find(self, number: int) -> int:
        while self.parents[number] != number:
            self.parents[number] = self.parents[self.parents[number]]
            number = self.parents[number]
        return number

    def join(self, numbers: Iterable[int]) -> None:
        roots = sorted({self.find(number) for number in numbers})
        for root in roots[1:]:
            self.parents[root] = roots[0]

    def groups(self) -> list[list[int]]:
        found: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(len(self.parents)):
            found[self.find(number)].append(number)
        return list(found.values())


def _lines(captures: Iterable[LoggedCapture], found: FoundBatches) -> list[_Line]:
    every = sorted(captures, key=lambda capture: capture.capture_id)
    sets = _Sets(list(range(len(every))))
    holders: defaultdict[Hashable, list[int]] = defaultdict(list)
    by_owner: defaultdict[str, list[tuple[int, int, frozenset[int]]]] = defaultdict(list)
    for place, crcs in found.items():
        by_owner[place.owner].append((place.leader_epoch, place.base_offset, crcs))
    for number, capture in enumerate(every):
        for epoch, offset, crc in _known_batches(capture, by_owner[capture.owner]):
            holders["batch", epoch, offset, crc].append(number)
        for digest in capture.checkpoints:
            holders["checkpoint", digest].append(number)
        for capture_id in (capture.capture_id, *capture.continues):
            holders["capture", capture_id].append(number)
    for numbers in holders.values():
        sets.join(numbers)
    for numbers in _overlapping(every):
        sets.join(numbers)
    return [_line([every[number] for number in group], by_owner) for group in sets.groups()]


def _known_batches(
    capture: LoggedCapture, found: Iterable[tuple[int, int, frozenset[int]]]
) -> Iterator[tuple[int, int, int]]:
    """(epoch, base offset, CRC) of the capture's batches, as far as they are known."""
    yield from capture.batches
    for held in capture.ranges:
        if held.first_batch_crc is not None:
            yield held.leader_epoch, held.first_offset, held.first_batch_crc
        for epoch, offset, crcs in found:
            if epoch == held.leader_epoch and held.first_offset <= offset < held.end_offset:
                yield from ((epoch, offset, crc) for crc in crcs)


def _overlapping(captures: Sequence[LoggedCapture]) -> Iterator[tuple[int, int]]:
    """Pairs of captures of one known life whose ranges overlap: enough of them to connect all that do."""
    by_epoch: defaultdict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for number, capture in enumerate(captures):
        if capture.known_life is not None:
            for held in capture.ranges:
                insort(
                    by_epoch[capture.known_life, held.leader_epoch],
                    (held.first_offset, held.end_offset, number),
                )
    for held_ranges in by_epoch.values():
        end, last = -1, -1
        for first, range_end, number in held_ranges:
            if first < end:
                yield last, number
            if range_end > end:
                end, last = range_end, number


def _line(
    captures: list[LoggedCapture], found: Mapping[str, Sequence[tuple[int, int, frozenset[int]]]]
) -> _Line:
    batches: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for capture in captures:
        for epoch, offset, crc in _known_batches(capture, found.get(capture.owner, ())):
            batches[epoch, offset].add(crc)
    every = sorted(
        {(held, capture.owner) for capture in captures for held in capture.ranges},
        key=lambda each: (each[0].leader_epoch, each[0].first_offset, each[0].end_offset, each[1]),
    )
    ranges: list[tuple[LoggedRange, str]] = []
    for held, owner in every:
        last = ranges[-1][0] if ranges else None
        if last and last.leader_epoch == held.leader_epoch and held.first_offset <= last.end_offset:
            ranges[-1] = (_joined(last, held), ranges[-1][1])
        else:
            ranges.append((held, owner))
    return _Line(captures, ranges, dict(batches))


def _joined(one: LoggedRange, other: LoggedRange) -> LoggedRange:
    """Two ranges of one epoch that overlap or follow each other; `one` begins first."""
    return LoggedRange(
        one.leader_epoch,
        one.first_offset,
        max(one.end_offset, other.end_offset),
        one.first_appended_at,
        max(one.last_appended_at, other.last_appended_at),
        one.first_batch_crc,
    )


# --- lines against each other ---


def _contest(one: _Line, other: _Line) -> bool:
    """Whether the lines, which share no batch, cannot be parts of one history."""
    every = [(held, side) for side, line in enumerate((one, other)) for held, _ in line.ranges]
    end, epoch, appended_at = [-1, -1], [-1, -1], [-1, -1]
    for held, side in sorted(every, key=lambda each: each[0].first_offset):
        below = 1 - side
        if (
            end[below] > held.first_offset
            or epoch[below] > held.leader_epoch
            or appended_at[below] > held.first_appended_at + CLOCK_SKEW_MS
        ):
            return True
        end[side] = max(end[side], held.end_offset)
        epoch[side] = max(epoch[side], held.leader_epoch)
        appended_at[side] = max(appended_at[side], held.last_appended_at)
    return False


def _joined_by_directories(lines: Sequence[_Line], contested: set[tuple[int, int]]) -> list[list[_Line]]:
    """The lines in groups of one directory id, unless that joins what is contested."""
    holders: defaultdict[tuple[int, str], set[int]] = defaultdict(set)
    for number, line in enumerate(lines):
        for capture in line.captures:
            if capture.directory is not None:
                holders[capture.directory].add(number)
    sets = _Sets(list(range(len(lines))))
    for numbers in holders.values():
        sets.join(numbers)
    groups: list[list[_Line]] = []
    for group in sets.groups():
        if any(pair in contested for pair in combinations(sorted(group), 2)):
            groups += [[lines[number]] for number in group]
        else:
            groups.append([lines[number] for number in group])
    return groups


# --- lives ---


def _life(lines: Sequence[_Line]) -> ClusterLife:
    ids = tuple(sorted({capture.capture_id for line in lines for capture in line.captures}))
    ranges = [held for line in lines for held, _ in line.ranges]
    if not ranges:
        return ClusterLife(_digest(ids[0]), ids, None, None, None)
    lowest = min(
        (line for line in lines if line.ranges),
        key=lambda line: (_lowest_place(line).base_offset, _lowest_place(line).leader_epoch),
    )
    _, epoch, offset = _lowest_place(lowest)
    crcs = sorted(lowest.batches.get((epoch, offset), ()))
    first_at = min(ranges, key=lambda held: (held.first_offset, held.leader_epoch)).first_appended_at
    last_at = max(held.last_appended_at for held in ranges)
    return ClusterLife(_digest(f"{offset}/{epoch}/{crcs[:1]}"), ids, offset, first_at, last_at)


def _lowest_place(line: _Line) -> BatchPlace:
    """Where the lowest batch of a line with ranges begins."""
    held, owner = min(line.ranges, key=lambda each: (each[0].first_offset, each[0].leader_epoch))
    return BatchPlace(owner, held.leader_epoch, held.first_offset)


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _by_newest_record(life: ClusterLife) -> tuple[int, str]:
    return -1 if life.last_appended_at is None else life.last_appended_at, life.name
