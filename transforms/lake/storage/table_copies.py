"""Tables of a store as this process knows them: Delta logs, and small data files, copied to this machine.

delta-rs reads a log again at many of its calls, and Arrow a data file at each scan; a store takes a request
for each. Neither kind of file is ever written again, so that one is fetched once. delta-rs makes its commits
in the copy, from where they are put into the store: by one conditional request, or not at all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Lock

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from transforms.lake.storage import objects
from transforms.lake.storage.files import FoundFile
from transforms.lake.storage.listing import LOG, commit_name
from transforms.lake.storage.location import StoreUrl

# Data files up to this size are copied, where a table has at most so many of them. Bytes.
SMALL_BYTES, MOST_SMALL = 1024 * 1024, 64
# Commits below a checkpoint are removed when both are older than that, Delta's own default. Seconds.
KEPT_SECONDS = 30 * 24 * 3600
FETCHERS = 8
_CHECKPOINT, _LAST_CHECKPOINT = ".checkpoint.parquet", "_last_checkpoint"


class TableCopy:
    """A table of a store. Owns a folder with what is known of it; a thread at a time uses it.

    version: the newest that is known to be in the store; -1 before the first.
    """

    def __init__(self, folder: StoreUrl) -> None:
        self.place = Path(mkdtemp(prefix=f"{folder.name}-", dir=_root()))
        self.version = -1
        self._folder = folder
        self._log = self.place / LOG
        self._log.mkdir()
        self._table: DeltaTable | None = None
        self._fetching = Lock()

    @property
    def table(self) -> DeltaTable:
        """Its newest version that is known. Raises DeltaError where there is none."""
        if self._table is None:
            self._table = DeltaTable(str(self.place))
        elif self._table.version() < self.version:
            self._table.update_incremental()
        return self._table

    def look(self) -> None:
        """Ask the store for newer versions. Raises OSError."""
        after = commit_name(self.version) if self.version >= 0 else None
        found = objects.below(self._folder / LOG, after)
        self.bring_up(name.name for name in found)

    def bring_up(self, listed: Iterable[str]) -> None:
        """Fetch what is newer in the log, by all names in it, or by those after the known version's.

        Raises OSError.
        """
        names = needed(listed, self.version)
        with ThreadPoolExecutor(FETCHERS) as threads:
            contents = list(threads.map(lambda name: objects.content(self._folder / LOG / name), names))
        for name, content in zip(names, contents, strict=True):
            _write(self._log / name, content)
        if not all(map(_is_commit, names)):
            self._table = None
        self.version = max([self.version, *map(_version, filter(_is_commit, names))])

    def publish(self) -> None:
        """Put the version that delta-rs has made in the copy into the store, if it has made one.

        Raises CommitFailedError where another commit has that version, and OSError.
        """
        version = self.version + 1
        made = self._log / commit_name(version)
        if not made.is_file():
            return
        content = made.read_bytes()
        if put_once(self._folder / LOG / made.name, content) is None:
            raise CommitFailedError(f"{self._folder} has another version {version}")
        self.version = version
        checkpoint = self._log / f"{version:020d}{_CHECKPOINT}"
        if checkpoint.is_file():
            for file in (checkpoint, self._log / _LAST_CHECKPOINT):
                objects.put(self._folder / LOG / file.name, file.read_bytes())
            self._remove_expired()

    def forget_unpublished(self) -> None:
        """Remove what delta-rs has made in the copy and the store has not, or may not have."""
        for file in self._log.iterdir():
            if _is_numbered(file.name) and _version(file.name) > self.version:
                file.unlink()
        self._table = None

    def fetch(self, sizes: Mapping[str, int]) -> Collection[str]:
        """Of data files with these sizes in bytes, those that are in the copy now. Raises OSError."""
        small = [name for name, size_bytes in sizes.items() if size_bytes <= SMALL_BYTES and "/" not in name]
        if len(small) > MOST_SMALL:
            return ()
        with self._fetching, ThreadPoolExecutor(FETCHERS) as threads:
            missing = [name for name in small if not (self.place / name).is_file()]
            contents = threads.map(lambda name: objects.content(self._folder / name), missing)
            for name, content in zip(missing, contents, strict=True):
                _write(self.place / name, content)
        return small

    def _remove_expired(self) -> None:
        """Remove commits and checkpoints that an old checkpoint replaces, from the store alone."""
        log, before = self._folder / LOG, time.time() - KEPT_SECONDS
        old = [found.name for found in objects.below(log) if found.written_at < before]
        newest = max((_version(name) for name in old if name.endswith(_CHECKPOINT)), default=-1)
        objects.delete_all([log / name for name in old if _is_numbered(name) and _version(name) < newest])


def needed(listed: Iterable[str], known: int) -> list[str]:
    """Of the names in a log those that make its newest version, rising; but those of known versions."""
    names = list(listed)
    commits = {_version(name) for name in names if _is_commit(name)}
    newest = max(commits, default=-1)
    begins = [known] if known >= 0 else []
    begins += sorted((_version(name) for name in names if name.endswith(_CHECKPOINT)), reverse=True)
    for begin in [*begins, -1]:
        later = range(begin + 1, newest + 1)
        if begin <= newest and commits.issuperset(later) and (begin in commits or begin in (known, -1)):
            # delta-rs commits after a checkpoint only where its commit is there, too.
            is_fetched = begin not in (known, -1)
            held = [f"{begin:020d}{_CHECKPOINT}", commit_name(begin)] if is_fetched else []
            return [*held, *map(commit_name, later)]
    # A checkpoint of several files, or a log that lacks some.
    return sorted(name for name in names if _is_numbered(name))


def put_once(place: StoreUrl, content: bytes) -> FoundFile | None:
    """Make a file of a log. None if there is another. Raises OSError."""
    made = objects.put_new(place, content)
    # Where an answer is lost, the store is asked again, and then finds what it has just made.
    if made is None and objects.content(place) == content:
        made = ""
    return None if made is None else FoundFile(len(content), made)


def _write(file: Path, content: bytes) -> None:
    """Write a file whole, or none."""
    begun = file.with_name(f".{file.name}")
    begun.write_bytes(content)
    begun.replace(file)


def is_in_task() -> bool:
    """Whether this process is a worker of Spark, which is killed when it is done and would leave copies."""
    module = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None


def _is_numbered(name: str) -> bool:
    return name[:20].isdecimal() and "/" not in name


def _is_commit(name: str) -> bool:
    return name.endswith(".json") and name[:-5].isdecimal()


def _version(name: str) -> int:
    return int(name[:20])


@cache
def _root() -> str:
    """The folder of all copies, which goes with this process."""
    _folders.append(TemporaryDirectory(prefix="kraftlake-"))
    return _folders[0].name


_folders: list[TemporaryDirectory[str]] = []
