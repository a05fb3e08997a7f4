"""Memory for columns, used again once nobody holds the columns that were made of it.

Fresh memory costs a page fault every 4 KiB, more than writing to it does.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow
from numpy.typing import NDArray

pa = cast(Any, pyarrow)

# What is kept for later, in bytes.
_KEPT = 128 * 1024 * 1024
_LEAST = 4096


class BufferPool:
    """Pieces of memory by size, a power of two: those that are free."""

    def __init__(self) -> None:
        self._free: dict[int, list[NDArray[np.uint8]]] = {}
        self._kept = 0

    def take(self, size: int) -> PooledBuffer:
        """A piece of at least so many bytes; what they hold is of no meaning."""
        whole = max(_LEAST, 1 << (size - 1).bit_length())
        try:
            memory = self._free[whole].pop()
        except LookupError:
            return PooledBuffer(np.empty(whole, dtype=np.uint8), self)
        self._kept -= whole
        return PooledBuffer(memory, self)

    def give_back(self, memory: NDArray[np.uint8]) -> None:
        """For another to take. Any thread may call it, at any time."""
        if self._kept + len(memory) > _KEPT:
            # Sizes that nobody asks for any more would stay for ever.
            self._free.clear()
            self._kept = 0
        self._kept += len(memory)
        self._free.setdefault(len(memory), []).append(memory)


class PooledBuffer:
    """Memory that returns to its pieces with the last buffer made of it."""

    __slots__ = ("_pieces", "address", "memory")

    def __init__(self, memory: NDArray[np.uint8], pieces: BufferPool) -> None:
        self.memory = memory
        self.address: int = memory.ctypes.data
        self._pieces = pieces

    def __del__(self) -> None:
        self._pieces.give_back(self.memory)

    def buffer(self, start: int, size: int) -> Any:
        """A pyarrow.Buffer of a part of it."""
        return pa.foreign_buffer(self.address + start, size, self)
