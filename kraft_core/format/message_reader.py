"""Readers of messages, compiled once per (message, version) from the declarations.

A reader takes the whole buffer and a position and returns (value, position after); it raises DecodeError and
nothing else, whatever the bytes. Encoding: Kafka's protocol guide and KIP-482 (flexible versions). Stricter
than Kafka where bytes would get lost: text must be UTF-8, a tagged field must fill its declared size, tags
must ascend.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from kraft_core.format.errors import DecodeError
from kraft_core.format.varint import read_unsigned_varint
from kraft_core.messages.schema import Field, FieldType, Message
from kraft_core.messages.uuid_text import uuid_text

Reader = Callable[[bytes, int], tuple[Any, int]]
# (buf, position, what, nullable) to (length or -1 for null, position after).
LengthReader = Callable[[bytes, int, str, bool], tuple[int, int]]

UNKNOWN_TAGGED_FIELDS = "unknownTaggedFields"
MAX_STRING_BYTES = 0x7FFF
_FEW = 8

FIXED_FORMATS: dict[FieldType, str] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}


def has_unknown_fields(value: Any) -> bool:
    """Whether a value, or a struct in it, has tagged fields that are not declared: a newer Kafka wrote it."""
    # A loop without calls, but for structs: every record that is replayed comes here.
    if value.__class__ is dict:
        held = cast(dict[str, Any], value)
        if UNKNOWN_TAGGED_FIELDS in held:
            return True
        elements = held.values()
    elif value.__class__ is list:
        elements = cast(list[Any], value)
    else:
        return False
    for each in elements:
        of_structs = each.__class__ is list and each and each[0].__class__ is dict
        if (of_structs or each.__class__ is dict) and has_unknown_fields(each):
            return True
    return False


@cache
def message_reader(message: Message, version: int) -> Reader:
    """The reader of a message at a version; ValueError when the message has no such version."""
    if version not in message.versions:
        raise ValueError(f"{message.name} has no version {version}")
    return _struct_reader(message.fields, version, message.flexible)


def _struct_reader(fields: tuple[Field, ...], version: int, flexible: bool) -> Reader:
    present = [field for field in fields if version in field.versions]
    plain_fields = [field for field in present if not field.is_tagged(version)]
    plain = [(field.name, _field_reader(field, version, flexible)) for field in plain_fields]
    tagged_fields = [field for field in present if field.is_tagged(version)]
    tagged = {field.tag: (field.name, _field_reader(field, version, flexible)) for field in tagged_fields}
    # Keys in the order of the definition, tagged fields at their default until met on the wire.
    template: dict[str, Any] = {field.name: None for field in present}
    template.update((field.name, field.default_value(version)) for field in tagged_fields)
    own_lists = [name for name, value in template.items() if isinstance(value, list)]

    def read(buf: bytes, position: int) -> tuple[dict[str, Any], int]:
        value = template.copy()
        name = ""
        try:
            for name, read_field in plain:
                value[name], position = read_field(buf, position)
        except DecodeError as error:
            raise error.within(name) from None
        if not flexible:
            return value, position
        for name in own_lists:
            value[name] = []
        if buf[position : position + 1] == b"\0":
            return value, position + 1
        return value, _read_tagged(buf, position, tagged, value)

    return read


def _read_tagged(
    buf: bytes, position: int, tagged: dict[int | None, tuple[str, Reader]], value: dict[str, Any]
) -> int:
    """Reads a section of tagged fields into the struct's value; returns the position after it."""
    size_of_buf = len(buf)
    count, position = read_unsigned_varint(buf, position)
    unknown: list[tuple[int, bytes]] = []
    last_tag = -1
    for _ in range(count):
        start = position
        # Most tags and sizes take a byte each: such are read without a call.
        if position < size_of_buf and buf[position] < 0x80:
            tag, position = buf[position], position + 1
        else:
            tag, position = read_unsigned_varint(buf, position)
        if tag <= last_tag:
            raise DecodeError(start, f"tag {tag} after tag {last_tag}")
        last_tag = tag
        if position < size_of_buf and buf[position] < 0x80:
            size, position = buf[position], position + 1
        else:
            size, position = read_unsigned_varint(buf, position)
        end = position + size
        if end > size_of_buf:
            raise DecodeError(position, f"tagged field of {size} bytes, {size_of_buf - position} remain")
        known = tagged.get(tag)
        if known is None:
            unknown.append((tag, buf[position:end]))
        else:
            name, read_field = known
            try:
                value[name], after = read_field(buf, position)
            except DecodeError as error:
                raise error.within(name) from None
            if after != end:
                raise DecodeError(position, f"tagged field of {size} bytes holds {after - position}", name)
        position = end
    if unknown:
        value[UNKNOWN_TAGGED_FIELDS] = unknown
    return position


def _field_reader(field: Field, version: int, flexible: bool) -> Reader:
    nullable = field.is_nullable(version)
    if field.array:
        return _array_reader(field, version, nullable, flexible)
    if field.type == "struct" and nullable:
        return _nullable_struct_reader(_struct_reader(field.fields, version, flexible))
    return _element_reader(field, version, nullable, flexible)


