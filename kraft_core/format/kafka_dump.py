"""What kafka-dump-log --cluster-metadata-decoder prints of a segment or checkpoint (Kafka 4.3.1).

Byte for byte, with its quirks: it reads on after a batch with a wrong CRC, calls any batch after the first
that does not begin at offset 0 non-consecutive, and ends with an exception where a length or a record cannot
be read, even in the middle of a line. A batch of magic 0 or 1, which no metadata log holds, ends the dump
here: Kafka makes what it can of it. Source: Kafka's DumpLogSegments, FileLogInputStream, DefaultRecordBatch,
DefaultRecord, ControlRecordUtils.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from kraft_core.format import compression
from kraft_core.format.batch import (
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    check_crc,
    codec_name,
    read_header,
)
from kraft_core.format.errors import DecodeError
from kraft_core.format.java_text import java_text
from kraft_core.format.kafka_control import control_text
from kraft_core.format.kafka_json import UNREADABLE, json_writer, unsigned_varint
from kraft_core.format.log_dirs import BOOTSTRAP_NAME
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.format.varint import Buffer
from kraft_core.messages.metadata import by_api_key

# Of the text; a memoryview holds it as UTF-8.
Piece = str | memoryview

LOG_SUFFIX, CHECKPOINT_SUFFIX = ".log", ".checkpoint"
MAX_BYTES = 0x7FFFFFFF

_UP_TO_MAGIC_BYTES = 17
_LEAST_SIZE = 14
_MAX_INT = 0x7FFFFFFF
_NO_SEQUENCE = -1
_OFFSET_DIGITS, _EPOCH_DIGITS = 20, 10


class DumpStopped(Exception):
    """Where kafka-dump-log ends with an exception. text: what it has printed since the last piece.

    reason: what is wrong, in words. position: of the batch, in bytes.
    """

    def __init__(self, reason: str, text: str = "", position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.text = text
        self.position = position


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """skip_metadata: of --skip-record-metadata. max_bytes: of --max-bytes, for each file.

    show_secrets, allowed: as in secrets.redact.
    """

    skip_metadata: bool = False
    max_bytes: int = MAX_BYTES
    show_secrets: bool = False
    allowed: frozenset[str] = NONE_ALLOWED


@dataclass
class FileDump:
    """One file's dump and what it met. jumps: offsets that do not follow the one before, by that one.

    batches, invalid, unread: how many batches, batches with a wrong CRC, records that could not be decoded.
    is_empty_log: a segment without a byte.
    """

    options: DumpOptions
    jumps: dict[int, int] = field(default_factory=dict[int, int])
    batches: int = 0
    invalid: int = 0
    unread: int = 0
    last_offset: int = -1
    is_empty_log: bool = False

    def pieces(self, buf: Buffer, name: str) -> Generator[Piece]:
        """The text after the line "Dumping NAME", in pieces. Raises DumpStopped."""
        yield _title(name)
        self.is_empty_log = len(buf) == 0 and name.endswith(LOG_SUFFIX)
        end = min(len(buf), self.options.max_bytes)
        position = 0
        while position < end - _UP_TO_MAGIC_BYTES:
            (size,) = struct.unpack_from(">i", buf, position + 8)
            if size < _LEAST_SIZE:
                raise DumpStopped(f"a batch of {size} bytes", position=position)
            if position > end - PREFIX_BYTES - size:
                break
            text, position = self._next(buf, position)
            yield text
        if position < end and self.options.max_bytes == MAX_BYTES:
            yield f"Found {end - position} invalid bytes at the end of {name}\n"

    def texts(self, buf: Buffer, name: str) -> Iterator[str]:
        """As pieces, each as a str."""
        for piece in self.pieces(buf, name):
            yield piece if isinstance(piece, str) else str(piece, "utf-8")

    def _next(self, buf: Buffer, position: int) -> tuple[Piece, int]:
        """The text of what begins at a position, and where that ends."""
        (size,) = struct.unpack_from(">i", buf, position + 8)
        return self._batch(buf, position), position + PREFIX_BYTES + size

    def _batch(self, buf: Buffer, position: int) -> str:
        try:
            header = read_header(buf, position)
        except DecodeError:
            raise DumpStopped("a batch header that ends early", position=position) from None
        self.batches += 1
        if header.magic < 2:
            raise DumpStopped(f"a batch of magic {header.magic}", _legacy_line(buf, header), position)
        valid = header.size_bytes >= HEADER_BYTES and check_crc(buf, header)
        self.invalid += not valid
        line = _batch_line(header, valid)
        if header.size_bytes < HEADER_BYTES:
            raise DumpStopped(f"a batch of {header.size_bytes} bytes", line, position)
        out = [line]
        try:
            self._records(buf, header, out)
        except DumpStopped as stop:
            raise DumpStopped(stop.reason, "".join(out) + stop.text, position) from None
        except UNREADABLE as error:
            raise DumpStopped(f"a record that cannot be read: {error}", "".join(out), position) from None
        return "".join(out)

    def _records(self, buf: Buffer, header: BatchHeader, out: list[str]) -> None:
        """Appends the lines of a batch's records; of a compressed batch, all or none."""
        if header.record_count == 0:
            return
        if header.record_count < 0:
            raise DecodeError(header.position, f"{header.record_count} records")
        body = bytes(buf[header.position + HEADER_BYTES : header.end])
        if header.codec == compression.NONE:
            self._lines(body, header, out)
        else:
            body = compression.decompress(header.codec, body)
            before = self.last_offset, self.unread, dict(self.jumps)
            kept = len(out)
            try:
                self._lines(body, header, out)
            except UNREADABLE:
                self.last_offset, self.unread, self.jumps = before
                del out[kept:]
                raise

    def _lines(self, body: bytes, header: BatchHeader, out: list[str]) -> None:
        skip = self.options.skip_metadata
        kind = header.timestamp_type
        at = 0
        for number in range(1, header.record_count + 1):
            offset, timestamp, sequence, key, value, keys, at = _read_record(body, at, header)
            if number == header.record_count and at != len(body):
                raise DecodeError(at, "more records than the batch states")
            if offset != self.last_offset + 1:
                self.jumps[self.last_offset] = offset
            self.last_offset = offset
            if not skip:
                key_size, size = -1 if key is None else len(key), -1 if value is None else len(value)
                out.append(
                    f"| offset: {offset} {kind}: {timestamp} keySize: {key_size} valueSize: {size} "
                    f"sequence: {sequence} headerKeys: {keys}"
                )
                if header.is_control:
                    out.append(self._control(key, value))
            if not header.is_control:
                out.append("| payload: " if skip else " payload: ")
                self._payload(offset, value, out)
            out.append("\n")

    def _control(self, key: bytes | None, value: bytes | None) -> str:
        try:
            text = control_text(key, value)
        except UNREADABLE as error:
            raise DumpStopped(f"a control record that cannot be read: {error}") from None
        self.unread += text.startswith(" controlType")
        return text

    def _payload(self, offset: int, value: bytes | None, out: list[str]) -> None:
        kept = len(out)
        try:
            self._value(value or b"", out)
        except _PayloadError as error:
            del out[kept:]
            self.unread += 1
            out.append(f"Error at {offset}, skipping. {error}")

    def _value(self, value: bytes, out: list[str]) -> None:
        """Appends the JSON of a metadata record's value; _PayloadError with Kafka's sentence."""
        frame, at = _short(value, 0, "frame version")
        if frame == 0:
            raise _PayloadError(_OLD_FRAME)
        if frame != 1:
            raise _PayloadError(_UNKNOWN_FRAME.format(frame))
        api_key, at = _short(value, at, "type")
        version, at = _short(value, at, "version")
        message = by_api_key.get(api_key)
        if message is None or message.layout is not None:
            raise _PayloadError(f"{_UNSUPPORTED}: Unknown metadata id {api_key}")
        out.append(f'{{"type":"{message.type_name}","version":{version},"data":')
        try:
            write = json_writer(message, version, not self.options.show_secrets, self.options.allowed)
            at = write(value, at, out)
        except UNREADABLE:
            raise _PayloadError(f"Failed to deserialize record with type {api_key}") from None
        if at < len(value):
            raise _PayloadError(f"Found {len(value) - at} byte(s) of garbage after {api_key}")
        out.append("}")


