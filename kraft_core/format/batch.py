"""Record batches of magic 2: header, checksum, records, and a writer.

Layout: Kafka's DefaultRecordBatch and DefaultRecord. The CRC-32C covers everything after itself, so
base offset, length, leader epoch and magic are not covered. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import google_crc32c

from kraft_core.format import compression
from kraft_core.format.errors import DecodeError
from kraft_core.format.varint import Buffer, read_varint, read_varlong, write_varint, write_varlong

crc32c = cast(Callable[[bytes], int], google_crc32c.value)
_crc32c_of_more = cast(Callable[[int, bytes], int], google_crc32c.extend)
_CRC_BYTES = 1024 * 1024

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size  # 61
# Base offset and length, which the length does not count.
PREFIX_BYTES = 12
MIN_LENGTH = HEADER_BYTES - PREFIX_BYTES
MAGIC = 2
# The CRC covers the bytes from here on: after the CRC itself.
CRC_FROM = 21

# A key that is null, and no headers.
_NULL, _NONE = b"\x01", b"\x00"
_COMPRESSION_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40


class BatchHeader(NamedTuple):
    """A batch's header and its position.

    position: of its first byte, from the start of the buffer. size_bytes: of the whole batch.
    crc: as an unsigned number. base_timestamp, max_timestamp: ms. Offsets are as stated in
    the batch; a checkpoint numbers its own from 0.
    """

    position: int
    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size_bytes

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & _COMPRESSION_MASK

    @property
    def compression(self) -> str:
        """none, gzip, snappy, lz4 or zstd; codec_5 and up for ids unknown to Kafka."""
        return codec_name(self.codec)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def timestamp_type(self) -> str:
        return "LogAppendTime" if self.attributes & _LOG_APPEND_TIME else "CreateTime"

    @property
    def delete_horizon_ms(self) -> int | None:
        """The first timestamp, if the attributes mark it as the delete horizon (KIP-534)."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None


@dataclass(frozen=True, slots=True)
class RecordHeader:
    key: str
    value: bytes | None


class RawRecord(NamedTuple):
    """A record whose value is not decoded yet.

    timestamp: ms. size_bytes: of the record in the (decompressed) batch, length included.
    value_position: of the value in the buffer the batch was read from; None in a compressed batch.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[RecordHeader, ...] = ()
    size_bytes: int = 0
    attributes: int = 0
    value_position: int | None = None


def codec_name(codec: int) -> str:
    return compression.CODEC_NAMES[codec] if codec < len(compression.CODEC_NAMES) else f"codec_{codec}"


def read_header(buf: Buffer, position: int) -> BatchHeader:
    """The header at a position, unchecked; DecodeError where fewer than 61 bytes are left."""
    try:
        base_offset, length, *rest = HEADER.unpack_from(buf, position)
    except struct.error:
        raise DecodeError(position, "batch header ends early") from None
    return BatchHeader(position, base_offset, length + PREFIX_BYTES, *rest)


def check_crc(buf: Buffer, header: BatchHeader) -> bool:
    """Whether the batch's bytes match its CRC-32C. The whole batch must lie inside the buffer."""
    start = header.position + CRC_FROM
    crc = crc32c(bytes(buf[start : min(start + _CRC_BYTES, header.end)]))
    # A damaged length can span a whole segment, so the bytes are not copied at once.
    for at in range(start + _CRC_BYTES, header.end, _CRC_BYTES):
        crc = _crc32c_of_more(crc, bytes(buf[at : min(at + _CRC_BYTES, header.end)]))
    return crc == header.crc


def iter_records(buf: Buffer, header: BatchHeader) -> Iterator[RawRecord]:
    """The records of a batch one by one, decompressed if necessary; raises DecodeError after those that
    could be read.

    Its subclasses: TooLargeError (compression), and WrongCountError if the batch holds fewer or more records
    than its header says.
    """
    body = bytes(buf[header.position + HEADER_BYTES : header.end])
    body_position = header.position + HEADER_BYTES if header.codec == compression.NONE else None
    body = compression.decompress(header.codec, body)
    size, base_offset, most = len(body), header.base_offset, header.last_offset_delta
    at = 0
    last_delta = -1
    for index in range(header.record_count):
        if at == size:
            raise WrongCountError(at, header.record_count, index)
        record, at = _read_record(body, at, header, body_position)
        delta = record.offset - base_offset
        if not last_delta < delta <= most:
            raise DecodeError(at, f"offset delta {delta} after {last_delta}")
        last_delta = delta
        yield record
    if at != size:
        raise WrongCountError(at, header.record_count, None)


