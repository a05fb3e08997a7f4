"""Files to Arrow columns by the reference codec, one record at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow

from kraft_core.columnar.schema import HEADERS, RECORDS, message_projection
from kraft_core.columnar.timestamps import representable
from kraft_core.format.batch import BatchHeader
from kraft_core.format.mapped_file import mapped
from kraft_core.format.message_reader import UNKNOWN_TAGGED_FIELDS
from kraft_core.format.record import Record, read_batch
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.format.secrets import redact as without_secrets
from kraft_core.format.segment import Damage, scan
from kraft_core.format.varint import Buffer
from kraft_core.messages.schema import Field

pa = cast(Any, pyarrow)

Item = TypeVar("Item")

ROWS = 8192
WHOLE_FILE: tuple[tuple[int, int | None], ...] = ((0, None),)


def scan_headers(
    path: Path | str, start: int = 0, end: int | None = None, next_offset: int | None = None
) -> Iterator[Any]:
    """Every batch and damaged range of a file between two positions (start inclusive, end exclusive).

    pyarrow.RecordBatches in schema.HEADERS, ordered by position; CRCs are checked. next_offset: as in
    segment.scan. OSError when the file cannot be read.
    """
    with mapped(path) as buf:
        for items in _chunks(scan(buf, start, end, next_offset)):
            rows = [_damage_row(item) if isinstance(item, Damage) else _header_row(item) for item in items]
            yield _from_rows(rows, HEADERS)


def decode(
    path: Path | str,
    ranges: Sequence[tuple[int, int | None]] = WHOLE_FILE,
    redact: bool = True,
    allowed: Set[str] = NONE_ALLOWED,
) -> Iterator[Any]:
    """Every record in ranges of a file, as pyarrow.RecordBatches in schema.RECORDS.

    ranges: positions (start inclusive, end exclusive) at which batches begin and end. Damaged bytes
    give no rows; scan_headers reports them. redact: secrets become null (secrets.redact), but for configs
    of the allowed names. OSError when the file cannot be read.
    """
    with mapped(path) as buf:
        for records in _chunks(_records(buf, ranges)):
            yield to_columns(records, redact, allowed)


def _records(buf: Buffer, ranges: Sequence[tuple[int, int | None]]) -> Generator[Record]:
    for start, end in ranges:
        for item in scan(buf, start, end):
            if isinstance(item, BatchHeader):
                yield from read_batch(buf, item)


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, ROWS)):
        yield chunk


def _damage_row(damage: Damage) -> tuple[Any, ...]:
    return (damage.position, damage.size_bytes, damage.reason, damage.sha256, *(None,) * (len(HEADERS) - 4))


def _header_row(header: BatchHeader) -> tuple[Any, ...]:
    return (
        header.position,
        header.size_bytes,
        None,
        None,
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.crc,
        header.attributes,
        header.is_control,
        header.record_count,
        representable(header.base_timestamp),
        representable(header.max_timestamp),
    )


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
    plain = _from_rows(rows, pa.schema(list(RECORDS)[: len(rows[0])]))
    columns = list(plain.columns)
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


def _from_rows(rows: list[tuple[Any, ...]], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


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
