"""Local copies of a store's tables: Delta logs, and small data files.

delta-rs reads a log again at many of its calls, and Arrow a data file at each scan; a store takes a request
for each. Neither kind of file is ever written again, so that one is fetched once. delta-rs makes its commits
in the copy, from where they are written to the store: by one conditional request, or not at all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Lock

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from transforms.lake.storage import objects
from transforms.lake.storage.files import FoundFile
from transforms.lake.storage.listing import LOG, commit_name, is_commit_name
from transforms.lake.storage.location import StoreUrl
from transforms.lake.tables import RUNS
from transforms.lake.tables.declaration import CHECKPOINT_EVERY, LOG_KEPT_DAYS

# Data files up to this size are copied, if a table has at most this many of them. Bytes.
SMALL_BYTES, MOST_SMALL = 1024 * 1024, 64
# And as long as the copies of a process have less than that. Bytes.
MOST_BYTES = 1024 * 1024 * 1024
FETCHERS = 8
# How many commits, at most, come after the last checkpoint of `runs`, of which a run with nothing new fetches
# them. That run also looks for old commits every this many versions.
RUNS_CHECKPOINT_EVERY, RUNS_EXPIRE_EVERY = 2, 50
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
        self._commit: FoundFile | None = None  # that of the version
        self._fetching = Lock()

    @property
    def table(self) -> DeltaTable:
        """Its newest version that is known. Raises DeltaError, also where there is none."""
        if self._table is None:
            self._table = DeltaTable(str(self.place))
        elif self._table.version() < self.version:
            self._table.update_incremental()
        if self._table.version() != self.version:
            raise DeltaError(f"{self._folder} has version {self.version}, read as {self._table.version()}")
        return self._table

    def look(self) -> None:
        """Ask the store for newer versions. Raises OSError."""
        self.bring_up(self._listed(None if self.version < 1 else commit_name(self.version - 1)))

    def bring_up(self, listed: Mapping[str, FoundFile]) -> None:
        """Fetch what is newer in the log, by the files in it: all, or those from the known version's on.

        Raises OSError.
        """
        if self.version >= 0 and listed.get(commit_name(self.version)) != self._commit:
            # An older listing, or the table is another one: it was restored, recreated, or lost old commits.
            self._begin_anew()
            listed = self._listed()
        names = needed(listed, self.version)
        try:
            self._fetch_log(names)
        except BaseException:
            self.forget_unpublished()
            raise
        self.version = max([self.version, *map(_version, filter(is_commit_name, names))])
        self._commit = listed.get(commit_name(self.version))

    def must_be_whole(self) -> None:
        """Raises OSError where the copy holds what the store does not."""
        if later := self._unpublished():
            raise OSError(f"{self._folder} has version {self.version}, and its copy {sorted(later)}")

    def publish(self) -> None:
        """Put the version that delta-rs has made in the copy into the store.

        Raises CommitFailedError where another commit has that version, and OSError.
        """
        version = self.version + 1
        made = self._log / commit_name(version)
        if {name for name in self._unpublished() if is_commit_name(name)} != {made.name}:
            raise OSError(f"no version {version} of {self._folder} was made: {sorted(self._unpublished())}")
        commit = put_once(self._folder / LOG / made.name, made.read_bytes())
        if commit is None:
            raise CommitFailedError(f"{self._folder} has another version {version}")
        self.version, self._commit = version, commit
        if is_checkpoint_due(self._folder, version):
            self.put_checkpoint()

    def forget_unpublished(self) -> None:
        """Remove what is made in the copy and the store has not, or may not have."""
        names = self._unpublished()
        # A checkpoint of theirs is named in the hint, without which delta-rs finds an older one.
        hint = [_LAST_CHECKPOINT] if any(name.endswith(_CHECKPOINT) for name in names) else []
        for name in [*names, *hint]:
            (self._log / name).unlink(missing_ok=True)
        self._table = None

    def _unpublished(self) -> list[str]:
        """The names of what the copy's log has of versions after the known one."""
        names = [file.name for file in self._log.iterdir()]
        return [name for name in names if _is_numbered(name) and _version(name) > self.version]

    def _listed(self, after: str | None = None) -> dict[str, FoundFile]:
        found = objects.below(self._folder / LOG, after)
        return {file.name: FoundFile(file.size_bytes, file.tag) for file in found}

    def _begin_anew(self) -> None:
        for file in self._log.iterdir():
            file.unlink()
        self.version, self._commit, self._table = -1, None, None

    def _fetch_log(self, names: Sequence[str]) -> None:
        with ThreadPoolExecutor(FETCHERS) as threads:
            contents = list(threads.map(lambda name: _content(self._folder / LOG / name), names))
        if not all(map(is_commit_name, names)):
            self._begin_anew()
        for name, content in zip(names, contents, strict=True):
            _write(self._log / name, content)

    def fetch(self, sizes: Mapping[str, int]) -> Collection[str]:
        """Of data files with these sizes in bytes, those that are in the copy now. Raises OSError."""
        small = [name for name, size_bytes in sizes.items() if size_bytes <= SMALL_BYTES and "/" not in name]
        if len(small) > MOST_SMALL:
            return ()
        with self._fetching, ThreadPoolExecutor(FETCHERS) as threads:
            missing = [name for name in small if not (self.place / name).is_file()]
            if sum(_copied_bytes) + sum(map(sizes.__getitem__, missing)) > MOST_BYTES:
                return [name for name in small if name not in missing]
            contents = threads.map(lambda name: objects.content(self._folder / name), missing)
            for name, content in zip(missing, contents, strict=True):
                _write(self.place / name, content)
                _copied_bytes.append(len(content))
        return small

    def put_checkpoint(self) -> dict[str, FoundFile]:
        """Put a checkpoint of the version: each commit since then is fetched by a request of its own.

        Returns its files by their names in the log.
        """
        checkpoint = self._log / f"{self.version:020d}{_CHECKPOINT}"
        # delta-rs makes fewer of `runs`.
        if not checkpoint.is_file():
            self.table.create_checkpoint()
        made: dict[str, FoundFile] = {}
        for file in (checkpoint, self._log / _LAST_CHECKPOINT):
            content = file.read_bytes()
            made[file.name] = FoundFile(len(content), objects.put(self._folder / LOG / file.name, content))
        if not _is_runs(self._folder) or (self.version + 1) % RUNS_EXPIRE_EVERY == 0:
            self._remove_expired()
        return made

    def _remove_expired(self) -> None:
        """Remove commits and checkpoints that an old checkpoint replaces, from the store alone."""
        log, before = self._folder / LOG, time.time() - LOG_KEPT_DAYS * 86_400
        old = [found.name for found in objects.below(log) if found.written_at < before]
        newest = max((_version(name) for name in old if name.endswith(_CHECKPOINT)), default=-1)
        objects.delete_all([log / name for name in old if _is_numbered(name) and _version(name) < newest])


