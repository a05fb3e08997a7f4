"""Scan captured segments: every byte is checked, batch headers are returned, nothing is decoded.

Damage is returned beside the batches, with the offsets that were lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.columnar.schema import HEADERS
from transforms.lake.arrow_rows import Row, gathered

# A file to read from position `start` on; file_number identifies it in every row that is made of it.
# first_offset is the one expected at `start`; address is the place of `start` in the concatenation of what is
# to be read of all files.
FILES = pa.schema(
    [
        ("file_number", pa.int32()),
        ("task", pa.int32()),
        ("path", pa.string()),
        ("start", pa.int64()),
        ("address", pa.int64()),
        ("first_offset", pa.int64()),
        ("size_bytes", pa.int64()),
    ]
)
# run_index counts the ranges of one epoch without a gap within the file; lost offsets are set for damage.
SCANNED = pa.schema(
    [
        FILES.field("file_number"),
        FILES.field("address"),
        *(column for column in HEADERS if column.name != "base_timestamp"),
        ("run_index", pa.int64()),
        ("lost_from_offset", pa.int64()),
        ("lost_to_offset", pa.int64()),
    ]
)
# A record batch costs Spark the same whatever its size: those of small files are joined.
ROWS_AT_ONCE = 8192
# Every range of a file becomes a row in the driver. After this many places in a file that are damaged or out
# of order, and after this many epochs, the rest of it is quarantined: no log of Kafka's is like that.
MOST_FAULTS, MOST_RANGES = 2_000, 100_000
DISORDERED = "disordered"


def together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, small record batches joined."""
    return map(concat, gathered(batches, ROWS_AT_ONCE))


def of_files(
    batches: Iterator[pa.RecordBatch], read: Callable[[Row], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """What is read of each file of the rows in turn, small record batches joined."""
    files = (file for batch in batches for file in batch.to_pylist())
    return together(part for file in files for part in read(file))


def scan_file(file: Row) -> Iterator[pa.RecordBatch]:
    """The rows of SCANNED of one segment."""
    from kraft_core.columnar.fast import (
        scan_headers,
    )  # loads the compiled kernel, which the planning process does not need

    follow = RangeNumbering(file["first_offset"])
    try:
        planned = file["start"], file["size_bytes"]
        for headers in scan_headers(file["path"], *planned, next_offset=file["first_offset"]):
            yield numbered(file, follow.batch(headers))
            if follow.stopped_at is not None:
                rest = damage(follow.stopped_at, file["size_bytes"], DISORDERED)
                yield numbered(file, follow.batch(rest))
                break
    except OSError as error:
        reason = f"unreadable: {error.strerror or error}"
        yield numbered(file, follow.batch(damage(file["start"], file["size_bytes"], reason)))
    held_back = follow.end()
    if held_back is not None:
        yield numbered(file, held_back)


def damage(start: int, end: int, reason: str) -> pa.RecordBatch:
    """Bytes of a file of which nothing was read."""
    row = {"position": start, "size_bytes": end - start, "reason": reason}
    return pa.RecordBatch.from_pylist([row], schema=HEADERS)


class RangeNumbering:
    """Numbers the epoch ranges of a file and finds the offsets that each damage lost.

    Damage is held back until the next good batch shows where the loss ended. stopped_at: the position from
    which on nothing was numbered, because the file has too many faults or ranges before.
    """

    def __init__(self, first_offset: int) -> None:
        self._next_offset = first_offset
        self._epoch = -1
        self._run = 0
        self._faults = 0
        self._damage: list[pa.RecordBatch] = []
        self.stopped_at: int | None = None

    def batch(self, headers: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the headers' batches, and of the held damage that ends at one of them."""
        good = np.asarray(headers["reason"].is_null())
        parts = []
        edges = np.flatnonzero(np.diff(good.astype(np.int8))) + 1
        for start, end in zip([0, *edges], [*edges, len(good)], strict=True):
            part = headers.slice(start, end - start)
            if len(part) == 0:
                continue
            if not good[start]:
                self._faults += len(part)
                self._damage.append(part)
                continue
            is_after_damage = bool(self._damage)
            parts.extend(self._release(part["base_offset"][0].as_py()))
            parts.append(self._number(part, is_after_damage))
            if self.stopped_at is not None:
                break
        return concat([self._empty(headers), *parts])

    def end(self) -> pa.RecordBatch | None:
        """The damage at the end of the file."""
        rest = self._release(None)
        return concat(rest) if rest else None

    def _release(self, lost_to: int | None) -> list[pa.RecordBatch]:
        # A batch of earlier offsets does not show where the loss ended.
        lost_to = None if lost_to is None or lost_to < self._next_offset else lost_to
        released = [extended(part, None, self._next_offset, lost_to) for part in self._damage]
        self._damage = []
        return released

    def _number(self, part: pa.RecordBatch, is_after_damage: bool) -> pa.RecordBatch:
        epochs = part["leader_epoch"].to_numpy()
        starts = part["base_offset"].to_numpy()
        ends = part["last_offset"].to_numpy() + 1
        expected = np.concatenate([[self._next_offset], ends[:-1]])
        before = np.concatenate([[self._epoch], epochs[:-1]])
        disordered = (starts != expected) | (epochs < before)
        disordered[0] &= not (is_after_damage and starts[0] > expected[0])  # damage explains the gap
        faults = self._faults + np.cumsum(disordered)
        runs = self._run + np.cumsum((starts != expected) | (epochs != before))
        count = int(np.argmax(np.append((faults > MOST_FAULTS) | (runs > MOST_RANGES), True)))
        if count < len(part):
            self.stopped_at = part["position"][count].as_py()
        if count == 0:
            return self._empty(part)
        last = count - 1
        self._next_offset, self._epoch = int(ends[last]), int(epochs[last])
        self._run, self._faults = int(runs[last]), int(faults[last])
        return extended(part.slice(0, count), runs[:count], None, None)

    @staticmethod
    def _empty(headers: pa.RecordBatch) -> pa.RecordBatch:
        return extended(headers.slice(0, 0), None, None, None)


def extended(
    part: pa.RecordBatch, runs: np.ndarray | None, lost_from: int | None, lost_to: int | None
) -> pa.RecordBatch:
    """Headers with the three columns that SCANNED adds."""
    size = len(part)
    added = {
        "run_index": pa.nulls(size, pa.int64()) if runs is None else pa.array(runs, pa.int64()),
        "lost_from_offset": pa.array([lost_from] * size, pa.int64()),
        "lost_to_offset": pa.array([lost_to] * size, pa.int64()),
    }
    for name, column in added.items():
        part = part.append_column(name, column)
    return part


def concat(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Record batches of one schema as one."""
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def numbered(file: Row, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with the file's number and their address before them."""
    number = pa.array(np.full(len(rows), file["file_number"], np.int32))
    address = pc.add(rows["position"], file["address"] - file["start"])
    others = [rows[name] for name in SCANNED.names[2:]]
    return pa.RecordBatch.from_arrays([number, address, *others], schema=SCANNED)
