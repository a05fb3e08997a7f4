"""The compiled reader: batches, their checksums and records, into the columns of schema.RECORDS or HEADERS.

Python hands it a task (kernel_abi.py) with memory, and calls it again where it stopped.
"""

from __future__ import annotations

from kraft_core.columnar.batch_fields import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    EPOCH_AT,
    HEADER_BYTES,
    LAST_DELTA_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
)
from kraft_core.columnar.columns import clear_bits, forget
from kraft_core.columnar.compiled import compiled, entry, inlined
from kraft_core.columnar.crc import crc32c
from kraft_core.columnar.frames import read_frame, read_kind
from kraft_core.columnar.kernel_abi import (
    APPENDED_AT,
    AT,
    BATCH_BASE_OFFSET,
    BATCH_BYTES,
    BATCH_CRC,
    BATCH_ROWS,
    BYTE_CAPACITY,
    BYTES,
    CONTROL,
    CONTROL_TYPES,
    CONTROL_VERSIONS,
    DAMAGED,
    DONE,
    FULL,
    IS_CONTROL,
    KEY_SIZE,
    LAST_DELTA,
    LEADER_EPOCH,
    LEFT,
    LEFT_CAPACITY,
    LEFT_COUNT,
    MALFORMED,
    METADATA,
    METADATA_KEYS,
    METADATA_VERSIONS,
    NO_KEY,
    NO_ROOM,
    NODE_COUNT,
    NODES,
    OFFSET,
    PENDING_ROWS,
    POSITION_IN_BATCH,
    READABLE,
    RECORD_AT,
    RECORD_INDEX,
    ROW_CAPACITY,
    ROWS,
    STOP,
    UNKNOWN_TAGGED_FIELDS,
    VALUE_SIZE,
    VERSION,
    WANTED,
    WAS_REDACTED,
)
from kraft_core.columnar.layout import LENGTH, NODE_BYTES, OFFSETS, ROW, SPACE, VALIDITY
from kraft_core.columnar.machine import read_record, type_number
from kraft_core.columnar.memory import (
    fill_8,
    fill_32,
    fill_64,
    get,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u32,
    prefetch,
    put,
    store_16,
    store_32,
    word,
)
from kraft_core.columnar.program import NO_ENTRY
from kraft_core.columnar.timestamps import FIRST_MS, LAST_MS, representable

_PREFIX_BYTES = 12
_MAGIC_2 = 2
_CODEC_BITS, _LOG_APPEND_TIME, CONTROL_BIT = 0x07, 0x08, 0x20
_NO_VALUE = -1
# Such a time between two records of a batch is foreseen; in ms.
_MOST_PLAIN_DELTA = 1 << 31
# Length, attributes, both deltas, key, value and headers take at least one byte each.
_LEAST_RECORD_BYTES = 7
# The largest batch read here, well above Kafka's 8 MiB limit; it bounds the memory.
_MOST_BYTES = 64 * 1024 * 1024
_MOST_RECORDS = 1 << 20
_MOST = (1 << 63) - 1
_LEAST = -(1 << 63)
HEADER_COLUMNS = 10
# Of a record that is not wanted.
_PASSED_OVER = 1

_representable = inlined(representable)


@inlined
def batch_bytes(at: int, stop: int) -> int:
    """The size of the batch at an address; 0 if there is no good one (segment.scan says what is wrong)."""
    if stop - at < HEADER_BYTES or load_u8(at + MAGIC_AT) != _MAGIC_2:
        return 0
    size = load_i32(at + LENGTH_AT) + _PREFIX_BYTES
    if size < HEADER_BYTES or size > stop - at:
        return 0
    last_delta = load_i32(at + LAST_DELTA_AT)
    if last_delta < 0 or load_i32(at + COUNT_AT) < 0 or not 0 <= load_i64(at) < _MOST - last_delta:
        return 0
    if crc32c(at + ATTRIBUTES_AT, size - ATTRIBUTES_AT) != load_u32(at + CRC_AT):
        return 0
    return size


