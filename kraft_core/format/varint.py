"""Variable-length integers, seven bits per byte, lowest first (Kafka's ByteUtils).

Unsigned ones have 32 bits. Signed ones are zig-zag encoded: 0, -1, 1, -2 become 0, 1, 2, 3.
Readers take any bytes-like buffer with a position and return (value, position after); they raise
DecodeError where the buffer ends early or the value needs more bits than the type has. Forms
longer than necessary (0x80 0x00 for 0) are accepted, as in Kafka; writers write the shortest.
"""

from __future__ import annotations

from collections.abc import Callable
from mmap import mmap

from kraft_core.format.errors import DecodeError

Buffer = bytes | bytearray | memoryview | mmap


def read_unsigned_varint(buf: Buffer, position: int) -> tuple[int, int]:
    """An unsigned integer of at most 32 bits."""
    try:
        byte = buf[position]
    except IndexError:
        raise DecodeError(position, "varint ends early") from None
    if byte < 0x80:
        return byte, position + 1
    return _read_long_form(buf, position, 32)


def _signed_reader(bits: int) -> Callable[[Buffer, int], tuple[int, int]]:
    def read(buf: Buffer, position: int) -> tuple[int, int]:
        # Most numbers take one byte or two.
        try:
            value = buf[position]
            if value < 0x80:
                return (value >> 1) ^ -(value & 1), position + 1
            byte = buf[position + 1]
            if byte < 0x80:
                value = value & 0x7F | byte << 7
                return (value >> 1) ^ -(value & 1), position + 2
        except IndexError:
            pass
        value, position = _read_long_form(buf, position, bits)
        return (value >> 1) ^ -(value & 1), position

    return read


def _read_long_form(buf: Buffer, position: int, bits: int) -> tuple[int, int]:
    value = 0
    at = position
    for shift in range(0, bits, 7):
        try:
            byte = buf[at]
        except IndexError:
            raise DecodeError(at, "varint ends early") from None
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return value, at
    raise DecodeError(position, f"varint of more than {bits} bits")


read_varint = _signed_reader(32)
"""A signed integer of at most 32 bits."""
read_varlong = _signed_reader(64)
"""A signed integer of at most 64 bits."""


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Appends an unsigned integer of at most 32 bits; ValueError when it does not fit."""
    if value < 0 or value >> 32:
        raise ValueError(f"{value} is not an unsigned 32-bit integer")
    _append(out, value)


def write_varint(out: bytearray, value: int) -> None:
    """Appends a signed integer of at most 32 bits; ValueError when it does not fit."""
    if not -(1 << 31) <= value < 1 << 31:
        raise ValueError(f"{value} is not a 32-bit integer")
    _append(out, (value << 1) ^ (value >> 31))


def write_varlong(out: bytearray, value: int) -> None:
    """Appends a signed integer of at most 64 bits; ValueError when it does not fit."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is not a 64-bit integer")
    _append(out, (value << 1) ^ (value >> 63))


def _append(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
