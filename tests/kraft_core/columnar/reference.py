"""Files to Arrow columns by the reference codec, record by record: what the compiled kernel must equal."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from kraft_core.columnar.fast import WHOLE_FILE
from kraft_core.columnar.reference import to_columns
from kraft_core.columnar.schema import HEADERS
from kraft_core.columnar.timestamps import representable
from kraft_core.format.batch import BatchHeader
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.format.segment import Damage, scan
from kraft_core.format.varint import Buffer

Item = TypeVar("Item")

ROWS = 8192


def scan_headers(
    path: Path | str, start: int = 0, end: int | None = None, next_offset: int | None = None
) -> Iterator[Any]:
    """The rows of fast.scan_headers; record batches may be cut elsewhere."""
    with mapped(path) as buf:
        for items in _chunks(scan(buf, start, end, next_offset)):
            rows = [_damage_row(item) if isinstance(item, Damage) else _header_row(item) for item in items]
            columns = zip(zip(*rows, strict=True), HEADERS, strict=True)
            arrays = [pa.array(column, type=field.type) for column, field in columns]
            yield pa.record_batch(arrays, schema=HEADERS)


def decode(
    path: Path | str,
    ranges: Sequence[tuple[int, int | None]] = WHOLE_FILE,
    redact: bool = True,
    allowed: Set[str] = NONE_ALLOWED,
) -> Iterator[Any]:
    """The rows of fast.decode; record batches may be cut elsewhere."""
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
