"""The Arrow schemas of batch headers and decoded records, derived from the message declarations.

A record type is one nullable struct column, null in rows of another type; its fields are the union over
versions and legacy layouts, null where a record's version has no such field. Spark has no unsigned integers:
they become the next larger type. A message without fields is a struct of one null field, as Parquet has no
empty structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import pyarrow

from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.schema import Field, FieldType, Message

pa = cast(Any, pyarrow)

NOTHING = "nothing"
MOMENT = pa.timestamp("ms", tz="UTC")

_TYPES: dict[FieldType, Any] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uuid": pa.string(),
}


def message_columns() -> tuple[Message, ...]:
    """Every message that has a column, in the order of the columns: control records, then metadata."""
    return tuple(dict.fromkeys([*CONTROL_RECORDS.values(), *METADATA_RECORDS]))


def table_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    """One field per column; of several with the same column name (legacy layouts) the first."""
    by_column: dict[str, Field] = {}
    for field in fields:
        by_column.setdefault(field.column, field)
    return tuple(by_column.values())


def message_fields(message: Message) -> tuple[Field, ...]:
    """The fields of a message's struct column: the current ones, then those of legacy layouts only."""
    layouts = (message, *message.older)
    return table_fields(field for layout in layouts for field in layout.fields)


def arrow_type(field: Field) -> Any:
    """The pyarrow.DataType of a field."""
    base = _struct_type(table_fields(field.fields)) if field.type == "struct" else _TYPES[field.type]
    return pa.list_(base) if field.array else base


def _struct_type(fields: tuple[Field, ...]) -> Any:
    inner = [pa.field(field.column, arrow_type(field)) for field in fields]
    return pa.struct(inner or [pa.field(NOTHING, pa.bool_())])


# A batch, or damage: then reason and sha256 are set and the header's columns are null.
HEADERS = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        ("reason", pa.string()),
        ("sha256", pa.string()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("crc", pa.int64()),
        ("attributes", pa.int16()),
        ("is_control", pa.bool_()),
        ("record_count", pa.int32()),
        ("base_timestamp", MOMENT),
        ("appended_at", MOMENT),
    ]
)

# The first eight columns are the envelope. unread_reason is null where the value was read; otherwise
# unread_position, unread_size_bytes and value_sha256 name the bytes (see record.Record).
ENVELOPE = (
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("leader_epoch", pa.int32(), nullable=False),
    pa.field("batch_crc", pa.int64(), nullable=False),
    pa.field("position_in_batch", pa.int32(), nullable=False),
    pa.field("appended_at", MOMENT),
    pa.field("type", pa.string(), nullable=False),
    pa.field("version", pa.int16()),
    pa.field("is_control", pa.bool_(), nullable=False),
)
READING = (
    pa.field("batch_base_offset", pa.int64(), nullable=False),
    pa.field("key_size_bytes", pa.int32(), nullable=False),
    pa.field("value_size_bytes", pa.int32(), nullable=False),
    pa.field("value_sha256", pa.string()),
    pa.field("unread_reason", pa.string()),
    pa.field("unread_position", pa.int64()),
    pa.field("unread_size_bytes", pa.int64()),
    pa.field("unknown_tagged_fields", pa.int32(), nullable=False),
    pa.field("redacted", pa.bool_(), nullable=False),
)
RECORDS = pa.schema(
    [
        *ENVELOPE,
        *READING,
        *(pa.field(m.column, _struct_type(message_fields(m))) for m in message_columns()),
    ]
)

Projection = Callable[[dict[str, Any]], dict[str, Any]]


@cache
def message_projection(message: Message) -> Projection:
    """The projection of a message's values, of a legacy layout too, into its struct column."""
    return projection(table_fields(message.fields))


@cache
def projection(fields: tuple[Field, ...]) -> Projection:
    """A function from a codec value to a value of the struct column: names of columns, nothing unknown."""
    plain = [(field.name, field.column) for field in fields if field.type != "struct"]
    nested = [
        (field.name, field.column, field.array, projection(field.fields))
        for field in fields
        if field.type == "struct"
    ]

    def project(value: dict[str, Any]) -> dict[str, Any]:
        row = {column: value.get(name) for name, column in plain}
        for name, column, array, project_element in nested:
            held = value.get(name)
            if held is not None:
                held = [project_element(element) for element in held] if array else project_element(held)
            row[column] = held
        return row

    return project