@entry
def scan_batches(at: int, stop: int, pause: int, columns: int, capacity: int) -> int:
    """Writes the headers of good batches, at most `capacity`, up to the first bad one; returns how many.

    It ends at `stop`, and begins no batch at or after `pause`. columns: address of HEADER_COLUMNS columns of
    `capacity` int64 each, in the order written here; the first holds addresses.
    """
    rows = 0
    while rows < capacity and at < pause:
        size = batch_bytes(at, stop)
        if size == 0:
            break
        cell = columns + 8 * rows
        step = 8 * capacity
        put(cell, at)
        put(cell + step, size)
        put(cell + 2 * step, load_i64(at))
        put(cell + 3 * step, load_i64(at) + load_i32(at + LAST_DELTA_AT))
        put(cell + 4 * step, load_i32(at + EPOCH_AT))
        put(cell + 5 * step, load_u32(at + CRC_AT))
        put(cell + 6 * step, load_i16(at + ATTRIBUTES_AT))
        put(cell + 7 * step, load_i32(at + COUNT_AT))
        put(cell + 8 * step, _representable(load_i64(at + BASE_TIMESTAMP_AT)))
        put(cell + 9 * step, _representable(load_i64(at + MAX_TIMESTAMP_AT)))
        rows += 1
        at += size
    return rows


@entry
def decode_batches(task: int) -> int:
    """Decodes batches from AT on; returns DONE, FULL, DAMAGED or NO_ROOM, with AT where it stopped.

    Called again with more memory after NO_ROOM, it resumes at the record it stopped at. A batch that is
    compressed, or holds anything the program does not read, is listed in LEFT without any of its records.
    """
    stop = get(task + STOP)
    while get(task + AT) < stop:
        at = get(task + AT)
        if get(task + BATCH_BYTES) == 0:
            outcome = _begin_batch(task, at, stop)
            if outcome != READABLE:
                return outcome
        outcome = _decode_batch(task, at)
        if outcome == NO_ROOM:
            return NO_ROOM
        if outcome == MALFORMED:
            _leave(task, at)
        else:
            rows = get(task + BATCH_ROWS)
            put(task + ROWS, get(task + ROWS) + rows)
            put(task + PENDING_ROWS, get(task + PENDING_ROWS) + rows - load_i32(at + COUNT_AT))
        put(task + AT, at + get(task + BATCH_BYTES))
        put(task + BATCH_BYTES, 0)
    return DONE


@compiled
def _begin_batch(task: int, at: int, stop: int) -> int:
    """READABLE if the batch is good and there is room for it, otherwise FULL or DAMAGED."""
    size = batch_bytes(at, stop)
    if size == 0:
        return DAMAGED
    count = load_i32(at + COUNT_AT)
    if not _fits(at, size):
        # How many records the reference codec will find is not known; it must not exceed the capacity.
        count = min(count, get(task + ROW_CAPACITY))
    pending = get(task + PENDING_ROWS) + count
    if (
        pending > get(task + ROW_CAPACITY)
        or get(task + LEFT_COUNT) == get(task + LEFT_CAPACITY)
        or get(task + BYTES) >= get(task + BYTE_CAPACITY)
    ):
        return FULL
    put(task + PENDING_ROWS, pending)
    put(task + BYTES, get(task + BYTES) + size)
    put(task + BATCH_BYTES, size)
    put(task + BATCH_ROWS, 0)
    put(task + RECORD_INDEX, 0)
    put(task + RECORD_AT, at + HEADER_BYTES)
    put(task + LAST_DELTA, -1)
    return READABLE


@inlined
def _fits(batch: int, size: int) -> bool:
    """Whether this reader can read the batch: uncompressed, of plausible size and count."""
    count = load_i32(batch + COUNT_AT)
    is_compressed = load_i16(batch + ATTRIBUTES_AT) & _CODEC_BITS != 0
    may_hold = count <= _MOST_RECORDS and count * _LEAST_RECORD_BYTES <= size
    return not is_compressed and size <= _MOST_BYTES and may_hold


@compiled
def _leave(task: int, at: int) -> None:
    count = get(task + LEFT_COUNT)
    left = get(task + LEFT) + 16 * count
    put(left, at)
    put(left + 8, get(task + ROWS))
    put(task + LEFT_COUNT, count + 1)


