"""A lake's small tables without Spark, by delta-rs: what a run asks before and after its Spark jobs.

A session and its first query cost 20 seconds, each new query a second of code generation; here a few rows
are read in milliseconds.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.types import StructType

from transforms.lake.arrow_rows import arrow_schema, to_arrow
from transforms.lake.tables import CAPTURES, Table

Row = dict[str, Any]
# A commit that must be the next version, and how often one is tried that need not.
AT_ONCE = CommitProperties(max_commit_retries=0)
ATTEMPTS = 10
# Of joined files: readers hold a whole row group, and leave out those that have nothing they look for.
ROW_GROUP_ROWS = 128 * 1024


def exists(lake: Path, table: Table) -> bool:
    """Whether a run has written the table: one that was killed may have left a log without a commit."""
    return any((lake / table.name / "_delta_log").glob("*.json"))


def rows_with(
    lake: Path,
    table: Table,
    columns: Sequence[str] | None = None,
    where: ds.Expression | None = None,
    **wanted: Iterable[str],
) -> list[Row]:
    """The rows whose named columns are among the wanted values, as frames.to_rows gives them.

    `columns`: all, if None; `where`: a condition that must hold too. Empty where the table was not written
    yet. Statistics of the files are used, so that only some of many are opened.
    """
    if not exists(lake, table):
        return []
    return arrow_with(lake, table, columns or table.names, where, **wanted).to_pylist()


def cluster_ids(lake: Path) -> list[str]:
    """Every cluster of which the lake holds a capture."""
    return sorted({row["cluster_id"] for row in rows_with(lake, CAPTURES, ["cluster_id"])})


def arrow_with(
    lake: Path,
    table: Table,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    **wanted: Iterable[str],
) -> pa.Table:
    """The rows of a table that exists, as rows_with chooses them, as an Arrow table.

    A column that a lake of an earlier version lacks is null.
    """
    return columns_with(opened(lake, table), columns, where, **wanted)


def columns_with(
    rows_of: ds.Dataset,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    **wanted: Iterable[str],
) -> pa.Table:
    """The same of a table that is opened."""
    held = set(rows_of.schema.names)
    rows = rows_of.to_table([name for name in columns if name in held], filter=chosen(where, wanted))
    for index, name in enumerate(columns):
        if name not in held:
            rows = rows.add_column(index, name, pa.nulls(len(rows)))
    return rows


def among(wanted: Mapping[str, Iterable[str]]) -> ds.Expression:
    """The condition that each named column has one of the wanted values."""
    condition = ds.scalar(True)
    for column, values in wanted.items():
        some = sorted(values)
        condition &= ds.field(column).isin(some) if some else ds.scalar(False)
    return condition


def chosen(where: ds.Expression | None, wanted: Mapping[str, Iterable[str]]) -> ds.Expression:
    return among(wanted) if where is None else where & among(wanted)


def opened(lake: Path, table: Table, version: int | None = None) -> ds.Dataset:
    """A table that exists, at its newest or a given version, to be read a piece at a time."""
    return dataset(lake / table.name, DeltaTable(lake / table.name, version=version))


def newest_version(lake: Path, table: Table) -> int:
    """The newest Delta version of a table that exists."""
    return DeltaTable(lake / table.name).version()


def count_rows(lake: Path, table: Table, where: ds.Expression | None = None, **wanted: Iterable[str]) -> int:
    """How many rows rows_with would find."""
    if not exists(lake, table):
        return 0
    return opened(lake, table).count_rows(filter=chosen(where, wanted))


def small_files(lake: Path, table: Table, less_than_bytes: int) -> int:
    """How many files of a table are smaller than that."""
    return pc.sum(pc.less(file_sizes(lake, table), less_than_bytes)).as_py() or 0


def size_bytes(lake: Path, table: Table) -> int:
    """The size of a table's files."""
    return pc.sum(file_sizes(lake, table)).as_py() or 0


