"""The captures of a cluster that the lake holds, as far as they tell lives (kraft_core.evidence.lives)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.evidence.life_lines import LoggedCapture, LoggedCheckpoint, LoggedRange
from kraft_core.messages.uuid_text import ZERO_UUID
from transforms.lake.arrow_numbers import numbered
from transforms.lake.arrow_rows import Row, milliseconds, python_rows, python_values

# Columns of captures that tell a life, and of their epoch ranges those that do.
CAPTURED = ("cluster_id", "capture_id", "node_id", "directory_id", "epoch_ranges", "snapshots", "life")
_OF_RANGES = (
    "leader_epoch",
    "first_offset",
    "first_appended_at",
    "first_batch_crc",
    "end_offset",
    "last_appended_at",
)
_Numbers = np.ndarray[Any, np.dtype[np.int64]]


def held_captures(rows: pa.Table, complete: Set[LoggedCheckpoint]) -> list[LoggedCapture]:
    """Of rows (CAPTURED) of one cluster_id those captures that tell its lives; the others are their copies.

    complete: the complete checkpoints above offset 0 under that cluster_id.

    A log that grew says no more than its first and its last state. Take the captures of one directory that
    differ only in where their last range ends and when its last batch was appended: they hold its first
    batch, so they are of one line, of which their checkpoints are, too. Its range there is the union of
    theirs: it begins as the shortest, and ends with the highest end and the newest time of all. And what
    begins or lies in one of theirs does so in the longest. So of each such group the shortest and the longest
    are kept, and the newest if that is another one.
    """
    if not len(rows):
        return []
    rows = rows.combine_chunks()
    ids = np.array(rows["capture_id"].to_pylist(), object)
    held, checkpoints = _checkpoints(_array(rows["snapshots"]))
    states, groups = _groups(rows)
    bunches = [list(_bunches(group, states)) for group in groups]
    kept = iter(python_rows(rows.take(pa.array([bunch[0] for some in bunches for bunch in some]))))
    found: list[LoggedCapture] = []
    for group, some in zip(groups, bunches, strict=True):
        of_group = frozenset[LoggedCheckpoint]().union(*(checkpoints[n] for n in np.unique(held[group])))
        found += [_capture(next(kept), ids[bunch].tolist(), of_group & complete) for bunch in some]
    return found


def _checkpoints(column: pa.Array) -> tuple[_Numbers, dict[int, set[LoggedCheckpoint]]]:
    """For each row of the column snapshots a number, and by that its checkpoints."""
    numbers = numbered(column)
    distinct, firsts = np.unique(numbers, return_index=True)
    held = python_values(pa.chunked_array([column.take(pa.array(firsts))]))
    return numbers, {
        n: set(map(checkpoint_of, rows)) for n, rows in zip(distinct.tolist(), held, strict=True)
    }


def _groups(rows: pa.Table) -> tuple[_Numbers, list[_Numbers]]:
    """Of each row the end offset and the time of its last range, and groups of rows that differ in these.

    A row without any range is a group of its own: no batch connects it.
    """
    ranges = _array(rows["epoch_ranges"])
    counts = ranges.value_lengths().to_numpy()
    values = np.stack([_int64(pc.struct_field(ranges.flatten(), name)) for name in _OF_RANGES], axis=1)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    (with_ranges,) = np.nonzero(counts)
    last = bounds[with_ranges + 1] - 1
    states = np.zeros((len(rows), 2), np.int64)
    states[with_ranges] = values[last, -2:]
    values[last, -2:] = 0
    offsets = (bounds * values[:1].nbytes).astype(np.int32)
    logs = pa.Array.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(values.tobytes())]
    )
    alone = pa.array(np.where(counts, -1, np.arange(len(rows))))
    parts = [_array(rows["node_id"]), _array(rows["directory_id"]), logs, alone]
    numbers = numbered(pa.StructArray.from_arrays(parts, ["node_id", "directory_id", "log", "alone"]))
    order = np.argsort(numbers, kind="stable")
    cuts = np.nonzero(np.diff(numbers[order]))[0] + 1
    return states, np.split(order, cuts)


def _bunches(group: _Numbers, states: _Numbers) -> Iterator[_Numbers]:
    """The rows of a group that are kept, the first with all that are not."""
    ends, times = states[group].T
    kept = np.unique(group[[ends.argmin(), ends.argmax(), times.argmax()]])
    yield np.concatenate([kept[:1], group[~np.isin(group, kept)]])
    yield from np.split(kept[1:], len(kept) - 1) if len(kept) > 1 else ()


def _array(column: pa.ChunkedArray) -> pa.Array:
    """The only chunk of a column of rows that were combined."""
    return column.chunk(0)


def _int64(values: pa.Array) -> _Numbers:
    return values.cast(pa.int64()).to_numpy()


def _capture(row: Row, names: Sequence[str], checkpoints: frozenset[LoggedCheckpoint]) -> LoggedCapture:
    """A row of CAPTURED for the captures of these names."""
    lowest = min(names)
    return LoggedCapture(
        lowest,
        tuple(
            LoggedRange(
                run["leader_epoch"],
                run["first_offset"],
                run["end_offset"],
                ms_of(run["first_appended_at"]),
                ms_of(run["last_appended_at"]),
                run["first_batch_crc"],
            )
            for run in row["epoch_ranges"]
        ),
        checkpoints=checkpoints,
        directory=directory_of(row["node_id"], row["directory_id"]),
        known_life=row["cluster_id"],
        copies=tuple(name for name in names if name != lowest),
    )


def checkpoint_of(row: Row) -> LoggedCheckpoint:
    """A row of snapshots, or an element of that column of captures."""
    return LoggedCheckpoint(row["end_offset"], row["leader_epoch"], row["content_digest"])


def directory_of(node_id: int, directory_id: str) -> tuple[int, str] | None:
    """As LoggedCapture has it."""
    return None if directory_id == ZERO_UUID else (node_id, directory_id)


def ms_of(time: datetime) -> int:
    return milliseconds(time) or 0
