"""Lakes of a few rows, written without a Spark session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from dashboards.definitions import needed, tables_among
from dashboards.report.write import Report, made_report, put_report
from transforms.lake.tables import TABLES, Table

BY_NAME = {table.name: table for table in TABLES}


def schema(table: Table) -> pa.Schema:
    """The columns of a table, all nullable."""
    return pa.schema([field.with_nullable(True) for field in table.arrow_schema])


def write(lake: Path, table: Table, rows: Iterable[dict[str, Any]] | pa.Table) -> None:
    """Write a table; columns that the rows lack are null."""
    declared = schema(table)
    if not isinstance(rows, pa.Table):
        rows = pa.Table.from_pylist(list(rows), schema=declared)
    for field in declared:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    write_deltalake(lake / table.name, rows.select(declared.names).cast(declared), mode="overwrite")


def write_for(lake: Path, view: str, tables: dict[str, list[dict[str, Any]]]) -> None:
    """Write every table that the view needs: those given, and the others without rows."""
    names = needed(f"SELECT * FROM {view}")
    assert names is not None
    assert tables.keys() <= names
    for table in tables_among(names):
        write(lake, table, tables.get(table.name, []))


def written_report(lake: Path, file: Path, now: int, clusters: Sequence[str] = ()) -> Report:
    """The page of a lake, which is also written."""
    report = made_report(lake, now, file, clusters)
    put_report(report, file)
    return report
