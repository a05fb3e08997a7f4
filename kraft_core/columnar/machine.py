"""The machine that runs a routine (program.py) over the bytes of a record's value.

Bytes that do not match the declarations are MALFORMED; the reference codec determines why.
"""

from __future__ import annotations

from kraft_core.columnar.columns import append_list, append_text, has_room, mark_present, set_bit
from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.kernel_abi import CODE, MALFORMED, NODES, PROGRAM, STACK, TYPES
from kraft_core.columnar.layout import ROW, VALIDITY
from kraft_core.columnar.memory import call_routine, get, load_u8, put, store_8, word
from kraft_core.columnar.program import (
    DEFAULT_LIST,
    DEFAULT_NUMBER,
    DEFAULT_TEXT,
    JUMP,
    LAST_VALUE,
    LIST,
    NEXT,
    NEXT_TAG,
    NO_CODE,
    NO_ENTRY,
    NULLABLE_STRUCT,
    PRESENT,
    RETURN,
    STRUCTS,
    TAGS,
    WORDS,
)
from kraft_core.columnar.tags import begin_tags, count_unknown_tag, read_tag, write_default_number
from kraft_core.columnar.values import begin_list, no_room, read_list, read_value

# A stack frame: elements or tagged fields remaining; of tagged fields also the last tag, the known tags met,
# and the end of the current one.
FRAME_BYTES = 32
_REMAINING, _LAST_TAG, _MET, _TAG_END = range(0, FRAME_BYTES, 8)


@inlined
def type_number(task: int, routine: int) -> int:
    """The number of the record type that a routine reads."""
    return word(get(task + PROGRAM) + 4 * routine + 12)


@inlined
def read_record(task: int, row: int, routine: int, at: int, end: int) -> int:
    """Reads a record's value from address `at` by the routine at a position in the program.

    Returns the address after the value, MALFORMED or NO_ROOM.
    """
    instruction = get(task + PROGRAM) + 4 * routine
    nodes = get(task + NODES)
    node = nodes + word(instruction + 4)
    bits = get(node + VALIDITY)
    if bits == 0:
        return no_room(task, node, 0)
    put(nodes + ROW, row)
    set_bit(bits, row)
    store_8(get(task + TYPES) + row, type_number(task, routine))
    number = word(instruction + 16)
    if number != NO_CODE:
        return call_routine(get(get(task + CODE) + 8 * number), task, node, row, at, end)
    return run(task, routine + WORDS, at, end)


@compiled
def run(task: int, pc: int, at: int, end: int) -> int:
    """Runs the program from pc on to RETURN; returns as read_record."""
    program = get(task + PROGRAM)
    nodes = get(task + NODES)
    frame = get(task + STACK)
    met = 0
    record_row = get(nodes + ROW)
    while at >= 0:
        instruction = program + 4 * pc
        pc += WORDS
        opcode = word(instruction)
        node = nodes + word(instruction + 4)
        space = word(instruction + 8)
        row = record_row if space == 0 else get(nodes + space + ROW)
        operand = word(instruction + 12)
        if opcode <= LAST_VALUE:
            at = read_value(opcode, operand, task, node, row, at, end)
        elif opcode == LIST:
            element = nodes + word(instruction + 16)
            at = read_list(word(instruction + 20), operand, task, node, element, row, at, end)
        elif opcode == STRUCTS:
            count, first, at = begin_list(operand, task, node, row, at, end)
            if count == 0:
                pc = word(instruction + 16)
            else:
                frame += FRAME_BYTES
                put(frame + _REMAINING, count)
                put(node + ROW, first)
        elif opcode == NEXT:
            remaining = get(frame + _REMAINING) - 1
            if remaining == 0:
                frame -= FRAME_BYTES
            else:
                put(frame + _REMAINING, remaining)
                put(node + ROW, get(node + ROW) + 1)
                pc = operand
        elif opcode == TAGS:
            count, at = begin_tags(at, end)
            if at < 0:
                return at
            if count == 0:
                met = 0
                pc = word(instruction + 20)
            else:
                frame += FRAME_BYTES
                _push_tags(frame, count, at)
        elif opcode == NEXT_TAG:
            pc, at, met = _read_tags(task, frame, instruction, pc - WORDS, row, at, end)
            if pc == word(instruction + 20):
                frame -= FRAME_BYTES
        elif opcode == JUMP:
            pc = operand
        elif opcode == PRESENT:
            mark_present(node, row)
        elif opcode == NULLABLE_STRUCT:
            if at >= end:
                return MALFORMED
            if load_u8(at) >= 0x80:
                pc = operand
            at += 1
        elif opcode == RETURN:
            return at
        elif met >> operand & 1 == 0:
            at = _write_default(opcode, task, node, row, instruction, at)
    return at


@inlined
def _push_tags(frame: int, count: int, at: int) -> None:
    put(frame + _REMAINING, count)
    put(frame + _LAST_TAG, -1)
    put(frame + _MET, 0)
    put(frame + _TAG_END, at)


@inlined
def _read_tags(
    task: int, frame: int, instruction: int, pc: int, row: int, at: int, end: int
) -> tuple[int, int, int]:
    """Reads tagged fields one after the other; returns the next position in the program, the address, and
    the tags met.

    The next position is after the tagged fields, or the program of a field that is neither a value nor an
    array of values; that program jumps back here.
    """
    program = get(task + PROGRAM)
    remaining = get(frame + _REMAINING)
    last_tag = get(frame + _LAST_TAG)
    met = get(frame + _MET)
    if at != get(frame + _TAG_END):
        return pc, MALFORMED, met
    while remaining != 0:
        tag, at, tag_end = read_tag(last_tag, at, end)
        if at < 0:
            return pc, at, met
        remaining -= 1
        last_tag = tag
        field = NO_ENTRY
        if tag < word(instruction + 12):
            field = word(program + 4 * (word(instruction + 16) + tag))
        if field == NO_ENTRY:
            count_unknown_tag(task)
            at = tag_end
            continue
        met |= 1 << tag
        if field < 0:
            put(frame + _REMAINING, remaining)
            put(frame + _LAST_TAG, last_tag)
            put(frame + _MET, met)
            put(frame + _TAG_END, tag_end)
            return -field, at, met
        at = _read_field(task, program + 4 * field, row, at, end)
        if at != tag_end:
            return pc, at if at < 0 else MALFORMED, met
    return word(instruction + 20), at, met


@inlined
def _read_field(task: int, instruction: int, row: int, at: int, end: int) -> int:
    """Executes one instruction: reads a value or an array of values."""
    nodes = get(task + NODES)
    node = nodes + word(instruction + 4)
    if word(instruction) == LIST:
        element = nodes + word(instruction + 16)
        return read_list(word(instruction + 20), word(instruction + 12), task, node, element, row, at, end)
    return read_value(word(instruction), word(instruction + 12), task, node, row, at, end)


@compiled
def _write_default(opcode: int, task: int, node: int, row: int, instruction: int, at: int) -> int:
    """Returns `at`, or NO_ROOM."""
    if opcode == DEFAULT_TEXT:
        size = word(instruction + 20)
        if not has_room(node, size):
            return no_room(task, node, size)
        append_text(node, row, get(task + PROGRAM) + 4 * word(instruction + 16), size)
        return at
    if opcode == DEFAULT_LIST:
        append_list(node, row, 0)
        return at
    if opcode == DEFAULT_NUMBER:
        write_default_number(word(instruction + 16), node, row, word(instruction + 20))
    else:
        mark_present(node, row)
    return at
