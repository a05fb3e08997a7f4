"""Records of the reference codec to Arrow columns."""

from __future__ import annotations

from collections.abc import Set
from functools import cache
from typing import Any, cast

import pyarrow

from kraft_core.columnar.schema import RECORDS, message_projection
from kraft_core.columnar.timestamps import representable
from kraft_core.format.message_reader import UNKNOWN_TAGGED_FIELDS
from kraft_core.format.record import Record
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.format.secrets import redact as without_secrets
from kraft_core.messages.schema import Field

pa = cast(Any, pyarrow)


def to_columns(records: list[Record], redact: bool, allowed: Set[str] = NONE_ALLOWED) -> Any:
    """Records, at least one, as a pyarrow.RecordBatch in schema.RECORDS."""
    structs: dict[str, list[dict[str, Any] | None]] = {}
    rows: list[tuple[Any, ...]] = []
    for number, record in enumerate(records):
        redacted = False
        unknown = 0
        if record.message is not None and record.value is not None:
            value = record.value
            if redact:
                value, redacted = without_secrets(record.message, value, allowed)
            unknown = _count_unknown(record.message.fields, value)
            column = structs.get(record.message.column)
            if column is None:
                column = structs[record.message.column] = [None] * len(records)
            column[number] = message_projection(record.message)(value)
        rows.append((*_envelope_row(record), unknown, redacted))
    by_column = zip(RECORDS, zip(*rows, strict=True), strict=False)
    columns = [pa.array(values, type=field.type) for field, values in by_column]
    for field in list(RECORDS)[len(columns) :]:
        held = structs.get(field.name)
        columns.append(
            pa.nulls(len(records), field.type) if held is None else pa.array(held, type=field.type)
        )
    return pa.record_batch(columns, schema=RECORDS)


def _envelope_row(record: Record) -> tuple[Any, ...]:
    unread = record.reason is not None
    return (
        record.offset,
        record.leader_epoch,
        record.batch.crc,
        record.position_in_batch,
        representable(record.timestamp),
        record.type,
        record.version,
        record.batch.is_control,
        record.batch.base_offset,
        record.key_size,
        record.size_bytes,
        record.digest if unread else None,
        record.reason,
        record.position if unread else None,
        len(record.unread) if unread else None,
    )


def _count_unknown(fields: tuple[Field, ...], value: dict[str, Any]) -> int:
    """Unknown tagged fields, also inside structs."""
    count = len(value.get(UNKNOWN_TAGGED_FIELDS, ()))
    for field in _structs(fields):
        held = value.get(field.name)
        if held is not None:
            elements = held if field.array else [held]
            count += sum(_count_unknown(field.fields, element) for element in elements)
    return count


@cache
def _structs(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field for field in fields if field.type == "struct")
