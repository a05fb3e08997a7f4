"""Rows of format("kraft") from the bytes that a stream passes to its tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.wire.batches import whole_batches
from transforms.ingest.decoding import within_batch
from transforms.live.parts import LivePiece
from transforms.source.columns import LOG
from transforms.source.reading import ROWS
from transforms.source.rows import Origin, record_rows


def piece_rows(piece: LivePiece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of a piece; those that cannot be read are rows with _corrupt_range."""
    # Loads the compiled kernel, which the driver does not need.
    from kraft_core.columnar.fast import decode_bytes

    headers = tuple(whole_batches(piece.content))
    starts, bases, ends = (
        np.array(values, dtype=np.int64)
        for values in zip(*((h.position, h.base_offset, h.last_offset) for h in headers), strict=True)
    )
    origin = Origin(
        piece.cluster_id,
        None,
        None,
        piece.source,
        last_offset=piece.last_offset,
        leader_epoch=piece.leader_epoch,
    )
    for decoded in decode_bytes(piece.content):
        records = within_batch(decoded, starts)
        if piece.source == LOG:
            records = records.filter(pc.greater_equal(records["offset"], piece.first_offset))
        for first in range(0, len(records), ROWS):
            some = records.slice(first, ROWS)
            batch = np.searchsorted(bases, some["batch_base_offset"].to_numpy(), "right") - 1
            yield record_rows(some, origin, schema, ends[batch])
