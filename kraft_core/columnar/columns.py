"""Appending to a node's memory: numbers, text, lists and nulls, as Arrow lays them out.

While rows are written, OFFSETS hold their sizes, in the place of the offset where each row ends: rows that
nothing is appended to have none.
"""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.layout import CAPACITY, LENGTH, OFFSETS, VALIDITY, VALUES
from kraft_core.columnar.memory import get, load_u8, put, store_8, store_32, word
from kraft_core.columnar.text import UUID_TEXT_BYTES, copy, write_uuid


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
    """Notes the row's size; where it begins."""
    start = get(node + LENGTH)
    put(node + LENGTH, start + size)
    store_32(get(node + OFFSETS) + 4 * (row + 1), size)
    mark_present(node, row)
    return start


@compiled
def forget_sizes(node: int, kept: int, rows: int) -> None:
    """Takes back what was appended to rows from `kept` to `rows` (exclusive)."""
    sizes = get(node + OFFSETS) + 4
    for row in range(kept, rows):
        put(node + LENGTH, get(node + LENGTH) - word(sizes + 4 * row))
        store_32(sizes + 4 * row, 0)


@compiled
def sizes_to_offsets(node: int, rows: int) -> None:
    """Makes Arrow's offsets of the sizes, in their place."""
    sizes = get(node + OFFSETS) + 4
    last = sizes + 4 * rows
    end = 0
    while sizes < last:
        # Most columns have nothing for long stretches of rows.
        while sizes + 16 <= last and get(sizes) | get(sizes + 8) == 0:
            put(sizes, end << 32 | end)
            put(sizes + 8, end << 32 | end)
            sizes += 16
        if sizes < last:
            end += word(sizes)
            store_32(sizes, end)
            sizes += 4


@inlined
def append_text(node: int, row: int, source: int, size: int) -> None:
    """There must be room."""
    start = _extend(node, row, size)
    copy(get(node + VALUES) + start, source, size)


@inlined
def append_uuid(node: int, row: int, source: int) -> None:
    """There must be room for the 22 characters."""
    start = _extend(node, row, UUID_TEXT_BYTES)
    write_uuid(get(node + VALUES) + start, source)


@inlined
def append_list(node: int, row: int, count: int) -> int:
    """The row of its first element in the space of the list's elements. There must be room."""
    return _extend(node, row, count)
