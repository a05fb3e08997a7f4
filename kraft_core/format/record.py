"""Decoded records: the batch's envelope, the type and the value, or why the value could not be read.

A record that cannot be read keeps its envelope and states a reason; the rest of its batch is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from kraft_core.format.batch import BatchHeader, RawRecord, WrongCountError, iter_records
from kraft_core.format.codec import read_control_value, read_metadata_value
from kraft_core.format.compression import TooLargeError, UnpackError
from kraft_core.format.errors import DecodeError, TrailingBytes, UnknownRecord
from kraft_core.format.segment import Damage, Reason, scan
from kraft_core.format.varint import Buffer, read_unsigned_varint
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Message

UNKNOWN = "UNKNOWN"
BATCH_REASONS = frozenset({"malformed_batch", "wrong_record_count", "unpack_failed", "unpacked_too_large"})
# Values of a newer Kafka whose kind is not known: no history is made of them.
OF_NO_HISTORY = ("unknown_type", "unknown_frame", "unknown_control_type")
# What a newer Kafka wrote is not lost; every other value that cannot be decoded is.
OF_NEWER_KAFKA = (*OF_NO_HISTORY, "unknown_version")
_CONTROL_KEY_BYTES = 4
# Kafka stores a record's api key and version in a short.
_MAX_SHORT = 0x7FFF


class Record(NamedTuple):
    """A record with its envelope.

    offset: as stated in the batch (a checkpoint has its own). timestamp: ms. position_in_batch: from 0.
    type: as kafka-dump-log names it, UNKNOWN where the id is not known. api_key: a metadata record's id, a
    control record's type. message and value: what was read, both None where reason is set. size_bytes: of
    the value. position: of the value in the buffer; of the batch where the batch is compressed.
    unread: the bytes that could not be read, the whole batch if its records cannot be separated.
    detail: the reason as text.
    """

    offset: int
    leader_epoch: int
    timestamp: int
    batch: BatchHeader
    position_in_batch: int
    type: str
    version: int | None
    api_key: int | None
    message: Message | None
    value: dict[str, Any] | None
    key_size: int
    size_bytes: int
    position: int
    reason: Reason | None = None
    detail: str = ""
    unread: bytes = b""

    @property
    def digest(self) -> str:
        """SHA-256 of the unread bytes, hex."""
        return hashlib.sha256(self.unread).hexdigest()

    @property
    def is_lost(self) -> bool:
        """Whether the value cannot be decoded, and not because a newer Kafka wrote it."""
        return self.reason is not None and self.reason not in OF_NEWER_KAFKA

    @property
    def is_rest_of_batch(self) -> bool:
        """Whether this represents the records of its batch that cannot be separated."""
        return self.reason in BATCH_REASONS

    @property
    def lost_offsets(self) -> tuple[int, int] | None:
        """The offsets that could not be read, first inclusive, end exclusive; None if all of them were."""
        if self.reason is None:
            return None
        end = self.batch.next_offset if self.is_rest_of_batch else self.offset + 1
        return (self.offset, end) if self.offset < end else None

    @property
    def damage(self) -> Damage | None:
        """The unread bytes as damage of the file; if the batch is compressed, the position is the batch's."""
        if self.reason is None:
            return None
        return Damage(self.position, len(self.unread), self.reason, self.digest)


def read_log(
    buf: Buffer, start: int = 0, end: int | None = None, next_offset: int | None = None
) -> Iterator[Record | Damage]:
    """Every record and damaged range of a segment or checkpoint, ordered by position (segment.scan)."""
    for item in scan(buf, start, end, next_offset):
        if isinstance(item, Damage):
            yield item
        else:
            yield from read_batch(buf, item)


def read_batch(buf: Buffer, header: BatchHeader) -> Iterator[Record]:
    """The records of a batch whose CRC matches.

    If the records of the batch cannot be separated from some point on, the last one represents the rest: type
    UNKNOWN, offset and index of the first missing record: the offset is the batch's end if none is missing.
    """
    index, offset = 0, header.base_offset
    try:
        for index, raw in enumerate(iter_records(buf, header), start=1):
            yield understood(header, index - 1, raw)
            offset = raw.offset + 1
    except DecodeError as error:
        yield _rest_of_batch(buf, header, index, offset, error)


