"""Files and folders of a lake: what of the operating system is used for them.

Commits to Delta logs are made by delta-rs itself, and Arrow and Spark read data files by themselves.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def exists(path: Path) -> bool:
    return path.exists()


def has_entry(path: Path) -> bool:
    """Whether the folder has anything of that name, be it a link that leads nowhere."""
    return os.path.lexists(path)


def is_file(path: Path) -> bool:
    return path.is_file()


def is_folder(path: Path) -> bool:
    return path.is_dir()


def entries(folder: Path) -> Iterator[Path]:
    """All that a folder holds. Raises OSError, also where it may not be read."""
    return folder.iterdir()


def found(folder: Path, pattern: str) -> Iterator[Path]:
    """What a folder holds of names that match a pattern; nothing where there is none that may be read."""
    return folder.glob(pattern)


def text_of(path: Path) -> str:
    """The content of a file. Raises OSError and ValueError."""
    return path.read_text()


def size_of(path: Path) -> int:
    """The size of a file in bytes. Raises OSError."""
    return path.stat().st_size


def modified_at(path: Path) -> float:
    """When a file or folder was last written, in seconds since 1970. Raises OSError."""
    return path.stat().st_mtime


def absolute(path: Path) -> Path:
    """The path without links, from the root."""
    return path.resolve()


def create(path: Path, content: str) -> None:
    """Make a file, and its folder, unless there is one: of several at once, one makes it, whole.

    What a killed writer leaves has a name that begun_name matches. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_name(begun_name(path.name, uuid.uuid4().hex))
    begun.write_text(content)
    try:
        with suppress(FileExistsError):
            os.link(begun, path)
    finally:
        begun.unlink()


def begun_name(name: str, token: str = "*") -> str:
    """The name of a file before it has its own; by default the pattern of all such names."""
    return f".{name}-{token}"


def remove(path: Path) -> None:
    """Remove a file, which another may have removed meanwhile. Raises OSError."""
    path.unlink(missing_ok=True)


def remove_any(path: Path) -> None:
    """Remove a file, or a folder with all it holds. Raises OSError."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_fault(folder: Path) -> OSError | None:
    """Why nothing may be written into a folder; None if it may."""
    if os.access(folder, os.W_OK):
        return None
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    return OSError(errno.EROFS if is_read_only else errno.EACCES, "", str(folder))
