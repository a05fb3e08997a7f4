"""Where the batches of a captured log do not follow each other in its files, from the stretches of the scan.

Runs are sorted by offset, which hides that batches were swapped or came twice. OrderCheck of
kraft_core.format.segment judges batch by batch, this judges stretch by stretch: a scan begins a new one
wherever a batch does not go on from the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from transforms.ingest.epoch_ranges import FileEpochRange

Row = dict[str, Any]
# What is kept of one capture: the first so many.
MOST_KEPT = 1000


def order_faults(
    start: int, pieces: Iterable[FileEpochRange], damage: Iterable[Mapping[str, Any]]
) -> Iterator[Row]:
    """Rows of captures.order_faults, from the stretches in the order of files and places in them.

    start: the offset that the first batch should have. A gap right after damage is none: the damage stands
    for the missing batches.
    """
    lost = {(d["lost_from_offset"], d["lost_to_offset"]) for d in damage}
    expected, highest_epoch, last = start, -1, None
    for piece in pieces:
        first = piece.first_offset
        if first < expected:
            kind = "duplicate" if last is not None and is_same_batch(last, piece) else "overlap"
            yield fault(piece, kind, expected)
        elif first > expected and not lost & {(expected, first), (expected, None)}:
            yield fault(piece, "gap", expected)
        if piece.leader_epoch < highest_epoch:
            yield fault(piece, "epoch_regression", highest_epoch)
        expected, last = piece.end_offset, piece
        highest_epoch = max(highest_epoch, piece.leader_epoch)


def is_same_batch(last: FileEpochRange, piece: FileEpochRange) -> bool:
    """Whether a stretch begins with the batch that the one before ends with.

    Of stretches that were read by earlier runs the end is known, not the batch.
    """
    if last.last_batch is None:
        return (last.leader_epoch, last.end_offset) == (piece.leader_epoch, piece.first_batch_end_offset)
    return last.last_batch == piece.first_batch


def fault(piece: FileEpochRange, kind: str, expected: int) -> Row:
    return {
        "offset": piece.first_offset,
        "leader_epoch": piece.leader_epoch,
        "kind": kind,
        "expected": expected,
    }
