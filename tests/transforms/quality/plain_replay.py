"""Rule 22's comparisons by the plain core: one image of all kinds, record after record."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.dataset as ds

from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.findings.snapshot_replays import CheckpointKey, SnapshotReplay
from kraft_core.image.from_columns import StoredRecord
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import deviations
from transforms.histories.replay_records import Held, checkpoint_records, log_records
from transforms.quality.replay_pieces import KEY, MEANT, TYPES
from transforms.quality.snapshot_checks import (
    DEVIATES,
    DEVIATION,
    EQUAL,
    LAWFUL,
    UNREAD_CHECKPOINT,
    UNREAD_LOG,
    Row,
)


def outcomes(held: Held, cluster: str, replay: SnapshotReplay) -> Iterator[Row]:
    """The outcome of each comparison of a replay."""
    log = LogReplay(held, cluster, replay)
    for checkpoint in sorted(comparison.checkpoint for comparison in replay.comparisons):
        replayed = log.image_below(checkpoint.end_offset)
        key = {name: getattr(checkpoint, name) for name in KEY}
        yield key | compared(replayed, image_of(held, cluster, checkpoint), checkpoint)


class LogReplay:
    """Owns the image of a replay, and what was read of the log but not applied yet."""

    def __init__(self, held: Held, cluster: str, replay: SnapshotReplay) -> None:
        start = Image() if replay.start is None else image_of(held, cluster, replay.start)
        self._image = start or Image()
        self._is_known = start is not None
        pieces = log_records(held, {cluster: replay.log}, TYPES, MEANT)
        self._records = (record for _, piece in pieces for record in piece)
        self._next = next(self._records, None)

    def image_below(self, end_offset: int) -> Image | None:
        """The image of all records below an offset, at least that of the last call; None: it is not known."""
        while self._is_known and self._next is not None and self._next.offset < end_offset:
            record, self._next = self._next, next(self._records, None)
            repeated = self._next is not None and self._next.offset == record.offset
            self._is_known = record.value is not None and not repeated
            if self._is_known:
                self._image.apply(record)
        return self._image if self._is_known else None


def image_of(held: Held, cluster: str, checkpoint: CheckpointKey) -> Image | None:
    """The image of a checkpoint; None where a record of it cannot be read."""
    epoch = ds.field("leader_epoch") == checkpoint.leader_epoch
    unread = False

    def readable() -> Iterator[StoredRecord]:
        nonlocal unread
        for record in checkpoint_records(held, cluster, checkpoint, TYPES, epoch):
            unread |= record.value is None
            yield record

    image = Image.of_snapshot(readable(), checkpoint.end_offset, checkpoint.leader_epoch, -1)
    return None if unread else image


def compared(replayed: Image | None, image: Image | None, checkpoint: CheckpointKey) -> Row:
    """The outcome of a comparison; None for an image that is not known."""
    if replayed is None or image is None:
        return {"outcome": UNREAD_LOG if replayed is None else UNREAD_CHECKPOINT, "deviations": []}
    found = list(deviations(replayed, image))
    breaches = list(
        unlawful_deviations(found, checkpoint.end_offset, checkpoint.leader_epoch, checkpoint.content_digest)
    )
    lawful = LAWFUL if found or replayed.in_transaction else EQUAL
    return {
        "outcome": DEVIATES if breaches else lawful,
        "deviations": [{name: getattr(breach, name) for name in DEVIATION} for breach in breaches],
    }
