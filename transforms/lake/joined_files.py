"""Which files of a table are joined: such that neither their number nor what is written again grows.

What was joined at once is a run of files, sorted by cluster; so is each small file. A run is joined with all
smaller ones once these together have an eighth of its size. So the sizes of runs that stay grow by nine times
from one to the next, a row is written again some eight times until they do, and a cluster's rows are in few
places: what LSM trees call a geometric tiering of runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# So many bytes of files are sorted together, for which this machine needs seven times the space; a run of
# half as many stays.
SORTED_BYTES = 256 * 1024 * 1024
# Of smaller files each is a run of its own.
SMALL_BYTES = 16 * 1024 * 1024
# A run that is larger than so many times all smaller ones stays.
TIMES = 8


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a table: its name in the folder, its bytes, and its lowest and highest cluster if known."""

    path: str
    size_bytes: int
    lowest: str | None = None
    highest: str | None = None


def files_to_join(files: Sequence[StoredFile], whole: bool = False) -> list[list[StoredFile]]:
    """Successive files to be sorted together, at least two in each. files: of a table, the oldest first.

    whole: whatever that takes, so that all rows of a cluster are together.
    """
    runs = [run for run in _runs(files) if not _is_full(run)]
    if not whole:
        runs = _worth_joining(runs)
    chosen = {file.path for run in runs for file in run}
    return list(_bins([file for file in files if file.path in chosen]))


def _runs(files: Sequence[StoredFile]) -> Iterator[list[StoredFile]]:
    """Files that were sorted together: they follow each other in time, and their clusters do."""
    run: list[StoredFile] = []
    for file in files:
        if run and not _goes_on(run[-1], file):
            yield run
            run = []
        run.append(file)
    if run:
        yield run


def _goes_on(last: StoredFile, file: StoredFile) -> bool:
    is_large = last.size_bytes >= SMALL_BYTES
    return is_large and last.highest is not None and file.lowest is not None and last.highest <= file.lowest


def _is_full(run: Sequence[StoredFile]) -> bool:
    """Whether a run stays: with another one it would be too large to be sorted."""
    return _size(run) >= SORTED_BYTES // 2


def _worth_joining(runs: Sequence[list[StoredFile]]) -> list[list[StoredFile]]:
    by_size = sorted(runs, key=_size)
    joined = smaller = 0
    for number, run in enumerate(by_size, 1):
        if _size(run) <= TIMES * smaller:
            joined = number
        smaller += _size(run)
    return by_size[:joined]


def _size(run: Sequence[StoredFile]) -> int:
    return sum(file.size_bytes for file in run)


def _bins(files: Sequence[StoredFile]) -> Iterator[list[StoredFile]]:
    """Successive files that together have about SORTED_BYTES, at least two in each."""
    held: list[StoredFile] = []
    for file in files:
        if held and _size(held) + file.size_bytes > SORTED_BYTES:
            if len(held) > 1:
                yield held
            held = []
        held.append(file)
    if len(held) > 1:
        yield held
