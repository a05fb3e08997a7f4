"""Local paths given to a verb: all paths except lakes and captures to read."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.runtime.outcome import Failure


def local_path(word: str) -> Path:
    """A path. Raises Failure for a URL, which would name a folder of the current one."""
    # The package takes a seventh of the time of a small dump to import.
    from transforms.lake.storage.location import is_url, shown

    if is_url(word):
        raise Failure(f"{shown(word)} is a URL: give a file or folder on this machine")
    return Path(word)


def file_path(word: str) -> Path:
    """The path of a file that is there or is to be made."""
    file = local_path(word)
    if file.is_dir():
        raise ArgumentTypeError(f"{word} is a folder: give the path of a file")
    return file


@contextmanager
def put_in_place(out: Path) -> Iterator[Path]:
    """The path to write to; it replaces `out` at the end, unless the block fails. Raises OSError.

    A device or a pipe, such as /dev/stdout, is written to itself: a file must not replace it.
    """
    if out.exists() and not out.is_file():
        yield out
        return
    whole = out.resolve()
    part = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        yield part
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)


def output_file(word: str) -> Path:
    """A file to write, in a folder that is there: checked before anything is read for it."""
    file = file_path(word)
    if not file.absolute().parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {file.parent} for {file.name}")
    return file
