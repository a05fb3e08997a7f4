"""Memory for columns, reused once the columns made from it are freed.

Fresh memory costs a page fault every 4 KiB, more than writing to it does.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow
from numpy.typing import NDArray

pa = cast(Any, pyarrow)

# The most free memory that is kept, in bytes.
_KEPT = 128 * 1024 * 1024
_LEAST = 4096


class BufferPool:
    """Free buffers by size, of which there are four to eight between two powers of two."""

    def __init__(self) -> None:
        self._free: dict[int, list[NDArray[np.uint8]]] = {}
        self._kept = 0

    def take(self, size: int) -> PooledBuffer:
        """A buffer of at least `size` bytes, uninitialized."""
        step = max(_LEAST, 1 << max(0, (size - 1).bit_length() - 3))
        whole = max(1, -(-size // step)) * step
        try:
            memory = self._free[whole].pop()
        except LookupError:
            return PooledBuffer(np.empty(whole, dtype=np.uint8), self)
        self._kept -= whole
        return PooledBuffer(memory, self)

    def give_back(self, memory: NDArray[np.uint8]) -> None:
        """Return a buffer to the pool. Any thread may call it, at any time."""
        if self._kept + len(memory) > _KEPT:
            # Otherwise sizes that are no longer requested would stay forever.
            self._free.clear()
            self._kept = 0
        self._kept += len(memory)
        self._free.setdefault(len(memory), []).append(memory)


class PooledBuffer:
    """Memory that returns to its pool with the last pyarrow.Buffer made from it."""

    __slots__ = ("_pool", "address", "memory")

    def __init__(self, memory: NDArray[np.uint8], pool: BufferPool) -> None:
        self.memory = memory
        self.address: int = memory.ctypes.data
        self._pool = pool

    def __del__(self) -> None:
        self._pool.give_back(self.memory)

    def buffer(self, start: int, size: int) -> Any:
        """A pyarrow.Buffer of a part of it."""
        return pa.foreign_buffer(self.address + start, size, self)
