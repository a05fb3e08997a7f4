"""A lake's tables read without Spark, by delta-rs: in milliseconds.

A Spark session and its first query cost 20 seconds, every new query a second of code generation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from transforms.lake.arrow_rows import Row, each_cluster, python_rows
from transforms.lake.clustering import CLUSTER
from transforms.lake.row_groups import holding
from transforms.lake.storage.footers import with_footers
from transforms.lake.storage.foreign_files import readable
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.table_folders import (
    arrow_files,
    copied_files,
    delta_table,
    exists,
    read_table,
    table_folder,
)
from transforms.lake.table_files import MOST_CHARACTERS
from transforms.lake.tables import CAPTURES, Table

# --- reading ---

ROWS_AT_ONCE = 4 * 1024


def rows_with(
    lake: Location,
    table: Table,
    columns: Sequence[str] | None = None,
    where: ds.Expression | None = None,
    also: ds.Expression | None = None,
    **wanted: Iterable[Any],
) -> list[Row]:
    """The rows that meet `where` and whose named columns are among the wanted values; times are in UTC.

    columns: None for all. Empty where the table does not exist. Files are skipped by their statistics.
    also: what the rows must meet, too, but row groups are not chosen by: what most rows meet, or what takes
    long to decode.
    """
    if not exists(lake, table):
        return []
    return python_rows(arrow_with(lake, table, columns or table.names, where, also, **wanted))


def rows_with_value(
    lake: Location, table: Table, columns: Sequence[str], field: tuple[str, str], clusters: Iterable[str]
) -> list[Row]:
    """The rows of some clusters that have a value in a field of a struct, as rows_with returns them.

    Row groups without one are not read.
    """
    if not exists(lake, table):
        return []
    wanted = sorted(clusters)
    condition = among({CLUSTER: wanted}) & ds.field(*field).is_valid()
    stored = opened(lake, table, where=condition)
    return python_rows(_columns(stored, columns, condition, wanted, ".".join(field)))


def arrow_with(
    lake: Location,
    table: Table,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    also: ds.Expression | None = None,
    **wanted: Iterable[Any],
) -> pa.Table:
    """The rows that rows_with returns, of a table that exists, as an Arrow table.

    A column that the table lacks on disk, as one of an earlier version may, is null.
    """
    values = {name: sorted(some) for name, some in wanted.items()}
    condition = _condition(where, values) if values or where is not None else None
    return columns_with(opened(lake, table, where=condition), columns, where, also, **values)


def by_cluster(
    lake: Location, table: Table, columns: Sequence[str], clusters: Collection[str]
) -> dict[str, pa.Table]:
    """Of each of the clusters its rows, to be made Python values one cluster at a time: these are large."""
    if exists(lake, table):
        rows = arrow_with(lake, table, columns, cluster_id=clusters)
    else:
        rows = pa.schema([table.arrow_schema.field(name) for name in columns]).empty_table()
    parts: dict[str, list[pa.RecordBatch]] = {cluster: [] for cluster in clusters}
    for cluster, part in each_cluster(rows):
        parts[cluster].append(part)
    return {cluster: pa.Table.from_batches(found, rows.schema) for cluster, found in parts.items()}


def each_row(
    lake: Location,
    table: Table,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    **wanted: Iterable[Any],
) -> Iterator[Row]:
    """The rows of rows_with one by one, some thousand in memory."""
    if not exists(lake, table):
        return
    values = {name: sorted(some) for name, some in wanted.items()}
    condition = _condition(where, values)
    found = holding(opened(lake, table, where=condition), condition, values.get(CLUSTER))
    held = [name for name in columns if name in found.schema.names]
    missing = dict.fromkeys(set(columns).difference(held))
    scanned = found.to_batches(columns=held, filter=condition, batch_size=ROWS_AT_ONCE, batch_readahead=1)
    for batch in scanned:
        yield from (row | missing for row in batch.to_pylist())


def columns_with(
    stored: ds.Dataset,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    also: ds.Expression | None = None,
    **wanted: Iterable[Any],
) -> pa.Table:
    """The rows that arrow_with returns, of a table that `opened` returned."""
    values = {name: sorted(some) for name, some in wanted.items()}
    condition = _condition(where, values) if values or where is not None else None
    alone = _is_alone(where, values)
    return _columns(stored, columns, condition, values.get(CLUSTER), also=also, of_clusters_alone=alone)


def _is_alone(where: ds.Expression | None, values: Mapping[str, Iterable[Any]]) -> bool:
    """Whether a condition is one of clusters alone."""
    return where is None and list(values) == [CLUSTER]


def _columns(
    stored: ds.Dataset,
    columns: Sequence[str],
    condition: ds.Expression | None,
    clusters: Sequence[str] | None,
    valid: str | None = None,
    *,
    also: ds.Expression | None = None,
    of_clusters_alone: bool = False,
) -> pa.Table:
    """clusters, valid, of_clusters_alone: as of `holding`; also: as of rows_with."""
    held = set(stored.schema.names)
    if condition is None:
        found = stored
    else:
        found = holding(stored, condition, clusters, valid, of_clusters_alone=of_clusters_alone)
    every = [each for each in (condition, also) if each is not None]
    meeting = reduce(and_, every) if every else None
    rows = found.to_table([name for name in columns if name in held], filter=meeting)
    for index, name in enumerate(columns):
        if name not in held:
            rows = rows.add_column(index, name, pa.nulls(len(rows)))
    return rows


def count_rows(
    lake: Location, table: Table, where: ds.Expression | None = None, **wanted: Iterable[str]
) -> int:
    """How many rows rows_with would return."""
    if not exists(lake, table):
        return 0
    condition = _condition(where, wanted)
    return opened(lake, table, where=condition).count_rows(filter=condition)


def rows_by_cluster(lake: Location, table: Table, clusters: Collection[str]) -> Counter[str]:
    """How many rows each of the clusters has that has any.

    Small tables have a file a cluster, whose statistics tell; others are read.
    """
    found: Counter[str] = Counter()
    if not exists(lake, table):
        return found
    with read_table(lake, table) as held:
        added = pa.table(held.get_add_actions(flatten=True)).to_pylist()
    for file in added:
        cluster, rows = file.get(f"min.{CLUSTER}"), file["num_records"]
        is_one = cluster is not None and cluster == file[f"max.{CLUSTER}"] and len(cluster) < MOST_CHARACTERS
        if cluster is None or rows is None or not is_one:
            ids = arrow_with(lake, table, [CLUSTER], cluster_id=clusters)[CLUSTER]
            return Counter({pair["values"]: pair["counts"] for pair in pc.value_counts(ids).to_pylist()})
        if cluster in clusters:
            found[cluster] += rows
    return found


def distinct(lake: Location, table: Table, column: str, **wanted: Iterable[str]) -> set[str]:
    """The different values of a column in the rows that rows_with would return, read piece by piece."""
    return {value for (value,) in distinct_rows(lake, table, [column], **wanted)}


def distinct_rows(
    lake: Location, table: Table, columns: Sequence[str], **wanted: Iterable[str]
) -> set[tuple[Any, ...]]:
    """The different rows that rows_with would return, as tuples, read piece by piece."""
    found: set[tuple[Any, ...]] = set()
    condition = _condition(None, wanted)
    if exists(lake, table):
        stored = opened(lake, table, where=condition)
        for batch in stored.to_batches(columns=list(columns), filter=condition):
            rows = pa.Table.from_batches([batch]).group_by(list(columns)).aggregate([])
            found.update(zip(*(rows[name].to_pylist() for name in columns), strict=True))
    return found


def greatest(
    lake: Location, table: Table, keys: Sequence[str], column: str
) -> dict[tuple[Any, ...], tuple[int, Any]]:
    """By key the number of rows and the greatest value of a column, read piece by piece."""
    found: dict[tuple[Any, ...], tuple[int, Any]] = {}
    if not exists(lake, table):
        return found
    for batch in opened(lake, table).to_batches(columns=[*keys, column], batch_readahead=2):
        rows = pa.Table.from_batches([batch]).group_by(list(keys))
        for row in rows.aggregate([([], "count_all"), (column, "max")]).to_pylist():
            key = tuple(row[name] for name in keys)
            number, most = found.get(key, (0, None))
            values = [v for v in (most, row[f"{column}_max"]) if v is not None]
            found[key] = number + row["count_all"], max(values, default=None)
    return found


def cluster_ids(lake: Location) -> list[str]:
    """Every cluster of which the lake holds a capture."""
    return sorted(distinct(lake, CAPTURES, "cluster_id"))


def opened(
    lake: Location, table: Table, version: int | None = None, where: ds.Expression | None = None
) -> ds.Dataset:
    """A version of a table that exists, the newest by default, to be read piece by piece.

    where: rows that do not meet it may be left out.
    """
    folder = table_folder(lake, table)
    with read_table(lake, table) as held:
        if version in (None, held.version()):
            return dataset(folder, held, where)
    return dataset(folder, delta_table(lake, table, version), where)


def newest_version(lake: Location, table: Table) -> int:
    """The newest Delta version of a table that exists."""
    with read_table(lake, table) as held:
        return held.version()


def dataset(folder: Location, written: DeltaTable, where: ds.Expression | None = None) -> ds.Dataset:
    """The files of a version of a table, to be read piece by piece, but those without a row for `where`.

    Small files of a store are fetched, and of the sizes of others it is not asked.
    """
    found = written.to_pyarrow_dataset(filesystem=arrow_files(folder))
    assert isinstance(found, ds.FileSystemDataset)
    added = pa.table(written.get_add_actions())
    sizes = dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))
    found = with_footers(found, folder, sum(sizes.values()))
    if not isinstance(folder, StoreUrl):
        return readable(found, folder)
    wanted = list(found.get_fragments(filter=where))
    here, copied = copied_files(folder, {fragment.path: sizes[fragment.path] for fragment in wanted})
    fragments = [
        found.format.make_fragment(
            f.path,
            here if f.path in copied else found.filesystem,
            f.partition_expression,
            file_size=sizes[f.path],
        )
        for f in wanted
    ]
    return readable(ds.FileSystemDataset(fragments, found.schema, found.format, found.filesystem), folder)


def among(wanted: Mapping[str, Iterable[Any]]) -> ds.Expression:
    """The condition that each named column has one of the wanted values."""
    condition = ds.scalar(True)
    for column, values in wanted.items():
        condition &= _is_among(ds.field(column), sorted(values))
    return condition


def _is_among(field: ds.Expression, values: Sequence[Any]) -> ds.Expression:
    if all(isinstance(value, bool) for value in values):
        # delta-rs gives booleans bounds of null, by which Arrow takes no value for equal.
        return reduce(or_, (field if value else ~field for value in values), ds.scalar(False))
    return field.isin(values)


def _condition(where: ds.Expression | None, wanted: Mapping[str, Iterable[Any]]) -> ds.Expression:
    return among(wanted) if where is None else where & among(wanted)


# --- files ---

# Of more files or bytes, Delta leaves some out by their statistics, which is worth what it takes to start.
MOST_FILES, MOST_BYTES = 32, 256 * 1024 * 1024
_PLAIN_NAME = re.compile(r"[\w.-]+")


def plain_files(lake: Location, table: Table) -> list[str] | None:
    """The names of the data files of a small table's newest version, if they alone make its rows.

    None where it takes a reader of Delta: for a large table, and for one with features of Delta that this
    lake never uses. The table must exist.
    """
    with read_table(lake, table) as stored:
        if stored.protocol().min_reader_version > 1 or stored.metadata().partition_columns:
            return None
        added = pa.table(stored.get_add_actions())
    names: list[str] = added["path"].to_pylist()
    if len(names) > MOST_FILES or (pc.sum(added["size_bytes"]).as_py() or 0) > MOST_BYTES:
        return None
    return names if all(map(_PLAIN_NAME.fullmatch, names)) else None


def small_files(lake: Location, table: Table, less_than_bytes: int) -> int:
    """How many files of a table are smaller than that."""
    return pc.sum(pc.less(_file_sizes(lake, table), less_than_bytes)).as_py() or 0


def size_bytes(lake: Location, table: Table) -> int:
    """The size of a table's files."""
    return pc.sum(_file_sizes(lake, table)).as_py() or 0


def _file_sizes(lake: Location, table: Table) -> pa.ChunkedArray:
    """The sizes of a table's files in bytes; none where it does not exist."""
    if not exists(lake, table):
        return pa.chunked_array([], pa.int64())
    with read_table(lake, table) as held:
        return pa.table(held.get_add_actions())["size_bytes"]


def unneeded_files(lake: Location, table: Table, hours: int) -> list[Location]:
    """The data files that no version of the last hours needs, and that are older than that."""
    if not exists(lake, table):
        return []
    held = delta_table(lake, table)
    found = held.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    return [table_folder(lake, table) / name for name in found]
