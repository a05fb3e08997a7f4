"""The lines of all messages: which there are, how long they can be, and where their machine code is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numba.extending
from llvmlite import ir as llvm_ir
from numba import types as numba_types

from kraft_core.columnar.line_writer import LINE_TYPE, NUMBERS, write_line
from kraft_core.columnar.lines_abi import API_KEYS, VERSIONS
from kraft_core.format.secrets import has_secrets
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.schema import Field, Message

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)
intrinsic = cast(Any, numba.extending).intrinsic

_INT64 = ir.IntType(64)
# The most characters of a single value whose size on the wire is fixed.
_MOST_CHARACTERS = 26
# Of each byte of a text or of a list of numbers: an escaped character.
_MOST_PER_BYTE = 6
_INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")


@dataclass(frozen=True, slots=True)
class TextLine:
    """The text of a message at a version. hide: secrets become null."""

    message: Message
    version: int
    hide: bool


def most_text(fields: Sequence[Field], version: int) -> tuple[int, int]:
    """How long the JSON of these fields can be: so many bytes, and so many more for each byte on the wire."""
    constant, per_byte = len("{}"), 0
    for field in fields:
        if version not in field.versions:
            continue
        constant += len(f',"{field.name}":') + _MOST_CHARACTERS
        if field.type == "struct":
            inner, inner_per_byte = most_text(field.fields, version)
            each = inner + len(",")
            per_byte = max(per_byte, -(-each // _least_bytes(field.fields, version)) + inner_per_byte)
        elif field.array or field.type in ("string", "bytes"):
            per_byte = max(per_byte, _MOST_PER_BYTE)
    return constant, per_byte


def _least_bytes(fields: Sequence[Field], version: int) -> int:
    """Of a struct on the wire, with the number of its tagged fields."""
    plain = [field for field in fields if version in field.versions and not field.is_tagged(version)]
    return 1 + sum(1 if field.array else NUMBERS.get(field.type, (0, 1))[1] for field in plain)


def _lines() -> list[TextLine]:
    """The lines of every current message."""
    return [
        TextLine(message, version, hide)
        for hide in (True, False)
        for message in METADATA_RECORDS
        if message.layout is None
        for version in message.versions
    ]


LINES = _lines()


def _most_text() -> tuple[int, int]:
    constants, per_byte = zip(*(most_text(line.message.fields, line.version) for line in LINES), strict=True)
    longest_head = max(len(line.message.type_name) for line in LINES) + 40
    return max(constants) + longest_head, max(per_byte)


# How long the text of a value can be: so many bytes, and so many more for each byte of the value.
CONSTANT_BYTES, TEXT_PER_BYTE = _most_text()


def write_line_addresses(context: Any, builder: Any, addresses: Any) -> None:
    """Code that writes the address of each line, int64, by hide, api key and version, to a table of zeros."""
    addresses = builder.inttoptr(addresses, _INT64.as_pointer())
    written: dict[TextLine, Any] = {}
    for line in filter(is_supported, LINES):
        # One for both cases, unless there are secrets.
        key = replace(line, hide=line.hide and has_secrets(line.message))
        if key not in written:
            written[key] = _function(context, builder.module, key)
        place = (int(line.hide) * API_KEYS + (line.message.api_key or 0)) * VERSIONS + line.version
        builder.store(builder.ptrtoint(written[key], _INT64), builder.gep(addresses, [_INT64(place)]))


def _function(context: Any, module: Any, line: TextLine) -> Any:
    name = f"kraftlake_line_{line.message.api_key}_{line.version}_{int(line.hide)}"
    function = ir.Function(module, LINE_TYPE, name)
    function.linkage = "internal"
    write_line(context, function, line.message, line.version, line.hide)
    return function


def is_supported(line: TextLine) -> bool:
    """Whether there are parts for all fields of the line."""
    return _are_supported(line.message.fields, line)


def _are_supported(fields: Sequence[Field], line: TextLine) -> bool:
    present = [field for field in fields if line.version in field.versions]
    return all(_is_supported(field, line) and _are_supported(field.fields, line) for field in present)


def _is_supported(field: Field, line: TextLine) -> bool:
    nullable = field.is_nullable(line.version)
    if field.secret and line.hide:
        return field.type == "bytes" and not field.array and not field.digested
    if field.is_tagged(line.version) and not (field.array or field.type in ("string", *_INTEGERS)):
        return False
    if field.array:
        return field.type in ("int32", "uuid") or (field.type in ("struct", "string") and not nullable)
    return field.type != "bytes" and not (field.type == "struct" and nullable)


@intrinsic
def call_line(_typing: Any, _code: Any, _task: Any, _at: Any, _end: Any, _out: Any) -> Any:
    """Calls the machine code of a line, which is at the address `code`; as write_line_addresses says."""
    signature = types.UniTuple(types.int64, 2)(*[types.int64] * 5)

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        code, *rest = arguments
        return builder.call(builder.inttoptr(code, LINE_TYPE.as_pointer()), rest)

    return signature, codegen