@compiled
def _decode_batch(task: int, batch: int) -> int:
    """Writes the records of a batch: 0, MALFORMED with none of them kept, or NO_ROOM for the next one."""
    size = get(task + BATCH_BYTES)
    if not _fits(batch, size):
        return MALFORMED
    end = batch + size
    first = get(task + ROWS)
    row = first + get(task + BATCH_ROWS)
    at = get(task + RECORD_AT)
    delta = get(task + LAST_DELTA)
    base_ms = _plain_base(batch)
    for index in range(get(task + RECORD_INDEX), load_i32(batch + COUNT_AT)):
        next_delta, after, written = _decode_record(task, batch, base_ms, index, row, delta, at, end)
        if after == NO_ROOM:
            put(task + BATCH_ROWS, row - first)
            put(task + RECORD_INDEX, index)
            put(task + RECORD_AT, at)
            put(task + LAST_DELTA, delta)
            _roll_back(task, row, row + 1)
            return NO_ROOM
        if after < 0:
            _roll_back(task, first, row + 1)
            return MALFORMED
        delta, at = next_delta, after
        row += written
    if at != end:
        _roll_back(task, first, row)
        return MALFORMED
    put(task + BATCH_ROWS, row - first)
    _write_batch_columns(task, batch, first, row)
    return 0


@inlined
def _write_batch_columns(task: int, batch: int, start: int, end: int) -> None:
    """The envelope columns whose value is the same for all records of a batch."""
    epochs, crcs = get(task + LEADER_EPOCH), get(task + BATCH_CRC)
    controls, base_offsets = get(task + IS_CONTROL), get(task + BATCH_BASE_OFFSET)
    epoch, crc, base_offset = load_i32(batch + EPOCH_AT), load_u32(batch + CRC_AT), load_i64(batch)
    is_control = int(load_i16(batch + ATTRIBUTES_AT) & CONTROL_BIT != 0)
    fill_32(epochs + 4 * start, epoch, end - start)
    fill_64(crcs + 8 * start, crc, end - start)
    fill_8(controls + start, is_control, end - start)
    fill_64(base_offsets + 8 * start, base_offset, end - start)


@inlined
def _decode_record(
    task: int, batch: int, base_ms: int, index: int, row: int, last_delta: int, at: int, end: int
) -> tuple[int, int, int]:
    """The record's offset delta, the address after it, MALFORMED or NO_ROOM, and how many rows were written.

    base_ms: of _plain_base. No row is written of a type that is not wanted.
    """
    stop = get(task + STOP)
    timestamp_delta, offset_delta, key, key_size, value, value_size, after = read_frame(at, end, stop)
    if after < 0 or not last_delta < offset_delta <= load_i32(batch + LAST_DELTA_AT):
        return 0, MALFORMED, 0
    value_end = value + max(value_size, 0)
    if row & 7 == 0:
        _prefetch_envelope(task, row)
    outcome = _decode_value(task, row, load_i16(batch + ATTRIBUTES_AT), key, key_size, value, value_end)
    if outcome != 0:
        return offset_delta, after if outcome == _PASSED_OVER else outcome, 0
    put(get(task + OFFSET) + 8 * row, load_i64(batch) + offset_delta)
    store_32(get(task + POSITION_IN_BATCH) + 4 * row, index)
    is_plain = base_ms != 0 and -_MOST_PLAIN_DELTA < timestamp_delta < _MOST_PLAIN_DELTA
    appended_at = base_ms + timestamp_delta if is_plain else _timestamp(batch, timestamp_delta)
    put(get(task + APPENDED_AT) + 8 * row, appended_at)
    if key_size >= 0:
        store_32(get(task + KEY_SIZE) + 4 * row, key_size)
    store_32(get(task + VALUE_SIZE) + 4 * row, max(value_size, _NO_VALUE))
    return offset_delta, after, 1


@inlined
def _prefetch_envelope(task: int, row: int) -> None:
    """For the next eight rows: what a line of the cache holds of the widest columns."""
    prefetch(get(task + OFFSET) + 8 * row)
    prefetch(get(task + APPENDED_AT) + 8 * row)
    prefetch(get(task + BATCH_CRC) + 8 * row)
    prefetch(get(task + BATCH_BASE_OFFSET) + 8 * row)
    prefetch(get(task + LEADER_EPOCH) + 4 * row)
    prefetch(get(task + POSITION_IN_BATCH) + 4 * row)
    prefetch(get(task + VALUE_SIZE) + 4 * row)
    prefetch(get(task + VERSION) + 2 * row)


