"""Where batches of a captured log are out of order in its files, from the ranges of the scan.

captures.epoch_ranges is sorted by offset, which hides batches that were swapped or repeated. OrderCheck of
kraft_core.format.segment checks batch by batch, this range by range: a scan starts a new range wherever a
batch does not continue the one before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from transforms.ingest.epoch_ranges import FileEpochRange
from transforms.lake.arrow_rows import Row


def order_faults(start: int, ranges: Iterable[FileEpochRange], damage: Iterable[Row]) -> Iterator[Row]:
    """Rows of captures.order_faults, from ranges in the order of files and of positions in them.

    start: the offset that the first batch should have. A gap that damage explains is not reported.
    """
    lost: defaultdict[int, set[int | None]] = defaultdict(set)
    for each in damage:
        if each["lost_from_offset"] is not None:
            lost[each["lost_from_offset"]].add(each["lost_to_offset"])
    expected, highest_epoch, last = start, -1, None
    for part in ranges:
        first = part.first_offset
        if first < expected:
            kind = "duplicate" if last is not None and _is_same_batch(last, part) else "overlap"
            yield _fault(part, kind, expected)
        elif first > expected and not _explains(lost, expected, first):
            yield _fault(part, "gap", expected)
        if part.leader_epoch < highest_epoch:
            yield _fault(part, "epoch_regression", highest_epoch)
        expected, last = part.end_offset, part
        highest_epoch = max(highest_epoch, part.leader_epoch)


def _explains(ends: Mapping[int, set[int | None]], expected: int, first: int) -> bool:
    """Whether lost offsets fill a gap. ends: of what is lost, by its first offset; None at the end of a file,
    if it is not known.
    """
    reached = expected
    while reached in ends and first not in ends[reached]:
        if None in ends[reached]:
            return True
        furthest = max(end for end in ends[reached] if end is not None)
        if furthest <= reached:
            return False
        reached = furthest
    return reached in ends


def _is_same_batch(last: FileEpochRange, part: FileEpochRange) -> bool:
    """Whether a range begins with the batch that the one before ends with.

    Of ranges that earlier runs read the end is known, not the batch.
    """
    if last.last_batch is None:
        return (last.leader_epoch, last.end_offset) == (part.leader_epoch, part.first_batch_end_offset)
    return last.last_batch == part.first_batch


def _fault(part: FileEpochRange, kind: str, expected: int) -> Row:
    return {
        "offset": part.first_offset,
        "leader_epoch": part.leader_epoch,
        "kind": kind,
        "expected": expected,
    }
