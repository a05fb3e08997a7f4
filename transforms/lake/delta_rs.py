"""A lake's tables without Spark, by delta-rs: rows are read and written in milliseconds.

A Spark session and its first query cost 20 seconds, every new query a second of code generation.
"""

from __future__ import annotations

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

from transforms.lake.arrow_rows import Row, arrow_schema
from transforms.lake.tables import CAPTURES, RUNS, Table

# A commit that must be the very next version, and how often any other is tried.
NO_RETRY = CommitProperties(max_commit_retries=0)
ATTEMPTS = 10
# Of compacted files: readers hold a whole row group, and skip those whose statistics rule them out.
ROW_GROUP_ROWS = 128 * 1024


# --- reading ---


def exists(lake: Path, table: Table) -> bool:
    """Whether the table has a commit: a killed run may have left a log without one."""
    return any((lake / table.name / "_delta_log").glob("*.json"))


def rows_with(
    lake: Path,
    table: Table,
    columns: Sequence[str] | None = None,
    where: ds.Expression | None = None,
    **wanted: Iterable[str],
) -> list[Row]:
    """The rows that meet `where` and whose named columns are among the wanted values; times are in UTC.

    columns: None for all. Empty where the table does not exist. Files are skipped by their statistics.
    """
    if not exists(lake, table):
        return []
    return arrow_with(lake, table, columns or table.names, where, **wanted).to_pylist()


def arrow_with(
    lake: Path,
    table: Table,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    **wanted: Iterable[str],
) -> pa.Table:
    """The rows that rows_with returns, of a table that exists, as an Arrow table.

    A column that the table lacks on disk, as one of an earlier version may, is null.
    """
    return columns_with(opened(lake, table), columns, where, **wanted)


def columns_with(
    stored: ds.Dataset,
    columns: Sequence[str],
    where: ds.Expression | None = None,
    **wanted: Iterable[str],
) -> pa.Table:
    """The rows that arrow_with returns, of a table that `opened` returned."""
    held = set(stored.schema.names)
    rows = stored.to_table([name for name in columns if name in held], filter=_condition(where, wanted))
    for index, name in enumerate(columns):
        if name not in held:
            rows = rows.add_column(index, name, pa.nulls(len(rows)))
    return rows


def count_rows(lake: Path, table: Table, where: ds.Expression | None = None, **wanted: Iterable[str]) -> int:
    """How many rows rows_with would return."""
    if not exists(lake, table):
        return 0
    return opened(lake, table).count_rows(filter=_condition(where, wanted))


def cluster_ids(lake: Path) -> list[str]:
    """Every cluster of which the lake holds a capture."""
    return sorted({row["cluster_id"] for row in rows_with(lake, CAPTURES, ["cluster_id"])})


def unfinished_runs(lake: Path) -> tuple[int, list[Row]]:
    """The version of table `runs`, which exists, and its rows without finished_at."""
    written = DeltaTable(lake / RUNS.name)
    rows = _dataset(lake / RUNS.name, written).to_table(filter=ds.field("finished_at").is_null())
    return written.version(), rows.to_pylist()


def opened(lake: Path, table: Table, version: int | None = None) -> ds.Dataset:
    """A version of a table that exists, the newest by default, to be read piece by piece."""
    return _dataset(lake / table.name, DeltaTable(lake / table.name, version=version))


def newest_version(lake: Path, table: Table) -> int:
    """The newest Delta version of a table that exists."""
    return DeltaTable(lake / table.name).version()


def _dataset(path: Path, written: DeltaTable) -> ds.Dataset:
    """The table's files, read through Arrow's own file system.

    delta-rs's, which is the default, calls back into Python from Arrow's threads: one process in ten that
    ended while they were still busy was aborted.
    """
    files = fs.SubTreeFileSystem(str(path.resolve()), fs.LocalFileSystem())
    return written.to_pyarrow_dataset(filesystem=files)


def among(wanted: Mapping[str, Iterable[str]]) -> ds.Expression:
    """The condition that each named column has one of the wanted values."""
    condition = ds.scalar(True)
    for column, values in wanted.items():
        some = sorted(values)
        condition &= ds.field(column).isin(some) if some else ds.scalar(False)
    return condition


def _condition(where: ds.Expression | None, wanted: Mapping[str, Iterable[str]]) -> ds.Expression:
    return among(wanted) if where is None else where & among(wanted)


# --- files ---


def small_files(lake: Path, table: Table, less_than_bytes: int) -> int:
    """How many files of a table are smaller than that."""
    return pc.sum(pc.less(_file_sizes(lake, table), less_than_bytes)).as_py() or 0


def size_bytes(lake: Path, table: Table) -> int:
    """The size of a table's files."""
    return pc.sum(_file_sizes(lake, table)).as_py() or 0


