"""Pieces of a file that can be read apart: they begin and end where batches do."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from kraft_core.columnar.headers import Headers, scan_window
from kraft_core.columnar.window import opened


def plan_ranges(path: Path | str, target_bytes: int) -> list[tuple[int, int]]:
    """Ranges (start inclusive, end exclusive) that cover the file, in order; [] for an empty one.

    Each is as long as target_bytes or longer by less than a batch or a damage, the last one may be shorter.
    Cuts are where good batches begin, their checksums checked, so ranges read one by one give the records
    of the whole file. OSError when it cannot be read; ValueError for a target below 1.
    """
    if target_bytes < 1:
        raise ValueError(f"ranges of {target_bytes} bytes")
    with opened(path) as window:
        cuts = [0]
        for piece in scan_window(window, 0, None):
            if isinstance(piece, Headers):
                _cut(cuts, piece, target_bytes)
        cuts.append(window.size)
    return [(start, end) for start, end in pairwise(cuts) if start < end]


def _cut(cuts: list[int], headers: Headers, target_bytes: int) -> None:
    """Adds every cut that falls on the beginning of one of these batches."""
    while True:
        first = int(np.searchsorted(headers.position, cuts[-1] + target_bytes))
        if first == len(headers.position):
            return
        cuts.append(int(headers.position[first]))
