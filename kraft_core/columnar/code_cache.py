"""The folder of machine code that processes share.

It is named after a digest of the sources of this package and of those that it imports, and lies in the first
directory that can be written: $NUMBA_CACHE_DIR, the package's __pycache__, the user's cache directory, a
private temporary directory.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

# Messages are declared outside this package.
_SOURCES = ("messages", "format", "columnar")


@cache
def cache_folder() -> Path | None:
    """The directory of the current sources' machine code; None where none can be written."""
    name = f"kraftlake-{sources_digest()[:16]}"
    for parent in _parents():
        try:
            folder = parent() / name
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


def _parents() -> Iterator[Callable[[], Path]]:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield lambda: Path(chosen)
    yield lambda: Path(__file__).parent / "__pycache__"
    yield lambda: Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    yield _private_temporary


def _private_temporary() -> Path:
    """A temporary directory. OSError unless only this user can access it: its content is executed."""
    folder = Path(tempfile.gettempdir(), f"kraftlake-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder


@cache
def sources_digest() -> str:
    """A digest of all that machine code is made from."""
    digest = hashlib.sha256()
    for package in _SOURCES:
        for source in sorted(Path(__file__).parents[1].joinpath(package).glob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()
