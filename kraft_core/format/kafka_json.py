"""The JSON that kafka-dump-log prints of a message, written straight from the message's bytes.

It reads what Kafka's generated classes read, which is more than the reference codec accepts: text that is not
UTF-8 (with U+FFFD), a known tagged field whatever its stated size, tags in any order, lengths that wrap. What
they refuse raises one of UNREADABLE. Source: Kafka's generated message classes and JsonConverters,
ByteUtils, ByteBufferAccessor.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from kraft_core.format.errors import DecodeError
from kraft_core.format.java_text import java_double, java_text, quoted
from kraft_core.format.message_reader import FIXED_FORMATS, MAX_STRING_BYTES
from kraft_core.format.secrets import NONE_ALLOWED, digest, is_secret_config, named_secret
from kraft_core.messages.schema import Field, Message
from kraft_core.messages.uuid_text import uuid_text

# Appends the JSON of what is at a position to the pieces; returns the position after it.
Writer = Callable[[bytes, int, list[str]], int]

# What a writer raises where Kafka's class would raise an exception.
UNREADABLE = (DecodeError, IndexError, struct.error)

_LONGEST_VARINT_BITS = 35


@cache
def json_writer(message: Message, version: int, hide: bool, allowed: frozenset[str] = NONE_ALLOWED) -> Writer:
    """The writer of a message at any version, which Kafka reads like the nearest one it knows.

    hide: secrets become null, as secrets.redact makes them; allowed: as there.
    """
    form = _Form(message, version, hide, allowed)
    return _struct_writer(message.fields, max(version, 0), message.flexible, form)


class _Form:
    """What the writers of a message share.

    secrets, allowed: which secrets are hidden, if any. config: the fields of a config's name and value, if
    there are any. name: of the config that is being written. knows_structs: beyond the last version it knows,
    Kafka refuses the structs within a message, but not the message.
    """

    def __init__(self, message: Message, version: int, hide: bool, allowed: frozenset[str]) -> None:
        self.secrets = hide
        self.allowed = allowed
        self.config = named_secret(message) if hide else None
        self.name = ""
        self.knows_structs = version in message.versions


def unsigned_varint(buf: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint as Java holds it: a signed int of the lowest 32 bits; at most five bytes."""
    value = 0
    for shift in range(0, _LONGEST_VARINT_BITS, 7):
        byte = buf[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return (value if value < 1 << 31 else value - (1 << 32)), at
    raise DecodeError(at, "varint of more than five bytes")


def _length(buf: bytes, at: int) -> tuple[int, int]:
    """A length stored as length + 1: negative for null. It wraps as Java's int does."""
    if buf[at] < 0x80:
        return buf[at] - 1, at + 1
    stored, at = unsigned_varint(buf, at)
    return (stored - 1 if stored > -(1 << 31) else (1 << 31) - 1), at


def _struct_writer(fields: tuple[Field, ...], version: int, flexible: bool, form: _Form) -> Writer:
    present = [field for field in fields if version in field.versions]
    steps = _steps(present, version, form)
    tags = _Tags(fields, version, form)
    plain = [step for step in steps if not isinstance(step, str)]
    begins_tagged = bool(present) and present[0].is_tagged(version)

    def write(buf: bytes, at: int, out: list[str]) -> int:
        start = len(out)
        out.append("{")
        held: dict[str, int] = {}
        for step in steps:
            if isinstance(step, str):
                held[step] = len(out)
                out.append("")
            else:
                at = step(buf, at, out)
        if flexible:
            if buf[at] == 0:
                at += 1
            else:
                at = tags.read(buf, at, out, held)
        if begins_tagged:
            first = next((index for index in range(start + 1, len(out)) if out[index]), None)
            if first is not None:
                out[first] = out[first].removeprefix(",")
        out.append("}")
        return at

    def write_plain(buf: bytes, at: int, out: list[str]) -> int:
        out.append("{")
        for step in plain:
            at = step(buf, at, out)
        out.append("}")
        if not flexible:
            return at
        return at + 1 if buf[at] == 0 else tags.read(buf, at, out, {})

    return write_plain if len(plain) == len(steps) else write


class _Tags:
    """The tagged fields of a struct: each text goes where the JSON has the field, unless it is a default."""

    def __init__(self, fields: tuple[Field, ...], version: int, form: _Form) -> None:
        declared = [field for field in fields if field.tag is not None]
        self.known = {
            field.tag: (field.name, _value_writer(field, version, form), _default_json(field, version))
            for field in declared
            if version in field.versions and field.is_tagged(version)
        }
        self.refused = {field.tag for field in declared} - set(self.known)

    def read(self, buf: bytes, at: int, out: list[str], held: dict[str, int]) -> int:
        count, at = unsigned_varint(buf, at)
        for _ in range(count):
            tag, at = unsigned_varint(buf, at)
            size, at = unsigned_varint(buf, at)
            if tag in self.refused:
                raise DecodeError(at, f"tag {tag} is not valid for this version")
            if tag in self.known:
                name, write, default = self.known[tag]
                pieces: list[str] = []
                at = write(buf, at, pieces)
                text = "".join(pieces)
                out[held[name]] = "" if text == default else f',"{name}":{text}'
            elif not 0 <= size <= len(buf) - at:
                raise DecodeError(at, f"tagged field of {size} bytes")
            else:
                at += size
        return at


def _default_json(field: Field, version: int) -> str:
    return _json_of(field, version, field.default_value(version))


def _json_of(field: Field, version: int, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        elements = cast(list[Any], value)
        return "[" + ",".join(_json_of(field, version, element) for element in elements) + "]"
    if field.type == "struct":
        inner = [f for f in field.fields if version in f.versions and not f.is_tagged(version)]
        return "{" + ",".join(f'"{f.name}":{_json_of(f, version, value[f.name])}' for f in inner) + "}"
    if field.type == "bytes":
        return f'"{b2a_base64(value, newline=False).decode()}"'
    if field.type in ("string", "uuid"):
        return quoted(value)
    if field.type == "bool":
        return "true" if value else "false"
    return java_double(value) if field.type == "float64" else str(value)


def _steps(present: list[Field], version: int, form: _Form) -> list[Writer | str]:
    """The writers of the fields on the wire and, in the JSON's order, the names of tagged ones."""
    steps: list[Writer | str] = []
    run: list[Field] = []

    def end_run() -> None:
        if run:
            steps.append(_fixed_writer(tuple(run), first=run[0] is present[0]))
            run.clear()

    for field in present:
        if field.is_tagged(version):
            end_run()
            steps.append(field.name)
        elif not field.array and (field.type in FIXED_FORMATS or field.type == "uuid") and not field.secret:
            run.append(field)
        else:
            end_run()
            prefix = f'{"" if field is present[0] else ","}"{field.name}":'
            steps.append(_named_writer(prefix, _value_writer(field, version, form)))
    end_run()
    return steps


def _named_writer(prefix: str, write_value: Writer) -> Writer:
    def write(buf: bytes, at: int, out: list[str]) -> int:
        out.append(prefix)
        return write_value(buf, at, out)

    return write


def _bool(byte: int) -> str:
    return "true" if byte else "false"


def _uuid(content: bytes) -> str:
    return f'"{uuid_text(content)}"'


def _fixed(field: Field) -> tuple[str, Callable[[Any], object] | None]:
    """The format of a value of fixed size, and what makes text of it; None for an integer."""
    if field.type == "uuid":
        return "16s", _uuid
    if field.type == "bool":
        return "b", _bool
    return FIXED_FORMATS[field.type], java_double if field.type == "float64" else None


def _fixed_writer(fields: tuple[Field, ...], first: bool) -> Writer:
    """Neighbouring fields of fixed size, read at once."""
    formats = [_fixed(field) for field in fields]
    layout = struct.Struct(">" + "".join(code for code, _ in formats))
    text = ",".join(f'"{field.name}":%s' for field in fields)
    template = text if first else "," + text
    converters = [(index, convert) for index, (_, convert) in enumerate(formats) if convert is not None]
    unpack, size = layout.unpack_from, layout.size

    def write(buf: bytes, at: int, out: list[str]) -> int:
        out.append(template % unpack(buf, at))
        return at + size

    def write_converted(buf: bytes, at: int, out: list[str]) -> int:
        values: list[Any] = list(unpack(buf, at))
        for index, convert in converters:
            values[index] = convert(values[index])
        out.append(template % tuple(values))
        return at + size

    return write_converted if converters else write


def _value_writer(field: Field, version: int, form: _Form) -> Writer:
    nullable = field.is_nullable(version)
    if field.array:
        return _array_writer(field, version, nullable, form)
    if field.type == "struct" and nullable:
        return _nullable_struct_writer(_inner_struct_writer(field, version, form))
    return _element_writer(field, version, nullable, form)


def _element_writer(field: Field, version: int, nullable: bool, form: _Form) -> Writer:
    if field.type == "struct":
        return _inner_struct_writer(field, version, form)
    if field.type == "string":
        return _string_writer(nullable, _shown_text(field, form))
    if field.type == "bytes":
        return _bytes_writer(nullable, field.secret and form.secrets)
    return _alone(_fixed(field))


def _inner_struct_writer(field: Field, version: int, form: _Form) -> Writer:
    return _struct_writer(field.fields, version, True, form) if form.knows_structs else _refuse


def _refuse(_buf: bytes, at: int, _out: list[str]) -> int:
    raise DecodeError(at, "a struct of an unknown version")


def _alone(form: tuple[str, Callable[[Any], object] | None]) -> Writer:
    code, convert = form
    layout = struct.Struct(">" + code)
    unpack, size = layout.unpack_from, layout.size

    def write(buf: bytes, at: int, out: list[str]) -> int:
        value = unpack(buf, at)[0]
        out.append(str(value if convert is None else convert(value)))
        return at + size

    return write


def _shown_text(field: Field, form: _Form) -> Callable[[str], str]:
    """How a string is shown: as it is, as its digest, or as null."""
    if form.secrets and field.secret:
        return (lambda text: quoted(digest(text))) if field.digested else (lambda _: "null")
    if form.config is not None and field is form.config[0]:

        def shown_name(text: str) -> str:
            form.name = text
            return quoted(text)

        return shown_name
    if form.config is not None and field is form.config[1]:
        return lambda text: "null" if is_secret_config(form.name, text, form.allowed) else quoted(text)
    return quoted


def _string_writer(nullable: bool, shown: Callable[[str], str]) -> Writer:
    def write(buf: bytes, at: int, out: list[str]) -> int:
        size, at = _length(buf, at)
        if size < 0:
            return _null(at, out, nullable)
        end = at + size
        if size > MAX_STRING_BYTES or end > len(buf):
            raise DecodeError(at, f"string of {size} bytes")
        out.append(shown(java_text(buf[at:end])))
        return end

    return write


def _bytes_writer(nullable: bool, secret: bool) -> Writer:
    def write(buf: bytes, at: int, out: list[str]) -> int:
        size, at = _length(buf, at)
        if size < 0:
            return _null(at, out, nullable)
        end = at + size
        if end > len(buf):
            raise DecodeError(at, f"bytes of {size} bytes")
        out.append("null" if secret else f'"{b2a_base64(buf[at:end], newline=False).decode()}"')
        return end

    return write


def _array_writer(field: Field, version: int, nullable: bool, form: _Form) -> Writer:
    numbers = field.type in FIXED_FORMATS and field.type not in ("bool", "float64")
    code = FIXED_FORMATS[field.type] if numbers else ""
    width = struct.calcsize(">" + code)
    write_element = _element_writer(field, version, False, form)

    def write(buf: bytes, at: int, out: list[str]) -> int:
        count, at = _length(buf, at)
        if count < 0:
            return _null(at, out, nullable)
        if count > len(buf) - at:
            raise DecodeError(at, f"array of {count} elements")
        if numbers:
            values = struct.unpack_from(f">{count}{code}", buf, at)
            out.append(f"[{','.join(map(str, values))}]")
            return at + count * width
        out.append("[")
        for index in range(count):
            if index:
                out.append(",")
            at = write_element(buf, at, out)
        out.append("]")
        return at

    return write


def _null(at: int, out: list[str], nullable: bool) -> int:
    if not nullable:
        raise DecodeError(at, "null where it is not allowed")
    out.append("null")
    return at


def _nullable_struct_writer(write_struct: Writer) -> Writer:
    def write(buf: bytes, at: int, out: list[str]) -> int:
        if buf[at] < 0x80:
            return write_struct(buf, at + 1, out)
        out.append("null")
        return at + 1

    return write
