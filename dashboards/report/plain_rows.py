"""Rows of Arrow tables as dicts in which every time is milliseconds since the epoch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from transforms.lake.arrow_rows import milliseconds


def plain_rows(found: pa.Table) -> list[dict[str, Any]]:
    """The rows. Times of columns are converted by Arrow: value by value that takes most of a fleet's page."""
    nested: list[str] = []
    for index, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            ms = found.column(index).cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
            found = found.set_column(index, field.name, ms)
        elif _holds_times(field.type):
            nested.append(field.name)
    rows: list[dict[str, Any]] = found.to_pylist()
    for row in rows if nested else ():
        row |= {name: plain(row[name]) for name in nested}
    return rows


def _holds_times(type_: pa.DataType) -> bool:
    return pa.types.is_timestamp(type_) or any(
        _holds_times(type_.field(n).type) for n in range(type_.num_fields)
    )


def plain(value: Any) -> Any:
    """A value with every time in it as milliseconds since the epoch."""
    if isinstance(value, datetime):
        return milliseconds(value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value
