"""A file mapped for compiled code, by address; pages are released as the reading proceeds."""

from __future__ import annotations

import mmap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kraft_core.format.mapped_file import mapped


class Window:
    """buf: the file's bytes; address: of the first of them while the file is open."""

    def __init__(self, buf: bytes | mmap.mmap) -> None:
        self.buf = buf
        self.size = len(buf)
        # The view is released at once: a mapping with views cannot be closed.
        self.address = np.frombuffer(buf, dtype=np.uint8).ctypes.data if self.size else 0
        self._released = 0

    def stop(self, end: int | None) -> int:
        """The position at which reading up to `end` stops."""
        return self.size if end is None else min(end, self.size)

    def release(self, position: int) -> None:
        """Release the pages before the position, as reading only moves forward."""
        end = position // mmap.PAGESIZE * mmap.PAGESIZE
        if end > self._released and isinstance(self.buf, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.buf.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
        self._released = end


@contextmanager
def opened(path: Path | str) -> Generator[Window]:
    """The window on a file; OSError when it cannot be opened."""
    with mapped(path) as buf:
        yield Window(buf)
