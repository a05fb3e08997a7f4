"""Finds the files of logs in a tree of files, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kraft_core.format.log_dirs import BOOTSTRAP_NAME, UnreadPath, directories_below
from kraft_core.format.snapshot import parse_name

_SEGMENT = re.compile(r"(\d{20})\.log", re.ASCII)
_MAX_OFFSET = (1 << 63) - 1


def parse_segment_name(name: str) -> int | None:
    """The base offset in a segment's file name; None for any other name."""
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) <= _MAX_OFFSET else None


def find_log_files(root: Path) -> Iterator[Path | UnreadPath]:
    """The finished checkpoints, then the segments, of each directory at or below a root."""
    for found in directories_below(root, set()):
        if isinstance(found, UnreadPath):
            yield found
            continue
        try:
            names = sorted(path.name for path in found.iterdir())
        except OSError as error:
            yield UnreadPath(found, error.strerror or str(error))
            continue
        yield from (found / name for name in names if name == BOOTSTRAP_NAME or _is_finished(name))
        yield from (found / name for name in names if parse_segment_name(name) is not None)


def _is_finished(name: str) -> bool:
    snapshot_id = parse_name(name)
    return snapshot_id is not None and not snapshot_id.suffix