def file_sizes(lake: Path, table: Table) -> pa.ChunkedArray:
    """The sizes of a table's files in bytes; none where it was not written yet."""
    if not exists(lake, table):
        return pa.chunked_array([], pa.int64())
    return pa.table(DeltaTable(lake / table.name).get_add_actions())["size_bytes"]


def old_files(lake: Path, table: Table, before_s: float) -> list[Path]:
    """The files of a table that its newest version does not need, written before a time (seconds)."""
    if not exists(lake, table):
        return []
    folder = lake / table.name
    needed = set(pa.table(DeltaTable(folder).get_add_actions())["path"].to_pylist())
    written = ((path, str(path.relative_to(folder))) for path in folder.glob("**/*.parquet"))
    others = (path for path, name in written if name not in needed and not name.startswith("_delta_log/"))
    return [path for path in others if path.stat().st_mtime < before_s]


def compact(lake: Path, table: Table) -> None:
    """Join the small files of a table that is not clustered; not now, if others commit meanwhile."""
    how = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP_ROWS)
    with suppress(CommitFailedError):
        DeltaTable(lake / table.name).optimize.compact(writer_properties=how)


def dataset(path: Path, written: DeltaTable) -> ds.Dataset:
    """The table's files, read through Arrow's own file system.

    delta-rs's, which is the default, calls back into Python from Arrow's threads: one process in ten that
    ended while they were still busy was aborted.
    """
    files = fs.SubTreeFileSystem(str(path.resolve()), fs.LocalFileSystem())
    return written.to_pyarrow_dataset(filesystem=files)


def append_row(lake: Path, table: Table, row: Row) -> None:
    """Append one row to a table that exists and is not clustered; columns it lacks become null."""
    again_if_others_commit(lambda: write_row(lake, table, row, mode="append"))


def replace_row(lake: Path, table: Table, row: Row) -> None:
    """Put a row in the place of the one with its key."""
    same = " AND ".join(f"{name} = '{row[name]}'" for name in table.key)
    again_if_others_commit(lambda: write_row(lake, table, row, mode="overwrite", predicate=same))


def replace_rows(lake: Path, table: Table, rows: Iterable[Row]) -> None:
    """Put rows in the place of all that a table of plain texts holds; it is made if it is not there."""
    schema = pa.schema([pa.field(c.name, pa.string(), c.nullable) for c in table.columns])
    assert {c.type for c in table.columns} == {"STRING"}
    found = pa.Table.from_pylist(list(rows), schema)
    again_if_others_commit(lambda: write_deltalake(lake / table.name, found, mode="overwrite"))


def is_written_here(lake: Path, table: Table) -> bool:
    """Whether delta-rs writes the table: none that is clustered, as some of earlier lakes are."""
    if not exists(lake, table):
        return True
    return "clustering" not in (DeltaTable(lake / table.name).protocol().writer_features or ())


def schema(lake: Path, table: Table) -> StructType:
    """The types that a table which exists has on disk."""
    return StructType.fromJson(json.loads(DeltaTable(lake / table.name).schema().to_json()))


def is_loaded(lake: Path, table: Table, application: str) -> bool:
    """Whether the log of a table that exists has the load of that name."""
    return DeltaTable(lake / table.name).transaction_version(application) is not None


def add_files(lake: Path, table: Table, files: Iterable[Row], application: str) -> None:
    """Make files that lie in a table's folder (rows of table_files.FILES) part of it, under a load's name."""
    added: list[AddAction | RemoveAction] = [
        AddAction(f["path"], f["size_bytes"], {}, f["modified_ms"], data_change=True, stats=f["stats"])
        for f in files
    ]
    load = CommitProperties(app_transactions=[Transaction(application, 0)])

    def commit() -> None:
        held = DeltaTable(lake / table.name)
        held.create_write_transaction(added, "append", held.schema(), commit_properties=load)

    again_if_others_commit(commit)


