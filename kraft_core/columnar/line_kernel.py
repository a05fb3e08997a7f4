"""The compiled writer of kafka-dump-log's lines: batches to text.

It writes whole batches that are good and usual: of no producer, uncompressed, with records of known types
without headers, whose offsets follow one another. It stops before any other, which kafka_dump writes.
"""

from __future__ import annotations

from kraft_core.columnar.batch_fields import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    EPOCH_AT,
    HEADER_BYTES,
    LAST_DELTA_AT,
    LENGTH_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
)
from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.digits import write_number
from kraft_core.columnar.frames import read_frame, read_kind
from kraft_core.columnar.kernel import batch_bytes
from kraft_core.columnar.kernel_abi import MALFORMED
from kraft_core.columnar.lines import CONSTANT_BYTES, TEXT_PER_BYTE, call_line
from kraft_core.columnar.lines_abi import (
    API_KEYS,
    AT,
    BATCHES,
    CODE,
    DONE,
    FILE,
    FULL,
    LAST_OFFSET,
    LEFT,
    OPEN_COUNT,
    OUT,
    OUT_END,
    SKIP_TO,
    STOP,
    TO_JUDGE,
    VERSIONS,
    WITHOUT_METADATA,
)
from kraft_core.columnar.literals import literal
from kraft_core.columnar.memory import (
    get,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u32,
    prefetch_batches,
    put,
)
from kraft_core.columnar.vectors import copy_short
from kraft_core.format.batch import PREFIX_BYTES

_NONE = -1
# The most text of a batch without its records, and of a record without its value.
_ENVELOPE_BYTES = 1024
# A larger value would need much memory for the longest text that it could have.
_MOST_VALUE_BYTES = 1 << 16
_NO_ROOM = -2
_CACHE_LINE_BYTES = 64

_base_offset = literal("baseOffset: ")
_last_offset = literal(" lastOffset: ")
_count = literal(" count: ")
_epoch = literal(" baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: ")
_position = literal(" isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: ")
_time = literal(" CreateTime: ")
_size = literal(" size: ")
_crc = literal(" magic: 2 compresscodec: none crc: ")
_is_valid = literal(" isvalid: true\n")
_offset = literal("| offset: ")
_no_key = literal(" keySize: -1 valueSize: ")
_key_size = literal(" keySize: ")
_value_size = literal(" valueSize: ")
_payload = literal(" sequence: -1 headerKeys: [] payload: ")
_only_payload = literal("| payload: ")


@compiled
def write_lines(task: int) -> int:
    """Writes batches from AT on; returns DONE, FULL, LEFT or TO_JUDGE, with AT where it stopped."""
    while get(task + AT) < get(task + STOP):
        at = get(task + AT)
        size = batch_bytes(at, get(task + STOP))
        if size == 0 or not _is_usual(at):
            return LEFT
        out = _write_batch(task, at, size)
        if out == _NO_ROOM:
            return FULL
        if out == MALFORMED:
            return LEFT
        if get(task + OPEN_COUNT) != 0:
            return TO_JUDGE
        put(task + LAST_OFFSET, get(task + LAST_OFFSET) + load_i32(at + COUNT_AT))
        put(task + BATCHES, get(task + BATCHES) + 1)
        put(task + OUT, out)
        put(task + AT, at + size)
    return DONE


@compiled
def skip_batches(task: int) -> int:
    """The address of the first batch at or after SKIP_TO; before, of one that does not end before STOP."""
    at, stop = get(task + AT), get(task + STOP)
    while at < get(task + SKIP_TO) and stop - at >= HEADER_BYTES:
        size = load_i32(at + LENGTH_AT) + PREFIX_BYTES
        if size < HEADER_BYTES or size > stop - at:
            break
        prefetch_batches(at)
        prefetch_batches(at + _CACHE_LINE_BYTES)  # most small batches lie in two of them
        at += size
    return at


