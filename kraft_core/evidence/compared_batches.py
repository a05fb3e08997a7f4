"""The batches of captured logs, epoch by epoch, and the epochs in which two logs differ.

Log matching (KIP-595): batches of one base offset and one epoch are the same bytes. A batch is kept in 16
bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kraft_core.format.batch import BatchHeader


def _integers() -> array[int]:
    return array("q")


@dataclass(slots=True)
class RangeBatches:
    """Consecutive batches of one epoch in one captured log: where each begins, and its CRC and size."""

    leader_epoch: int
    bases: array[int] = field(default_factory=_integers)
    contents: array[int] = field(default_factory=_integers)
    end_offset: int = 0

    def add(self, header: BatchHeader) -> None:
        self.bases.append(header.base_offset)
        self.contents.append(header.crc << 31 | header.size_bytes & 0x7FFFFFFF)
        self.end_offset = header.next_offset

    def differs(self, other: RangeBatches) -> bool:
        """Whether they hold different batches where both reach."""
        first, end = max(self.bases[0], other.bases[0]), min(self.end_offset, other.end_offset)
        mine, its = self._within(first, end), other._within(first, end)
        return self.bases[mine] != other.bases[its] or self.contents[mine] != other.contents[its]

    def _within(self, first: int, end: int) -> slice:
        return slice(bisect_left(self.bases, first), bisect_left(self.bases, end))


def contested_epochs(epoch_ranges: Iterable[RangeBatches]) -> Iterator[int]:
    """The epochs in which two epoch ranges hold different batches, rising."""
    of_epoch: defaultdict[int, list[RangeBatches]] = defaultdict(list)
    for epoch_range in epoch_ranges:
        of_epoch[epoch_range.leader_epoch].append(epoch_range)
    for epoch in sorted(of_epoch):
        if _any_differ(
            sorted(of_epoch[epoch], key=lambda epoch_range: (epoch_range.bases[0], -epoch_range.end_offset))
        ):
            yield epoch


def _any_differ(epoch_ranges: list[RangeBatches]) -> bool:
    """Each, by rising start, against the one before that reaches furthest: it has all that they share."""
    furthest = epoch_ranges[0]
    for epoch_range in epoch_ranges[1:]:
        if furthest.differs(epoch_range):
            return True
        furthest = max(furthest, epoch_range, key=lambda one: one.end_offset)
    return False
