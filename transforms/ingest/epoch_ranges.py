"""The epoch ranges of a captured log: maximal runs of offsets of one epoch, from the headers of its batches.

Tasks aggregate headers to one row a file and range (file_ranges); ranges are then joined across files, so
that it makes no difference where a segment was rolled. What reaches the driver grows with elections, not with
batches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, pairwise
from operator import itemgetter

from transforms.lake.arrow_rows import Row


@dataclass(frozen=True, slots=True)
class FileEpochRange:
    """The part of an epoch range (kraft_core.evidence.facts.EpochRange) that lies in one file, or in several.

    Fields as in segments.epoch_ranges: `digest`, a signed 64-bit number, can be joined with those of other
    files. first_batch_crc: CRC-32C of its first batch. first_batch, last_batch: hashes of its first and last
    batch, kept in no table.
    """

    leader_epoch: int
    first_offset: int
    end_offset: int
    digest: int
    first_appended_at: datetime
    last_appended_at: datetime
    first_batch_end_offset: int
    first_data_end_offset: int | None
    first_data_appended_at: datetime | None
    batches: int
    size_bytes: int
    first_batch_crc: int = field(compare=False)
    first_batch: int | None = field(default=None, compare=False)
    last_batch: int | None = field(default=None, compare=False)

    @classmethod
    def of_row(cls, row: Row) -> FileEpochRange:
        """row: of file_ranges.RANGES."""
        return cls(**{name: row[name] for name in cls.__slots__})


# Ranges that are equal in these hold the same batches.
_SAME_BATCHES = itemgetter("first_offset", "end_offset", "leader_epoch", "digest", "batches", "size_bytes")
KEPT = tuple(name for name in FileEpochRange.__slots__ if name not in ("first_batch", "last_batch"))


def overlap(ranges: Iterable[Row], log_of: Callable[[int], Hashable]) -> bool:
    """Whether two ranges (rows of RANGES) of one log share an offset: otherwise they share no batch.

    log_of: the log that a file belongs to, by the file's number.
    """
    logs: dict[Hashable, list[tuple[int, int]]] = {}
    for row in ranges:
        logs.setdefault(log_of(row["file_number"]), []).append((row["first_offset"], row["end_offset"]))
    followed = chain.from_iterable(pairwise(sorted(held)) for held in logs.values())
    return any(following < end for (_, end), (following, _) in followed)


def of_distinct_files(ranges: Iterable[Row], log_of: Callable[[int], Hashable]) -> list[Row]:
    """The ranges without those of files that hold the same batches as another file of their log."""
    files: dict[int, list[Row]] = {}
    for row in ranges:
        files.setdefault(row["file_number"], []).append(row)
    first: dict[Hashable, list[Row]] = {}
    for number in sorted(files):
        held = tuple(sorted(map(_SAME_BATCHES, files[number])))
        first.setdefault((log_of(number), held), files[number])
    return list(chain.from_iterable(first.values()))


def join_ranges(ranges: Iterable[FileEpochRange]) -> list[FileEpochRange]:
    """The ranges of one captured log: those that follow each other in one epoch become one."""
    found: list[FileEpochRange] = []
    for part in sorted(set(ranges), key=lambda r: (r.first_offset, r.leader_epoch, r.end_offset, r.digest)):
        last = found[-1] if found else None
        if last and last.leader_epoch == part.leader_epoch and last.end_offset == part.first_offset:
            found[-1] = joined(last, part)
        else:
            found.append(part)
    return found


def joined(first: FileEpochRange, second: FileEpochRange) -> FileEpochRange:
    """Two successive ranges of one epoch as one."""
    has_data = first.first_data_end_offset is not None
    return replace(
        first,
        end_offset=second.end_offset,
        digest=first.digest ^ second.digest,
        last_appended_at=max(first.last_appended_at, second.last_appended_at),
        first_data_end_offset=first.first_data_end_offset if has_data else second.first_data_end_offset,
        first_data_appended_at=first.first_data_appended_at if has_data else second.first_data_appended_at,
        batches=first.batches + second.batches,
        size_bytes=first.size_bytes + second.size_bytes,
        last_batch=second.last_batch,
    )
