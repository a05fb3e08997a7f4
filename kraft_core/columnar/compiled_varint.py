"""Variable-length integers in compiled code.

Each reader takes an address and the end (exclusive), and returns the value and the address after it. Where
the bytes end early, or the value has too many bits, that address is end + 1, from which every further read
fails, too: callers check once, after the last read.
"""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.memory import load_u8


@inlined
def read_unsigned_varint(at: int, end: int) -> tuple[int, int]:
    """An unsigned integer of at most 32 bits."""
    if at < end:
        byte = load_u8(at)
        if byte < 0x80:
            return byte, at + 1
    return _read_long_form(at, end, 5, 0x0F)


@inlined
def read_varint(at: int, end: int) -> tuple[int, int]:
    """A signed integer of at most 32 bits; the sizes and deltas of records mostly have one or two bytes."""
    if at + 1 < end:
        first, second = load_u8(at), load_u8(at + 1)
        if first < 0x80:
            return (first >> 1) ^ -(first & 1), at + 1
        if second < 0x80:
            return ((first & 0x7F) >> 1 | second << 6) ^ -(first & 1), at + 2
    value, at = read_unsigned_varint(at, end)
    return (value >> 1) ^ -(value & 1), at


@inlined
def read_short_varint(at: int) -> tuple[int, int, int]:
    """A signed integer of one or two bytes, the address after it, and 0x80 if there are more of it.

    Two bytes must be readable.
    """
    first, second = load_u8(at), load_u8(at + 1)
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), at + 1, 0
    return ((first & 0x7F) >> 1 | (second & 0x7F) << 6) ^ -(first & 1), at + 2, second & 0x80


@inlined
def read_varlong(at: int, end: int) -> tuple[int, int]:
    """A signed integer of at most 64 bits."""
    if at < end:
        byte = load_u8(at)
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), at + 1
    value, at = _read_long_form(at, end, 10, 0x01)
    return (value >> 1 & 0x7FFF_FFFF_FFFF_FFFF) ^ -(value & 1), at


@compiled
def _read_long_form(at: int, end: int, most_bytes: int, last_byte: int) -> tuple[int, int]:
    """last_byte: the greatest valid value of the last byte."""
    value = 0
    for index in range(most_bytes):
        if at >= end:
            return 0, end + 1
        byte = load_u8(at)
        at += 1
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if index == most_bytes - 1 and byte > last_byte:
                return 0, end + 1
            return value, at
    return 0, end + 1