class _PayloadError(Exception):
    """A value that Kafka's serde refuses, in its words."""


_OLD_FRAME = (
    "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release "
    "of KRaft in 2.8 to newer versions are not supported."
)
_UNKNOWN_FRAME = (
    "Could not deserialize metadata record due to unknown frame version {}(only frame version 1 is supported)"
)
_UNSUPPORTED = "org.apache.kafka.common.errors.UnsupportedVersionException"


def _short(value: bytes, at: int, what: str) -> tuple[int, int]:
    try:
        number, at = unsigned_varint(value, at)
    except UNREADABLE:
        raise _PayloadError(f"Error while reading {what}") from None
    if number > 0x7FFF:
        raise _PayloadError(f"Value for {what} was too large.")
    return (number + 0x8000) % 0x10000 - 0x8000, at


def _title(name: str) -> str:
    """The line after "Dumping NAME"; DumpStopped where the name is not one of Kafka's."""
    try:
        if name.endswith(LOG_SUFFIX):
            return f"Log starting offset: {_java_long(name.split('.')[0])}\n"
        if name == BOOTSTRAP_NAME:
            return "KRaft bootstrap snapshot\n"
        end_offset = _java_long(name[:_OFFSET_DIGITS])
        epoch = _java_long(name[_OFFSET_DIGITS + 1 : _OFFSET_DIGITS + 1 + _EPOCH_DIGITS])
    except ValueError:
        raise DumpStopped(f"{name} is not the name of a segment or a checkpoint") from None
    return f"Snapshot end offset: {end_offset}, epoch: {epoch}\n"


