"""Appending to a node's memory: numbers, text, lists and nulls, as Arrow lays them out.

OFFSETS are written up to the last row appended to (FILLED). Rows skipped between two appends are filled in by
the second; rows after the last append at the end.
"""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.layout import CAPACITY, FILLED, LENGTH, OFFSETS, VALIDITY, VALUES
from kraft_core.columnar.memory import fill_32, get, load_u8, prefetch, put, store_8, store_32, word
from kraft_core.columnar.text import copy
from kraft_core.columnar.vectors import AHEAD, UUID_TEXT_BYTES, copy_short, store_ahead, write_uuid


@inlined
def set_bit(bits: int, row: int) -> None:
    address = bits + (row >> 3)
    store_8(address, load_u8(address) | 1 << (row & 7))


@inlined
def write_bit(bits: int, row: int, value: int) -> None:
    address = bits + (row >> 3)
    store_8(address, load_u8(address) & ~(1 << (row & 7)) | value << (row & 7))


@compiled
def clear_bits(bits: int, start: int, end: int) -> None:
    for row in range(start, end):
        write_bit(bits, row, 0)


@inlined
def mark_present(node: int, row: int) -> None:
    """The row is not null; nodes that are never null have no bitmap."""
    bits = get(node + VALIDITY)
    if bits != 0:
        set_bit(bits, row)


@inlined
def has_room(node: int, size: int) -> bool:
    return get(node + LENGTH) + size <= get(node + CAPACITY)


@inlined
def _extend(node: int, row: int, size: int) -> int:
    """Writes the row's end offset; returns its start offset."""
    start = get(node + LENGTH)
    put(node + LENGTH, start + size)
    filled = get(node + FILLED)
    offsets = get(node + OFFSETS)
    while filled <= row:
        store_ahead(offsets + 4 * filled, start)
        prefetch(offsets + 4 * filled)
        filled += AHEAD
    store_32(offsets + 4 * (row + 1), start + size)
    prefetch(offsets + 4 * row)
    put(node + FILLED, row + 2)
    mark_present(node, row)
    return start


@compiled
def fill(offsets: int, start: int, end: int, offset: int) -> None:
    """Writes the same offset from index `start` to `end` (exclusive)."""
    fill_32(offsets + 4 * start, offset, end - start)


@inlined
def forget(node: int, kept: int) -> None:
    """Discards what was appended to rows from `kept` on."""
    if get(node + FILLED) > kept + 1:
        put(node + FILLED, kept + 1)
        put(node + LENGTH, word(get(node + OFFSETS) + 4 * kept))


@inlined
def fill_up(node: int, rows: int) -> None:
    """Writes the offsets of all remaining rows; nothing may be appended afterwards."""
    fill(get(node + OFFSETS), get(node + FILLED), rows + 1, get(node + LENGTH))


@inlined
def append_text(node: int, row: int, source: int, size: int) -> None:
    """There must be room."""
    start = _extend(node, row, size)
    copy(get(node + VALUES) + start, source, size)


@inlined
def append_short(node: int, row: int, source: int, size: int) -> None:
    """A text of at most REACH bytes, if that many can be read. There must be room."""
    target = get(node + VALUES) + _extend(node, row, size)
    prefetch(target)
    copy_short(target, source, size)


@inlined
def append_uuid(node: int, row: int, source: int) -> None:
    """There must be room for the 22 characters."""
    target = get(node + VALUES) + _extend(node, row, UUID_TEXT_BYTES)
    prefetch(target)
    write_uuid(target, source)


@inlined
def append_list(node: int, row: int, count: int) -> int:
    """The row of its first element in the space of the list's elements. There must be room."""
    return _extend(node, row, count)
