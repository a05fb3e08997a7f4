"""A file mapped for compiled code, by address; pages are released as the reading proceeds."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kraft_core.format.mapped_file import mapped

# So many at once: each call interrupts the processors that run threads of this process.
_RELEASED_BYTES = 16 * 1024 * 1024


class Window:
    """buf: the file's bytes; address: of the first of them while the file is open."""

    def __init__(self, buf: bytes | mmap.mmap) -> None:
        self.buf = buf
        self.size = len(buf)
        self.address = address_of(buf)
        self._released = 0

    def stop(self, end: int | None) -> int:
        """The position at which reading up to `end` stops."""
        return self.size if end is None else min(end, self.size)

    def release(self, position: int) -> None:
        """Release the pages before the position, as reading only moves forward, if they are many."""
        end = position // mmap.PAGESIZE * mmap.PAGESIZE
        if end < self._released + _RELEASED_BYTES:
            return
        if isinstance(self.buf, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.buf.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
        self._released = end


class _View(ctypes.Structure):
    """Py_buffer of Python's stable ABI: the address comes first."""

    _fields_ = (("address", ctypes.c_void_p), ("rest", ctypes.c_byte * 128))


def address_of(buf: bytes | mmap.mmap) -> int:
    """Of the first byte. The view is released at once: a mapping with views cannot be closed."""
    view = _View()
    api = ctypes.pythonapi
    api.PyObject_GetBuffer(ctypes.py_object(buf), ctypes.byref(view), 0)
    api.PyBuffer_Release(ctypes.byref(view))
    return view.address or 0


@contextmanager
def opened(path: Path | str) -> Generator[Window]:
    """The window on a file; OSError when it cannot be opened."""
    with mapped(path) as buf:
        yield Window(buf)