def _file_sizes(lake: Path, table: Table) -> pa.ChunkedArray:
    """The sizes of a table's files in bytes; none where it does not exist."""
    if not exists(lake, table):
        return pa.chunked_array([], pa.int64())
    return pa.table(DeltaTable(lake / table.name).get_add_actions())["size_bytes"]


def old_files(lake: Path, table: Table, before_s: float) -> list[Path]:
    """The files that the table's newest version does not need, written before a time (seconds)."""
    if not exists(lake, table):
        return []
    folder = lake / table.name
    needed = set(pa.table(DeltaTable(folder).get_add_actions())["path"].to_pylist())
    written = ((path, str(path.relative_to(folder))) for path in folder.glob("**/*.parquet"))
    others = (path for path, name in written if name not in needed and not name.startswith("_delta_log/"))
    return [path for path in others if path.stat().st_mtime < before_s]


def compact(lake: Path, table: Table) -> None:
    """Join the small files of a table; left to a later run where another commit comes in between."""
    how = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP_ROWS)
    with suppress(CommitFailedError):
        DeltaTable(lake / table.name).optimize.compact(writer_properties=how)


# --- writing ---


def append_row(lake: Path, table: Table, row: Row) -> None:
    """Append one row to a table that exists; columns that the row lacks become null."""
    _retry_conflicts(lambda: _append(DeltaTable(lake / table.name), row))


def append_row_after(lake: Path, table: Table, row: Row, version: int) -> bool:
    """Append one row as version + 1 of a table that exists. False where another commit took that version."""
    written = DeltaTable(lake / table.name)
    if written.version() != version:
        return False
    try:
        _append(written, row, commit_properties=NO_RETRY)
    except CommitFailedError:
        return False
    return True


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

    _retry_conflicts(commit)


def replace_where(
    lake: Path, table: Table, rows: pa.Table | pa.RecordBatchReader, condition: str | None
) -> None:
    """Replace all rows that meet a SQL condition, as the new rows must; None replaces every row.

    The table is created if it does not exist.
    """
    create(lake, table)

    def write() -> None:
        write_deltalake(lake / table.name, rows, mode="overwrite", predicate=condition)

    # A reader can be read only once, so its write is not repeated.
    if isinstance(rows, pa.RecordBatchReader):
        write()
    else:
        _retry_conflicts(write)


def put_rows(lake: Path, table: Table, rows: Sequence[Row], by: str) -> None:
    """Insert or update rows of a table that exists by its key, of which `by` is a string column.

    delta-rs's own merge is not used: Arrow cannot compare the strings in the files it writes with others.
    """
    values = {row[by] for row in rows}
    held = rows_with(lake, table, where=among({by: values}))
    wanted = {tuple(row[name] for name in table.key): row for row in (*held, *rows)}
    found = _with_stored_columns(DeltaTable(lake / table.name), wanted.values())
    if held:
        replace_where(lake, table, found, among_texts(by, values))
    else:
        _retry_conflicts(lambda: write_deltalake(lake / table.name, found, mode="append"))


def among_texts(column: str, texts: Iterable[str]) -> str:
    """The condition that a column has one of the texts, as delta-rs's SQL writes it."""
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in sorted(texts))
    return f"{column} IN ({quoted})"


def create(lake: Path, table: Table) -> None:
    """Create the table with its comments, if it does not exist."""
    if exists(lake, table):
        return
    schema = delta_schema(table)
    _create_aside(lake, table, lambda path: DeltaTable.create(path, schema, description=table.comment))


def delta_schema(table: Table) -> Schema:
    """The declared schema with its comments, as Delta has it."""
    fields = zip(arrow_schema(table.schema), table.columns, strict=True)
    return Schema.from_arrow(pa.schema([f.with_metadata({"comment": c.comment}) for f, c in fields]))


def _create_aside(lake: Path, table: Table, make: Callable[[Path], object]) -> None:
    """Create a table in a folder of its own and rename that.

    A killed run leaves no half of a table, and of several runs that create it at once one succeeds: delta-rs
    itself would commit a second creation as the next version of the first.
    """
    aside = lake / f".{table.name}-{uuid.uuid4().hex}"
    make(aside)
    try:
        aside.rename(lake / table.name)
    except OSError:
        if not exists(lake, table):
            raise
        shutil.rmtree(aside)


def _append(written: DeltaTable, row: Row, **how: Any) -> None:
    write_deltalake(written, _with_stored_columns(written, [row]), mode="append", **how)


def _with_stored_columns(written: DeltaTable, rows: Iterable[Row]) -> pa.Table:
    """Rows with the columns that the table has on disk: it may lack those of a newer version."""
    return pa.Table.from_pylist(list(rows), schema=pa.schema(written.schema().to_arrow()))


def _retry_conflicts(write: Callable[[], object]) -> None:
    """Repeat a write from the newest version where another commit came in between."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            write()
            return
        except CommitFailedError:
            if attempt == ATTEMPTS:
                raise
