"""Lakes of earlier versions: nullable columns and struct fields that tables lack are added.

A lake that lacks a required column is refused: the content of the column was never read. Tables that do not
exist are created by their first writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from deltalake import Field
from pyspark.sql.types import ArrayType, DataType, StructType

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
    return [table for table, held in stored.items() if lacks(held, table.schema)]


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


def _stored_schemas(path: Location, tables: Iterable[Table] = TABLES) -> dict[Table, StructType]:
    found = {}
    for table in tables:
        if exists(path, table):
            with read_table(path, table) as held:
                stored = held.schema().to_json()
            found[table] = StructType.fromJson(json.loads(stored))
    return found


def _missing(path: Location, stored: Mapping[Table, StructType]) -> list[str]:
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


def lacks(held: DataType, wanted: DataType) -> bool:
    """Whether a type lacks a field of another, at any depth."""
    if isinstance(held, ArrayType) and isinstance(wanted, ArrayType):
        return lacks(held.elementType, wanted.elementType)
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        return any(f.name not in held.names or lacks(held[f.name].dataType, f.dataType) for f in wanted)
    return False
