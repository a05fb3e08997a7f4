"""Compiled steps that finish a chunk's memory as Arrow arrays, once all its rows are written."""

from __future__ import annotations

from kraft_core.columnar.columns import fill, fill_up, set_bit
from kraft_core.columnar.compiled import entry
from kraft_core.columnar.kernel_abi import NODE_COUNT, NODES, ROWS
from kraft_core.columnar.layout import LENGTH, NODE_BYTES, SPACE
from kraft_core.columnar.memory import get, load_u8, prefetch, put, store_32
from kraft_core.columnar.text import copy
from kraft_core.columnar.vectors import REACH, copy_short


@entry
def close_offsets(task: int) -> None:
    """Completes the offsets of each text and list after the last row, except where nothing was written."""
    nodes = get(task + NODES)
    put(nodes + LENGTH, get(task + ROWS))
    for index in range(1, get(task + NODE_COUNT)):
        node = nodes + NODE_BYTES * index
        if get(node + LENGTH) != 0:
            fill_up(node, get(nodes + get(node + SPACE) + LENGTH))


@entry
def write_texts_by_number(numbers: int, rows: int, texts: int, offsets: int, values: int) -> int:
    """Writes the text for each number (a byte per row); returns the bytes written.

    texts: address and size of each text, int64. Of each REACH bytes can be read, and written after the last.
    """
    end = 0
    store_32(offsets, 0)
    for row in range(rows):
        text = texts + 16 * load_u8(numbers + row)
        address, size = get(text), get(text + 8)
        if size <= REACH:
            copy_short(values + end, address, size)
        else:
            copy(values + end, address, size)
        end += size
        prefetch(values + end)
        store_32(offsets + 4 * (row + 1), end)
    return end


@entry
def list_rows(bits: int, rows: int, found: int) -> int:
    """Writes the rows whose bits are set, int64; returns how many."""
    count = 0
    for at in range(0, rows, 8):
        byte = load_u8(bits + (at >> 3))
        for bit in range(8 if byte else 0):
            if byte >> bit & 1:
                put(found + 8 * count, at + bit)
                count += 1
    return count


@entry
def place_texts(
    places: int, shown: int, count: int, rows: int, validity: int, offsets: int, values: int
) -> None:
    """Copies the GUARDED texts of the rows in `shown` (int64), one after the other."""
    end = 0
    filled = 0
    for index in range(count):
        row = get(shown + 8 * index)
        fill(offsets, filled, row + 1, end)
        filled = row + 1
        place = places + 16 * row
        copy(values + end, get(place), get(place + 8))
        end += get(place + 8)
        set_bit(validity, row)
    fill(offsets, filled, rows + 1, end)
