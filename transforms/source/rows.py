"""Decoded records (kraft_core.columnar.schema.RECORDS) as rows of format("kraft"), in Arrow.

The same for what tasks read of files and for what a stream fetches: only the columns that the schema names
are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kraft_core.columnar.json_text import json_texts, list_offsets
from kraft_core.format.record import BATCH_REASONS
from transforms.lake.arrow_rows import Row
from transforms.source.columns import CORRUPT_RANGE, FACTS, LOG, ORIGIN, UNCHANGED, VALUE

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where records come from: the columns that they share.

    file: as a user names it; None of what was fetched. last_offset, leader_epoch: of a snapshot, what serves
    for the offset and epoch of its records, which count offsets of their own; None of the log.
    """

    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    source: str = LOG
    file: str | None = None
    last_offset: int | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class BatchPlaces:
    """Of each record's batch: its position in the file, in bytes, and its last offset, inclusive."""

    positions: Int64s
    last_offsets: Int64s

    def select(self, rows: NDArray[np.bool_]) -> BatchPlaces:
        return BatchPlaces(self.positions[rows], self.last_offsets[rows])


def record_rows(
    records: pa.RecordBatch,
    origin: Origin,
    schema: pa.Schema,
    last_offsets: Int64s,
    positions: Int64s | None = None,
) -> pa.RecordBatch:
    """A row for each record, in the columns of the schema.

    last_offsets: of each record's batch, inclusive. positions: of these batches in the file, in bytes; None
    of what was fetched: then column position is null.
    """
    made = _Made(records, origin, last_offsets, positions)
    return pa.RecordBatch.from_arrays([made.column(field) for field in schema], schema=schema)


def damage_rows(damage: list[Row], origin: Origin, schema: pa.Schema) -> pa.RecordBatch:
    """A row for each damage: position, and what _corrupt_range holds. All about records is null."""
    shared = {name: getattr(origin, name) for name in ORIGIN}
    rows = [shared | {"position": row["position"], CORRUPT_RANGE: row} for row in damage]
    return shown(rows, schema)


def shown(rows: Iterable[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows in the columns of a schema; what a row lacks is null."""
    named = [{name: row.get(name) for name in schema.names} for row in rows]
    return pa.RecordBatch.from_pylist(named, schema=schema)


def corrupt_records(records: pa.RecordBatch, places: BatchPlaces) -> list[Row]:
    """The damage of records that could not be read, with its position in the file."""
    unread = np.flatnonzero(records["unread_reason"].is_valid().to_numpy(zero_copy_only=False))
    if not len(unread):
        return []
    corrupt = _corrupt(records, places.last_offsets)
    held = {name: values.take(pa.array(unread)).to_pylist() for name, values in corrupt.items()}
    within = records["unread_position"].take(pa.array(unread)).to_pylist()
    return [
        {"position": int(places.positions[row]) + within[number]} | {n: v[number] for n, v in held.items()}
        for number, row in enumerate(unread.tolist())
    ]


class _Made:
    """Makes the columns of one record batch."""

    def __init__(
        self, records: pa.RecordBatch, origin: Origin, last_offsets: Int64s, positions: Int64s | None
    ) -> None:
        self._records = records
        self._origin = origin
        self._last_offsets = last_offsets
        self._positions = positions

    def column(self, field: pa.Field) -> pa.Array:
        name, rows = field.name, len(self._records)
        if name in ORIGIN:
            return pa.repeat(pa.scalar(getattr(self._origin, name), field.type), rows)
        if name == "position":
            return nulls(field.type, rows) if self._positions is None else pa.array(self._positions)
        if name == "offset" and self._origin.last_offset is not None:
            return pa.repeat(pa.scalar(self._origin.last_offset, field.type), rows)
        if name == "leader_epoch" and self._origin.leader_epoch is not None:
            return pa.repeat(pa.scalar(self._origin.leader_epoch, field.type), rows)
        if name in FACTS:
            return fact(self._records, name, field.type)
        if name == VALUE:
            return json_texts(self._records)
        if name == CORRUPT_RANGE:
            return self._corrupt_range(field.type)
        return fitted(self._records[name], field.type)

    def _corrupt_range(self, type_: pa.DataType) -> pa.Array:
        reasons = self._records["unread_reason"]
        if reasons.null_count == len(reasons):
            return nulls(type_, len(reasons))
        held = _corrupt(self._records, self._last_offsets)
        children = [held[part.name].cast(part.type) for part in type_]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=reasons.is_null())


def _corrupt(records: pa.RecordBatch, last_offsets: Int64s) -> Mapping[str, pa.Array]:
    """The fields of _corrupt_range for each record; those of records that were read are not used.

    Of a batch whose records cannot be separated all are lost from there on; there may be none.
    """
    offsets, reasons = records["offset"], records["unread_reason"]
    is_rest = pc.is_in(reasons, pa.array(sorted(BATCH_REASONS)))
    ends = pc.if_else(is_rest, pa.array(last_offsets + 1), pc.add(offsets, 1))
    some_lost = pc.less(offsets, ends)
    return {
        "size_bytes": records["unread_size_bytes"],
        "sha256": records["value_sha256"],
        "reason": reasons,
        "lost_from_offset": pc.if_else(some_lost, offsets, None),
        "lost_to_offset": pc.if_else(some_lost, ends, None),
    }


def fact(records: pa.RecordBatch, name: str, type_: pa.DataType) -> pa.Array:
    """A column of FACTS."""
    rows = len(records)
    found = []
    for place in FACTS[name]:
        column, _, inner = place.partition(".")
        held = records[column]
        if held.null_count < rows:
            values = pc.struct_field(held, inner)
            unchanged = UNCHANGED.get(place)
            if unchanged is not None:
                values = pc.if_else(pc.equal(values, unchanged), None, values)
            found.append(values)
    if not found:
        return nulls(type_, rows)
    values = found[0] if len(found) == 1 else pc.coalesce(*found)
    return values if values.type == type_ else values.cast(type_)


def fitted(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """The values with the fields of a type that has at most theirs, at any depth."""
    if values.null_count == len(values):
        return nulls(type_, len(values))
    if values.type == type_:
        return values
    if pa.types.is_struct(type_):
        members = dict(zip((f.name for f in values.type), range(values.type.num_fields), strict=True))
        children = [fitted(values.field(members[part.name]), part.type) for part in type_]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_list(type_):
        return _fitted_list(values, type_)
    return values.cast(type_)


def _fitted_list(values: Any, type_: pa.DataType) -> pa.Array:
    mask = values.is_null() if values.null_count else None
    held = fitted(values.flatten(), type_.value_type)
    return pa.ListArray.from_arrays(list_offsets(values), held, type=type_, mask=mask)


def nulls(type_: pa.DataType, rows: int) -> pa.Array:
    """A column without values: mostly a part of one that is kept."""
    kept = _kept_nulls(type_)
    return kept.slice(0, rows) if rows <= len(kept) else pa.nulls(rows, type_)


@cache
def _kept_nulls(type_: pa.DataType) -> pa.Array:
    return pa.nulls(1 << 17, type_)