class WrongCountError(DecodeError):
    """The header's record count differs from the number of records. found: None if there are more."""

    def __init__(self, position: int, stated: int, found: int | None) -> None:
        super().__init__(position, f"{stated} records stated, {'more' if found is None else found} found")
        self.stated = stated
        self.found = found


def _read_record(
    body: bytes, start: int, header: BatchHeader, body_position: int | None
) -> tuple[RawRecord, int]:
    length, at = read_varint(body, start)
    end = at + length
    if length < 0 or end > len(body):
        raise DecodeError(start, f"record of {length} bytes where {len(body) - at} are left")
    if at == end:
        raise DecodeError(start, "record without a body")
    attributes = body[at]
    timestamp_delta, at = read_varlong(body, at + 1)
    offset_delta, at = read_varint(body, at)
    # Most records have neither a key nor headers: a byte says so.
    key = None
    if body[at : at + 1] == _NULL:
        at += 1
    else:
        key, _, at = _read_bytes(body, at, end)
    value, value_at, at = _read_bytes(body, at, end)
    headers: tuple[RecordHeader, ...] = ()
    if body[at : at + 1] == _NONE:
        at += 1
    else:
        headers, at = _read_headers(body, at, end)
    if at != end:
        raise DecodeError(at, f"record ends {end - at} bytes early")
    record = RawRecord(
        header.base_offset + offset_delta,
        # With LogAppendTime every record has the broker's time, which is max_timestamp.
        header.max_timestamp
        if header.attributes & _LOG_APPEND_TIME
        else header.base_timestamp + timestamp_delta,
        key,
        value,
        headers,
        end - start,
        attributes,
        None if body_position is None else body_position + value_at,
    )
    return record, end


def _read_bytes(body: bytes, at: int, end: int) -> tuple[bytes | None, int, int]:
    length, at = read_varint(body, at)
    if length < 0:
        return None, at, at
    if length > end - at:
        raise DecodeError(at, f"{length} bytes where {end - at} are left")
    return body[at : at + length], at, at + length


def _read_headers(body: bytes, at: int, end: int) -> tuple[tuple[RecordHeader, ...], int]:
    count, at = read_varint(body, at)
    if count == 0:
        return (), at
    if not 0 < count <= end - at:
        raise DecodeError(at, f"{count} record headers in {end - at} bytes")
    headers: list[RecordHeader] = []
    for _ in range(count):
        key, key_at, at = _read_bytes(body, at, end)
        if key is None:
            raise DecodeError(key_at, "record header without a key")
        value, _, at = _read_bytes(body, at, end)
        headers.append(RecordHeader(key.decode("utf-8", "replace"), value))
    return tuple(headers), at


def write_batch(
    base_offset: int,
    leader_epoch: int,
    records: Sequence[RawRecord],
    *,
    codec: int = compression.NONE,
    is_control: bool = False,
    log_append_time: bool = False,
) -> bytes:
    """A batch as Kafka writes it. Offsets and timestamps are the records' own.

    ValueError without records, or when an offset or a timestamp does not fit.
    """
    if not records:
        raise ValueError("a batch needs a record")
    base_timestamp = records[0].timestamp
    body = bytearray()
    for record in records:
        _write_record(body, record, base_offset, base_timestamp)
    attributes = codec | (_LOG_APPEND_TIME if log_append_time else 0) | (_CONTROL if is_control else 0)
    packed = compression.compress(codec, bytes(body))
    return _frame(
        packed,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        record_count=len(records),
    )


def _frame(
    packed: bytes,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
) -> bytes:
    covered = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            *(-1, -1, -1),  # no producer: id, epoch, first sequence number
            record_count,
        )
        + packed
    )
    length = MIN_LENGTH + len(packed)
    return struct.pack(">qiibI", base_offset, length, leader_epoch, MAGIC, crc32c(covered)) + covered


def _write_record(out: bytearray, record: RawRecord, base_offset: int, base_timestamp: int) -> None:
    body = bytearray([record.attributes])
    write_varlong(body, record.timestamp - base_timestamp)
    write_varint(body, record.offset - base_offset)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for header in record.headers:
        _write_bytes(body, header.key.encode())
        _write_bytes(body, header.value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(out, -1)
        return
    write_varint(out, len(value))
    out += value
