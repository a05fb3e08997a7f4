"""Decode chosen batches to records; secrets are redacted before a row leaves the reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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


# A task with so many bytes of a file writes records by type: less fills no row group of a type.
LARGE_BYTES = 16 * 1024 * 1024
# Batches from the middle of a file that tell its types.
SAMPLED_BATCHES = 4096
# A type is frequent if one of so many records is of it.
FREQUENT = 4


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of which batches from position `start` on are decoded; their addresses count from `address`."""

    address: int
    start: int
    path: str
    cluster_id: str


# A file with the positions (start, end) of its batches in a task.
Batches = tuple[SourceFile, Positions, Positions]


def decoder(sources: Sequence[SourceFile], allowed: Set[str] = NONE_ALLOWED) -> Task:
    """A function for mapInArrow: (address, size_bytes) of batches in this order to rows of DECODED."""

    def decode_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = list(by_file(batches, sources))
        types = frequent_types(files)
        if types:
            yield from together(_by_type(files, types, allowed))
            return
        yield from together(
            owned(source.cluster_id, records)
            for source, starts, ends in files
            for records in decode_file(source.path, starts, ends, allowed)
        )

    return decode_rows


def frequent_types(files: Sequence[Batches]) -> Set[str]:
    """The record types that make up most of a large file; empty where none is large.

    Apart from the others they are written in half the time. What a part of the largest file holds stands for
    all; where it does not, to write the rows takes longer, and nothing else changes.
    """
    sizes = [int((ends - starts).sum()) for _, starts, ends in files]
    if max(sizes, default=0) < LARGE_BYTES:
        return frozenset()
    source, starts, ends = files[int(np.argmax(sizes))]
    middle = len(starts) // 2
    some = slice(middle, middle + SAMPLED_BATCHES)
    found: Counter[str] = Counter()
    for records in decode_file(source.path, starts[some], ends[some]):
        counted = pc.value_counts(records["type"])
        found.update(dict(zip(*(values.to_pylist() for values in counted.flatten()), strict=True)))
    return frozenset(name for name, count in found.items() if FREQUENT * count >= found.total())


def _by_type(files: Sequence[Batches], types: Set[str], allowed: Set[str]) -> Iterator[pa.RecordBatch]:
    """The records of the files, those of some types first."""
    # Loads the compiled kernel, which the planning process does not need.
    from kraft_core.columnar.fast import decode_by_type

    parts = [
        decode_by_type(source.path, sections(starts, ends), types, allowed=allowed)
        for source, starts, ends in files
    ]
    for number in range(2):
        for (source, starts, _), part in zip(files, parts, strict=True):
            for records in part[number]:
                yield owned(source.cluster_id, within_batch(records, starts))


def by_file(batches: Iterator[pa.RecordBatch], sources: Sequence[SourceFile]) -> Iterator[Batches]:
    """The batches of the task by their files."""
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
