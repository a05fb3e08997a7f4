"""The row groups of a large table that hold wanted rows: the others are not decoded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from transforms.lake.clustering import CLUSTER

# Of fewer rows all columns are decoded before it takes as long to look for the row groups.
LARGE_ROWS = 64 * 1024
# Rows and fragments of which the columns of a condition are in memory at once.
ROWS_AT_ONCE, FRAGMENTS_AT_ONCE = 16 * 1024, 4
# So many row groups for each wanted cluster are read without a look at whose rows they have.
MOST_OF_A_CLUSTER = 4
# Arrow's column of a scan: the place of a row's fragment in the dataset.
_NUMBER = "__fragment_index"


def holding(
    stored: ds.Dataset,
    condition: ds.Expression,
    clusters: Sequence[str] | None,
    valid: str | None = None,
    *,
    of_clusters_alone: bool = False,
) -> ds.Dataset:
    """Of a large table the row groups with a row that meets a condition; all of a small one.

    clusters: rows of others do not meet the condition; None: they may. valid: rows that are null in this
    field of a struct (struct.field) do not; Arrow does not ask its statistics. Arrow decodes all columns of
    every row group that the statistics do not rule out, and compares these with a single value, not with a
    list. of_clusters_alone: every row of the clusters meets the condition; then a few without any may be
    among the row groups.
    """
    fragments = list(stored.get_fragments(filter=condition))
    if sum(fragment.count_rows() for fragment in fragments) < LARGE_ROWS:
        return stored
    wanted = None if clusters is None else sorted(cluster.encode() for cluster in clusters)
    groups = [
        fragment.subset(row_group_ids=[number])
        for fragment in fragments
        for number in _with_clusters(fragment.metadata, wanted)
        if valid is None or _has_value(fragment.metadata, number, valid)
    ]
    candidates = ds.FileSystemDataset(groups, stored.schema, stored.format, stored.filesystem)
    if len(groups) <= 1:  # it has the rows, or there are none
        return candidates
    # Where there are few for each cluster, rows are sorted by it, and nearly each of these has some.
    if of_clusters_alone and wanted is not None and len(groups) <= MOST_OF_A_CLUSTER * len(wanted):
        return candidates
    meeting = candidates.to_batches(
        columns=[_NUMBER],
        filter=condition,
        batch_size=ROWS_AT_ONCE,
        batch_readahead=FRAGMENTS_AT_ONCE,
        fragment_readahead=FRAGMENTS_AT_ONCE,
    )
    numbers: set[int] = set()
    for batch in meeting:
        numbers.update(pc.unique(batch[_NUMBER]).to_pylist())
    held = [groups[number] for number in sorted(numbers)]
    return ds.FileSystemDataset(held, stored.schema, stored.format, stored.filesystem)


def each_row_group(fragments: Iterable[ds.Fragment], where: ds.Expression | None) -> Iterator[ds.Fragment]:
    """The row groups of files that may have rows for which a condition holds (None: all), to be read in turn.

    Of a whole file Arrow decodes ahead, without a limit, of who takes long with the rows.
    """
    return chain.from_iterable(fragment.split_by_row_group(where) for fragment in fragments)


def _with_clusters(metadata: pq.FileMetaData, clusters: Sequence[bytes] | None) -> Iterator[int]:
    """The row groups that may have rows of the clusters (rising), by their statistics; None: of any."""
    place = _place(metadata, CLUSTER)
    numbers = range(metadata.num_row_groups)
    if clusters is None or place is None:
        yield from numbers
        return
    for number in numbers:
        found = metadata.row_group(number).column(place).statistics
        if found is None or not found.has_min_max:
            yield number
            continue
        first = bisect_left(clusters, found.min_raw)
        if first < len(clusters) and clusters[first] <= found.max_raw:
            yield number


def _has_value(metadata: pq.FileMetaData, number: int, column: str) -> bool:
    """Whether a column of a row group may have a value."""
    place = _place(metadata, column)
    if place is None:
        return False
    found = metadata.row_group(number).column(place)
    held = found.statistics
    return held is None or not held.has_null_count or held.null_count < found.num_values


def _place(metadata: pq.FileMetaData, column: str) -> int | None:
    """The place of a plain column in each row group of a file; None where it has none.

    Not by the schema: it and the metadata hold each other, so that both stay until garbage is collected.
    """
    if not metadata.num_row_groups:
        return None
    group = metadata.row_group(0)
    places = (place for place in range(group.num_columns) if group.column(place).path_in_schema == column)
    return next(places, None)
