"""The tagged fields of a struct: how many there are, and the tag and size of each, in ascending order."""

from __future__ import annotations

from kraft_core.columnar.columns import mark_present
from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.compiled_varint import read_unsigned_varint
from kraft_core.columnar.kernel_abi import MALFORMED, NODES, UNKNOWN_TAGGED_FIELDS
from kraft_core.columnar.layout import ROW
from kraft_core.columnar.memory import get, load_u16, store_32, word
from kraft_core.columnar.program import MOST_TAGS
from kraft_core.columnar.values import write_number

NO_TAG = MOST_TAGS


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
    if at + 2 <= end:
        both = load_u16(at)
        if both & 0x8080 == 0:
            return _checked_tag(both >> 8, both & 0xFF, last_tag, at + 2, end)
    return _read_long_tag(last_tag, at, end)


@compiled
def _read_long_tag(last_tag: int, at: int, end: int) -> tuple[int, int, int]:
    """As read_tag, with a tag or a size of more than one byte."""
    tag, at = read_unsigned_varint(at, end)
    size, at = read_unsigned_varint(at, end)
    return _checked_tag(tag, size, last_tag, at, end)


@inlined
def _checked_tag(tag: int, size: int, last_tag: int, at: int, end: int) -> tuple[int, int, int]:
    if at > end or size > end - at or tag <= last_tag:
        return tag, MALFORMED, at
    return tag, at, at + size


@inlined
def next_tag(known: int, task: int, left: int, last_tag: int, at: int, end: int) -> tuple[int, int, int, int]:
    """Of `left` tagged fields from `at` on the first whose tag is a bit of `known`; counts those before it.

    How many are left behind it, its tag (NO_TAG: there is none), the address of its field, or MALFORMED, and
    the address after the field.
    """
    after = at
    while left != 0:
        left -= 1
        last_tag, at, after = read_tag(last_tag, at, end)
        if at < 0 or (last_tag < MOST_TAGS and known >> last_tag & 1 != 0):
            return left, last_tag, at, after
        count_unknown_tag(task)
        at = after
    return 0, NO_TAG, at, after


@inlined
def count_unknown_tag(task: int) -> None:
    count = get(task + UNKNOWN_TAGGED_FIELDS) + 4 * get(get(task + NODES) + ROW)
    store_32(count, word(count) + 1)


@inlined
def write_default_number(opcode: int, node: int, row: int, value: int) -> None:
    write_number(opcode, node, row, value)
    mark_present(node, row)
