"""A metadata record's value as the classes of a release of Kafka read it.

Those are laxer than this project's codec, which loses no byte: a version that the release does not know is
read by the fields that it knows, a tagged field may have any size, text may be invalid UTF-8. And stricter: a
nested struct of an unknown version is refused, and since 4.4 a list or a section of tagged fields that is too
long.

Sources: MetadataRecordSerde and AbstractApiMessageSerde, the generated classes of kafka-metadata's
common/metadata (MessageDataGenerator), ByteBufferAccessor and ByteUtils.
"""

from __future__ import annotations

import struct
from typing import Any

from kraft_core.format.message_reader import FIXED_FORMATS, MAX_STRING_BYTES
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.releases import Release
from kraft_core.messages.schema import Field, Message
from kraft_core.messages.uuid_text import uuid_text

FRAME_VERSION = 1
_MAX_SHORT = 0x7FFF
_UNDERFLOW = "java.nio.BufferUnderflowException"
# The classes of nested structs, by the record's id and the field.
_CLASSES = {
    (0, "endPoints"): "BrokerEndpoint",
    (0, "features"): "BrokerFeature",
    (14, "entity"): "EntityData",
    (27, "endPoints"): "ControllerEndpoint",
    (27, "features"): "ControllerFeature",
}


class ReleaseRefusesError(ValueError):
    """The release's classes throw; the message is Kafka's, with the exceptions' names."""


class _Thrown(ValueError):
    """An exception inside the record's class, with its name."""


def read_as(release: Release, value: bytes) -> tuple[Message, int, dict[str, Any]]:
    """The message, the version and what the release reads of a record's value. Raises ReleaseRefusesError."""
    bytes_ = _Bytes(value)
    frame_version = _short(bytes_, "frame version")
    if frame_version == 0:
        raise _parse_error(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
            "release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != FRAME_VERSION:
        raise _parse_error(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}(only frame "
            f"version {FRAME_VERSION} is supported)"
        )
    api_key = _short(bytes_, "type")
    version = _short(bytes_, "version")
    if api_key not in release.records:
        unknown = f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {api_key}"
        raise _parse_error(unknown, unknown)
    message = _layout_of(release, api_key)
    try:
        fields = _Reader(release, api_key, version).fields(bytes_, message.fields)
    except _Thrown as thrown:
        raise _parse_error(f"Failed to deserialize record with type {api_key}", str(thrown)) from None
    if bytes_.remaining:
        raise _parse_error(f"Found {bytes_.remaining} byte(s) of garbage after {api_key}")
    return message, version, fields


def _layout_of(release: Release, api_key: int) -> Message:
    """The message as the release has it; some changed without a new version."""
    message = by_api_key[api_key]
    kept = [older for older in message.older if _number(older.layout or "") >= _number(release.name)]
    return min(kept, key=lambda older: _number(older.layout or ""), default=message)


def _number(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))


def _parse_error(words: str, cause: str = "") -> ReleaseRefusesError:
    return ReleaseRefusesError(f"MetadataParseException: {words}{f', caused by {cause}' if cause else ''}")


def _short(bytes_: _Bytes, what: str) -> int:
    try:
        value = bytes_.varint()
    except _Thrown as thrown:
        raise _parse_error(f"Error while reading {what}", str(thrown)) from None
    if value > _MAX_SHORT:
        raise _parse_error(f"Value for {what} was too large.")
    return value


