"""The reference codec: any declared message read from bytes and written back, and its JSON form.

A value is a dict keyed by Field.name in the order of the definition, with every field of that version: tagged
fields absent on the wire hold their default. uuid = Kafka's text, bytes = bytes, array = list, struct = dict,
null = None. Unknown tagged fields are under "unknownTaggedFields" as [(tag, bytes)] if there are
any, in structs too, and are written back.

Sources: Kafka's generated message classes, MetadataRecordSerde and AbstractApiMessageSerde (the frame of a
metadata record), ControlRecordUtils (control records), the generated JsonConverters (JSON).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from math import isfinite, isnan
from typing import Any, NamedTuple

from kraft_core.format.errors import DecodeError, EncodeError, TrailingBytes, UnknownRecord
from kraft_core.format.message_reader import Reader, message_reader
from kraft_core.format.message_writer import message_writer
from kraft_core.format.varint import read_unsigned_varint, write_unsigned_varint
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Field, Message

FRAME_VERSION = 1
# Kafka stores frame version, api key and version of a metadata record in shorts.
_MAX_SHORT = 0x7FFF
# Of a frame whose numbers take a byte each, and what follows it: as they are met.
_FRAME_BYTES = 3
_known_frames: dict[bytes, tuple[Message, int, Reader]] = {}


class MetadataValue(NamedTuple):
    """A metadata record's value. message.layout: the layout its bytes had (None: the current one)."""

    message: Message
    frame_version: int
    api_key: int
    version: int
    value: dict[str, Any]


class ControlValue(NamedTuple):
    """A control record's value; control_type as in the record's key."""

    message: Message
    control_type: int
    version: int
    value: dict[str, Any]


def read_message(
    message: Message, version: int, buf: bytes | memoryview, start: int = 0, end: int | None = None
) -> tuple[dict[str, Any], int]:
    """The value in buf[start:end] and the position after it, which may lie before the end.

    Raises DecodeError with a position in buf; ValueError when the message has no such version.
    """
    read = message_reader(message, version)
    try:
        value, after = read(bytes(buf[start:end]), 0)
    except DecodeError as error:
        raise error.shifted(start) from None
    return value, start + after