@inlined
def _decode_value(task: int, row: int, attributes: int, key: int, key_size: int, value: int, end: int) -> int:
    """Writes a record's value, its type and version: 0, MALFORMED, NO_ROOM or _PASSED_OVER."""
    if attributes & CONTROL_BIT != 0:
        if key_size < 4 or end - value < 2:
            return MALFORMED
        version = load_i16(value)
        piece = _control_piece(task, load_i16(key + 2), version)
    else:
        api_key, version, value = read_kind(value, end)
        if value > end:
            return MALFORMED
        piece = _metadata_piece(task, api_key, version)
    if piece == NO_ENTRY:
        return MALFORMED
    if load_u8(get(task + WANTED) + type_number(task, piece)) == 0:
        return _PASSED_OVER
    after = read_record(task, row, piece, value, end)
    if after < 0:
        return after
    store_16(get(task + VERSION) + 2 * row, version)
    return 0 if after == end else MALFORMED


@inlined
def _control_piece(task: int, control_type: int, version: int) -> int:
    versions = get(task + CONTROL_VERSIONS)
    if not (0 <= control_type < get(task + CONTROL_TYPES) and 0 <= version < versions):
        return NO_ENTRY
    return word(get(task + CONTROL) + 4 * (control_type * versions + version))


@inlined
def _metadata_piece(task: int, api_key: int, version: int) -> int:
    versions = get(task + METADATA_VERSIONS)
    if not (0 <= api_key < get(task + METADATA_KEYS) and 0 <= version < versions):
        return NO_ENTRY
    return word(get(task + METADATA) + 4 * (api_key * versions + version))


@inlined
def _plain_base(batch: int) -> int:
    """The time in ms that most deltas of the batch are added to; 0 if _timestamp must say each time."""
    base = load_i64(batch + BASE_TIMESTAMP_AT)
    is_plain = FIRST_MS + _MOST_PLAIN_DELTA <= base <= LAST_MS - _MOST_PLAIN_DELTA
    return base if is_plain and load_i16(batch + ATTRIBUTES_AT) & _LOG_APPEND_TIME == 0 else 0


@compiled
def _timestamp(batch: int, delta: int) -> int:
    """In ms, clamped (timestamps.py)."""
    if load_i16(batch + ATTRIBUTES_AT) & _LOG_APPEND_TIME != 0:
        return _representable(load_i64(batch + MAX_TIMESTAMP_AT))
    base = load_i64(batch + BASE_TIMESTAMP_AT)
    # The sum may overflow 64 bits.
    if base > 0 and delta > _MOST - base:
        return LAST_MS
    if base < 0 and delta < _LEAST - base:
        return FIRST_MS
    return _representable(base + delta)


@compiled
def _roll_back(task: int, kept: int, rows: int) -> None:
    """Discards what was written to rows from `kept` to `rows` (exclusive), or fills it in as before.

    A node comes after the node whose space it is in. LENGTH of a space is how many of its rows are kept, ROW
    how many there were.
    """
    fill_32(get(task + KEY_SIZE) + 4 * kept, NO_KEY, rows - kept)
    fill_32(get(task + UNKNOWN_TAGGED_FIELDS) + 4 * kept, 0, rows - kept)
    fill_8(get(task + WAS_REDACTED) + kept, 0, rows - kept)
    nodes = get(task + NODES)
    put(nodes + LENGTH, kept)
    put(nodes + ROW, rows)
    for index in range(1, get(task + NODE_COUNT)):
        node = nodes + NODE_BYTES * index
        space = nodes + get(node + SPACE)
        if get(node + VALIDITY) != 0:
            clear_bits(get(node + VALIDITY), get(space + LENGTH), get(space + ROW))
        if get(node + OFFSETS) != 0:
            put(node + ROW, get(node + LENGTH))
            forget(node, get(space + LENGTH))
