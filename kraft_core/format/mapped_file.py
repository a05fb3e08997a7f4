"""Memory-mapped files."""

from __future__ import annotations

import mmap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def mapped(path: Path | str) -> Generator[bytes | mmap.mmap]:
    """The bytes of a file, mapped read-only; b"" for an empty one. OSError when it cannot be opened.

    A slice of it is a copy, and remains valid afterwards.
    """
    with Path(path).open("rb") as file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            yield b""
            return
        with content:
            yield content