def understood(header: BatchHeader, index: int, raw: RawRecord) -> Record:
    """A record of a batch, decoded. index: in the batch, from 0."""
    value = raw.value or b""
    message, version, api_key, content, reason, detail = (
        _understand_control(raw.key or b"", value) if header.is_control else _understand_metadata(value)
    )
    # By position, which takes less time.
    return Record(
        raw.offset,
        header.leader_epoch,
        raw.timestamp,
        header,
        index,
        UNKNOWN if message is None else message.type_name,
        version,
        api_key,
        None if content is None else message,
        content,
        -1 if raw.key is None else len(raw.key),
        -1 if raw.value is None else len(value),
        header.position if raw.value_position is None else raw.value_position,
        reason,
        detail,
        b"" if reason is None else value,
    )


# Message, version, api key, value, reason and detail, as in Record.
_Understood = tuple[Message | None, int | None, int | None, dict[str, Any] | None, Reason | None, str]


def _understand_metadata(value: bytes) -> _Understood:
    if not value:
        return None, None, None, None, "empty_value", "no value"
    try:
        read = read_metadata_value(value)
    except UnknownRecord as error:
        reason: Reason = "unknown_type"
        if error.api_key is None:
            reason = "unknown_frame"
        elif error.api_key in by_api_key:
            reason = "unknown_version"
        message = None if error.api_key is None else by_api_key.get(error.api_key)
        return message, error.version, error.api_key, None, reason, str(error)
    except DecodeError as error:
        return _unfit(error, *_frame(value))
    return read.message, read.version, read.api_key, read.value, None, ""


def _understand_control(key: bytes, value: bytes) -> _Understood:
    if len(key) < _CONTROL_KEY_BYTES:
        return None, None, None, None, "malformed_key", f"control key of {len(key)} bytes"
    control_type = int.from_bytes(key[2:4], "big", signed=True)
    message = CONTROL_RECORDS.get(control_type)
    try:
        read = read_control_value(control_type, value)
    except UnknownRecord as error:
        reason: Reason = "unknown_control_type" if message is None else "unknown_version"
        return message, error.version, control_type, None, reason, str(error)
    except DecodeError as error:
        return _unfit(error, message, None, control_type)
    return read.message, read.version, control_type, read.value, None, ""


def _unfit(
    error: DecodeError, message: Message | None, version: int | None, api_key: int | None
) -> _Understood:
    reason: Reason = "trailing_bytes" if isinstance(error, TrailingBytes) else "malformed_value"
    return message, version, api_key, None, reason, str(error)


def _frame(value: bytes) -> tuple[Message | None, int | None, int | None]:
    """Message, version and api key of a malformed value, if its frame can be read."""
    try:
        _, at = read_unsigned_varint(value, 0)
        api_key, at = read_unsigned_varint(value, at)
        version, _ = read_unsigned_varint(value, at)
    except DecodeError:
        return None, None, None
    if api_key > _MAX_SHORT or version > _MAX_SHORT:
        return None, None, None
    return by_api_key.get(api_key), version, api_key


def _rest_of_batch(buf: Buffer, header: BatchHeader, index: int, offset: int, error: DecodeError) -> Record:
    reason: Reason = "malformed_batch"
    if isinstance(error, WrongCountError):
        reason = "wrong_record_count"
    elif isinstance(error, TooLargeError):
        reason = "unpacked_too_large"
    elif isinstance(error, UnpackError):
        reason = "unpack_failed"
    return Record(
        offset=offset,
        leader_epoch=header.leader_epoch,
        timestamp=header.base_timestamp,
        batch=header,
        position_in_batch=index,
        type=UNKNOWN,
        version=None,
        api_key=None,
        message=None,
        value=None,
        key_size=-1,
        size_bytes=-1,
        position=header.position,
        reason=reason,
        detail=str(error),
        unread=bytes(buf[header.position : header.end]),
    )
