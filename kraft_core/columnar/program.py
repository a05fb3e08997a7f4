"""Message declarations compiled to the kernel's program: int32 words, a row per instruction.

Each version of each metadata record type, and each control record, is a routine that begins with RECORD and
ends with RETURN. The kernel knows instructions, never messages.

An instruction has WORDS words: the opcode, the node it writes to, the space whose current row it writes at
(both as byte offsets into the kernel's table of nodes, see layout.py), then three operands. Positions in the
program count words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraft_core.columnar.layout import NODE_BYTES, Layout, Node
from kraft_core.messages.schema import Field, FieldType, Message

WORDS = 6

# One value of a field. Those from STRING on take the operand: whether null is allowed.
INT32, INT64, INT16, INT8, BOOL, UINT16, UINT32, UUID, STRING, BYTES = range(10)
GUARDED = 10  # a string: its address is noted, its bytes are not copied
SECRET_STRING = 11  # skipped, and the record marked as redacted
SECRET_BYTES = 12
LAST_VALUE = SECRET_BYTES
# An array of single values. Operands: whether null is allowed, the element's node, its instruction.
LIST = 13
# An array of structs: its program follows, up to NEXT. Operands: whether null is allowed, the position after
# it.
STRUCTS = 14
NEXT = 15  # operand: the position of the element's program
NULLABLE_STRUCT = 16  # operand: the position after a null
PRESENT = 17  # marks a struct as not null
# Operands: the number of the record's type, and of the machine code for the routine (straight.py) or NO_CODE.
RECORD = 18
# The tagged fields of a struct. Operands: size and position of a table of each field's program by tag, and
# the position after the tagged fields. NEXT_TAG follows. A field that is neither a value nor an array of
# values is a negative position in the table; its program jumps to NEXT_TAG.
TAGS = 19
NEXT_TAG = 20  # operands as TAGS
JUMP = 21  # operand: position
# The default of a tagged field that is absent. First operand: its tag.
DEFAULT_NUMBER = 22  # then the value's instruction, the value (32 bits, sign extended)
DEFAULT_TEXT = 23  # then the text's position in the program, its size in bytes
DEFAULT_LIST = 24  # empty
DEFAULT_STRUCT = 25
RETURN = 26

NO_ENTRY = 0
NO_CODE = 0

# By type, the instruction that reads a value.
VALUES: dict[FieldType, int] = {
    "int32": INT32,
    "int64": INT64,
    "int16": INT16,
    "int8": INT8,
    "bool": BOOL,
    "uint16": UINT16,
    "uint32": UINT32,
    "float64": INT64,  # the same eight bytes
    "uuid": UUID,
    "string": STRING,
    "bytes": BYTES,
}
# By instruction, the size on the wire where it is fixed.
FIXED_BYTES = {BOOL: 1, INT8: 1, INT16: 2, UINT16: 2, INT32: 4, UINT32: 4, INT64: 8, UUID: 16}
# The tags that were met are the bits of an int64. Kafka numbers tags from 0 without gaps.
MOST_TAGS = 63


@dataclass(frozen=True, slots=True)
class Program:
    """words: the instructions. metadata[api key, version], control[type, version]: where a routine begins,
    NO_ENTRY where there is none. types: the name of each record type, by the number in RECORD. code: the
    addresses of machine code for straight routines (straight.py), by its number.
    """

    words: NDArray[np.int32]
    metadata: NDArray[np.int32]
    control: NDArray[np.int32]
    types: tuple[str, ...]
    code: NDArray[np.int64]


def compile_program(
    layout: Layout, metadata: Mapping[int, Message], control: Mapping[int, Message]
) -> Program:
    """The program that reads records into the layout's nodes: metadata by api key, control by type."""
    words: list[int] = [RETURN] * WORDS  # so that no routine begins at NO_ENTRY
    numbers = {message: number for number, message in enumerate(layout.columns)}
    metadata_table = _compile_table(metadata, layout, numbers, words)
    control_table = _compile_table(control, layout, numbers, words)
    types = tuple(message.type_name for message in numbers)
    code = np.zeros(NO_CODE + 1, dtype=np.int64)
    return Program(np.array(words, dtype=np.int32), metadata_table, control_table, types, code)


def _compile_table(
    by_id: Mapping[int, Message], layout: Layout, numbers: Mapping[Message, int], words: list[int]
) -> NDArray[np.int32]:
    highest = max((version for message in by_id.values() for version in message.versions), default=0)
    table = np.full((max(by_id, default=0) + 1, highest + 1), NO_ENTRY, dtype=np.int32)
    for identity, message in by_id.items():
        column = layout.columns[message]
        # Digests are left to the reference codec, with the batch.
        if any(field.digested and field.column not in column.children for field in message.fields):
            continue
        for version in message.versions:
            table[identity, version] = len(words)
            _Compiler(words, version, message.flexible).record(column, message.fields, numbers[message])
    return table


