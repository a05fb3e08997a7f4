"""Decimal numbers as text: eight digits at once, without a loop over them.

Each function writes at `out`, where there must be room for whole stores of eight bytes, and returns the
address after the text.
"""

from __future__ import annotations

from typing import Any, cast

import numba.extending
from llvmlite import ir as llvm_ir
from numba import types as numba_types

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.memory import put, store_8, store_16

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)
intrinsic = cast(Any, numba.extending).intrinsic

_ZERO, _MINUS = 0x30, 0x2D
_ZEROS = 0x3030_3030_3030_3030
_EIGHT_DIGITS = 100_000_000
_LEAST_INT64 = -(1 << 63)


@intrinsic
def _zero_bits_below(_typing: Any, _value: Any) -> Any:
    """How many bits are below the lowest one of a number that is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@inlined
def write_number(value: int, out: int) -> int:
    """Most have one digit or two, in no order that a processor could foresee: no branch between them."""
    if 0 <= value <= 99:
        has_tens = int(value > 9)
        store_16(out, _two_digits(value) >> 8 - 8 * has_tens)
        return out + 1 + has_tens
    return _write_any_number(value, out)


@compiled
def _write_any_number(value: int, out: int) -> int:
    if value == _LEAST_INT64:
        store_8(out, _MINUS)
        store_8(out + 1, _ZERO + 9)
        return write_digits(223372036854775808, out + 2)
    if value < 0:
        store_8(out, _MINUS)
        out += 1
        value = -value
    return write_digits(value, out)


@inlined
def write_digits(value: int, out: int) -> int:
    """A number that is not negative."""
    if value < _EIGHT_DIGITS:
        return _write_first(value, out)
    upper = value // _EIGHT_DIGITS
    if upper < _EIGHT_DIGITS:
        out = _write_first(upper, out)
    else:
        first = upper // _EIGHT_DIGITS
        out = _write_first(first, out)
        put(out, _eight_digits(upper - first * _EIGHT_DIGITS) | _ZEROS)
        out += 8
    put(out, _eight_digits(value - upper * _EIGHT_DIGITS) | _ZEROS)
    return out + 8


@inlined
def _two_digits(value: int) -> int:
    tens = value * 103 >> 10
    return _ZERO + tens | _ZERO + value - 10 * tens << 8


@inlined
def _write_first(value: int, out: int) -> int:
    """A number of up to eight digits, without zeros in front."""
    digits = _eight_digits(value)
    # With a bit of the last digit, which is written even if it is 0.
    missing = _zero_bits_below(digits | 1 << 56) >> 3
    put(out, (digits | _ZEROS) >> (missing << 3))
    return out + 8 - missing


@inlined
def _eight_digits(value: int) -> int:
    """The digits of a number below 10^8, one in each byte, the first in the lowest.

    Multiplications in place of divisions: x * 109951163 >> 40 is x // 10000 below 10^8, x * 10486 >> 20 is
    x // 100 below 10^4, x * 103 >> 10 is x // 10 below 100. All lanes of 32 or 16 bits at once.
    """
    high = value * 109951163 >> 40
    fours = high | value - 10000 * high << 32
    hundreds = fours * 10486 >> 20 & 0x0000_007F_0000_007F
    twos = hundreds | fours - 100 * hundreds << 16
    tens = twos * 103 >> 10 & 0x000F_000F_000F_000F
    return tens | twos - 10 * tens << 8
