"""Scanned batches in pieces: Spark holds and shuffles one row for each piece. A row for each batch would cost
it up to a thousand times as much.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.ingest.file_ranges import ranges_of
from transforms.ingest.scanning import SCANNED, of_files, scan_file
from transforms.lake.spark_rows import spark_types

PLACES = pa.schema([SCANNED.field(name) for name in ("file_number", "address", "size_bytes")])
# Batches that lie one after another in their files. address: of the first; is_damaged: whether some of the
# rows are damage. Serialized record batches: rows, of scanning.SCANNED; places, of PLACES, without damage;
# ranges, of file_ranges.RANGES, for this piece and those after it that have none.
PIECES = pa.schema(
    [
        ("address", pa.int64()),
        ("is_damaged", pa.bool_()),
        ("rows", pa.binary()),
        ("places", pa.binary()),
        ("ranges", pa.binary()),
    ]
)
# The size of a piece, if no batch is larger: small beside what a task decodes.
PIECE_BYTES = 2 * 1024 * 1024


def scan_to_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Segments (rows of scanning.FILES) to rows of PIECES. An unreadable file is damage."""
    return (_pieces(rows) for rows in of_files(batches, scan_file) if len(rows))


def _pieces(rows: pa.RecordBatch) -> pa.RecordBatch:
    ends = np.cumsum(rows["size_bytes"].to_numpy())
    edges = [0, *(np.flatnonzero(np.diff(ends // PIECE_BYTES)) + 1).tolist(), len(rows)]
    parts = [rows.slice(first, end - first) for first, end in pairwise(edges)]
    columns = [
        [part["address"][0].as_py() for part in parts],
        [part["reason"].null_count < len(part) for part in parts],
        [part.serialize().to_pybytes() for part in parts],
        [_good(part).select(PLACES.names).serialize().to_pybytes() for part in parts],
        [ranges_of(_good(rows)).serialize().to_pybytes(), *(None for _ in parts[1:])],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, PIECES, strict=True)], schema=PIECES
    )


def _good(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The batches whose checksum held."""
    reasons = rows["reason"]
    return rows if reasons.null_count == len(rows) else rows.filter(reasons.is_null())


def deserialized(contents: pa.Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The record batches of a column of PIECES."""
    for content in contents.drop_null().to_pylist():
        yield pa.ipc.read_record_batch(pa.py_buffer(content), schema)


def scanned_rows(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of SCANNED, in the types that Spark accepts."""
    declared = spark_types(SCANNED)
    return (rows.cast(declared) for piece in pieces for rows in deserialized(piece["rows"], SCANNED))


def good_rows(pieces: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of SCANNED whose checksum held."""
    return (_good(rows) for piece in pieces for rows in deserialized(piece["rows"], SCANNED))


def places(
    pieces: Iterator[pa.RecordBatch], numbers: Collection[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """(address, size_bytes) of the good batches, those of all files or of those with certain numbers."""
    wanted = None if numbers is None else pa.array(sorted(numbers), PLACES.field("file_number").type)
    for piece in pieces:
        for rows in deserialized(piece["places"], PLACES):
            chosen = rows if wanted is None else rows.filter(pc.is_in(rows["file_number"], wanted))
            yield chosen.select(["address", "size_bytes"])


def owned_batches(pieces: Iterator[pa.RecordBatch], owners: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The good batches with the columns of who they belong to. owners: a row for each file, by its number."""
    for rows in good_rows(pieces):
        found = owners.take(rows["file_number"])
        for name in found.schema.names:
            rows = rows.append_column(name, found[name])
        yield rows
