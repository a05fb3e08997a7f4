"""The compiled writer of lines in this process: loaded from the cache without Numba, or compiled for it.

Importing Numba, and loading machine code by it, takes longer than to write the text of a million records.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import llvmlite.binding

from kraft_core.columnar.code_cache import cache_folder
from kraft_core.columnar.lines_abi import SKIP_BATCHES, WRITE_ADDRESSES, WRITE_LINES

llvm = cast(Any, llvmlite.binding)

_DIGEST_BYTES = 32
_PROCESSOR = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")


class LineCode:
    """write_lines and skip_batches of line_kernel, and write_line_addresses of lines, as C has them."""

    def __init__(self, content: bytes) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        # The code is there for as long as the engine is.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self.write_lines: Callable[[int], int] = self._function(WRITE_LINES)
        self.skip_batches: Callable[[int], int] = self._function(SKIP_BATCHES)
        self.write_addresses: Callable[[int], int] = self._function(WRITE_ADDRESSES)

    def _function(self, name: str) -> Callable[[int], int]:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
        return prototype(self._engine.get_function_address(name))


@cache
def line_code() -> LineCode:
    """The code, compiled if it is not in the cache."""
    return LineCode(_cached() or _compiled())


def is_compiled() -> bool:
    """Whether line_code need not compile it."""
    return _cached() is not None


@cache
def _cached() -> bytes | None:
    """The object file in the cache; None if there is none, or a damaged one."""
    place = _place()
    if place is None:
        return None
    try:
        held = place.read_bytes()
    except OSError:
        return None
    digest, content = held[:_DIGEST_BYTES], held[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def _compiled() -> bytes:
    from kraft_core.columnar.line_object import machine_code

    content = machine_code()
    place = _place()
    if place is not None:
        part = place.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            part.write_bytes(hashlib.sha256(content).digest() + content)
            part.replace(place)
    return content


def _place() -> Path | None:
    """The file for this processor, and for the one that Numba is told to compile for."""
    folder = cache_folder()
    if folder is None:
        return None
    processor = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    processor += [os.environ.get(name, "") for name in _PROCESSOR]
    digest = hashlib.sha256("\n".join(processor).encode()).hexdigest()
    return folder / f"lines-{digest[:16]}.o"