class _Bytes:
    """Kafka's ByteBufferAccessor. Raises _Thrown."""

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._at = 0

    @property
    def remaining(self) -> int:
        return len(self._value) - self._at

    def fixed(self, layout: str) -> Any:
        size = struct.calcsize(layout)
        return struct.unpack(layout, self._take(size, _UNDERFLOW))[0]

    def array(self, size: int) -> bytes:
        words = (
            f"java.lang.RuntimeException: Error reading byte array of {size} byte(s): only {self.remaining} "
            "byte(s) available"
        )
        return self._take(size, words)

    def varint(self) -> int:
        """An unsigned varint, in Java's int: from 2^31 on it is negative."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.fixed("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return _java_int(value)
        words = "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
        raise _Thrown(f"java.lang.IllegalArgumentException: {words}{_java_int(value) & 0xFFFFFFFF:x}")

    def _take(self, size: int, words: str) -> bytes:
        if not 0 <= size <= self.remaining:
            raise _Thrown(words)
        self._at += size
        return self._value[self._at - size : self._at]


def _java_int(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


class _Reader:
    """The generated code of one record's class in a release."""

    def __init__(self, release: Release, api_key: int, version: int) -> None:
        self._release = release
        self._api_key = api_key
        self._version = version
        self._newest = release.records[api_key]

    def fields(self, bytes_: _Bytes, declared: tuple[Field, ...]) -> dict[str, Any]:
        known = [field for field in declared if field.versions.low <= self._newest]
        present = [field for field in known if self._version in field.versions]
        value = {field.name: field.default_value(self._version) for field in present}
        for field in present:
            if field.tag is None:
                value[field.name] = self._field(bytes_, field)
        self._tagged(bytes_, {field.tag: field for field in known if field.tag is not None}, value)
        return value

    def _tagged(self, bytes_: _Bytes, known: dict[int | None, Field], value: dict[str, Any]) -> None:
        count = bytes_.varint()
        self._check_tags(bytes_, count)
        for _ in range(count):
            tag, size = bytes_.varint(), bytes_.varint()
            field = known.get(tag)
            if field is None:
                bytes_.array(size)
            elif self._version not in field.versions:
                raise _runtime(f"Tag {tag} is not valid for version {self._version}")
            else:
                value[field.name] = self._field(bytes_, field)

    def _check_tags(self, bytes_: _Bytes, count: int) -> None:
        limit = self._release.most_tags
        if limit is None:
            return
        if count < 0:
            raise _runtime(f"Invalid negative number of tagged fields {count}")
        if count > bytes_.remaining:
            raise _runtime(
                f"Tried to read {count} tagged fields, but there are only {bytes_.remaining} bytes remaining."
            )
        if count > limit:
            raise _runtime(
                f"Tried to read {count} tagged fields, which exceeds the maximum allowed count of {limit}."
            )

    def _field(self, bytes_: _Bytes, field: Field) -> Any:
        nullable = field.is_nullable(self._version)
        if not field.array:
            return self._element(bytes_, field, field.name, nullable=nullable)
        count = bytes_.varint() - 1
        if count < 0:
            return _null(field.name, nullable=nullable)
        if count > bytes_.remaining:
            rest = f"there are only {bytes_.remaining} bytes remaining."
            raise _runtime(f"Tried to allocate a collection of size {count}, but {rest}")
        limit = self._release.most_elements
        if limit is not None and count > limit:
            most = f"the maximum allowed size of {limit}."
            raise _runtime(f"Tried to read a collection of size {count}, which exceeds {most}")
        return [self._element(bytes_, field, f"{field.name} element", nullable=False) for _ in range(count)]

    def _element(self, bytes_: _Bytes, field: Field, name: str, *, nullable: bool) -> Any:
        match field.type:
            case "struct":
                return self._struct(bytes_, field)
            case "string":
                return _string(bytes_, name, nullable=nullable)
            case "bytes":
                size = bytes_.varint() - 1
                return _null(name, nullable=nullable) if size < 0 else bytes_.array(size)
            case "uuid":
                return uuid_text(bytes_.fixed(">8s") + bytes_.fixed(">8s"))
            case "bool":
                return bytes_.fixed(">b") != 0
            case _:
                return bytes_.fixed(">" + FIXED_FORMATS[field.type])

    def _struct(self, bytes_: _Bytes, field: Field) -> dict[str, Any]:
        if self._version > self._newest:
            name = _CLASSES[self._api_key, field.name]
            words = f"Can't read version {self._version} of {name}"
            raise _Thrown(f"org.apache.kafka.common.errors.UnsupportedVersionException: {words}")
        return self.fields(bytes_, field.fields)


def _string(bytes_: _Bytes, name: str, *, nullable: bool) -> str | None:
    size = bytes_.varint() - 1
    if size < 0:
        return _null(name, nullable=nullable)
    if size > MAX_STRING_BYTES:
        raise _runtime(f"string field {name} had invalid length {size}")
    return bytes_.array(size).decode("utf-8", "replace")


def _null(name: str, *, nullable: bool) -> None:
    if not nullable:
        raise _runtime(f"non-nullable field {name} was serialized as null")


def _runtime(words: str) -> _Thrown:
    return _Thrown(f"java.lang.RuntimeException: {words}")
