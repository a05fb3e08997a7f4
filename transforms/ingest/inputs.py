"""Paths of captures as local folders: archives are unpacked to scratch, remote trees mirrored there.

A mirror of known captures is cheap: large files are created sparse, of the true size, with only the first and
last 64 KiB, which identify them. Once it is known which will be read, those are fetched (Inputs.fetch).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kraft_core.format.capture import EDGE_BYTES
from kraft_core.format.log_dirs import UnreadPath
from transforms.ingest.archives import NO_FILE, ArchiveError, is_archive, target_of, unpack

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo

# Files up to this are fetched at once: side files, describe outputs, small segments.
WHOLE_BYTES = 4 * EDGE_BYTES
THREADS = 16
# Members of an archive that are named when they are skipped.
MOST_NAMED = 20
Reader = Callable[[Path, Any, "FileInfo"], None]
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
HADOOP_S3 = re.compile(r"s3[an]://")


class InputError(Exception):
    """A path that cannot be read: the message says which, why, and what to do next."""


class Inputs:
    """The local folders to search.

    roots: folders and files on this machine. left_out: paths and members that were skipped.
    unreadable: files below the roots that could not be unpacked or fetched, with the reason.
    """

    def __init__(self) -> None:
        self.roots: list[Path] = []
        self.left_out: list[UnreadPath] = []
        self.unreadable: dict[Path, str] = {}
        self._names: dict[str, str] = {}
        self._sparse: dict[Path, tuple[Any, FileInfo]] = {}

    def named(self, text: str) -> str:
        """A message with the names of the paths in place of scratch folders."""
        # The latest first: the name of folder 1 is the beginning of that of folder 10.
        for folder, name in reversed(self._names.items()):
            text = text.replace(folder, name)
        return text

    def source_of(self, file: Path) -> str:
        """Where a file can be read by another process: on this machine, or below the URL that it mirrors."""
        named = self.named(str(file))
        return named if SCHEME.match(named) else str(file.absolute())

    def fetch(self, files: Iterable[Path]) -> set[Path]:
        """Fetch those of the files that are sparse. Returns those that are no longer what was mirrored.

        They are mirrored again, or unreadable, or gone.
        """
        wanted = [path for path in files if path in self._sparse]
        with ThreadPoolExecutor(THREADS) as threads:
            fetched = list(threads.map(self._is_fetched, wanted))
        return {path for path, whole in zip(wanted, fetched, strict=True) if not whole}

    def _is_fetched(self, path: Path) -> bool:
        files, info = self._sparse.pop(path)
        if _unread(path, files, info, fill) is None:
            return True
        try:
            now = files.get_file_info(info.path)
        except OSError as error:
            self.unreadable[path] = str(error).splitlines()[0]
            return False
        if now.is_file:
            self._lay_out(path, files, now)
        return False

    def _lay_out(self, path: Path, files: Any, info: FileInfo) -> None:
        if info.size > WHOLE_BYTES:
            self._sparse[path] = (files, info)
        if reason := _unread(path, files, info, lay_out):
            self.unreadable[path] = reason
            self._sparse.pop(path, None)

    def add(self, name: str, scratch: Path | None) -> None:
        """Add a path; scratch may be None where all are folders. Raises InputError."""
        if scratch is None or not (SCHEME.match(name) or (is_archive(name) and Path(name).is_file())):
            self.roots.append(Path(name))
            return
        folder = scratch / str(len(self._names))
        self._names[str(folder)] = name
        if SCHEME.match(name):
            self._add_remote(name, folder)
        else:
            self._add_archive(Path(name), folder)

    def _add_archive(self, archive: Path, folder: Path) -> None:
        folder.mkdir()
        try:
            skipped = unpack(archive, folder)
            for member, reason in skipped[:MOST_NAMED]:
                self.left_out.append(UnreadPath(folder, f"{member}: {reason}"))
            if len(skipped) > MOST_NAMED:
                more = f"{len(skipped) - MOST_NAMED:,} more members were skipped"
                self.left_out.append(UnreadPath(folder, more))
            for member, reason in skipped:
                path = target_of(folder, member)
                if path and reason == NO_FILE:
                    self.unreadable[path] = f"{reason} in its archive"
        except ArchiveError as error:
            shutil.rmtree(folder)
            folder.mkdir()
            self.left_out.append(UnreadPath(folder, str(error), is_unreadable=True))
        self.roots.append(folder)

    def _add_remote(self, name: str, folder: Path) -> None:
        import pyarrow as pa
        from pyarrow import fs

        try:
            files, base = fs.FileSystem.from_uri(HADOOP_S3.sub("s3://", name))
            found = files.get_file_info(base)
            if found.type == fs.FileType.File and is_archive(base):
                packed = folder.with_name(f"{folder.name}-{found.base_name}")
                fill(packed, files, found)
                self._add_archive(packed, folder)
                packed.unlink()
                return
            if found.type != fs.FileType.Directory:
                raise InputError(f"{name} does not exist: give a folder that contains controller directories")
            listed = files.get_file_info(fs.FileSelector(base, recursive=True))
            self._mirror(files, base, [i for i in listed if i.type == fs.FileType.File], folder)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{name} cannot be read: {str(error).splitlines()[0]}") from None
        self.roots.append(folder)

    def _mirror(self, files: Any, base: str, listed: Sequence[FileInfo], folder: Path) -> None:
        """Create the files below the folder: small ones whole, others sparse."""
        folder.mkdir()
        laid_out = []
        for info in listed:
            path = target_of(folder, str(PurePosixPath(info.path).relative_to(base)))
            if path is None:
                self.left_out.append(UnreadPath(folder, f"{info.path}: its path leads out of the folder"))
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            laid_out.append((path, info))
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(lambda item: self._lay_out(item[0], files, item[1]), laid_out))


@contextmanager
def opened_inputs(captures: Sequence[str], scratch: Path | None) -> Iterator[Inputs]:
    """The folders, archives and remote trees of captures, for as long as the block lasts.

    `scratch`: a folder for unpacked and fetched files, visible to every Spark worker; None for the system's.
    Raises InputError.
    """
    inputs = Inputs()
    with ExitStack() as stack:
        if any(SCHEME.match(name) or is_archive(name) for name in captures):
            folder = tempfile.TemporaryDirectory(prefix="kraftlake-", dir=scratch)
            scratch = Path(stack.enter_context(folder))
        try:
            for name in captures:
                inputs.add(name, scratch)
        except InputError as error:
            raise InputError(inputs.named(str(error))) from None
        yield inputs


def _unread(path: Path, files: Any, info: FileInfo, read: Reader) -> str | None:
    """Lay out or fill a file. Returns why that failed: then there is no such file."""
    try:
        read(path, files, info)
    except (InputError, OSError) as error:
        path.unlink(missing_ok=True)
        return str(error).splitlines()[0]
    return None


def lay_out(path: Path, files: Any, info: FileInfo) -> None:
    """Create a file of the true size and time: the whole of a small one, else only its edges."""
    if info.size <= WHOLE_BYTES:
        fill(path, files, info)
        return
    with files.open_input_file(info.path) as source, path.open("wb") as file:
        file.write(source.read_at(EDGE_BYTES, 0))
        file.seek(info.size - EDGE_BYTES)
        file.write(source.read_at(EDGE_BYTES, info.size - EDGE_BYTES))
    os.utime(path, ns=(info.mtime_ns, info.mtime_ns))


def fetched(url: str, path: Path, size_bytes: int) -> None:
    """Fetch a file that was listed with that size. Raises InputError."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        files, place = fs.FileSystem.from_uri(HADOOP_S3.sub("s3://", url))
        info = files.get_file_info(place)
        if not info.is_file or info.size != size_bytes:
            raise InputError("it changed or was deleted after it was listed")
        fill(path, files, info)
    except (OSError, pa.ArrowException) as error:
        raise InputError(str(error).splitlines()[0]) from None


def fill(path: Path, files: Any, info: FileInfo) -> None:
    """Fetch a whole file. Raises InputError where its size is no longer the listed one."""
    try:
        with files.open_input_stream(info.path, compression=None) as source, path.open("wb") as file:
            shutil.copyfileobj(source, file, 1024 * 1024)
    except OSError as error:
        raise InputError(f"{info.path} cannot be read: {str(error).splitlines()[0]}") from None
    if path.stat().st_size != info.size:
        raise InputError(
            f"{info.path} changed while it was read: run again, on a copy that nothing writes to"
        )
    os.utime(path, ns=(info.mtime_ns, info.mtime_ns))
