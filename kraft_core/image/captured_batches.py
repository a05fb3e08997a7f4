"""The batches of a captured log, by the headers of its segments, and what is wrong with their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import SegmentFile
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import Damage, scan
from kraft_core.wording import missing_offsets


@dataclass(frozen=True, slots=True)
class CapturedBatch:
    segment: SegmentFile
    header: BatchHeader


def batches_of(segments: Iterable[SegmentFile], note: Callable[[str], None]) -> Iterator[CapturedBatch]:
    """Every batch that continues the previous one; overlaps are skipped, gaps and damage are noted.

    So is a batch of an epoch below that of the one before it (rule 2): no CRC covers the epoch of a batch,
    and a log that was assembled from two is none that any controller had.
    """
    last: BatchHeader | None = None
    for segment in segments:
        with mapped(segment.path) as buf:
            for item in scan(buf, next_offset=segment.base_offset):
                if isinstance(item, Damage):
                    where = f"{segment.path.name}: {item.size_bytes} bytes at {item.position}"
                    note(f"{where} cannot be read: {item.reason}")
                    continue
                if last is not None and item.base_offset < last.next_offset:
                    note(f"{segment.path.name}: offset {item.base_offset} repeated, skipped")
                    continue
                if last is not None and item.base_offset > last.next_offset:
                    note(missing_offsets(last.next_offset, item.base_offset))
                if last is not None and item.leader_epoch < last.leader_epoch:
                    note(
                        f"{segment.path.name}: the log goes back from epoch {last.leader_epoch} to "
                        f"{item.leader_epoch} at offset {item.base_offset}: it was damaged, or assembled "
                        "from two"
                    )
                last = item
                yield CapturedBatch(segment, item)
