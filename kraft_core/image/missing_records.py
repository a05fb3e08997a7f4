"""Records that a replay lacks, and the versions that they may have changed.

A path lacks records where its log begins above 0 or has a gap that no checkpoint covers, and where a record
could not be decoded. From there on the replayed state may be incomplete, until a checkpoint is loaded, which
states all of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kraft_core.image.replay_path import PathCheckpoint, Step

_END = 1 << 63


@dataclass(frozen=True, slots=True)
class MissingRecords:
    """Offsets that are missing, end_offset exclusive.

    until_offset: where a checkpoint states what they changed, too; None where none does.
    """

    first_offset: int
    end_offset: int
    until_offset: int | None

    @property
    def sentence(self) -> str:
        """What that means for the replayed state, in words."""
        return f"{self._offsets} missing: what {self._they} changed is unknown from there on{self._until}"

    @property
    def newer_sentence(self) -> str:
        """The same of records that are there, but of which not all is understood."""
        return f"{self._offsets} of a newer Kafka: what else changed is unknown from there on{self._until}"

    @property
    def _offsets(self) -> str:
        last = self.end_offset - 1
        if last == self.first_offset:
            return f"record {last} is"
        return f"records {self.first_offset} to {last} are"

    @property
    def _they(self) -> str:
        return "it" if self.end_offset == self.first_offset + 1 else "they"

    @property
    def _until(self) -> str:
        return "" if self.until_offset is None else f", up to the snapshot at {self.until_offset}"

    def concerns(self, offset: int) -> bool:
        """Whether the state after an offset may lack what the records changed."""
        return self.first_offset <= offset and (self.until_offset is None or offset < self.until_offset)


def missing_records(steps: Sequence[Step], undecoded: Iterable[tuple[int, int]]) -> list[MissingRecords]:
    """What a path lacks, by offset. undecoded: offsets (end exclusive) of records that could not be read."""
    loaded = sorted(step.first_offset for step in steps if isinstance(step, PathCheckpoint))
    found = sorted({*_gaps(steps), *undecoded})

    def until(first: int) -> int | None:
        place = bisect_right(loaded, first)
        return loaded[place] if place < len(loaded) else None

    return [MissingRecords(first, end, until(first)) for first, end in found]


def _gaps(steps: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """The offsets between two steps, and below the first, where no checkpoint states the changes."""
    expected = 0
    for step in steps:
        if not isinstance(step, PathCheckpoint) and step.first_offset > expected:
            yield expected, step.first_offset
        expected = max(expected, step.end_offset)


def _until(missing: MissingRecords) -> int:
    return _END if missing.until_offset is None else missing.until_offset


def may_lack(missing: Sequence[MissingRecords], first: int, end: int | None) -> tuple[int, int | None] | None:
    """From the first missing offset that may have changed what is valid from `first` to `end` (exclusive), to
    where a checkpoint states that it is valid, None if none does; None where nothing is missing.

    missing: as missing_records returns it. end: None for what is still valid.
    """
    place = bisect_right(missing, first, key=_until)
    behind = len(missing) if end is None else bisect_left(missing, end, key=lambda each: each.first_offset)
    return (missing[place].first_offset, missing[behind - 1].until_offset) if place < behind else None
