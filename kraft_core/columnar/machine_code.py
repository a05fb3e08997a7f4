"""Parts of LLVM functions that are built without Numba's compiler."""

from __future__ import annotations

from typing import Any, cast

from llvmlite import ir as llvm_ir
from numba import types as numba_types

ir = cast(Any, llvm_ir)
types = cast(Any, numba_types)

_INT64 = ir.IntType(64)


def call_compiled(context: Any, builder: Any, function: Any, *arguments: Any) -> Any:
    """A call of a compiled function of integers, which does not raise; its result."""
    given = [_INT64(held) if isinstance(held, int) else held for held in arguments]
    signature = (types.int64,) * len(given)
    function.compile(signature)
    result = function.overloads[signature]
    context.add_linking_libs([result.library])
    callee = context.declare_function(builder.module, result.fndesc)
    return context.call_conv.call_function(builder, callee, result.signature.return_type, signature, given)[1]
