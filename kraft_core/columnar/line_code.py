"""The compiled writer of lines in this process: loaded from the cache without Numba, or compiled for it.

Importing Numba, and loading machine code by it, takes longer than to write the text of a million records.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

from kraft_core.columnar.code_cache import cache_folder, digest, keep, kept
from kraft_core.columnar.lines_abi import SKIP_BATCHES, WRITE_ADDRESSES, WRITE_LINES
from kraft_core.columnar.object_code import NotLoadable, ObjectCode
from kraft_core.columnar.processor import processor

_COMPILED_FOR = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")


class Code(Protocol):
    """Machine code in this process, for as long as the object is."""

    def address(self, name: str) -> int:
        """The address of a function."""
        ...


class LineCode:
    """write_lines and skip_batches of line_kernel, and write_line_addresses of lines, as C has them."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.write_lines: Callable[[int], int] = self._function(WRITE_LINES)
        self.skip_batches: Callable[[int], int] = self._function(SKIP_BATCHES)
        self.write_addresses: Callable[[int], int] = self._function(WRITE_ADDRESSES)

    def _function(self, name: str) -> Callable[[int], int]:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
        return prototype(self._code.address(name))


@cache
def line_code() -> LineCode:
    """The code, compiled if it is not in the cache; OSError if no memory may become executable."""
    return LineCode(loaded(_cached() or _compiled()))


def loaded(content: bytes) -> Code:
    """The code of an object file, which must not be damaged; OSError as line_code."""
    try:
        return ObjectCode(content)
    except NotLoadable:
        from kraft_core.columnar.llvm_code import LlvmCode

        return LlvmCode(content)


def is_compiled() -> bool:
    """Whether line_code need not compile it."""
    return _cached() is not None


@cache
def _cached() -> bytes | None:
    """The object file in the cache; None if there is none, or a damaged one."""
    place = _place()
    return None if place is None else kept(place)


def _compiled() -> bytes:
    from kraft_core.columnar.line_object import machine_code

    content = machine_code()
    place = _place()
    if place is not None:
        keep(place, content)
    return content


@cache
def _place() -> Path | None:
    """The file for this processor, and for the one that Numba is told to compile for."""
    folder = cache_folder()
    if folder is None:
        return None
    described = [processor(folder), *(os.environ.get(name, "") for name in _COMPILED_FOR)]
    return folder / f"lines-{digest(repr(described).encode())}.o"
