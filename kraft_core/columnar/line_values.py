"""Single values and lists of them from the bytes of a record, as kafka-dump-log's JSON has them.

Each function writes text at `out`, where there must be room (lines.py), and returns the address after it.
One that reads at `at`, never at or beyond `end`, returns the address after what it read, or MALFORMED, before
that. MALFORMED is all that Kafka may read or print in another way than these functions.
"""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.compiled_varint import read_unsigned_varint
from kraft_core.columnar.digits import write_digits, write_number
from kraft_core.columnar.kernel_abi import MALFORMED
from kraft_core.columnar.lines_abi import STOP
from kraft_core.columnar.memory import (
    get,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    put,
    store_8,
    store_16,
)
from kraft_core.columnar.program import BOOL, INT8, INT16, INT32, UINT16, UINT32
from kraft_core.columnar.text import is_utf8
from kraft_core.columnar.values import MAX_STRING_BYTES
from kraft_core.columnar.vectors import (
    REACH,
    UUID_BYTES,
    UUID_TEXT_BYTES,
    copy_short,
    escaped_bits,
    write_uuid,
)

_QUOTE, _BACKSLASH, _FIRST_PLAIN = 0x22, 0x5C, 0x20
_ZERO, _A_MINUS_TEN = 0x30, 0x41 - 10
_MINUS, _POINT, _COMMA, _E = 0x2D, 0x2E, 0x2C, 0x45
_OPEN, _CLOSE = 0x5B, 0x5D
_LOWER_U = 0x75
_TWO_ZEROS = 0x3030
# Eight bytes at once, of which four or five count.
_NULL, _TRUE, _FALSE = (
    int.from_bytes(text.ljust(8, b"\0"), "little") for text in (b"null", b"true", b"false")
)
_FRACTION_BITS, _EXPONENT_BIAS = 52, 1023
# Java writes an exponent from 10^7 on. A whole number of up to 15 digits is the shortest text of its double.
_WITH_EXPONENT, _MOST_WHOLE = 10_000_000, 1_000_000_000_000_000
_MOST_WHOLE_BITS = 50


@inlined
def load_number(opcode: int, at: int) -> int:
    if opcode == INT32:
        return load_i32(at)
    if opcode == UINT32:
        return load_u32(at)
    if opcode == INT16:
        return load_i16(at)
    if opcode == UINT16:
        return load_u16(at)
    if opcode in (INT8, BOOL):
        byte = load_u8(at)
        return byte - 0x100 if byte >= 0x80 else byte
    return load_i64(at)


@inlined
def write_bool(value: int, out: int) -> int:
    put(out, _TRUE if value != 0 else _FALSE)
    return out + 4 + int(value == 0)


@compiled
def write_double(bits: int, out: int) -> int:
    """Whole numbers, as Java's Double.toString; MALFORMED for all others."""
    exponent = (bits >> _FRACTION_BITS & 0x7FF) - _EXPONENT_BIAS
    fraction = bits & (1 << _FRACTION_BITS) - 1
    value = 0
    if bits & 0x7FFF_FFFF_FFFF_FFFF != 0:
        if not 0 <= exponent < _MOST_WHOLE_BITS:
            return MALFORMED
        below = _FRACTION_BITS - exponent
        if fraction & (1 << below) - 1 != 0:
            return MALFORMED
        value = (fraction | 1 << _FRACTION_BITS) >> below
    if value >= _MOST_WHOLE:
        return MALFORMED
    if bits < 0:
        store_8(out, _MINUS)
        out += 1
    if value >= _WITH_EXPONENT:
        return _write_with_exponent(value, out)
    out = write_digits(value, out)
    store_8(out, _POINT)
    store_8(out + 1, _ZERO)
    return out + 2


@inlined
def _write_with_exponent(value: int, out: int) -> int:
    after = write_digits(value, out + 1)  # behind the place of the point
    power = after - out - 2
    store_8(out, load_u8(out + 1))
    store_8(out + 1, _POINT)
    while after > out + 3 and load_u8(after - 1) == _ZERO:
        after -= 1
    store_8(after, _E)
    return write_digits(power, after + 1)


@inlined
def write_uuid_text(at: int, out: int) -> int:
    """The 16 bytes must be there."""
    store_8(out, _QUOTE)
    write_uuid(out + 1, at)
    store_8(out + 1 + UUID_TEXT_BYTES, _QUOTE)
    return out + UUID_TEXT_BYTES + 2


