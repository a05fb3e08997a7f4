"""Values that took effect at offsets, newest last.

KIP-853, Snapshots: a replica keeps every set of voters between its latest snapshot and its log end, so that
a truncation can put the previous set in force again. kraft.version is kept the same way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OffsetHistory(Generic[T]):
    """An immutable list of (offset, value), offsets strictly increasing; -1 means "before the log"."""

    entries: tuple[tuple[int, T], ...] = ()

    @property
    def last(self) -> tuple[int, T] | None:
        return self.entries[-1] if self.entries else None

    def at(self, offset: int) -> tuple[int, T] | None:
        """The newest entry at or below `offset` (inclusive), or None."""
        count = bisect_right(self.entries, offset, key=_offset)
        return self.entries[count - 1] if count else None

    def add(self, offset: int, value: T) -> OffsetHistory[T]:
        """The history with one entry more. Raises ValueError unless `offset` is above the last one's."""
        if offset < -1 or (self.entries and offset <= self.entries[-1][0]):
            raise ValueError(f"offset {offset} does not follow {self.last}")
        return OffsetHistory((*self.entries, (offset, value)))

    def truncate(self, end_offset: int) -> OffsetHistory[T]:
        """Without the entries at or above `end_offset`: the log now ends there."""
        return OffsetHistory(self.entries[: bisect_left(self.entries, end_offset, key=_offset)])

    def prune(self, start_offset: int) -> OffsetHistory[T]:
        """Without the entries that a snapshot ending at `start_offset` made needless.

        The newest entry at or below the offset stays, for it is still in force there.
        """
        count = bisect_right(self.entries, start_offset, key=_offset)
        return OffsetHistory(self.entries[max(0, count - 1) :])


def _offset(entry: tuple[int, object]) -> int:
    return entry[0]
