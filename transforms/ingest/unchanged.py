"""Whether the files of an ingest are still those planned after they have been read.

A plan identifies a capture by the sizes and edges of its files. What is then read must be these bytes: a log
that shrinks meanwhile to the end of a batch would look like a whole one. A file that only grew still begins
with them.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kraft_core.format.capture import still_holds
from transforms.ingest.captured_files import CaptureCopy, CapturedFile, CapturedSegment
from transforms.ingest.known_files import IngestFiles
from transforms.lake.arrow_rows import Row

# Reasons of damage by which a file went away, or became shorter, before it was opened.
GONE = tuple(f"unreadable: {os.strerror(code)}" for code in (errno.ENOENT, errno.ESTALE))


class CapturesChangedError(Exception):
    """Captures whose files are no longer what was planned; nothing of the ingest may be stored."""

    def __init__(self, copies: Iterable[CaptureCopy]) -> None:
        self.copies = tuple(copies)
        super().__init__(", ".join(str(copy.directory.path) for copy in self.copies))


def check_files(files: IngestFiles) -> None:
    """Raises CapturesChangedError where a file to be read is not what was planned."""
    opened = [f for f in (*files.opened, *files.checkpoints) if f.digests is not None]
    with ThreadPoolExecutor(8) as threads:
        holds = list(threads.map(_holds, opened))
    _raise_for(files, (file for file, held in zip(opened, holds, strict=True) if not held))


def check_fetched(files: IngestFiles, changed: Collection[Path]) -> None:
    """The same, from the paths that could not be fetched as they were planned."""
    _raise_for(files, (f for f in (*files.opened, *files.checkpoints) if f.path in changed))


def check_scan(files: IngestFiles, ranges: Iterable[Row], damage: Iterable[Row], read: Iterable[Row]) -> None:
    """The same, from what a scan found.

    ranges: rows of file_ranges.RANGES. damage: rows with file_number. read: rows of
    checkpoints.CHECKPOINTS.
    """
    _raise_for(files, (*_short_segments(files, ranges, damage), *_other_checkpoints(files, read)))


def _short_segments(
    files: IngestFiles, ranges: Iterable[Row], damage: Iterable[Row]
) -> Iterator[CapturedFile]:
    """The segments that were gone when they were opened, or of which fewer bytes were read than planned."""
    sizes: Counter[int] = Counter()
    gone: set[int] = set()
    for row in ranges:
        sizes[row["file_number"]] += row["size_bytes"]
    for row in damage:
        sizes[row["file_number"]] += row["size_bytes"]
        if row["reason"] in GONE:
            gone.add(row["file_number"])
    for number, file in enumerate(files.opened):
        if number in gone or sizes[number] < file.size_bytes:
            yield file


def _other_checkpoints(files: IngestFiles, read: Iterable[Row]) -> Iterator[CapturedFile]:
    """The checkpoints that were gone when they were opened, or had another size."""
    for row in read:
        file = files.checkpoints[row["file_number"]]
        gone = any(lost["reason"] in GONE for lost in row["damage"])
        if gone or row["size_bytes"] != file.size_bytes:
            yield file


def _holds(file: CapturedFile) -> bool:
    """Of a segment just the planned bytes were read; a checkpoint is read to its end, and never grows."""
    if file.digests is None or not still_holds(file.path, file.digests):
        return False
    try:
        return isinstance(file, CapturedSegment) or file.path.stat().st_size == file.file.size_bytes
    except OSError:
        return False


def _raise_for(files: IngestFiles, changed: Iterable[CapturedFile]) -> None:
    numbers = sorted({file.copy for file in changed})
    if numbers:
        raise CapturesChangedError(files.copies[number] for number in numbers)