def _java_long(text: str) -> int:
    if not text.lstrip("+-").isdigit():
        raise ValueError(text)
    return int(text)


def _later_sequence(first: int, delta: int) -> int:
    """A sequence number, which begins again at 0 after the largest int."""
    return delta - (_MAX_INT - first) - 1 if first > _MAX_INT - delta else first + delta


def _batch_line(header: BatchHeader, valid: bool) -> str:
    first = header.base_sequence
    last = _NO_SEQUENCE if first == _NO_SEQUENCE else _later_sequence(first, header.last_offset_delta)
    horizon = header.delete_horizon_ms
    text = (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {first} lastSequence: {last} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch} "
        f"isTransactional: {_bool(header.is_transactional)} isControl: {_bool(header.is_control)} "
        f"deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'}"
    )
    if header.codec >= len(compression.CODEC_NAMES):
        raise DumpStopped(f"compression codec {header.codec}", text, header.position)
    return (
        f"{text} position: {header.position} {header.timestamp_type}: {header.max_timestamp} "
        f"size: {header.size_bytes} magic: {header.magic} compresscodec: {header.compression} "
        f"crc: {header.crc} isvalid: {_bool(valid)}\n"
    )


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _legacy_line(buf: Buffer, header: BatchHeader) -> str:
    """The line of a batch that claims an older magic, by the layout of that format."""
    crc, _, attributes, timestamp = struct.unpack_from(">IbBq", buf, header.position + PREFIX_BYTES)
    if header.magic == 0:
        kind, timestamp = "NoTimestampType", -1
    else:
        kind = "LogAppendTime" if attributes & 8 else "CreateTime"
    codec = attributes & 7
    name = codec_name(codec)
    return (
        f"offset: {header.base_offset} position: {header.position} {kind}: {timestamp} "
        f"size: {header.size_bytes} magic: {header.magic} compresscodec: {name} crc: {crc} isvalid: false\n"
    )


def _varint(buf: bytes, at: int) -> tuple[int, int]:
    stored = buf[at]
    if stored < 0x80:
        return (stored >> 1) ^ -(stored & 1), at + 1
    stored, at = unsigned_varint(buf, at)
    stored &= 0xFFFFFFFF
    return (stored >> 1) ^ -(stored & 1), at


def _varlong(buf: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = buf[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFFFFFFFFFF
            return (value >> 1) ^ -(value & 1), at
    raise DecodeError(at, "varlong of more than ten bytes")


def _java_wrapped(value: int) -> int:
    """A sum of longs as Java holds it."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _read_record(
    body: bytes, at: int, header: BatchHeader
) -> tuple[int, int, int, bytes | None, bytes | None, str, int]:
    """Offset, timestamp, sequence, key, value, header keys in brackets, and the position after the record."""
    size, start = _varint(body, at)
    end = start + size
    if size < 0 or end > len(body):
        raise DecodeError(at, f"record of {size} bytes, {len(body) - start} remain")
    delta, at = _varlong(body, start + 1)
    offset_delta, at = _varint(body, at)
    key, at = _sized(body, at, end)
    value, at = _sized(body, at, end)
    count, at = _varint(body, at)
    keys: list[str] = []
    if count:
        at = _header_keys(body, at, end, count, keys)
    if at != end:
        raise DecodeError(at, f"record of {size} bytes, {at - start} read")
    late = header.timestamp_type != "CreateTime"
    timestamp = header.max_timestamp if late else _java_wrapped(header.base_timestamp + delta)
    first = header.base_sequence
    sequence = _later_sequence(first, offset_delta) if first >= 0 else _NO_SEQUENCE
    offset = _java_wrapped(header.base_offset + offset_delta)
    return offset, timestamp, sequence, key, value, f"[{','.join(keys)}]", at


def _sized(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = _varint(body, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise DecodeError(at, f"{size} bytes, {end - at} remain")
    return body[at : at + size], at + size


def _header_keys(body: bytes, at: int, end: int, count: int, keys: list[str]) -> int:
    if count < 0 or count > end - at:
        raise DecodeError(at, f"{count} record headers")
    for _ in range(count):
        key, at = _sized(body, at, end)
        if key is None:
            raise DecodeError(at, "a record header without a key")
        keys.append(java_text(key))
        _, at = _sized(body, at, end)
    return at
