"""When records take effect: the running maximum of the batches' timestamps along a replay path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kraft_core.image.replay_path import PathCheckpoint, ReplayRange, Step
from transforms.lake.delta_rs import among, exists, opened
from transforms.lake.storage.location import Location
from transforms.lake.tables import BATCHES

# Batches of one cluster after which those of its replicas are merged: what is read lies in memory.
MERGED = 500_000
# First offsets, ends (exclusive) and times (ms) of batches: numpy arrays.
Times = tuple[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Floor:
    """What lies from first_offset to end_offset (exclusive) takes effect at `at` (ms), not before."""

    first_offset: int
    end_offset: int
    at: int


@dataclass(frozen=True, slots=True)
class Clock:
    """The batches on a replay path by offset, as numpy arrays: first offsets, ends (exclusive), times (ms).

    highest: the running maximum of the times, by which records take effect.
    """

    first: Any
    end: Any
    at: Any
    highest: Any

    def floors(self, undated: Sequence[int] = ()) -> list[Floor]:
        """Where a batch holds a smaller time than one before it. undated: offsets without any time."""
        if not len(self.first):
            return []
        # The maximum rises at these offsets; of several batches at one, the latest decides.
        rises = np.flatnonzero(np.append(True, np.diff(self.highest) > 0))
        rises = rises[np.append(np.diff(self.first[rises]) > 0, True)]
        starts, times = self.first[rises], self.highest[rises]
        # A batch that conflicts with the next one reaches into it, and may lag there only.
        lags = self.at < self.highest
        lags[:-1] |= self.end[:-1] > self.first[1:]
        places = np.searchsorted(starts, self.end[lags] - 1, side="right") - 1
        lowest = np.searchsorted(starts, self.first[lags], side="right") - 1
        lowest = np.maximum(lowest, np.searchsorted(times, self.at[lags], side="right"))
        count = np.zeros(len(starts) + 1, dtype=np.int64)
        np.add.at(count, lowest[lowest <= places], 1)
        np.add.at(count, places[lowest <= places] + 1, -1)
        needed = np.cumsum(count)[:-1] > 0
        without_time = np.searchsorted(starts, np.array(undated, dtype=np.int64), side="right") - 1
        needed[without_time[without_time >= 0]] = True
        ends = np.append(starts[1:], max([int(self.end.max()), *(offset + 1 for offset in undated)]))
        return [Floor(int(starts[n]), int(ends[n]), int(times[n])) for n in np.flatnonzero(needed)]

    def offset_at(self, time: int) -> int | None:
        """The last offset that took effect by a time (ms); None: none did."""
        count = int(np.searchsorted(self.highest, time, side="right"))
        return int(self.end[:count].max()) - 1 if count else None

    def highest_below(self, offset: int) -> int:
        """The running maximum (ms) of the times of the batches below an offset; -1: there are none."""
        count = int(np.searchsorted(self.first, offset - 1, side="right"))
        return int(self.highest[count - 1]) if count else -1

    def batch_of(self, offset: int) -> int | None:
        """The first offset of the batch that holds an offset; None where there is none."""
        count = int(np.searchsorted(self.first, offset, side="right"))
        # A checkpoint may cut into the batch that the path begins with.
        holding = (n for n in range(count - 1, max(count - 3, -1), -1) if self.end[n] > offset)
        return next((int(self.first[n]) for n in holding), None)

    def time_before(self, offset: int) -> int | None:
        """The time (ms) of the batch just below an offset; None where there is none."""
        count = int(np.searchsorted(self.first, offset - 1, side="right"))
        return int(self.at[count - 1]) if count else None


def clocks(lake: Location, paths: Mapping[str, Sequence[Step]]) -> dict[str, Clock]:
    """The clock of each cluster by its replay path."""
    columns = ["cluster_id", "base_offset", "last_offset", "leader_epoch", "appended_at"]
    pieces: defaultdict[str, list[Times]] = defaultdict(list)
    if exists(lake, BATCHES):
        # Of every replica's batches, only those on the replay path are kept.
        wanted = among({"cluster_id": paths})
        # Read little ahead: it would lie in memory, and what is done with it takes no time.
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}
        for batches in opened(lake, BATCHES).to_batches(columns=columns, filter=wanted, **ahead):
            owners = batches["cluster_id"].dictionary_encode()
            owner = owners.indices.to_numpy(zero_copy_only=False)
            first = batches["base_offset"].to_numpy()
            end = batches["last_offset"].to_numpy() + 1
            epoch = batches["leader_epoch"].to_numpy()
            at = batches["appended_at"].to_numpy().astype("datetime64[ms]").astype(np.int64)
            for index, cluster in enumerate(owners.dictionary.to_pylist()):
                kept = (owner == index) & on_path(paths[cluster], first, end, epoch)
                add_times(pieces[cluster], (first[kept], end[kept], at[kept]))
    found = {cluster: clock(path, pieces[cluster]) for cluster, path in paths.items()}
    # Arrow would keep the memory of the scan.
    pa.default_memory_pool().release_unused()
    return found


def add_times(pieces: list[Times], more: Times) -> None:
    """Add a piece to those of a cluster; the first of them is the merge of earlier ones."""
    pieces.append(more)
    if sum(len(first) for first, _, _ in pieces[1:]) >= MERGED:
        pieces[:] = [merged(pieces)]


def merged(pieces: Sequence[Times]) -> Times:
    """The batches of all pieces by their first offsets, each once."""
    first, end, at = (np.concatenate([piece[n] for piece in pieces]) for n in range(3))
    found = distinct((first, end, at), np.argsort(first, kind="stable"))
    # Batches that conflict are ordered by more than where they begin, which takes longer.
    conflicts = (np.diff(found[0]) == 0).any()
    return distinct(found, np.lexsort((found[2], found[1], found[0]))) if conflicts else found


def distinct(times: Times, order: Any) -> Times:
    """The batches in an order, without those that equal the one before."""
    first, end, at = (values[order] for values in times)
    new = np.ones(len(first), dtype=bool)
    new[1:] = (np.diff(first) != 0) | (np.diff(end) != 0) | (np.diff(at) != 0)
    return first[new], end[new], at[new]


def on_path(path: Sequence[Step], first: Any, end: Any, epoch: Any) -> Any:
    """Which batches lie on the replay path, by their first and end offsets and epochs (numpy arrays)."""
    ranges = [s for s in path if isinstance(s, ReplayRange)]
    if not ranges:
        return np.zeros(len(first), dtype=bool)
    starts = np.array([r.first_offset for r in ranges])
    place = np.searchsorted(starts, first, side="right") - 1
    # A checkpoint may cut into the batch that the first range begins with.
    place = np.where(place < 0, np.searchsorted(starts, end - 1, side="right") - 1, place)
    ends = np.array([r.end_offset for r in ranges])
    epochs = np.array([r.leader_epoch for r in ranges])
    return (place >= 0) & (first < ends[place]) & (epoch == epochs[place])


def clock(path: Sequence[Step], pieces: Sequence[Times]) -> Clock:
    """The clock from batches on the replay path, in any order."""
    loads = [(s.first_offset, s.end_offset, s.timestamp) for s in path if isinstance(s, PathCheckpoint)]
    dated = np.array([load for load in loads if load[2] is not None], dtype=np.int64).reshape(-1, 3)
    first, end, at = merged([*pieces, (dated[:, 0], dated[:, 1], dated[:, 2])])
    return Clock(first, end, at, np.maximum.accumulate(at))
