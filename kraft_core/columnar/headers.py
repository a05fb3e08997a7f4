"""The headers of a file's batches, by the compiled scan, and what lies between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraft_core.columnar.kernel import HEADER_COLUMNS, scan_batches
from kraft_core.columnar.window import Window
from kraft_core.format.batch import BatchHeader
from kraft_core.format.segment import Damage, scan

ROWS = 65536
# How much of the file is scanned at once, plus at most one batch.
_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Headers:
    """Consecutive batches, an item each; crc unsigned, timestamps in ms, clamped (timestamps.py)."""

    position: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    base_offset: NDArray[np.int64]
    last_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int64]
    crc: NDArray[np.int64]
    attributes: NDArray[np.int64]
    record_count: NDArray[np.int64]
    base_timestamp: NDArray[np.int64]
    max_timestamp: NDArray[np.int64]

    @property
    def end(self) -> int:
        """The position after the last one."""
        return int(self.position[-1] + self.size_bytes[-1])


def scan_window(
    window: Window, start: int, end: int | None, next_offset: int | None = None
) -> Iterator[Headers | list[Damage]]:
    """The results of segment.scan in the same order, consecutive good batches together."""
    position = start
    stop = window.stop(end)
    columns = np.empty((HEADER_COLUMNS, ROWS), dtype=np.int64)
    while position < stop:
        headers = _good_batches(window, position, stop, columns)
        if headers is not None:
            yield headers
            position = headers.end
            next_offset = int(headers.last_offset[-1]) + 1
            window.release(position)
        else:
            damages = _damages(window, position, stop, next_offset)
            yield damages
            position = damages[-1].end


def _good_batches(window: Window, position: int, stop: int, columns: NDArray[np.int64]) -> Headers | None:
    """As many as fit into `columns`."""
    base = window.address
    pause = min(position + _BYTES, stop)
    rows = scan_batches(base + position, base + stop, base + pause, columns.ctypes.data, ROWS)
    if rows == 0:
        return None
    found = columns[:, :rows].copy()
    found[0] -= base
    return Headers(*found)


def _damages(window: Window, position: int, stop: int, next_offset: int | None) -> list[Damage]:
    """The damage up to the next good batch."""
    found: list[Damage] = []
    for item in scan(window.buf, position, stop, next_offset):
        if isinstance(item, BatchHeader):
            break
        found.append(item)
    return found


def next_good(window: Window, position: int, stop: int) -> int:
    """The position of the next good batch after bad bytes; `stop` if there is none."""
    return _damages(window, position, stop, None)[-1].end