@inlined
def _is_usual(at: int) -> bool:
    producer_id, producer_epoch = load_i64(at + PRODUCER_ID_AT), load_i16(at + PRODUCER_EPOCH_AT)
    is_of_producer = producer_id & producer_epoch & load_i32(at + BASE_SEQUENCE_AT) != _NONE
    return load_i16(at + ATTRIBUTES_AT) == 0 and load_i32(at + COUNT_AT) > 0 and not is_of_producer


@compiled
def _write_batch(task: int, batch: int, size: int) -> int:
    """Writes a batch and its records; returns the address after the text, MALFORMED or NO_ROOM."""
    out = get(task + OUT)
    if out + _ENVELOPE_BYTES > get(task + OUT_END):
        return _NO_ROOM
    out, time, time_end = _write_header(batch, size, batch - get(task + FILE), out)
    at = batch + HEADER_BYTES
    offset = get(task + LAST_OFFSET)
    for _ in range(load_i32(batch + COUNT_AT)):
        offset += 1
        at, out = _write_record(task, batch, time, time_end, offset, at, batch + size, out)
        if at < 0:
            return at
    return out if at == batch + size else MALFORMED


@inlined
def _write_header(batch: int, size: int, position: int, out: int) -> tuple[int, int, int]:
    """The address after the line, and where in it the text of the batch's time begins and ends."""
    base_offset = load_i64(batch)
    out = write_number(base_offset, _base_offset(out))
    out = write_number(base_offset + load_i32(batch + LAST_DELTA_AT), _last_offset(out))
    out = write_number(load_i32(batch + COUNT_AT), _count(out))
    out = write_number(load_i32(batch + EPOCH_AT), _epoch(out))
    out = write_number(position, _position(out))
    time = _time(out)
    time_end = write_number(load_i64(batch + MAX_TIMESTAMP_AT), time)
    out = write_number(size, _size(time_end))
    return _is_valid(write_number(load_u32(batch + CRC_AT), _crc(out))), time, time_end


@inlined
def _write_record(
    task: int, batch: int, time: int, time_end: int, offset: int, at: int, end: int, out: int
) -> tuple[int, int]:
    """The address after the record, MALFORMED or NO_ROOM, and that after its text.

    time, time_end: of the text of the batch's time, which is mostly the record's, too. offset: as it must be.
    """
    frame = read_frame(at, end, get(task + STOP))
    timestamp_delta, offset_delta, _, key_size, value, value_size, after = frame
    if after < 0 or load_i64(batch) + offset_delta != offset or not 0 <= value_size <= _MOST_VALUE_BYTES:
        return MALFORMED, out
    value_end = value + value_size
    if value_end + 1 != after or load_u8(value_end) != 0:  # it has headers
        return MALFORMED, out
    if out + _ENVELOPE_BYTES + CONSTANT_BYTES + TEXT_PER_BYTE * value_size > get(task + OUT_END):
        return _NO_ROOM, out
    if get(task + WITHOUT_METADATA) != 0:
        out = _only_payload(out)
    else:
        out = write_number(offset, _offset(out))
        out = _time(out)
        timestamp = load_i64(batch + BASE_TIMESTAMP_AT) + timestamp_delta
        if timestamp == load_i64(batch + MAX_TIMESTAMP_AT):
            copy_short(out, time, time_end - time)
            out += time_end - time
        else:
            out = write_number(timestamp, out)
        out = _no_key(out) if key_size < 0 else _value_size(write_number(key_size, _key_size(out)))
        out = _payload(write_number(value_size, out))
    api_key, version, begin = read_kind(value, value_end)
    if begin > value_end or not (0 <= api_key < API_KEYS and 0 <= version < VERSIONS):
        return MALFORMED, out
    code = get(get(task + CODE) + 8 * (api_key * VERSIONS + version))
    if code == 0:
        return MALFORMED, out
    end_of_value, out = call_line(code, task, begin, value_end, out)
    return MALFORMED if end_of_value < 0 else after, out
