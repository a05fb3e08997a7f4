"""Rows between Python and Arrow, so that times keep their zone and types are those declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.lake.arrow_numbers import numbered

# A row of any table: column name to value; times are datetimes with a zone.
Row = dict[str, Any]
EPOCH = datetime.fromtimestamp(0, UTC)
MILLISECOND = timedelta(milliseconds=1)
UTC_TIME = pa.timestamp("us", "UTC")
_OfList = Callable[[Iterator[Any]], Any]
# Of fewer nested values it takes as long to find the equal ones as to make each.
FEW = 32


def to_arrow(rows: Iterable[Row], schema: pa.Schema) -> pa.Table:
    """Rows as an Arrow table of the schema; times are datetimes with a zone."""
    return pa.Table.from_pylist(list(rows), schema=schema)


def of_each(rows: pa.Table, name: str) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each value of a column, in their order; values in the order in which they come first.

    One sort, as a filter for each of many values would look at all rows each time.
    """
    codes = rows[name].combine_chunks().dictionary_encode()
    values = codes.dictionary.to_pylist()
    if len(values) == 1:
        yield values[0], rows
        return
    numbers = codes.indices.to_numpy()
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows.take(pa.array(order)), numbers[order]
    edges = np.searchsorted(numbers, np.arange(len(values) + 1)).tolist()
    for value, (first, end) in zip(values, pairwise(edges), strict=True):
        yield value, rows.slice(first, end - first)


def python_rows(rows: pa.Table) -> list[Row]:
    """The rows that to_arrow made, times in UTC.

    As to_pylist, but by column: that makes an object of Arrow's for each value of a struct, and looks a zone
    up for each time, which takes most of the time it needs for a table like captures. Equal structs and lists
    of a chunk are one object, not to be changed: captures of one log differ in little.
    """
    return _structs(rows.column_names, list(map(python_values, rows.columns)), len(rows))


def python_values(column: pa.ChunkedArray, of_list: _OfList = list) -> list[Any]:
    """The values of a column as python_rows has them. of_list: makes what an Arrow list becomes."""
    return [value for chunk in column.chunks for value in _values(chunk, of_list)]


def _values(values: pa.Array, of_list: _OfList) -> list[Any]:
    type_ = values.type
    if values.null_count == len(values):
        return [None] * len(values)
    if type_ == UTC_TIME:
        found = values.cast(pa.int64()).to_pylist()
        times = {us: EPOCH + timedelta(microseconds=us) for us in set(found) if us is not None}
        return list(map(times.get, found))
    if len(values) > FEW and (pa.types.is_struct(type_) or pa.types.is_list(type_)):
        numbers = numbered(values)
        _, firsts, places = np.unique(numbers, return_index=True, return_inverse=True)
        if len(firsts) <= len(values) // 2:
            distinct = _made(values.take(pa.array(firsts)), of_list)
            return [distinct[place] for place in places.tolist()]
    return _made(values, of_list)


def _made(values: pa.Array, of_list: _OfList) -> list[Any]:
    """Each value."""
    type_ = values.type
    if pa.types.is_struct(type_):
        names = [type_.field(number).name for number in range(type_.num_fields)]
        structs = _structs(names, [_values(part, of_list) for part in values.flatten()], len(values))
        if not values.null_count:
            return structs
        held = values.is_valid().to_pylist()
        return [struct if is_held else None for struct, is_held in zip(structs, held, strict=True)]
    if pa.types.is_list(type_):
        elements = iter(_values(values.flatten(), of_list))
        lengths = values.value_lengths().to_pylist()
        return [None if length is None else of_list(islice(elements, length)) for length in lengths]
    return values.to_pylist()


def _structs(names: list[str], columns: list[list[Any]], count: int) -> list[Row]:
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def gathered(
    batches: Iterable[pa.RecordBatch],
    rows: int,
    size_bytes: int | None = None,
    is_apart: Callable[[pa.RecordBatch], bool] | None = None,
) -> Iterator[list[pa.RecordBatch]]:
    """Successive record batches in groups; a group ends once it holds that many rows or bytes.

    is_apart: whether a record batch begins a group, whatever the one before holds.
    """
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        if held and is_apart is not None and is_apart(batch):
            yield held
            held, held_rows, held_bytes = [], 0, 0
        held.append(batch)
        held_rows += len(batch)
        if size_bytes is not None:  # nbytes takes as long as decoding a small file
            held_bytes += batch.nbytes
        if held_rows >= rows or (size_bytes is not None and held_bytes >= size_bytes):
            yield held
            held, held_rows, held_bytes = [], 0, 0
    if held:
        yield held


def each_cluster(rows: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each cluster, in their order; of many rows, a cluster may come in several parts."""
    order = pc.sort_indices(rows, [("cluster_id", "ascending")])
    for batch in rows.take(order).combine_chunks().to_batches():
        runs = pc.run_end_encode(batch["cluster_id"])
        first = 0
        for cluster, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield cluster, batch.slice(first, end - first)
            first = end


def moment(ms: int | None) -> datetime | None:
    """Milliseconds since the epoch as a time in UTC."""
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)


def milliseconds(time: datetime | None) -> int | None:
    """A time with a zone as milliseconds since the epoch."""
    return None if time is None else (time - EPOCH) // MILLISECOND
