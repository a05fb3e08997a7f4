"""The leader-epoch cache: where each epoch's records begin in a log.

KIP-101 and KIP-595 (Fetch, check 2): a follower names the epoch of its last record; the leader answers with
the end of the newest epoch that is not newer, and the follower truncates to what both have. An epoch that
truncation emptied keeps no entry. Source of the finer points: Kafka's LeaderEpochFileCache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The end offset (exclusive) of an epoch in a log."""

    end_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class EpochCache:
    """Entries (leader_epoch, start_offset), both strictly rising."""

    entries: tuple[tuple[int, int], ...] = ()

    @property
    def last_epoch(self) -> int | None:
        return self.entries[-1][0] if self.entries else None

    def assign(self, leader_epoch: int, start_offset: int) -> EpochCache:
        """Record that `leader_epoch` begins at `start_offset`.

        A new leader's epoch is assigned before its first record, so an epoch that starts at the same offset
        without having written any is displaced, and so is any that the new entry contradicts.
        """
        if self.entries and self.entries[-1][0] == leader_epoch and self.entries[-1][1] <= start_offset:
            return self
        kept = len(self.entries)
        while kept and (
            self.entries[kept - 1][0] >= leader_epoch or self.entries[kept - 1][1] >= start_offset
        ):
            kept -= 1
        return EpochCache((*self.entries[:kept], (leader_epoch, start_offset)))

    def end_offset_for(self, leader_epoch: int, log_end_offset: int) -> EpochEnd | None:
        """The end of the newest epoch at or below `leader_epoch`; None for an epoch above all known ones.

        For an epoch below all known ones: the oldest start under the epoch asked for, for what lay there is
        in a snapshot.
        """
        if leader_epoch == self.last_epoch:
            return EpochEnd(log_end_offset, leader_epoch)
        above = bisect_right(self.entries, leader_epoch, key=_epoch)
        if above == len(self.entries):
            return None
        found = self.entries[above - 1][0] if above else leader_epoch
        return EpochEnd(self.entries[above][1], found)

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of an offset of the log, None below all known ones."""
        begun = bisect_right(self.entries, offset, key=_start)
        return self.entries[begun - 1][0] if begun else None

    def truncate(self, end_offset: int) -> EpochCache:
        """Without the epochs that start at or above `end_offset`: the log now ends there."""
        return EpochCache(self.entries[: bisect_left(self.entries, end_offset, key=_start)])

    def raise_start(self, start_offset: int) -> EpochCache:
        """As the log begins at `start_offset`: older epochs are gone, the one it falls in starts there."""
        older = bisect_right(self.entries, start_offset, key=_start)
        if not older:
            return self
        return EpochCache(((self.entries[older - 1][0], start_offset), *self.entries[older:]))


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start(entry: tuple[int, int]) -> int:
    return entry[1]