@inlined
def read_size(nullable: int, at: int, end: int) -> tuple[int, int]:
    """How many bytes or elements follow, -1 for null; each element has a byte at least."""
    encoded, at = read_unsigned_varint(at, end)
    size = encoded - 1
    if at > end or size > end - at or (size < 0 and nullable == 0):
        return 0, MALFORMED
    return size, at


@inlined
def write_null(out: int) -> int:
    put(out, _NULL)
    return out + 4


@compiled
def write_text(task: int, nullable: int, at: int, end: int, out: int) -> tuple[int, int]:
    """A string."""
    size, at = read_size(nullable, at, end)
    if at < 0:
        return at, out
    if size < 0:
        return at, write_null(out)
    store_8(out, _QUOTE)
    if size <= REACH and at + REACH <= get(task + STOP) and escaped_bits(at) & ((1 << size) - 1) == 0:
        copy_short(out + 1, at, size)
        store_8(out + 1 + size, _QUOTE)
        return at + size, out + size + 2
    if size > MAX_STRING_BYTES or not is_utf8(at, size):
        return MALFORMED, out
    out = _write_escaped(at, at + size, out + 1)
    store_8(out, _QUOTE)
    return at + size, out + 1


@compiled
def _write_escaped(at: int, end: int, out: int) -> int:
    """UTF-8 with what Jackson escapes."""
    while at < end:
        if at + REACH <= end and escaped_bits(at) == 0:
            copy_short(out, at, REACH)
            at += REACH
            out += REACH
            continue
        byte = load_u8(at)
        at += 1
        if byte >= _FIRST_PLAIN and byte not in (_QUOTE, _BACKSLASH):
            store_8(out, byte)
            out += 1
            continue
        store_8(out, _BACKSLASH)
        short = _short_escape(byte)
        if short != 0:
            store_8(out + 1, short)
            out += 2
        else:
            store_8(out + 1, _LOWER_U)
            store_16(out + 2, _TWO_ZEROS)
            store_8(out + 4, _ZERO + (byte >> 4))
            low = byte & 0x0F
            store_8(out + 5, low + (_ZERO if low < 10 else _A_MINUS_TEN))
            out += 6
    return out


@inlined
def _short_escape(byte: int) -> int:
    """The letter behind the backslash; 0 if there is none."""
    if byte in (_QUOTE, _BACKSLASH):
        return byte
    if byte == 0x08:
        return ord("b")
    if byte == 0x09:
        return ord("t")
    if byte == 0x0A:
        return ord("n")
    if byte == 0x0C:
        return ord("f")
    return ord("r") if byte == 0x0D else 0


@inlined
def skip_secret(nullable: int, at: int, end: int, out: int) -> tuple[int, int]:
    """Bytes that are printed as null."""
    size, at = read_size(nullable, at, end)
    if at < 0:
        return at, out
    return at + max(size, 0), write_null(out)


@compiled
def write_int32_list(nullable: int, at: int, end: int, out: int) -> tuple[int, int]:
    count, at = read_size(nullable, at, end)
    if at < 0 or 4 * count > end - at:
        return MALFORMED, out
    if count < 0:
        return at, write_null(out)
    store_8(out, _OPEN)
    out += 1
    for index in range(count):
        out = write_number(load_i32(at + 4 * index), out)
        store_8(out, _COMMA)
        out += 1
    return at + 4 * count, close_list(count, out)


@compiled
def write_uuid_list(nullable: int, at: int, end: int, out: int) -> tuple[int, int]:
    count, at = read_size(nullable, at, end)
    if at < 0 or UUID_BYTES * count > end - at:
        return MALFORMED, out
    if count < 0:
        return at, write_null(out)
    store_8(out, _OPEN)
    out += 1
    for index in range(count):
        out = write_uuid_text(at + UUID_BYTES * index, out)
        store_8(out, _COMMA)
        out += 1
    return at + UUID_BYTES * count, close_list(count, out)


@inlined
def close_list(count: int, out: int) -> int:
    """The bracket, in place of the comma behind the last element."""
    out -= int(count != 0)
    store_8(out, _CLOSE)
    return out + 1
