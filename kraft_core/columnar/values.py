"""Single values and arrays of them, from the bytes of a record to a node's memory.

Each function reads at an address, never at or beyond `end`, and returns the address after what it read, or
MALFORMED, or NO_ROOM.
"""

from __future__ import annotations

from kraft_core.columnar.columns import (
    append_list,
    append_text,
    append_uuid,
    has_room,
    mark_present,
    write_bit,
)
from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.compiled_varint import read_unsigned_varint
from kraft_core.columnar.kernel_abi import MALFORMED, NEEDED, NO_ROOM, NODE, REDACTED
from kraft_core.columnar.layout import LENGTH, VALUES
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
    store_32,
)
from kraft_core.columnar.program import (
    BOOL,
    BYTES,
    GUARDED,
    INT8,
    INT16,
    INT32,
    INT64,
    SECRET_BYTES,
    SECRET_STRING,
    STRING,
    UINT16,
    UINT32,
    UUID,
)
from kraft_core.columnar.text import UUID_BYTES, UUID_TEXT_BYTES, is_utf8

# Kafka's limit for a string, in bytes.
_MAX_STRING_BYTES = 0x7FFF


@inlined
def no_room(task: int, node: int, size: int) -> int:
    put(task + NODE, node)
    put(task + NEEDED, get(node + LENGTH) + size)
    return NO_ROOM


@inlined
def read_value(opcode: int, nullable: int, task: int, node: int, row: int, at: int, end: int) -> int:
    if opcode == INT32:
        at = _read_int32(node, row, at, end)
    elif opcode == UUID:
        return _read_uuid(task, node, row, at, end)
    elif opcode >= STRING:
        return _read_text(opcode, nullable, task, node, row, at, end)
    else:
        at = _read_number(opcode, node, row, at, end)
    if at >= 0:
        mark_present(node, row)
    return at


@inlined
def _read_int32(node: int, row: int, at: int, end: int) -> int:
    """Inlined, as most numbers are int32."""
    if at + 4 > end:
        return MALFORMED
    store_32(get(node + VALUES) + 4 * row, load_i32(at))
    return at + 4


@compiled
def _read_number(opcode: int, node: int, row: int, at: int, end: int) -> int:
    size = _number_bytes(opcode)
    if at + size > end:
        return MALFORMED
    if size == 4:
        value = load_u32(at)
    elif size == 8:
        value = load_i64(at)
    elif size == 2:
        value = load_i16(at) if opcode == INT16 else load_u16(at)
    else:
        value = load_u8(at)
    write_number(opcode, node, row, value)
    return at + size


@inlined
def _number_bytes(opcode: int) -> int:
    """The size of a number on the wire."""
    if opcode in (INT32, UINT32):
        return 4
    if opcode == INT64:
        return 8
    if opcode in (INT16, UINT16):
        return 2
    return 1


@inlined
def write_number(opcode: int, node: int, row: int, value: int) -> None:
    """At the width of the column; unsigned numbers take the next larger width."""
    values = get(node + VALUES)
    if opcode in (INT32, UINT16):
        store_32(values + 4 * row, value)
    elif opcode in (INT64, UINT32):
        put(values + 8 * row, value)
    elif opcode == INT16:
        store_16(values + 2 * row, value)
    elif opcode == INT8:
        store_8(values + row, value)
    elif opcode == BOOL:
        write_bit(values, row, int(value != 0))


@inlined
def _read_uuid(task: int, node: int, row: int, at: int, end: int) -> int:
    if at + UUID_BYTES > end:
        return MALFORMED
    if not has_room(node, UUID_TEXT_BYTES):
        return no_room(task, node, UUID_TEXT_BYTES)
    append_uuid(node, row, at)
    return at + UUID_BYTES


@compiled
def _read_text(opcode: int, nullable: int, task: int, node: int, row: int, at: int, end: int) -> int:
    encoded, at = read_unsigned_varint(at, end)
    size = encoded - 1
    if at > end or size > end - at:
        return MALFORMED
    if size < 0:
        return at if nullable else MALFORMED
    is_string = opcode not in (BYTES, SECRET_BYTES)
    if is_string and (size > _MAX_STRING_BYTES or not is_utf8(at, size)):
        return MALFORMED
    if opcode in (SECRET_STRING, SECRET_BYTES):
        put(task + REDACTED, 1)
    elif opcode == GUARDED:
        place = get(node + VALUES) + 16 * row
        put(place, at)
        put(place + 8, size)
        mark_present(node, row)
    elif not has_room(node, size):
        return no_room(task, node, size)
    else:
        append_text(node, row, at, size)
    return at + size


@inlined
def _copy_int32(target: int, source: int, count: int) -> None:
    """Two at a time, as most lists have one to three replicas."""
    end = source + 4 * count
    while source + 8 <= end:
        both = load_i64(source)
        put(target, both << 32 | both >> 32 & 0xFFFF_FFFF)
        source += 8
        target += 8
    if source < end:
        store_32(target, load_i32(source))


@inlined
def begin_list(nullable: int, task: int, node: int, row: int, at: int, end: int) -> tuple[int, int, int]:
    """How many elements follow, the row of the first of them, and the address after the count."""
    encoded, at = read_unsigned_varint(at, end)
    count = encoded - 1
    # Every element takes at least one byte.
    if at > end or count > end - at:
        return 0, 0, MALFORMED
    if count < 0:
        return 0, 0, at if nullable else MALFORMED
    if not has_room(node, count):
        return 0, 0, no_room(task, node, count)
    return count, append_list(node, row, count), at


@compiled
def read_list(
    opcode: int, nullable: int, task: int, node: int, element: int, row: int, at: int, end: int
) -> int:
    """An array of single values; element: the node of the elements."""
    count, first, at = begin_list(nullable, task, node, row, at, end)
    if opcode == INT32 and at >= 0:
        if 4 * count > end - at:
            return MALFORMED
        _copy_int32(get(element + VALUES) + 4 * first, at, count)
        return at + 4 * count
    for index in range(count):
        at = read_value(opcode, 0, task, element, first + index, at, end)
        if at < 0:
            return at
    return at
