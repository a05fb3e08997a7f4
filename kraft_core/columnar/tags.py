"""The tagged fields of a struct: how many there are, and the tag and size of each, in ascending order."""

from __future__ import annotations

from kraft_core.columnar.columns import mark_present
from kraft_core.columnar.compiled import inlined
from kraft_core.columnar.compiled_varint import read_unsigned_varint
from kraft_core.columnar.kernel_abi import MALFORMED, UNKNOWN_TAGS
from kraft_core.columnar.memory import get, put
from kraft_core.columnar.values import write_number


@inlined
def begin_tags(at: int, end: int) -> tuple[int, int]:
    """How many there are, and the address of the first, or MALFORMED."""
    count, at = read_unsigned_varint(at, end)
    return count, at if at <= end else MALFORMED


@inlined
def read_tag(last_tag: int, at: int, end: int) -> tuple[int, int, int]:
    """A tag, the address of its field, or MALFORMED, and the address after the field.

    last_tag: the tag before it, -1 for the first.
    """
    tag, at = read_unsigned_varint(at, end)
    size, at = read_unsigned_varint(at, end)
    if at > end or size > end - at or tag <= last_tag:
        return tag, MALFORMED, at
    return tag, at, at + size


@inlined
def count_unknown_tag(task: int) -> None:
    put(task + UNKNOWN_TAGS, get(task + UNKNOWN_TAGS) + 1)


@inlined
def write_default_number(opcode: int, node: int, row: int, value: int) -> None:
    write_number(opcode, node, row, value)
    mark_present(node, row)
