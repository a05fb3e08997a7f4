"""Vectors of the processor for what is mostly short: texts, lists of replicas, gaps between rows.

A fixed number of bytes or numbers at once costs less than a loop over the few that count: the processor
foresees no loop's end. What is read and written must be there, whatever the count; what does not count is
written as zeros, never copied: it may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba.extending
from llvmlite import ir as llvm_ir
from numba import types as numba_types
from numba.core import cgutils as numba_cgutils

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)
cgutils = cast(Any, numba_cgutils)
intrinsic = cast(Any, numba.extending).intrinsic

REACH = 32  # bytes that are read and written at once
AHEAD = 16  # numbers that store_ahead writes
# The bytes that memory for columns must have after the last item.
SLACK = 4 * AHEAD

UUID_BYTES = 16
UUID_TEXT_BYTES = 22

_INT64 = ir.IntType(64)


def _at(builder: Any, address: Any, type_: Any) -> Any:
    return builder.inttoptr(address, type_.as_pointer())


def _splat(builder: Any, value: Any, type_: Any) -> Any:
    """A vector of the same number."""
    first = builder.insert_element(ir.Constant(type_, None), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), type_.count), None)
    return builder.shuffle_vector(first, first, zeros)


def _keep(builder: Any, held: Any, count: Any, type_: Any) -> Any:
    """The first `count` numbers of a vector, then zeros."""
    indexes = ir.Constant(type_, list(range(type_.count)))
    limit = _splat(builder, builder.trunc(count, type_.element), type_)
    zeros = ir.Constant(type_, None)
    return builder.select(builder.icmp_unsigned("<", indexes, limit), held, zeros)


def _copier(bits: int, swap: bool) -> Callable[[int, int, int], None]:
    """(target, source, count): copies `count` numbers, at most those in REACH; swap: their bytes reversed."""
    type_ = ir.VectorType(ir.IntType(bits), 8 * REACH // bits)

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source, count = arguments
        held = builder.load(_at(builder, source, type_), align=1)
        if swap:
            name = f"llvm.bswap.v{type_.count}i{bits}"
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(type_, [type_]), name)
            held = builder.call(function, [held])
        builder.store(_keep(builder, held, count, type_), _at(builder, target, type_), align=1)
        return context.get_dummy_value()

    @intrinsic
    def copy(_typing: Any, _target: Any, _source: Any, _count: Any) -> Any:
        return types.void(types.int64, types.int64, types.int64), codegen

    return copy


copy_short = _copier(8, swap=False)
swap_short = _copier(32, swap=True)


@intrinsic
def high_bits(_typing: Any, _address: Any) -> Any:
    """The highest bit of each byte in REACH: not set in ASCII."""
    type_ = ir.VectorType(ir.IntType(8), REACH)

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        held = builder.load(_at(builder, arguments[0], type_), align=1)
        is_high = builder.icmp_signed("<", held, ir.Constant(type_, None))
        return builder.zext(builder.bitcast(is_high, ir.IntType(REACH)), _INT64)

    return types.int64(types.int64), codegen


@intrinsic
def escaped_bits(_typing: Any, _address: Any) -> Any:
    """A bit for each byte in REACH that JSON escapes or that is not ASCII."""
    type_ = ir.VectorType(ir.IntType(8), REACH)

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        held = builder.load(_at(builder, arguments[0], type_), align=1)
        # Bytes that are not ASCII are negative.
        found = builder.icmp_signed("<", held, _all(type_, 0x20))
        for char in '"\\':
            found = builder.or_(found, builder.icmp_signed("==", held, _all(type_, ord(char))))
        return builder.zext(builder.bitcast(found, ir.IntType(REACH)), _INT64)

    return types.int64(types.int64), codegen


@intrinsic
def store_ahead(_typing: Any, _address: Any, _value: Any) -> Any:
    """Stores an int32 AHEAD times in a row."""
    type_ = ir.VectorType(ir.IntType(32), AHEAD)

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, value = arguments
        held = _splat(builder, builder.trunc(value, ir.IntType(32)), type_)
        builder.store(held, _at(builder, address, type_), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def write_uuid(_typing: Any, _target: Any, _source: Any) -> Any:
    """(target, source): the 22 characters of 16 bytes, and zeros up to REACH."""
    triples = ir.VectorType(ir.IntType(32), REACH // 4)
    characters = ir.VectorType(ir.IntType(8), REACH)

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source = arguments
        type_ = ir.VectorType(ir.IntType(8), UUID_BYTES)
        held = builder.load(_at(builder, source, type_), align=1)
        # Three bytes in each number, the first of them the highest; zeros come from the second vector.
        order = [3 * n + byte if byte >= 0 else -1 for n in range(triples.count) for byte in (2, 1, 0, -1)]
        places = [place if 0 <= place < UUID_BYTES else UUID_BYTES for place in order]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), REACH), places)
        spread = builder.shuffle_vector(held, ir.Constant(type_, None), mask)
        numbers = _six_bits(builder, builder.bitcast(spread, triples), triples)
        text = _base64(builder, builder.bitcast(numbers, characters), characters)
        kept = [-1] * UUID_TEXT_BYTES + [0] * (REACH - UUID_TEXT_BYTES)
        text = builder.and_(text, ir.Constant(characters, kept))
        builder.store(text, _at(builder, target, characters), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


def _all(type_: Any, number: int) -> Any:
    return ir.Constant(type_, [number] * type_.count)


def _six_bits(builder: Any, triples: Any, type_: Any) -> Any:
    """The four times six bits of each 24, the highest in the lowest byte."""
    found = builder.lshr(triples, _all(type_, 18))
    found = builder.or_(found, builder.and_(builder.lshr(triples, _all(type_, 4)), _all(type_, 0x3F00)))
    found = builder.or_(found, builder.and_(builder.shl(triples, _all(type_, 10)), _all(type_, 0x3F0000)))
    return builder.or_(found, builder.and_(builder.shl(triples, _all(type_, 24)), _all(type_, 0x3F000000)))


def _base64(builder: Any, numbers: Any, type_: Any) -> Any:
    """The character of each number below 64, in the alphabet for URLs: A to Z, a to z, 0 to 9, - and _."""
    text = builder.add(numbers, _all(type_, ord("A")))
    # What is added from a number on.
    for number, before, first in ((26, "Z", "a"), (52, "z", "0"), (62, "9", "-"), (63, "-", "_")):
        above = builder.icmp_signed(">", numbers, _all(type_, number - 1))
        jump = _all(type_, ord(first) - ord(before) - 1)
        text = builder.add(text, builder.select(above, jump, ir.Constant(type_, None)))
    return text
