"""Routines of the program (program.py) that are straight: values, arrays of values, tagged fields.

Most records in a log are of types whose routines are straight; machine code is made of these (straight.py). A
routine with nested structs is left to the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraft_core.columnar.program import (
    DEFAULT_LIST,
    DEFAULT_NUMBER,
    JUMP,
    LAST_VALUE,
    LIST,
    NO_ENTRY,
    RECORD,
    RETURN,
    TAGS,
    WORDS,
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction, with its node as byte offset from the record's node: the same in every layout.

    operands: as in program.py, without positions in the program. fields: of TAGS, the instruction of each
    field by its tag, None where there is none.
    """

    opcode: int
    node: int
    operands: tuple[int, ...] = ()
    fields: tuple[Instruction | None, ...] = ()


Routine = tuple[Instruction, ...]


def straight_routine(words: Sequence[int], begin: int) -> Routine | None:
    """The instructions of the routine after its RECORD at `begin`; None if it is not straight."""
    assert words[begin] == RECORD
    try:
        return tuple(_instructions(words, begin + WORDS, words[begin + 1]))
    except _NotStraight:
        return None


class _NotStraight(Exception):
    """There is an instruction that straight code does not have."""


def _instructions(words: Sequence[int], at: int, record: int) -> Iterator[Instruction]:
    while words[at] != RETURN:
        opcode, node, _, first, second, third = words[at : at + WORDS]
        at += WORDS
        if opcode == TAGS:
            entries = words[second : second + first]
            yield Instruction(TAGS, 0, (), tuple(_tagged(words, entry, record) for entry in entries))
            at = third
        elif opcode == JUMP:
            at = first
        elif opcode == DEFAULT_NUMBER:
            yield Instruction(opcode, node - record, (first, second, third))
        elif opcode == DEFAULT_LIST:
            yield Instruction(opcode, node - record, (first,))
        else:
            yield _value(words, at - WORDS, record)


def _tagged(words: Sequence[int], entry: int, record: int) -> Instruction | None:
    if entry < 0:
        raise _NotStraight
    return None if entry == NO_ENTRY else _value(words, entry, record)


def _value(words: Sequence[int], at: int, record: int) -> Instruction:
    """An instruction for a value or an array of values."""
    opcode, node, space, nullable, element, element_opcode = words[at : at + WORDS]
    if space != 0:
        raise _NotStraight
    if opcode == LIST:
        return Instruction(LIST, node - record, (nullable, element - record, element_opcode))
    if opcode <= LAST_VALUE:
        # A secret has no node.
        return Instruction(opcode, node - record if node else 0, (nullable,))
    raise _NotStraight