def _element_reader(field: Field, version: int, nullable: bool, flexible: bool) -> Reader:
    if field.type == "struct":
        return _struct_reader(field.fields, version, flexible)
    if field.type == "string":
        return _string_reader(nullable, _read_length if flexible else _read_short_length)
    if field.type == "bytes":
        return _bytes_reader(nullable, _read_length if flexible else _read_int_length)
    if field.type == "uuid":
        return _read_uuid
    return _fixed_reader(field.type)


def _fixed_reader(type_: FieldType) -> Reader:
    layout = struct.Struct(">" + FIXED_FORMATS[type_])
    unpack, size = layout.unpack_from, layout.size

    def read(buf: bytes, position: int) -> tuple[Any, int]:
        try:
            return unpack(buf, position)[0], position + size
        except struct.error:
            raise _too_short(buf, position, type_, size) from None

    return read


def _read_uuid(buf: bytes, position: int) -> tuple[str, int]:
    end = position + 16
    if end > len(buf):
        raise _too_short(buf, position, "uuid", 16)
    return uuid_text(buf[position:end]), end


def _read_length(buf: bytes, position: int, what: str, nullable: bool) -> tuple[int, int]:
    """A length, written as length + 1 with 0 for null; returns -1 for null, where it is allowed."""
    if position < len(buf) and 0 < buf[position] < 0x80:
        return buf[position] - 1, position + 1
    encoded, after = read_unsigned_varint(buf, position)
    if encoded == 0 and not nullable:
        raise DecodeError(position, f"{what} is null")
    return encoded - 1, after


def _read_short_length(buf: bytes, position: int, what: str, nullable: bool) -> tuple[int, int]:
    return _read_old_length(buf, position, what, nullable, 2)


def _read_int_length(buf: bytes, position: int, what: str, nullable: bool) -> tuple[int, int]:
    return _read_old_length(buf, position, what, nullable, 4)


def _read_old_length(buf: bytes, position: int, what: str, nullable: bool, width: int) -> tuple[int, int]:
    """A length of the encoding before flexible versions: a signed number, -1 for null."""
    after = position + width
    if after > len(buf):
        raise _too_short(buf, position, f"length of {what}", width)
    size = int.from_bytes(buf[position:after], "big", signed=True)
    if size < (-1 if nullable else 0):
        raise DecodeError(position, f"{what} of {size} bytes")
    return size, after


def _string_reader(nullable: bool, read_length: LengthReader) -> Reader:
    def read(buf: bytes, position: int) -> tuple[str | None, int]:
        size, start = read_length(buf, position, "string", nullable)
        if size < 0:
            return None, start
        end = start + size
        if end > len(buf):
            raise _too_short(buf, start, "string", size)
        if size > MAX_STRING_BYTES:
            raise DecodeError(position, f"string of {size} bytes, at most {MAX_STRING_BYTES} allowed")
        try:
            return buf[start:end].decode(), end
        except UnicodeDecodeError as error:
            raise DecodeError(start + error.start, "string is not UTF-8") from None

    return read


def _bytes_reader(nullable: bool, read_length: LengthReader) -> Reader:
    def read(buf: bytes, position: int) -> tuple[bytes | None, int]:
        size, start = read_length(buf, position, "bytes", nullable)
        if size < 0:
            return None, start
        end = start + size
        if end > len(buf):
            raise _too_short(buf, start, "bytes", size)
        return buf[start:end], end

    return read


def _array_reader(field: Field, version: int, nullable: bool, flexible: bool) -> Reader:
    read_length = _read_length if flexible else _read_int_length
    if field.type in FIXED_FORMATS:
        return _fixed_array_reader(field.type, nullable, read_length)
    read_element = _element_reader(field, version, nullable=False, flexible=flexible)

    def read(buf: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, start = read_length(buf, position, "array", nullable)
        if count < 0:
            return None, start
        # Every element takes at least one byte: a larger count is damage, not a reason to loop.
        if count > len(buf) - start:
            raise DecodeError(position, f"array of {count} elements, {len(buf) - start} bytes remain")
        elements: list[Any] = []
        position = start
        for _ in range(count):
            element, position = read_element(buf, position)
            elements.append(element)
        return elements, position

    return read


def _fixed_array_reader(type_: FieldType, nullable: bool, read_length: LengthReader) -> Reader:
    code = FIXED_FORMATS[type_]
    size = struct.Struct(">" + code).size
    # Most arrays are as short as a set of replicas.
    unpackers = [struct.Struct(f">{count}{code}").unpack_from for count in range(_FEW)]

    def read(buf: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, start = read_length(buf, position, "array", nullable)
        if count < 0:
            return None, start
        end = start + count * size
        if end > len(buf):
            raise DecodeError(position, f"array of {count} {type_}, {len(buf) - start} bytes remain")
        if count < _FEW:
            return [*unpackers[count](buf, start)], end
        return list(struct.unpack_from(f">{count}{code}", buf, start)), end

    return read


def _nullable_struct_reader(read_struct: Reader) -> Reader:
    def read(buf: bytes, position: int) -> tuple[dict[str, Any] | None, int]:
        if position >= len(buf):
            raise _too_short(buf, position, "struct", 1)
        # The marker is a signed byte: negative for null.
        return (None, position + 1) if buf[position] >= 0x80 else read_struct(buf, position + 1)

    return read


def _too_short(buf: bytes, position: int, what: str, size: int) -> DecodeError:
    return DecodeError(position, f"{what} of {size} bytes, {max(0, len(buf) - position)} remain")