class _Compiler:
    """Appends the routine of one message at one version to the program."""

    def __init__(self, words: list[int], version: int, flexible: bool) -> None:
        self._words = words
        self._version = version
        self._flexible = flexible

    def record(self, column: Node, fields: tuple[Field, ...], number: int) -> None:
        self._emit(RECORD, column, number)
        self._struct(column, fields)
        self._emit(RETURN)

    def _struct(self, node: Node, fields: tuple[Field, ...]) -> None:
        present = [field for field in fields if self._version in field.versions]
        for field in present:
            if not field.is_tagged(self._version):
                self._field(node, field)
        if self._flexible:
            self._tagged(node, [field for field in present if field.is_tagged(self._version)])

    def _field(self, parent: Node, field: Field) -> None:
        node = parent.children.get(field.column)
        nullable = int(field.is_nullable(self._version))
        if node is None:
            self._secret(field, nullable)
        elif field.array:
            self._array(node, field, nullable)
        elif field.type == "struct":
            self._nested(node, field, nullable)
        else:
            self._emit(GUARDED if node.kind == "guarded" else VALUES[field.type], node, nullable)

    def _secret(self, field: Field, nullable: int) -> None:
        if field.array or field.type not in ("string", "bytes"):
            raise ValueError(f"no instruction for the secret {field.name}: {field.type}")
        self._emit(SECRET_STRING if field.type == "string" else SECRET_BYTES, None, nullable)

    def _array(self, node: Node, field: Field, nullable: int) -> None:
        element = node.children["item"]
        if field.type != "struct":
            self._emit(LIST, node, nullable, element.index * NODE_BYTES, VALUES[field.type])
            return
        begin = self._emit(STRUCTS, node, nullable)
        self._struct(element, field.fields)
        self._emit(NEXT, node, begin + WORDS)
        self._set(begin, 4, len(self._words))

    def _nested(self, node: Node, field: Field, nullable: int) -> None:
        begin = self._emit(NULLABLE_STRUCT, node) if nullable else None
        if node.nullable:
            self._emit(PRESENT, node)
        self._struct(node, field.fields)
        if begin is not None:
            self._set(begin, 3, len(self._words))

    def _tagged(self, node: Node, fields: list[Field]) -> None:
        by_tag = {field.tag or 0: field for field in fields}
        size = max(by_tag, default=-1) + 1
        if size > MOST_TAGS:
            raise ValueError(f"tag {size - 1} is beyond {MOST_TAGS - 1}")
        tags = self._emit(TAGS, node, size)
        next_tag = self._emit(NEXT_TAG, node, size)
        table = [NO_ENTRY] * size
        for tag, field in by_tag.items():
            begin = len(self._words)
            self._field(node, field)
            table[tag] = begin
            if len(self._words) > begin + WORDS:
                table[tag] = -begin
                self._emit(JUMP, None, next_tag)
        table_at = self._append(np.array(table, dtype=np.int32))
        for instruction in (tags, next_tag):
            self._set(instruction, 4, table_at)
            self._set(instruction, 5, len(self._words))
        for tag, field in by_tag.items():
            self._default(node, field, tag)

    def _default(self, parent: Node, field: Field, tag: int) -> None:
        """Writes the default of a field whose tag is absent; a null default needs no instruction."""
        value = field.default_value(self._version)
        node = parent.children.get(field.column)
        if value is None:
            return
        if node is None or (field.array and value != []):
            raise ValueError(f"no instruction for the default of {field.name}: {value!r}")
        if field.array:
            self._emit(DEFAULT_LIST, node, tag)
        elif field.type == "struct":
            if node.nullable:
                self._emit(DEFAULT_STRUCT, node, tag)
            for inner in field.fields:
                if self._version in inner.versions:
                    self._default(node, inner, tag)
        elif field.type in ("string", "bytes", "uuid"):
            self._default_text(node, value, tag)
        else:
            self._default_number(node, field, int(value), tag)

    def _default_number(self, node: Node, field: Field, value: int, tag: int) -> None:
        if not -(1 << 31) <= value < 1 << 31 or (field.type == "float64" and value != 0):
            raise ValueError(f"no instruction for the default of {field.name}: {value}")
        self._emit(DEFAULT_NUMBER, node, tag, VALUES[field.type], value)

    def _default_text(self, node: Node, value: str | bytes, tag: int) -> None:
        text = value.encode() if isinstance(value, str) else value
        jump = self._emit(JUMP)
        text_at = self._append(np.frombuffer(text.ljust(-(-len(text) // 4) * 4, b"\0"), dtype=np.int32))
        self._set(jump, 3, len(self._words))
        self._emit(DEFAULT_TEXT, node, tag, text_at, len(text))

    def _append(self, data: NDArray[np.int32]) -> int:
        """Appends data; returns its position."""
        position = len(self._words)
        self._words.extend(data.tolist())
        return position

    def _emit(self, opcode: int, node: Node | None = None, *operands: int) -> int:
        """Appends an instruction; returns its position."""
        position = len(self._words)
        where = (0, 0) if node is None else (node.index * NODE_BYTES, node.space * NODE_BYTES)
        self._words.extend((opcode, *where, *operands, *[0] * (WORDS - 3 - len(operands))))
        return position

    def _set(self, position: int, word: int, operand: int) -> None:
        self._words[position + word] = operand
