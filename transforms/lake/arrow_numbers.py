"""Equal values of an Arrow array found by column, without making Python values of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

# A number for each value, and how many there are: below that.
_Numbers = tuple[np.ndarray[Any, np.dtype[np.int64]], int]
_MOST = 2**62


def numbered(values: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each value a number from 0 on: equal values, and only those, have the same one. Null is a value.

    values: of structs, lists, or of what Arrow makes dictionaries of; numbers with a point by their bits.
    Raises pyarrow.ArrowNotImplementedError for others.
    """
    return _numbered(values)[0]


def _numbered(values: pa.Array) -> _Numbers:
    if pa.types.is_struct(values.type):
        found: _Numbers = (np.zeros(len(values), np.int64), 1)
        # Fields of a null are null.
        for part in (*values.flatten(), *([values.is_valid()] if values.null_count else ())):
            found = _paired(found, _numbered(part))
        return found
    if pa.types.is_list(values.type):
        return _numbered_lists(values)
    if pa.types.is_float64(values.type):  # 0.0 equals -0.0
        values = values.view(pa.int64())
    encoded = values.dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _paired(one: _Numbers, other: _Numbers) -> _Numbers:
    """A number for each pair."""
    (firsts, first_count), (seconds, second_count) = one, other
    if second_count <= 1:
        return one
    if first_count <= 1:
        return other
    return _dense(firsts * second_count + seconds, first_count * second_count)


def _dense(numbers: np.ndarray[Any, np.dtype[np.int64]], count: int) -> _Numbers:
    """The same with fewer numbers, before products of their counts grow large."""
    if count <= max(2 * len(numbers), 1024) and count < _MOST:
        return numbers, count
    return _numbered(pa.array(numbers))


def _numbered_lists(values: pa.Array) -> _Numbers:
    """Of lists by the numbers of their elements."""
    if not len(values.flatten()):
        return values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64), 2
    elements, count = _numbered(values.flatten())
    compact = elements.astype(np.int32 if count < 2**31 else np.int64)
    ends = np.cumsum(values.value_lengths().fill_null(0).to_numpy()) * compact.itemsize
    places = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int64))
    lists = pa.Array.from_buffers(
        pa.large_binary(), len(values), [None, places, pa.py_buffer(np.ascontiguousarray(compact))]
    )
    found = _numbered(lists)
    # A null has no elements, and is no empty list.
    return _paired(found, _numbered(values.is_valid())) if values.null_count else found
