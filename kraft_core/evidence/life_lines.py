"""Lines: captures of one cluster id that are connected beyond doubt (kraft_core.evidence.lives)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import NamedTuple


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

    first_batch_crc: CRC-32C of its first batch.
    """

    leader_epoch: int
    first_offset: int
    end_offset: int
    first_appended_at: int
    last_appended_at: int
    first_batch_crc: int


class LoggedCheckpoint(NamedTuple):
    """A complete checkpoint above offset 0. end_offset: exclusive; leader_epoch: of the record below it."""

    end_offset: int
    leader_epoch: int
    content_digest: str


@dataclass(frozen=True, slots=True)
class LoggedCapture:
    """What tells a capture's life.

    batches: (epoch, base offset, CRC) of more batches, as far as they are known. directory: node id and
    directory id, None where the latter is not known. continues: captures of which it repeats some batches.
    known_life: the life that it is known to belong to; captures of one known life hold the same batch where
    their ranges cover the same offset of an epoch. None for a new capture.
    copies: ids of further captures that say no more than it and others of its life; capture_id is the lowest.
    """

    capture_id: str
    ranges: tuple[LoggedRange, ...]
    batches: frozenset[tuple[int, int, int]] = frozenset()
    checkpoints: frozenset[LoggedCheckpoint] = frozenset()
    directory: tuple[int, str] | None = None
    continues: frozenset[str] = frozenset()
    known_life: str | None = None
    copies: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """As BatchPlace names it."""
        return self.capture_id if self.known_life is None else self.known_life


@dataclass(slots=True)
class Line:
    """Captures connected by batches and checkpoints.

    ranges: (epoch, first offset) to the ranges of all, those that overlap joined, with an owner that covers
    each. checkpoints: of all. batches: the CRCs of known batches by epoch and offset.
    """

    captures: list[LoggedCapture]
    ranges: list[tuple[LoggedRange, str]]
    checkpoints: frozenset[LoggedCheckpoint]
    batches: dict[tuple[int, int], set[int]]


@dataclass(slots=True)
class Sets:
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


def lines_of(captures: Iterable[LoggedCapture], found: FoundBatches) -> list[Line]:
    every = sorted(captures, key=lambda capture: capture.capture_id)
    sets = Sets(list(range(len(every))))
    holders: defaultdict[Hashable, list[int]] = defaultdict(list)
    by_owner: defaultdict[str, list[tuple[int, int, frozenset[int]]]] = defaultdict(list)
    for place, crcs in found.items():
        by_owner[place.owner].append((place.leader_epoch, place.base_offset, crcs))
    continued = {capture_id for capture in every for capture_id in capture.continues}
    for number, capture in enumerate(every):
        for epoch, offset, crc in known_batches(capture, by_owner[capture.owner]):
            holders["batch", epoch, offset, crc].append(number)
        for checkpoint in capture.checkpoints:
            holders["checkpoint", checkpoint].append(number)
        for capture_id in continued.intersection(
            chain([capture.capture_id], capture.copies, capture.continues)
        ):
            holders["capture", capture_id].append(number)
    for numbers in holders.values():
        sets.join(numbers)
    for numbers in _overlapping(every):
        sets.join(numbers)
    return [_line([every[number] for number in group], by_owner) for group in sets.groups()]


def known_batches(
    capture: LoggedCapture, found: Iterable[tuple[int, int, frozenset[int]]]
) -> Iterator[tuple[int, int, int]]:
    """(epoch, base offset, CRC) of the capture's batches, as far as they are known."""
    yield from capture.batches
    for held in capture.ranges:
        yield held.leader_epoch, held.first_offset, held.first_batch_crc
        for epoch, offset, crcs in found:
            if epoch == held.leader_epoch and held.first_offset <= offset < held.end_offset:
                yield from ((epoch, offset, crc) for crc in crcs)


def _overlapping(captures: Sequence[LoggedCapture]) -> Iterator[list[int]]:
    """Captures of one known life that are connected by ranges that overlap.

    Where two ranges begin at one offset with different batches, they are of a life that was known before
    lives were told apart: they connect nothing.
    """
    by_epoch: defaultdict[tuple[str, int], list[tuple[int, int, int, int]]] = defaultdict(list)
    for number, capture in enumerate(captures):
        if capture.known_life is not None:
            for held in capture.ranges:
                place = (held.first_offset, held.end_offset, number, held.first_batch_crc)
                by_epoch[capture.known_life, held.leader_epoch].append(place)
    for places in by_epoch.values():
        if not _begin_otherwise(places):
            end = -1
            connected: list[int] = []
            for first, range_end, number, _ in sorted(places, key=itemgetter(0, 1, 2)):
                if first >= end:
                    yield connected
                    connected = []
                connected.append(number)
                end = max(end, range_end)
            yield connected


def _begin_otherwise(places: Iterable[tuple[int, int, int, int]]) -> bool:
    """Whether two of the ranges (first, end offset, capture, CRC) begin at one offset with other batches."""
    crcs: defaultdict[int, set[int]] = defaultdict(set)
    for first, _, _, crc in places:
        crcs[first].add(crc)
    return any(len(each) > 1 for each in crcs.values())


def _line(
    captures: list[LoggedCapture], found: Mapping[str, Sequence[tuple[int, int, frozenset[int]]]]
) -> Line:
    batches: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for capture in captures:
        for epoch, offset, crc in known_batches(capture, found.get(capture.owner, ())):
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
    checkpoints = frozenset(checkpoint for capture in captures for checkpoint in capture.checkpoints)
    return Line(captures, ranges, checkpoints, dict(batches))


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
