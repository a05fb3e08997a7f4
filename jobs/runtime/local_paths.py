"""Local paths given to a verb: all paths except lakes and captures to read."""

from __future__ import annotations

from pathlib import Path

from jobs.runtime.outcome import Failure


def local_path(word: str) -> Path:
    """A path. Raises Failure for a URL, which would name a folder of the current one."""
    # The package takes a seventh of the time of a small dump to import.
    from transforms.lake.storage.location import is_url, shown

    if is_url(word):
        raise Failure(f"{shown(word)} is a URL: give a file or folder on this machine")
    return Path(word)
