"""Writers of messages, compiled once per (message, version) from the declarations: message_reader's inverse.

A writer appends a value to a bytearray. Values that the message cannot hold raise EncodeError.
Tagged fields at their default are omitted, as in Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from kraft_core.format.errors import EncodeError
from kraft_core.format.message_reader import FIXED_FORMATS, MAX_STRING_BYTES, UNKNOWN_TAGGED_FIELDS
from kraft_core.format.varint import write_unsigned_varint
from kraft_core.messages.schema import Field, FieldType, Message
from kraft_core.messages.uuid_text import uuid_bytes

Writer = Callable[[bytearray, Any], None]
LengthWriter = Callable[[bytearray, int], None]


@cache
def message_writer(message: Message, version: int) -> Writer:
    """The writer of a message at a version; ValueError when the message has no such version."""
    if version not in message.versions:
        raise ValueError(f"{message.name} has no version {version}")
    return _struct_writer(message.fields, version, message.flexible)


def _struct_writer(fields: tuple[Field, ...], version: int, flexible: bool) -> Writer:
    present = [field for field in fields if version in field.versions]
    plain = [(f, _field_writer(f, version, flexible)) for f in present if not f.is_tagged(version)]
    tagged = [(f, _field_writer(f, version, flexible)) for f in present if f.is_tagged(version)]
    names = {field.name for field in present} | ({UNKNOWN_TAGGED_FIELDS} if flexible else set[str]())

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise EncodeError(f"a struct is needed, not {value!r}")
        held = cast(Mapping[str, Any], value)
        if not held.keys() <= names:
            raise EncodeError(f"no such field in version {version}: {sorted(held.keys() - names)}")
        for field, write_field in plain:
            field_value = held[field.name] if field.name in held else field.default_value(version)
            _write_named(out, field, write_field, field_value)
        if flexible:
            _write_tagged(out, held, version, tagged)

    return write


def _write_named(out: bytearray, field: Field, write_field: Writer, value: Any) -> None:
    try:
        write_field(out, value)
    except EncodeError as error:
        raise error.within(field.name) from None


def _write_tagged(
    out: bytearray, held: Mapping[str, Any], version: int, tagged: list[tuple[Field, Writer]]
) -> None:
    """The section of tagged fields: known ones that differ from their default, and unknown ones, by tag."""
    section: dict[int, bytes] = {}
    for field, write_field in tagged:
        default = field.default_value(version)
        value = held.get(field.name, default)
        if field.tag is not None and value != default:
            body = bytearray()
            _write_named(body, field, write_field, value)
            section[field.tag] = bytes(body)
    own_tags = {field.tag for field, _ in tagged}
    for tag, body in held.get(UNKNOWN_TAGGED_FIELDS, ()):
        if tag in own_tags or tag in section:
            raise EncodeError(f"tag {tag} is taken", UNKNOWN_TAGGED_FIELDS)
        section[tag] = body
    write_unsigned_varint(out, len(section))
    for tag, body in sorted(section.items()):
        write_unsigned_varint(out, tag)
        write_unsigned_varint(out, len(body))
        out += body


def _field_writer(field: Field, version: int, flexible: bool) -> Writer:
    write_one = _element_writer(field, version, flexible)
    if field.array:
        write_one = _array_writer(write_one, _write_length if flexible else _write_int_length)
    elif field.type == "struct" and field.is_nullable(version):
        write_one = _marked(write_one)
    null = _null(field, flexible)
    return _null_writer(write_one, null if field.is_nullable(version) else None)


def _null_writer(write_one: Writer, null: bytes | None) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if value is not None:
            write_one(out, value)
        elif null is None:
            raise EncodeError("null is not allowed")
        else:
            out += null

    return write


def _null(field: Field, flexible: bool) -> bytes:
    if field.type == "struct" and not field.array:
        return b"\xff"
    if flexible:
        return b"\0"
    return b"\xff" * (2 if field.type == "string" and not field.array else 4)


def _write_length(out: bytearray, size: int) -> None:
    write_unsigned_varint(out, size + 1)


def _write_short_length(out: bytearray, size: int) -> None:
    out += size.to_bytes(2, "big")


def _write_int_length(out: bytearray, size: int) -> None:
    out += size.to_bytes(4, "big")


def _marked(write_struct: Writer) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        out.append(1)
        write_struct(out, value)

    return write


def _element_writer(field: Field, version: int, flexible: bool) -> Writer:
    if field.type == "struct":
        return _struct_writer(field.fields, version, flexible)
    if field.type == "string":
        return _string_writer(_write_length if flexible else _write_short_length)
    if field.type == "bytes":
        return _bytes_writer(_write_length if flexible else _write_int_length)
    if field.type == "uuid":
        return _write_uuid
    if field.type == "bool":
        return _write_bool
    return _fixed_writer(field.type)


def _fixed_writer(type_: FieldType) -> Writer:
    pack = struct.Struct(">" + FIXED_FORMATS[type_]).pack

    def write(out: bytearray, value: Any) -> None:
        try:
            out += pack(value)
        except (struct.error, OverflowError):
            raise EncodeError(f"{value!r} is no {type_}") from None

    return write


def _write_bool(out: bytearray, value: Any) -> None:
    # struct would accept the truth value of any object.
    if not isinstance(value, bool):
        raise EncodeError(f"{value!r} is not a bool")
    out.append(value)


def _write_uuid(out: bytearray, value: Any) -> None:
    try:
        out += uuid_bytes(value)
    except (ValueError, TypeError):
        raise EncodeError(f"{value!r} is not a uuid") from None


def _string_writer(write_length: LengthWriter) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        try:
            encoded = value.encode()
        except (UnicodeEncodeError, AttributeError):
            raise EncodeError(f"{value!r} is not text") from None
        if len(encoded) > MAX_STRING_BYTES:
            raise EncodeError(f"string of {len(encoded)} bytes, at most {MAX_STRING_BYTES} allowed")
        write_length(out, len(encoded))
        out += encoded

    return write


def _bytes_writer(write_length: LengthWriter) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, bytes):
            raise EncodeError(f"{value!r} is not bytes")
        write_length(out, len(value))
        out += value

    return write


def _array_writer(write_element: Writer, write_length: LengthWriter) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, list | tuple):
            raise EncodeError(f"a list is needed, not {value!r}")
        elements = cast(Sequence[Any], value)
        write_length(out, len(elements))
        for element in elements:
            write_element(out, element)

    return write
