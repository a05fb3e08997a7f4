"""Files and folders of a lake: the parts of the operating system, or of an object store, that are used for
them.

Commits to Delta logs are made by delta-rs itself, and Arrow and Spark read data files by themselves. A store
has no folders: any place is an empty one until an object is below it.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from transforms.lake.storage import objects
from transforms.lake.storage.location import Location, StoreUrl

# The file that makes a folder a lake.
MARKER = "lake.json"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file's bytes, and a word that changes where the file is written again."""

    size_bytes: int
    written: str


def every_file(folder: Location) -> dict[str, FoundFile]:
    """All files below a folder by their path there. Raises OSError, also where one may not be listed."""
    if isinstance(folder, StoreUrl):
        every = {found.name: FoundFile(found.size_bytes, found.tag) for found in objects.below(folder)}
        # Some tools make objects of folders, for these to look like some.
        folders = {str(above) for name in every for above in PurePosixPath(name).parents}
        return {name: file for name, file in every.items() if name not in folders}
    return dict(_below(str(folder), ""))


def _below(folder: str, prefix: str) -> Iterator[tuple[str, FoundFile]]:
    """The same of a folder on a file system. What is removed meanwhile is left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if _is_dir(entry):
                yield from _below(entry.path, f"{name}/")
            else:
                with suppress(FileNotFoundError):
                    held = _status(entry)
                    yield name, FoundFile(held.st_size, str(held.st_mtime_ns))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder; a link to itself is none."""
    return entry.is_dir() if not entry.is_symlink() else Path(entry.path).is_dir()


def _status(entry: os.DirEntry[str]) -> os.stat_result:
    """Of a link that leads nowhere, its own."""
    leads_nowhere = entry.is_symlink() and not Path(entry.path).exists()
    return entry.stat(follow_symlinks=not leads_nowhere)


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


def holds(folder: Location, suffix: str) -> bool:
    """Whether a folder holds a name with that end; not where there is no folder that may be read.

    Raises OSError where a store does not say.
    """
    if isinstance(folder, StoreUrl):
        return any(name.endswith(suffix) for name in objects.names_in(folder))
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(suffix) for entry in entries)
    except OSError:
        return False


def text_of(path: Location) -> str:
    """The content of a file. Raises OSError and ValueError."""
    return objects.content(path).decode() if isinstance(path, StoreUrl) else path.read_text()


def modified_at(path: Location) -> float:
    """When a file or folder was last written, in seconds since 1970. Raises OSError."""
    return objects.written_at(path) if isinstance(path, StoreUrl) else path.stat().st_mtime


def create(path: Location, content: str) -> FoundFile | None:
    """Make a file, and its folder, unless there is one: of several at once, one makes it, whole.

    Returns it if this one did. What a killed writer leaves has a name that begun_name matches. Raises
    OSError.
    """
    size_bytes = len(content.encode())
    if isinstance(path, StoreUrl):
        tag = objects.put_new(path, content.encode())
        return None if tag is None else FoundFile(size_bytes, tag)
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_name(begun_name(path.name, uuid.uuid4().hex))
    begun.write_text(content)
    try:
        os.link(begun, path)
        return FoundFile(size_bytes, str(path.stat().st_mtime_ns))
    except FileExistsError:
        return None
    finally:
        begun.unlink()


def put(path: Location, content: str) -> None:
    """Make a file, or replace it by another that is whole. Raises OSError."""
    if isinstance(path, StoreUrl):
        objects.put(path, content.encode())
        return
    begun = path.with_name(begun_name(path.name, uuid.uuid4().hex))
    begun.write_text(content)
    begun.replace(path)


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
