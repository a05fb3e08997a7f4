"""Lakes of earlier versions: nullable columns and struct fields that tables lack are added.

A lake that lacks a required column is refused: the content of the column was never read. Tables that do not
exist are created by their first writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from deltalake import Field

from transforms.lake.commits import TableWriter, delta_schema
from transforms.lake.storage import NoLakeError
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import delta_table, exists, read_table
from transforms.lake.tables import TABLES, Column, Table


def missing_columns(path: Location) -> list[str]:
    """The declared columns that tables of the lake lack, as table.column; none of them is required.

    Raises NoLakeError where a required one is missing.
    """
    return _missing(path, _stored_schemas(path))


def check_schema(path: Location) -> None:
    """Raises NoLakeError where a table lacks a column: for verbs that only read."""
    lacking = missing_columns(path)
    if lacking:
        raise NoLakeError(
            f"{path} was written by an earlier kraftlake and lacks {', '.join(lacking)}: "
            f"kraftlake derive --lake {path} adds them"
        )


def outdated_tables(path: Location, tables: Iterable[Table] = TABLES) -> list[Table]:
    """Those that lack a declared column or struct field. Raises NoLakeError as missing_columns."""
    stored = _stored_schemas(path, tables)
    _missing(path, stored)
    return [table for table, held in stored.items() if lacks(pa.struct(held), pa.struct(table.arrow_schema))]


def update_schemas(writer: TableWriter) -> None:
    """Add what tables lack. Columns that they have keep the comments of the version that wrote them."""
    for table in outdated_tables(writer.lake):
        stored = delta_table(writer.lake, table)
        held = {field.name: field.metadata for field in stored.schema().fields}
        fields = [
            Field(f.name, f.type, nullable=f.nullable, metadata=held.get(f.name, f.metadata))
            for f in delta_schema(table).fields
        ]
        writer.add_columns(table, fields)


def _stored_schemas(path: Location, tables: Iterable[Table] = TABLES) -> dict[Table, pa.Schema]:
    found = {}
    for table in tables:
        if exists(path, table):
            with read_table(path, table) as held:
                found[table] = pa.schema(held.schema().to_arrow())
    return found


def _missing(path: Location, stored: Mapping[Table, pa.Schema]) -> list[str]:
    def named(columns: Iterable[tuple[Table, Column]]) -> list[str]:
        return [f"{table.name}.{column.name}" for table, column in columns]

    missing = [(t, c) for t, held in stored.items() for c in t.columns if c.name not in held.names]
    required = [(t, c) for t, c in missing if not c.nullable]
    if required:
        raise NoLakeError(
            f"{path} was written by an earlier kraftlake and lacks {', '.join(named(required))}: "
            "load the captures into a new lake (kraftlake run --captures ... --lake ANOTHER), "
            "or use the kraftlake that wrote it"
        )
    return named(missing)


def lacks(held: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type lacks a field of another, at any depth."""
    if pa.types.is_list(held) and pa.types.is_list(wanted):
        return lacks(held.value_type, wanted.value_type)
    if pa.types.is_struct(held) and pa.types.is_struct(wanted):
        fields = {field.name: field.type for field in held}
        return any(f.name not in fields or lacks(fields[f.name], f.type) for f in wanted)
    return False
