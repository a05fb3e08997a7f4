"""Lakes of earlier versions: columns that their tables lack are added, or the lake is refused.

A column that may be null can be added to a table that is there. One that may not be null cannot: what it
should hold was never read. Tables that are not there at all are made by whoever writes them first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from transforms.lake.delta_rs import exists
from transforms.lake.storage import NoLakeError
from transforms.lake.tables import TABLES, Column, Table

if TYPE_CHECKING:
    from transforms.lake.lake import Lake

Missing = dict[Table, list[Column]]


def missing_columns(path: Path) -> Missing:
    """The declared columns that tables of the lake lack. Raises NoLakeError where they cannot be added."""
    found: Missing = {}
    for table in TABLES:
        if exists(path, table):
            held = {field.name for field in DeltaTable(path / table.name).schema().fields}
            if lacking := [column for column in table.columns if column.name not in held]:
                found[table] = lacking
    required = [f"{t.name}.{c.name}" for t, columns in found.items() for c in columns if not c.nullable]
    if required:
        raise NoLakeError(
            f"{path} was written by an earlier kraftlake and lacks {', '.join(required)}: "
            "load the captures into a new lake (kraftlake run --captures ... --lake ANOTHER), "
            "or use the kraftlake that wrote it"
        )
    return found


def check_schema(path: Path) -> None:
    """Raises NoLakeError where a table lacks a column: for verbs that only read."""
    lacking = [f"{t.name}.{c.name}" for t, columns in missing_columns(path).items() for c in columns]
    if lacking:
        raise NoLakeError(
            f"{path} was written by an earlier kraftlake and lacks {', '.join(lacking)}: "
            f"kraftlake derive --lake {path} brings it up to date"
        )


def add_columns(lake: Lake, missing: Missing) -> None:
    """Bring the tables up to date."""
    for table, columns in missing.items():
        added = ", ".join(column.ddl for column in columns)
        lake.spark.sql(f"ALTER TABLE delta.`{lake.location(table)}` ADD COLUMNS ({added})")
