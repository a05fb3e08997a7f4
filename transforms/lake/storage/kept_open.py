"""Tables on a file system stay open: a process reopens one only if its log has changed.

A run asks for the newest version of each table some ten times; opening one takes delta-rs milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable

from transforms.lake.storage.listing import LOG

# Names in a log with what changes whenever a file is written again, replaced, or may be read by others.
_Log = dict[str, tuple[int, int, int]]

# More than the tables of a few lakes.
MOST_OPEN = 200
_open: dict[Path, tuple[_Log, DeltaTable]] = {}


@contextmanager
def kept_open(folder: Path, opened: Callable[[], DeltaTable]) -> Iterator[DeltaTable]:
    """The newest version of a table, for the block alone. opened: how it is opened; its errors are raised."""
    log = _log(folder)
    # Taken out: another thread that needs it meanwhile opens its own.
    known = _open.pop(folder, None)
    held = known[1] if known is not None and log is not None and known[0] == log else opened()
    version = held.version()
    yield held
    # A commit moved it.
    if log is not None and held.version() == version:
        if len(_open) >= MOST_OPEN:
            _open.clear()
        _open[folder] = log, held


def _log(folder: Path) -> _Log | None:
    """None where it cannot be listed, or changes meanwhile."""
    try:
        with os.scandir(folder / LOG) as entries:
            found = {entry.name: entry.stat() for entry in entries}
    except OSError:
        return None
    return {name: (held.st_ctime_ns, held.st_size, held.st_ino) for name, held in found.items()}
