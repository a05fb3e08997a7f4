"""Rows sorted by cluster in bounded memory: the statistics of row groups then tell which hold a cluster.

They are dealt to files of this machine, each of some successive clusters, and sorted file by file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.lake.arrow_rows import gathered

# The bytes in memory that are sorted at a time.
SORTED_BYTES = 16 * 1024 * 1024
# Rows of a row group: where several clusters are sorted, and of others.
SORTED_GROUP_ROWS, GROUP_ROWS = 4 * 1024, 16 * 1024
# Rows whose clusters are counted at a time; where there are more files than that, they are larger.
COUNTED_ROWS, MOST_FILES = 128 * 1024, 64
CLUSTER = "cluster_id"
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")

# The same rows each time it is called, of these columns; None for all.
Read = Callable[[Sequence[str] | None], Iterable[pa.RecordBatch]]


def sorted_row_groups(read: Read) -> Iterator[pa.Table]:
    """The rows in row groups, sorted by cluster if they have one, otherwise in their order."""
    runs = _tables(read(None), SORTED_BYTES)
    first = next(runs, None)
    if first is None:
        return
    every = chain([first], runs)
    if CLUSTER not in first.column_names:
        yield from _groups(every, GROUP_ROWS)
        return
    clusters, counts = _counted(read([CLUSTER]))
    files = _files_of(counts, len(first) * SORTED_BYTES // max(1, first.nbytes))
    if files[-1] == 0:
        yield from _sorted(every, len(clusters))
        return
    with TemporaryDirectory() as folder:
        places = [Path(folder, str(number)) for number in range(files[-1] + 1)]
        _deal(every, clusters, files, places)
        for number, place in enumerate(places):
            with pa.OSFile(str(place)) as file, pa.ipc.open_stream(file) as rows:
                yield from _sorted(_tables(rows, SORTED_BYTES), int(np.sum(files == number)))


def _sorted(tables: Iterable[pa.Table], clusters: int) -> Iterator[pa.Table]:
    """The rows of so many clusters: those of one, however many, in their order."""
    if clusters == 1:
        return _groups(tables, GROUP_ROWS)
    return _groups([pa.concat_tables(tables).sort_by(CLUSTER)], SORTED_GROUP_ROWS)


def _tables(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[pa.Table]:
    filled = (batch for batch in batches if len(batch))
    return map(pa.Table.from_batches, gathered(filled, sys.maxsize, size_bytes))


def _groups(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    return (rows.slice(first, size) for rows in tables for first in range(0, len(rows), size))


def _counted(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Array, np.ndarray]:
    """The clusters, rising, and how many rows each has."""
    parts = [
        pa.Table.from_batches(some).group_by(CLUSTER).aggregate([([], "count_all")])
        for some in gathered(batches, COUNTED_ROWS)
    ]
    found = pa.concat_tables(parts).group_by(CLUSTER).aggregate([("count_all", "sum")]).sort_by(CLUSTER)
    return found[CLUSTER].combine_chunks(), found["count_all_sum"].to_numpy()


def _files_of(counts: np.ndarray, most_rows: int) -> np.ndarray:
    """By cluster the number of its file, rising: a file has about `most_rows`, or one cluster."""
    most_rows = max(most_rows, int(counts.sum()) // MOST_FILES)
    files: list[int] = []
    number = held = 0
    for count in counts.tolist():
        if held and held + count > most_rows:
            number, held = number + 1, 0
        files.append(number)
        held += count
    return np.array(files)


def _deal(runs: Iterable[pa.Table], clusters: pa.Array, files: np.ndarray, places: Sequence[Path]) -> None:
    """Append each row to the file of its cluster."""
    writers: list[pa.ipc.RecordBatchStreamWriter] = []
    with ExitStack() as opened:
        for run in runs:
            if not writers:
                sinks = [opened.enter_context(pa.OSFile(str(place), "wb")) for place in places]
                writers = [
                    opened.enter_context(pa.ipc.new_stream(sink, run.schema, options=COMPRESSED))
                    for sink in sinks
                ]
            rows = run.sort_by(CLUSTER)
            numbers = files[pc.index_in(rows[CLUSTER], value_set=clusters).to_numpy()]
            bounds = np.searchsorted(numbers, range(len(places) + 1)).tolist()
            for writer, first, end in zip(writers, bounds, bounds[1:], strict=False):
                if end > first:
                    writer.write_table(rows.slice(first, end - first))
