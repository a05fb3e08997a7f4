"""Paths given to a verb that are of this machine, as all are but lakes and captures to read."""

from __future__ import annotations

from pathlib import Path

from jobs.runtime.outcome import Failure
from transforms.lake.storage.location import is_url, shown


def local_path(word: str) -> Path:
    """A path. Raises Failure for a URL, which would name a folder of the current one."""
    if is_url(word):
        raise Failure(f"{shown(word)} is a URL: name a file or folder of this machine")
    return Path(word)
