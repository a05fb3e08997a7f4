"""Machine code for straight routines (routines.py): what the machine does for each instruction, in a row.

Nothing is left to be looked up while a record is read: instructions, nodes, tags and defaults are constants,
and the parts of values.py are compiled for them. One LLVM function for each routine of the declared messages;
they are built without Numba's compiler, which would take a second for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import Any, cast

import numba.extending
import numpy as np
from llvmlite import ir as llvm_ir
from numba import types as numba_types
from numba.core import cgutils as numba_cgutils
from numpy.typing import NDArray

from kraft_core.columnar.compiled import entry
from kraft_core.columnar.kernel_abi import MALFORMED
from kraft_core.columnar.layout import build_layout
from kraft_core.columnar.machine_code import call_compiled
from kraft_core.columnar.program import (
    DEFAULT_LIST,
    DEFAULT_NUMBER,
    FIXED_BYTES,
    INT32,
    LIST,
    NO_CODE,
    NO_ENTRY,
    TAGS,
    UUID,
    Program,
    compile_program,
)
from kraft_core.columnar.routines import Instruction, Routine, straight_routine
from kraft_core.columnar.schema import message_columns
from kraft_core.columnar.tags import begin_tags, next_tag, write_default_number
from kraft_core.columnar.values import (
    read_int32_list,
    read_list,
    read_text,
    read_uuid_list,
    store_number,
    store_uuid,
    write_empty_list,
)
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import by_api_key

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)
cgutils = cast(Any, numba_cgutils)
intrinsic = cast(Any, numba.extending).intrinsic

_INT64 = ir.IntType(64)
_DEFAULTS = (DEFAULT_LIST, DEFAULT_NUMBER)


def _routines() -> dict[Routine, int]:
    """Every straight routine of the declared messages, with and without secrets; its number, from 1."""
    numbers: dict[Routine, int] = {}
    for redact in (True, False):
        program = compile_program(build_layout(message_columns(), redact), by_api_key, CONTROL_RECORDS)
        for routine in _straight(program).values():
            numbers.setdefault(routine, len(numbers) + NO_CODE + 1)
    return numbers


def _straight(program: Program) -> dict[int, Routine]:
    """The straight routines of a program by their position."""
    words = program.words.tolist()
    begins = np.unique(np.concatenate([program.metadata.ravel(), program.control.ravel()])).tolist()
    found = {begin: straight_routine(words, begin) for begin in begins if begin != NO_ENTRY}
    return {begin: routine for begin, routine in found.items() if routine is not None}


_NUMBERS = _routines()


def with_machine_code(program: Program) -> Program:
    """The program with the machine code, each routine that it has code for with the number of that."""
    words = program.words.copy()
    for begin, routine in _straight(program).items():
        words[begin + 4] = _NUMBERS.get(routine, NO_CODE)
    return replace(program, words=words, code=_addresses())


@cache
def _addresses() -> NDArray[np.int64]:
    code = np.zeros(NO_CODE + 1 + len(_NUMBERS), dtype=np.int64)
    write_addresses(code.ctypes.data)
    return code


@entry
def write_addresses(code: int) -> None:
    """Writes the address of each routine's machine code, int64, at the place of its number.

    It is a function (task, node, row, at, end); node: the record's. It reads a record's value, and returns
    the address after that, MALFORMED or NO_ROOM.
    """
    _write(code)


@intrinsic
def _write(_typing: Any, _code: Any) -> tuple[Any, Callable[..., Any]]:
    return types.void(types.int64), _write_addresses


def _write_addresses(context: Any, builder: Any, _signature: Any, arguments: Sequence[Any]) -> Any:
    code = builder.inttoptr(arguments[0], _INT64.as_pointer())
    for routine, number in _NUMBERS.items():
        function = _function(context, builder.module, number, routine)
        builder.store(builder.ptrtoint(function, _INT64), builder.gep(code, [_INT64(number)]))
    return context.get_dummy_value()


def _function(context: Any, module: Any, number: int, routine: Routine) -> Any:
    """The LLVM function of a routine, as write_addresses says."""
    function = ir.Function(module, ir.FunctionType(_INT64, [_INT64] * 5), f"kraftlake_routine_{number}")
    function.linkage = "internal"
    _Writer(context, ir.IRBuilder(function.append_basic_block()), *function.args).write(routine)
    return function


class _Writer:
    """Writes the code of one routine. _at: the address after what is read so far."""

    def __init__(self, context: Any, builder: Any, task: Any, node: Any, row: Any, at: Any, end: Any) -> None:
        self._context = context
        self._builder = builder
        self._task, self._node, self._row, self._at, self._end = task, node, row, at, end

    def write(self, routine: Routine) -> None:
        # Those of tagged fields, by tag.
        defaults = {held.operands[0]: held for held in routine if held.opcode in _DEFAULTS}
        for is_fixed, group in groupby(routine, lambda instruction: instruction.opcode in FIXED_BYTES):
            if is_fixed:
                self._fixed(list(group))
                continue
            for instruction in group:
                if instruction.opcode == TAGS:
                    self._tags(instruction, defaults)
                elif instruction.opcode <= LIST:
                    self._variable(instruction)
        self._builder.ret(self._at)

    def _call(self, function: Any, *arguments: Any) -> Any:
        return call_compiled(self._context, self._builder, function, *arguments)

    def _of(self, node: int) -> Any:
        return self._builder.add(self._node, _INT64(node))

    def _return_if(self, condition: Any, result: Any) -> None:
        with self._builder.if_then(condition, likely=False):
            self._builder.ret(result)

    def _proceed(self, at: Any) -> None:
        """Continues at the address, or returns it if it is an outcome."""
        self._return_if(self._builder.icmp_signed("<", at, _INT64(0)), at)
        self._at = at

    def _fixed(self, group: Sequence[Instruction]) -> None:
        """Values of fixed size, one after the other: their bounds are checked once."""
        builder = self._builder
        begin = self._at
        size = sum(FIXED_BYTES[instruction.opcode] for instruction in group)
        after = builder.add(begin, _INT64(size))
        self._return_if(builder.icmp_signed(">", after, self._end), _INT64(MALFORMED))
        offset = 0
        for instruction in group:
            at = builder.add(begin, _INT64(offset))
            node = self._of(instruction.node)
            if instruction.opcode == UUID:
                self._proceed(self._call(store_uuid, self._task, node, self._row, at))
            else:
                self._call(store_number, instruction.opcode, node, self._row, at)
            offset += FIXED_BYTES[instruction.opcode]
        self._at = after

    def _variable(self, instruction: Instruction) -> None:
        node = self._of(instruction.node)
        where = (self._row, self._at, self._end)
        if instruction.opcode != LIST:
            (nullable,) = instruction.operands
            self._proceed(self._call(read_text, instruction.opcode, nullable, self._task, node, *where))
            return
        nullable, element, opcode = instruction.operands
        given = (nullable, self._task, node, self._of(element), *where)
        if opcode == INT32:
            self._proceed(self._call(read_int32_list, *given))
        elif opcode == UUID:
            self._proceed(self._call(read_uuid_list, *given))
        else:
            self._proceed(self._call(read_list, opcode, *given))

    def _tags(self, instruction: Instruction, defaults: dict[int, Instruction]) -> None:
        """Tagged fields: they ascend, so that each is either the next one or absent."""
        builder = self._builder
        count, at = _pair(builder, self._call(begin_tags, self._at, self._end))
        self._proceed(at)
        known = sum(1 << tag for tag, field in enumerate(instruction.fields) if field is not None)
        left, last, at, after = (
            cgutils.alloca_once_value(builder, held) for held in (count, _INT64(-1), at, _INT64(0))
        )
        self._next_tag(known, left, last, at, after)
        for tag, field in enumerate(instruction.fields):
            if field is None:
                continue
            is_next = builder.icmp_signed("==", builder.load(last), _INT64(tag))
            with builder.if_else(is_next) as (present, absent):
                with present:
                    self._at = builder.load(at)
                    self._tagged(field, builder.load(after))
                    builder.store(self._at, at)
                    self._next_tag(known, left, last, at, after)
                with absent:
                    if tag in defaults:
                        self._default(defaults[tag])
        self._at = builder.load(at)

    def _next_tag(self, known: int, left: Any, last: Any, at: Any, after: Any) -> None:
        """Proceeds to the next known tag; to NO_TAG after the last.

        Of what the addresses hold: how many tags are left, the last tag, where its field begins and ends.
        """
        builder = self._builder
        given = (
            _INT64(known),
            self._task,
            builder.load(left),
            builder.load(last),
            builder.load(at),
            self._end,
        )
        found = self._call(next_tag, *given)
        held = [builder.extract_value(found, index) for index in range(4)]
        self._return_if(builder.icmp_signed("<", held[2], _INT64(0)), held[2])
        for place, value in zip((left, last, at, after), held, strict=True):
            builder.store(value, place)

    def _tagged(self, field: Instruction, tag_end: Any) -> None:
        """A tagged field, which must take the size that it declares."""
        if field.opcode in FIXED_BYTES:
            self._fixed([field])
        else:
            self._variable(field)
        differs = self._builder.icmp_signed("!=", self._at, tag_end)
        self._return_if(differs, _INT64(MALFORMED))

    def _default(self, instruction: Instruction) -> None:
        """The default of a tagged field that is absent."""
        _, *rest = instruction.operands
        node = self._of(instruction.node)
        if instruction.opcode == DEFAULT_LIST:
            self._call(write_empty_list, node, self._row)
        else:
            opcode, value = rest
            self._call(write_default_number, opcode, node, self._row, value)


def _pair(builder: Any, pair: Any) -> tuple[Any, Any]:
    return builder.extract_value(pair, 0), builder.extract_value(pair, 1)
