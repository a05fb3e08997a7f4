"""Constant text that compiled code writes: stores of constants, without a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba.extending
from llvmlite import ir as llvm_ir
from numba import types as numba_types

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)
intrinsic = cast(Any, numba.extending).intrinsic

_INT64 = ir.IntType(64)
_PIECE = 16
_PIECE_TYPE = ir.VectorType(ir.IntType(8), _PIECE)


def write_constant(builder: Any, out: Any, content: bytes) -> Any:
    """Code that writes the content, and zeros up to a multiple of 16 bytes; the address after the content."""
    for start in range(0, len(content), _PIECE):
        piece = content[start : start + _PIECE].ljust(_PIECE, b"\0")
        place = builder.inttoptr(builder.add(out, _INT64(start)), _PIECE_TYPE.as_pointer())
        builder.store(ir.Constant(_PIECE_TYPE, list(piece)), place, align=1)
    return builder.add(out, _INT64(len(content)))


def literal(text: str) -> Callable[[int], int]:
    """A function for compiled code that writes the text at an address, and returns the address after it."""
    content = text.encode()

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return write_constant(builder, arguments[0], content)

    @intrinsic
    def write(_typing: Any, _out: Any) -> Any:
        return types.int64(types.int64), codegen

    return write
