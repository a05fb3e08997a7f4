"""Tables on a file system stay open: a process reopens one only if its log has changed.

A run asks for the newest version of each table some ten times; opening one takes delta-rs milliseconds. The
log of a lake that is followed has tens of thousands of commits: it is listed once after each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from transforms.lake.storage.listing import LOG, commit_name, is_commit_name

# What changes whenever a file is written again, replaced, or may be read by others; or a folder's entries do.
_Status = tuple[int, int, int]
# Of a checkpoint in one file: what is below it is not read again.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")

# More than the tables of a few lakes.
MOST_OPEN = 200


@dataclass(frozen=True, slots=True)
class _Log:
    """A log as it was listed. version: of its newest commit; files: what opening the table reads, by name."""

    folder: Path
    listed: _Status
    version: int
    files: Mapping[str, _Status]

    def stands(self) -> bool:
        """Whether all is as it was. A commit within a tick of the clock after the listing is looked for."""
        try:
            return (
                _status(self.folder) == self.listed
                and not (self.folder / commit_name(self.version + 1)).exists()
                and all(_status(self.folder / name) == known for name, known in self.files.items())
            )
        except OSError:
            return False


_open: dict[Path, tuple[_Log, DeltaTable]] = {}


@contextmanager
def kept_open(folder: Path, opened: Callable[[], DeltaTable]) -> Iterator[DeltaTable]:
    """The newest version of a table, for the block alone. opened: how it is opened; its errors are raised."""
    # Taken out: another thread that needs it meanwhile opens its own.
    known = _open.pop(folder, None)
    if known is not None and known[0].stands():
        log, held = known
    else:
        log, held = _log(folder / LOG), opened()
    yield held
    # A commit within the block has moved it, or one has come between listing and opening.
    if log is None or held.version() != log.version:
        log = _log(folder / LOG)
    if log is not None and held.version() == log.version:
        if len(_open) >= MOST_OPEN:
            _open.clear()
        _open[folder] = log, held


def _log(folder: Path) -> _Log | None:
    """None where it cannot be listed, or changes meanwhile."""
    try:
        listed = _status(folder)
        names = [place.name for place in folder.iterdir()]
        commits = [int(name[:-5]) for name in names if is_commit_name(name)]
        read_from = max((found[1] for found in map(_CHECKPOINT.fullmatch, names) if found), default="")
        files = {
            name: _status(folder / name) for name in names if name >= read_from or not name[:1].isdigit()
        }
    except OSError:
        return None
    return _Log(folder, listed, max(commits, default=-1), files)


def _status(path: Path) -> _Status:
    found = path.stat()
    return found.st_ctime_ns, found.st_size, found.st_ino
