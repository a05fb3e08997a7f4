"""Single values and arrays of them, from the bytes of a record to a node's memory.

Each function reads at an address, never at or beyond `end`, and returns the address after what it read, or
MALFORMED, or NO_ROOM.
"""

from __future__ import annotations

from kraft_core.columnar.columns import (
    append_list,
    append_short,
    append_text,
    append_uuid,
    has_room,
    mark_present,
    write_bit,
)
from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.compiled_varint import read_unsigned_varint
from kraft_core.columnar.kernel_abi import MALFORMED, NEEDED, NO_ROOM, NODE, NODES, STOP, WAS_REDACTED
from kraft_core.columnar.layout import LENGTH, ROW, VALUES
from kraft_core.columnar.memory import (
    get,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    prefetch,
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
from kraft_core.columnar.text import is_utf8
from kraft_core.columnar.vectors import REACH, UUID_BYTES, UUID_TEXT_BYTES, high_bits, swap_short

# Kafka's limit for a string, in bytes.
MAX_STRING_BYTES = 0x7FFF


@inlined
def no_room(task: int, node: int, size: int) -> int:
    put(task + NODE, node)
    put(task + NEEDED, get(node + LENGTH) + size)
    return NO_ROOM


@inlined
def read_value(opcode: int, nullable: int, task: int, node: int, row: int, at: int, end: int) -> int:
    if opcode == INT32:
        return _read_number(INT32, node, row, at, end)  # inlined, as most numbers are int32
    if opcode == UUID:
        return _read_uuid(task, node, row, at, end)
    if opcode >= STRING:
        return read_text(opcode, nullable, task, node, row, at, end)
    return _read_any_number(opcode, node, row, at, end)


@compiled
def _read_any_number(opcode: int, node: int, row: int, at: int, end: int) -> int:
    return _read_number(opcode, node, row, at, end)


@inlined
def _read_number(opcode: int, node: int, row: int, at: int, end: int) -> int:
    after = at + _number_bytes(opcode)
    if after > end:
        return MALFORMED
    store_number(opcode, node, row, at)
    return after


@inlined
def store_number(opcode: int, node: int, row: int, at: int) -> None:
    """The bytes must be there."""
    size = _number_bytes(opcode)
    if size == 4:
        value = load_i32(at) if opcode == INT32 else load_u32(at)
    elif size == 8:
        value = load_i64(at)
    elif size == 2:
        value = load_i16(at) if opcode == INT16 else load_u16(at)
    else:
        value = load_u8(at)
    write_number(opcode, node, row, value)
    mark_present(node, row)


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
        prefetch(values + 4 * row)
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
    after = at + UUID_BYTES
    if after > end:
        return MALFORMED
    outcome = store_uuid(task, node, row, at)
    return after if outcome >= 0 else outcome


@inlined
def store_uuid(task: int, node: int, row: int, at: int) -> int:
    """The bytes must be there. Returns `at`, or NO_ROOM."""
    if not has_room(node, UUID_TEXT_BYTES):
        return no_room(task, node, UUID_TEXT_BYTES)
    append_uuid(node, row, at)
    return at


@compiled
def read_text(opcode: int, nullable: int, task: int, node: int, row: int, at: int, end: int) -> int:
    encoded, at = read_unsigned_varint(at, end)
    size = encoded - 1
    if at > end or size > end - at:
        return MALFORMED
    if size < 0:
        return at if nullable else MALFORMED
    is_short = size <= REACH and at + REACH <= get(task + STOP)
    is_ascii = is_short and high_bits(at) & ((1 << size) - 1) == 0
    is_string = opcode not in (BYTES, SECRET_BYTES)
    if is_string and not is_ascii and (size > MAX_STRING_BYTES or not is_utf8(at, size)):
        return MALFORMED
    if opcode in (SECRET_STRING, SECRET_BYTES):
        store_8(get(task + WAS_REDACTED) + get(get(task + NODES) + ROW), 1)
    elif opcode == GUARDED:
        place = get(node + VALUES) + 16 * row
        put(place, at)
        put(place + 8, size)
        mark_present(node, row)
    elif not has_room(node, size):
        return no_room(task, node, size)
    elif is_short:
        append_short(node, row, at, size)
    else:
        append_text(node, row, at, size)
    return at + size


@inlined
def _copy_int32(task: int, target: int, source: int, count: int) -> None:
    """At once, as most lists have one to three replicas."""
    if 4 * count <= REACH and source + REACH <= get(task + STOP):
        prefetch(target)
        swap_short(target, source, count)
    else:
        _copy_long(target, source, count)


@compiled
def _copy_long(target: int, source: int, count: int) -> None:
    for index in range(count):
        store_32(target + 4 * index, load_i32(source + 4 * index))


@inlined
def begin_list(nullable: int, task: int, node: int, row: int, at: int, end: int) -> tuple[int, int, int]:
    """How many elements follow, the row of the first of them, and the address after the count."""
    encoded, at = read_unsigned_varint(at, end)
    count = encoded - 1
    # Every element takes at least one byte.
    if at > end or count > end - at:
        return 0, 0, MALFORMED
    if count < 0:
        # The row after the last element: _copy_int32 writes there even if there are none.
        return 0, get(node + LENGTH), at if nullable else MALFORMED
    if not has_room(node, count):
        return 0, 0, no_room(task, node, count)
    return count, append_list(node, row, count), at


@compiled
def read_list(
    opcode: int, nullable: int, task: int, node: int, element: int, row: int, at: int, end: int
) -> int:
    """An array of single values; element: the node of the elements."""
    if opcode == INT32:
        return read_int32_list(nullable, task, node, element, row, at, end)
    if opcode == UUID:
        return read_uuid_list(nullable, task, node, element, row, at, end)
    count, first, at = begin_list(nullable, task, node, row, at, end)
    for index in range(count):
        at = read_value(opcode, 0, task, element, first + index, at, end)
        if at < 0:
            return at
    return at


@inlined
def read_int32_list(nullable: int, task: int, node: int, element: int, row: int, at: int, end: int) -> int:
    count, first, at = begin_list(nullable, task, node, row, at, end)
    if at < 0:
        return at
    if 4 * count > end - at:
        return MALFORMED
    _copy_int32(task, get(element + VALUES) + 4 * first, at, count)
    return at + 4 * count


@compiled
def read_uuid_list(nullable: int, task: int, node: int, element: int, row: int, at: int, end: int) -> int:
    count, first, at = begin_list(nullable, task, node, row, at, end)
    if at < 0:
        return at
    if UUID_BYTES * count > end - at:
        return MALFORMED
    if not has_room(element, UUID_TEXT_BYTES * count):
        return no_room(task, element, UUID_TEXT_BYTES * count)
    for index in range(count):
        append_uuid(element, first + index, at + UUID_BYTES * index)
    return at + UUID_BYTES * count


@inlined
def write_empty_list(node: int, row: int) -> None:
    append_list(node, row, 0)
