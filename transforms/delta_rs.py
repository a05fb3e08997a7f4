"""A lake's small tables without a Spark session, by delta-rs: what a run asks before it starts one.

Opening a session and its first query cost 20 seconds; here a table is read in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake

from transforms.tables import Table

Row = dict[str, Any]


def exists(lake: Path, table: Table) -> bool:
    """Whether a run has written the table."""
    return (lake / table.name / "_delta_log").is_dir()


def rows_with(lake: Path, table: Table, **wanted: Iterable[str]) -> list[Row]:
    """The rows whose named columns are among the wanted values, as frames.to_rows gives them.

    None where the table was not written yet. Statistics of the files are used, so that of a clustered table
    only some are opened.
    """
    if not exists(lake, table):
        return []
    condition = ds.scalar(True)
    for column, values in wanted.items():
        condition &= ds.field(column).isin(sorted(values))
    rows = DeltaTable(lake / table.name).to_pyarrow_dataset().to_table(table.names, filter=condition)
    return rows.to_pylist()


def append_row(lake: Path, table: Table, row: Row) -> None:
    """Append one row to a table that exists and is not clustered; columns it lacks become null."""
    written = DeltaTable(lake / table.name)
    schema = pa.schema(written.schema().to_arrow())
    write_deltalake(written, pa.Table.from_pylist([row], schema=schema), mode="append")
