"""Decode chosen batches to records; secrets are redacted before a row leaves the reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kraft_core.columnar.schema import RECORDS
from kraft_core.format.secrets import NONE_ALLOWED
from transforms.ingest.scanning import together
from transforms.lake.table_files import Task

DECODED = pa.schema([("cluster_id", pa.string()), *RECORDS])
# What a task reads: about this much of one large file or of many small ones.
RANGE_BYTES = 64 * 1024 * 1024
# A task costs a tenth of a second, whatever it reads.
LEAST_RANGE_BYTES = 16 * 1024 * 1024

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of which batches from position `start` on are decoded; their addresses count from `address`."""

    address: int
    start: int
    path: str
    cluster_id: str


def decoder(sources: Sequence[SourceFile], allowed: Set[str] = NONE_ALLOWED) -> Task:
    """A function for mapInArrow: (address, size_bytes) of batches in this order to rows of DECODED."""

    def decode_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decoded = (
            owned(source.cluster_id, records)
            for source, starts, ends in by_file(batches, sources)
            for records in decode_file(source.path, starts, ends, allowed)
        )
        yield from together(decoded)

    return decode_rows


def by_file(
    batches: Iterator[pa.RecordBatch], sources: Sequence[SourceFile]
) -> Iterator[tuple[SourceFile, Positions, Positions]]:
    """Each file with the positions (start, end) of all its batches in the task."""
    held = [[column.to_numpy() for column in batch.columns] for batch in batches]
    if not held:
        return
    addresses, sizes = map(np.concatenate, zip(*held, strict=True))
    begins = np.array([source.address for source in sources])
    numbers = np.searchsorted(begins, addresses, "right") - 1
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(numbers)]
    for first, end in pairwise(edges):
        if first == end:
            continue
        source = sources[int(numbers[first])]
        starts = addresses[first:end] - (source.address - source.start)
        yield source, starts, starts + sizes[first:end]


def decode_file(
    path: str, starts: Positions, ends: Positions, allowed: Set[str] = NONE_ALLOWED
) -> Iterator[pa.RecordBatch]:
    """The records of some batches of a file."""
    # Loads the compiled kernel, which the planning process does not need.
    from kraft_core.columnar.fast import decode

    for records in decode(path, sections(starts, ends), allowed=allowed):
        yield within_batch(records, starts)


def sections(starts: Positions, ends: Positions) -> Sequence[tuple[int, int]]:
    """The positions (start, end) of batches, adjacent ones joined."""
    cuts = np.flatnonzero(starts[1:] != ends[:-1])
    firsts = starts[np.concatenate([[0], cuts + 1])]
    lasts = ends[np.concatenate([cuts, [len(ends) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def within_batch(records: pa.RecordBatch, starts: Positions) -> pa.RecordBatch:
    """Count unread_position from the start of the record's batch, so that it is equal in every copy."""
    if records["unread_position"].null_count == len(records):
        return records

    def relative(position: int | None) -> int | None:
        if position is None:
            return None
        return position - int(starts[np.searchsorted(starts, position, "right") - 1])

    values = [relative(p) for p in records["unread_position"].to_pylist()]
    index = records.schema.get_field_index("unread_position")
    return records.set_column(index, records.schema.field(index), pa.array(values, pa.int64()))


def owned(cluster_id: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """The records with the column of their cluster."""
    column = pa.repeat(pa.scalar(cluster_id), len(records))
    return pa.RecordBatch.from_arrays([column, *records.columns], schema=DECODED)
