"""The compiled writer of lines as an object file, which processes load without Numba (line_code.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir as llvm_ir
from numba.core import compiler_lock, registry

from kraft_core.columnar.line_kernel import skip_batches, write_lines
from kraft_core.columnar.lines import write_line_addresses
from kraft_core.columnar.lines_abi import SKIP_BATCHES, WRITE_ADDRESSES, WRITE_LINES
from kraft_core.columnar.machine_code import call_compiled

ir = cast(Any, llvm_ir)
_compiler_lock = cast(Any, compiler_lock).global_compiler_lock
_cpu_target = cast(Any, registry).cpu_target

_INT64 = ir.IntType(64)


def machine_code() -> bytes:
    """The object file for this processor; it takes about seven seconds."""
    with _compiler_lock:
        context = _cpu_target.target_context
        _cpu_target.typing_context.refresh()
        context.refresh()
        library = context.codegen().create_library("kraftlake_lines")
        library.enable_object_caching()
        module = library.create_ir_module("kraftlake_lines")
        with context.push_code_library(library):
            for name, code in ((WRITE_LINES, write_lines), (SKIP_BATCHES, skip_batches)):
                _function(
                    module, name, lambda builder, task, code=code: call_compiled(context, builder, code, task)
                )
            _function(
                module, WRITE_ADDRESSES, lambda builder, table: _write_addresses(context, builder, table)
            )
        library.add_ir_module(module)
        library.finalize()
        return library._get_compiled_object()


def _function(module: Any, name: str, body: Callable[[Any, Any], Any]) -> None:
    """A function that C can call: an int64 to an int64."""
    function = ir.Function(module, ir.FunctionType(_INT64, [_INT64]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(body(builder, function.args[0]))


def _write_addresses(context: Any, builder: Any, table: Any) -> Any:
    write_line_addresses(context, builder, table)
    return _INT64(0)
