"""The folder of machine code that processes share.

It is named after a digest of the sources of this package and of those that it imports, and lies in the first
directory that can be written: $NUMBA_CACHE_DIR, the package's __pycache__, the user's cache directory, a
private temporary directory. Importing hashlib or tempfile would take longer than all that is done here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import source_hash
from pathlib import Path

# Messages are declared outside this package.
_SOURCES = ("messages", "format", "columnar")
_DIGEST_DIGITS = 16


@cache
def cache_folder() -> Path | None:
    """The directory of the current sources' machine code; None where none can be written."""
    name = f"kraftlake-{sources_digest()}"
    for parent in _parents():
        try:
            folder = parent() / name
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
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
    from tempfile import gettempdir

    folder = Path(gettempdir(), f"kraftlake-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is open to others")
    return folder


@cache
def sources_digest() -> str:
    """A digest of all that machine code is made from."""
    packages = (Path(__file__).parents[1] / package for package in _SOURCES)
    sources = (source for package in packages for source in sorted(package.glob("*.py")))
    return digest(b"".join(source.read_bytes() for source in sources))


def digest(content: bytes) -> str:
    """Sixteen hex digits, which tell changes and damage, but not forgery."""
    return source_hash(content).hex()


def kept(place: Path) -> bytes | None:
    """The content of a file that `keep` wrote; None if there is none, or a damaged one."""
    try:
        held = place.read_bytes()
    except OSError:
        return None
    content = held[_DIGEST_DIGITS:]
    return content if held[:_DIGEST_DIGITS] == digest(content).encode() else None


def keep(place: Path, content: bytes) -> None:
    """Write a file with a digest of its content, if it can be; other processes see all of it or none."""
    part = place.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        part.write_bytes(digest(content).encode() + content)
        part.replace(place)
