"""Files and folders of a lake: what of the operating system, or of an object store, is used for them.

Commits to Delta logs are made by delta-rs itself, and Arrow and Spark read data files by themselves. A store
has no folders: any place is an empty one until an object is below it.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from transforms.lake.storage import objects
from transforms.lake.storage.location import Location, StoreUrl

# The file that makes a folder a lake.
MARKER = "lake.json"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """The names in a table's folder and in its Delta log; size_of: a file's bytes by its path in the folder.

    size_of raises OSError; FileNotFoundError where there is no such file.
    """

    names: list[str]
    log: list[str]
    size_of: Callable[[str], int]


def listing(folder: Location, log: str) -> FolderListing | None:
    """What a folder holds of which `log` names the Delta log; None where there is nothing of that name.

    Raises NotADirectoryError, and OSError where it may not be read.
    """
    if isinstance(folder, StoreUrl):
        sizes = {found.name: found.size_bytes for found in objects.below(folder)}
        names = sorted({name.partition("/")[0] for name in sizes})
        in_log = [name.removeprefix(f"{log}/") for name in sizes if name.startswith(f"{log}/")]

        def held(name: str) -> int:
            if name not in sizes:
                raise FileNotFoundError(errno.ENOENT, "no such object", f"{folder}/{name}")
            return sizes[name]

        return FolderListing(names, in_log, held) if sizes else None
    if not os.path.lexists(folder):
        return None
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    in_log = names_in(folder / log) if (folder / log).is_dir() else []
    return FolderListing(names_in(folder), in_log, lambda name: (folder / name).stat().st_size)


def exists(path: Location) -> bool:
    """Whether there is a folder."""
    return isinstance(path, StoreUrl) or path.exists()


def is_file(path: Location) -> bool:
    """Raises OSError where a store does not say."""
    if isinstance(path, StoreUrl):
        try:
            objects.content(path)
        except FileNotFoundError:
            return False
        return True
    return path.is_file()


def is_folder(path: Location) -> bool:
    return isinstance(path, StoreUrl) or path.is_dir()


def names_in(folder: Location) -> list[str]:
    """All that a folder holds. Raises OSError, also where it may not be read."""
    if isinstance(folder, StoreUrl):
        return objects.names_in(folder)
    return [entry.name for entry in folder.iterdir()]


def found(folder: Location, pattern: str) -> Iterator[Location]:
    """What a folder holds of names that match a pattern; nothing where there is none that may be read.

    Raises OSError where a store does not say.
    """
    if isinstance(folder, StoreUrl):
        names = objects.names_in(folder)
        return (folder / name for name in names if fnmatchcase(name, pattern))
    return folder.glob(pattern)


def text_of(path: Location) -> str:
    """The content of a file. Raises OSError and ValueError."""
    return objects.content(path).decode() if isinstance(path, StoreUrl) else path.read_text()


def modified_at(path: Location) -> float:
    """When a file or folder was last written, in seconds since 1970. Raises OSError."""
    return objects.written_at(path) if isinstance(path, StoreUrl) else path.stat().st_mtime


def create(path: Location, content: str) -> None:
    """Make a file, and its folder, unless there is one: of several at once, one makes it, whole.

    What a killed writer leaves has a name that begun_name matches. Raises OSError.
    """
    if isinstance(path, StoreUrl):
        objects.put_new(path, content.encode())
        return
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


def remove(path: Location) -> None:
    """Remove a file, which another may have removed meanwhile. Raises OSError."""
    if isinstance(path, StoreUrl):
        objects.delete(path)
    else:
        path.unlink(missing_ok=True)


def remove_any(path: Location) -> None:
    """Remove a file, or a folder with all it holds. Raises OSError."""
    if isinstance(path, StoreUrl) or not path.is_dir():
        remove(path)
    else:
        shutil.rmtree(path)


def write_fault(folder: Location) -> OSError | None:
    """Why nothing may be written into a folder, or why it may not be made.

    None if it may, or if only a write can tell.
    """
    if isinstance(folder, StoreUrl):
        return None
    while not folder.exists():
        folder = folder.absolute().parent
    if os.access(folder, os.W_OK):
        return None
    is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    return OSError(errno.EROFS if is_read_only else errno.EACCES, "", str(folder))