def replace_where(lake: Path, table: Table, rows: pa.Table | pa.RecordBatchReader, condition: str) -> None:
    """Put rows in the place of all of which a condition (SQL) holds, as it does of them.

    The table is made if it is not there. Needs a session: Spark knows the types.
    """
    create(lake, table)

    def write() -> None:
        write_deltalake(lake / table.name, rows, mode="overwrite", predicate=condition)

    # A reader can be read once only, so that write is not repeated.
    if isinstance(rows, pa.RecordBatchReader):
        write()
    else:
        again_if_others_commit(write)


def put_rows(lake: Path, table: Table, rows: Sequence[Row], by: str) -> None:
    """Insert or update rows by the table's key, of which `by` is a column of texts. Needs a session.

    The table is made if it is not there. delta-rs's own merge is not used: it writes files whose texts Arrow
    then cannot compare with others.
    """
    values = {row[by] for row in rows}
    held = rows_with(lake, table, None, None, **{by: values})
    if held:
        wanted = {tuple(row[name] for name in table.key): row for row in (*held, *rows)}
        replace_where(lake, table, to_arrow(wanted.values(), table.schema), among_texts(by, values))
        return
    create(lake, table)
    found = to_arrow(rows, table.schema)
    again_if_others_commit(lambda: write_deltalake(lake / table.name, found, mode="append"))


def among_texts(column: str, texts: Iterable[str]) -> str:
    """The condition that a column has one of the texts, as delta-rs's SQL writes it."""
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in sorted(texts))
    return f"{column} IN ({quoted})"


def create(lake: Path, table: Table) -> None:
    """The table with its comments, if it is not there."""
    if exists(lake, table):
        return
    comments = [c.comment for c in table.columns]
    fields = [
        field.with_metadata({"comment": comment})
        for field, comment in zip(arrow_schema(table.schema), comments, strict=True)
    ]
    schema = Schema.from_arrow(pa.schema(fields))
    make_aside(lake, table, lambda path: DeltaTable.create(path, schema, description=table.comment))


def make_aside(lake: Path, table: Table, make: Callable[[Path], object]) -> None:
    """Make a table somewhere else and rename it then.

    So a killed run leaves no half of one, and of several runs that make it at once one does: made by delta-rs
    in the same place, a second one would become the next version of the first.
    """
    aside = lake / f".{table.name}-{uuid.uuid4().hex}"
    make(aside)
    try:
        aside.rename(lake / table.name)
    except OSError:
        if not exists(lake, table):
            raise
        shutil.rmtree(aside)


def write_row(lake: Path, table: Table, row: Row, **how: Any) -> None:
    written = DeltaTable(lake / table.name)
    write_deltalake(written, arrow_row(written, row), **how)


def again_if_others_commit(write: Callable[[], object]) -> None:
    """Repeat a write from the newest version where delta-rs sees a conflict with a commit in between."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            write()
            return
        except CommitFailedError:
            if attempt == ATTEMPTS:
                raise


def arrow_row(written: DeltaTable, row: Row) -> pa.Table:
    """One row with the columns of a table."""
    return pa.Table.from_pylist([row], schema=pa.schema(written.schema().to_arrow()))


def unfinished(lake: Path, table: Table) -> tuple[int, list[Row]]:
    """The version of table `runs`, and its rows without finished_at."""
    written = DeltaTable(lake / table.name)
    rows = dataset(lake / table.name, written).to_table(filter=ds.field("finished_at").is_null())
    return written.version(), rows.to_pylist()


def append_row_after(lake: Path, table: Table, row: Row, version: int) -> bool:
    """Append one row as the very next version after `version`. False where another commit was that."""
    written = DeltaTable(lake / table.name)
    if written.version() != version:
        return False
    try:
        write_deltalake(written, arrow_row(written, row), mode="append", commit_properties=AT_ONCE)
    except CommitFailedError:
        return False
    return True