def is_checkpoint_due(folder: StoreUrl, version: int) -> bool:
    """Whether a version of the table in a folder is one with a checkpoint."""
    return (version + 1) % (RUNS_CHECKPOINT_EVERY if _is_runs(folder) else CHECKPOINT_EVERY) == 0


def _is_runs(folder: StoreUrl) -> bool:
    return folder.name == RUNS.name


def needed(listed: Iterable[str], known: int) -> list[str]:
    """Of the names in a log those that make its newest version, rising; but those of known versions."""
    names = list(listed)
    commits = {_version(name) for name in names if is_commit_name(name)}
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
    if made is None and _holds(place, content):
        made = ""
    return None if made is None else FoundFile(len(content), made)


def note_made(place: StoreUrl, content: bytes) -> None:
    """What was put as a commit need not be fetched for a copy of the table."""
    _made[place] = content


def _content(place: StoreUrl) -> bytes:
    made = _made.pop(place, None)
    return objects.content(place) if made is None else made


def _holds(place: StoreUrl, content: bytes) -> bool:
    """Whether an object is there and has that content. Raises OSError."""
    try:
        return objects.content(place) == content
    except FileNotFoundError:  # of a store that refuses for another reason
        return False


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


def _version(name: str) -> int:
    return int(name[:20])


@cache
def _root() -> str:
    """The folder of all copies, which goes with this process."""
    _folders.append(TemporaryDirectory(prefix="kraftlake-"))
    return _folders[0].name


_folders: list[TemporaryDirectory[str]] = []
_copied_bytes: list[int] = []
_made: dict[StoreUrl, bytes] = {}