def write_message(message: Message, version: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of a value; absent fields take their default.

    Raises EncodeError where the message cannot hold the value; ValueError when it has no such version.
    """
    out = bytearray()
    message_writer(message, version)(out, value)
    return bytes(out)


def read_metadata_value(buf: bytes | memoryview) -> MetadataValue:
    """The value of a metadata record: frame version, api key, version, then the message and nothing more.

    Bytes that do not match the current layout are read with the legacy layouts of the same id and version.
    Raises DecodeError for unreadable bytes (the current layout's error), UnknownRecord for an undeclared
    frame, id or version, TrailingBytes if bytes follow.
    """
    buf = bytes(buf)
    known = _known_frames.get(buf[:_FRAME_BYTES])
    if known is not None:
        message, version, read = known
        try:
            value, position = read(buf, _FRAME_BYTES)
        except DecodeError:
            return _read_framed(buf)
        if position == len(buf):
            return MetadataValue(message, FRAME_VERSION, buf[1], version, value)
    return _read_framed(buf)


def _read_framed(buf: bytes) -> MetadataValue:
    """read_metadata_value of any bytes."""
    frame_version, position = _read_short(buf, 0, "frame version")
    if frame_version != FRAME_VERSION:
        reason = f"unknown frame version {frame_version}"
        raise UnknownRecord(0, reason, api_key=None, version=None, frame_version=frame_version)
    api_key, key_end = _read_short(buf, position, "api key")
    version, body = _read_short(buf, key_end, "version")
    message = by_api_key.get(api_key)
    if message is None or version not in message.versions:
        reason = f"unknown record {api_key}" if message is None else f"unknown {message.name} v{version}"
        raise UnknownRecord(position, reason, api_key=api_key, version=version, frame_version=frame_version)
    if body == _FRAME_BYTES:
        _known_frames[buf[:body]] = message, version, message_reader(message, version)
    message, value = _read_fitting_layout(message, version, buf, body)
    return MetadataValue(message, frame_version, api_key, version, value)


def _read_fitting_layout(
    message: Message, version: int, buf: bytes, start: int
) -> tuple[Message, dict[str, Any]]:
    """The body by the current layout or, if it does not match, by the newest legacy layout that does."""
    try:
        return message, _read_whole(message, version, buf, start)
    except DecodeError:
        for former in message.older:
            if version in former.versions:
                try:
                    return former, _read_whole(former, version, buf, start)
                except DecodeError:
                    continue
        raise


def _read_whole(message: Message, version: int, buf: bytes, start: int) -> dict[str, Any]:
    value, position = message_reader(message, version)(buf, start)
    if position != len(buf):
        raise TrailingBytes(position, len(buf) - position)
    return value


def _read_short(buf: bytes, position: int, what: str) -> tuple[int, int]:
    value, after = read_unsigned_varint(buf, position)
    if value > _MAX_SHORT:
        raise DecodeError(position, f"{what} {value} is too large")
    return value, after


def write_metadata_value(message: Message, version: int, value: Mapping[str, Any]) -> bytes:
    """A metadata record's value: the frame, then the message. Errors as write_message."""
    if message.api_key is None:
        raise ValueError(f"{message.name} is not a metadata record")
    out = bytearray()
    for number in (FRAME_VERSION, message.api_key, version):
        write_unsigned_varint(out, number)
    message_writer(message, version)(out, value)
    return bytes(out)


def read_control_value(control_type: int, buf: bytes | memoryview) -> ControlValue:
    """The value of a control record; its first two bytes are its version.

    Raises DecodeError for unreadable bytes, UnknownRecord (api_key = control_type) for an unknown type or
    version, TrailingBytes if bytes follow.
    """
    buf = bytes(buf)
    message = CONTROL_RECORDS.get(control_type)
    if message is None:
        reason = f"unknown control record {control_type}"
        raise UnknownRecord(0, reason, api_key=control_type, version=None, frame_version=None)
    if len(buf) < 2:
        raise DecodeError(0, f"version of 2 bytes, {len(buf)} remain")
    version = int.from_bytes(buf[:2], "big", signed=True)
    if version not in message.versions:
        reason = f"unknown {message.type_name} v{version}"
        raise UnknownRecord(0, reason, api_key=control_type, version=version, frame_version=None)
    return ControlValue(message, control_type, version, _read_whole(message, version, buf, 0))


def write_control_value(control_type: int, value: Mapping[str, Any]) -> bytes:
    """The bytes of a control record's value, at the version in it (default 0)."""
    message = CONTROL_RECORDS.get(control_type)
    if message is None:
        raise EncodeError(f"unknown control record {control_type}")
    return write_message(message, value.get("version", 0), value)


def to_json(message: Message, version: int, value: Mapping[str, Any]) -> dict[str, Any]:
    """The value as kafka-dump-log prints it ("data" of a payload), ready for json.dumps.

    bytes are base64, tagged fields at their default and unknown tagged fields are left out.
    """
    return _struct_to_json(message.fields, version, value)


def _struct_to_json(fields: tuple[Field, ...], version: int, value: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for field in fields:
        if version in field.versions:
            held = value[field.name]
            if not (field.is_tagged(version) and held == field.default_value(version)):
                result[field.name] = _field_to_json(field, version, held)
    return result


def _field_to_json(field: Field, version: int, value: Any) -> Any:
    if value is None:
        return None
    if field.array:
        return [_element_to_json(field, version, element) for element in value]
    return _element_to_json(field, version, value)


def _element_to_json(field: Field, version: int, value: Any) -> Any:
    if field.type == "struct":
        return _struct_to_json(field.fields, version, value)
    if field.type == "bytes":
        return b64encode(value).decode("ascii")
    if field.type == "float64" and not isfinite(value):
        # JSON has no such numbers; Jackson prints their Java names as strings.
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
