"""What the histories of a cluster are replayed from, worked out before Spark is asked for any record.

Small tables and three columns of `batches` say which records count, when each of them took effect, and from
which offset on the histories of the last run hold no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kraft_core.image.replay_path import COMMITTED, PathCheckpoint, ReplayRange, Step, first_difference, line
from transforms.lake.arrow_rows import milliseconds, moment
from transforms.lake.delta_rs import among, exists, rows_with
from transforms.lake.delta_rs import opened as opened_table
from transforms.lake.tables import BATCHES, LOG_RANGES, RECORDS, REPLAYS, SNAPSHOTS

Row = dict[str, Any]
# Clusters whose batches are looked at together: their times lie in memory at once, those of one cluster's
# replicas joined as soon as they are so many.
TOGETHER, JOINED = 32, 500_000
# First offsets, ends (exclusive) and times (ms) of batches: numpy arrays.
Times = tuple[Any, Any, Any]
STARTS = pa.schema([("cluster_id", pa.string()), ("start", pa.int64())])
BEGIN, END, ABORT = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"
MARKERS = (BEGIN, END, ABORT)


@dataclass(frozen=True, slots=True)
class Floor:
    """From first_offset to end_offset clocks lag behind: what was written there took effect at `at` (ms)."""

    first_offset: int
    end_offset: int
    at: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """A metadata transaction. outcome: ended, aborted, or open, then end_offset is None.

    Times in ms; effective_at: when its records took effect, and commit_status: of the record that closed it.
    last_offset: of the last record that belongs to it.
    """

    begin_offset: int
    begun_at: int
    name: str | None
    outcome: str
    end_offset: int | None
    ended_at: int | None
    effective_at: int | None
    reason: str | None
    commit_status: str
    last_offset: int


@dataclass(slots=True)
class ReplayPlan:
    """A cluster's line, and `start`: the offset from which its histories are to be made anew.

    rewrites: whether there may be versions from `start` on, which are to go.
    """

    cluster_id: str
    steps: list[Step]
    start: int = 0
    rewrites: bool = True
    floors: list[Floor] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)

    @property
    def stretches(self) -> list[ReplayRange]:
        """Those of the records to be replayed."""
        stretches = [s for s in self.steps if isinstance(s, ReplayRange) and s.end_offset > self.start]
        return [
            ReplayRange(max(s.first_offset, self.start), s.end_offset, s.leader_epoch, s.commit_status)
            for s in stretches
        ]

    @property
    def checkpoints(self) -> list[PathCheckpoint]:
        """Those to be loaded."""
        return [s for s in self.steps if isinstance(s, PathCheckpoint) and s.first_offset >= self.start]


def replays(lake: Path, clusters: Sequence[str], whole: bool) -> list[ReplayPlan]:
    """What is to be replayed for each of the clusters; those whose line is as it was are left out.

    whole: from the beginning, whatever was replayed before.
    """
    lines = {cluster: ReplayPlan(cluster, steps) for cluster, steps in current_lines(lake, clusters).items()}
    if not whole:
        for cluster, before in known_lines(lake, clusters).items():
            start = first_difference(before, lines[cluster].steps)
            if start is None:
                del lines[cluster]
            else:
                lines[cluster].start = start
                lines[cluster].rewrites = start < before[-1].end_offset
    for together in in_groups(list(lines.values()), TOGETHER):
        for cluster, clock in clocks(lake, together).items():
            lines[cluster].floors = clock.floors()
        add_transactions(lake, together)
    return list(lines.values())


def replaced_by(replays: Iterable[ReplayPlan], of_them: str) -> str:
    """The condition (SQL) of versions that may be other ones after the replays; `of_them` says whose.

    It is one for all clusters, since long conditions take long: some versions that end before the replay of
    their own cluster starts are among them.
    """
    start = min(replay.start for replay in replays)
    return f"{of_them} AND (valid_to_offset IS NULL OR valid_to_offset >= {start})"


def current_lines(lake: Path, clusters: Sequence[str]) -> dict[str, list[Step]]:
    """The line of each cluster by the conclusions and checkpoints of the lake."""
    ranges: dict[str, list[ReplayRange]] = {cluster: [] for cluster in clusters}
    columns = ["cluster_id", "first_offset", "end_offset", "leader_epoch", "commit_status"]
    for r in rows_with(lake, LOG_RANGES, columns, cluster_id=clusters):
        stretch = ReplayRange(r["first_offset"], r["end_offset"], r["leader_epoch"], r["commit_status"])
        ranges[r["cluster_id"]].append(stretch)
    checkpoints: dict[str, list[PathCheckpoint]] = {cluster: [] for cluster in clusters}
    columns = ["cluster_id", "end_offset", "leader_epoch", "content_digest", "last_contained_log_at"]
    for s in rows_with(lake, SNAPSHOTS, [*columns, "complete"], cluster_id=clusters, kind=["snapshot"]):
        if s["complete"]:
            at = milliseconds(s["last_contained_log_at"])
            checkpoint = PathCheckpoint(s["end_offset"], s["leader_epoch"], s["content_digest"], at)
            checkpoints[s["cluster_id"]].append(checkpoint)
    return {cluster: line(ranges[cluster], checkpoints[cluster]) for cluster in clusters}


def known_lines(lake: Path, clusters: Sequence[str]) -> dict[str, list[Step]]:
    """The lines that the histories were made from last."""
    lines: dict[str, list[Step]] = defaultdict(list)
    for row in sorted(rows_with(lake, REPLAYS, cluster_id=clusters), key=lambda r: r["step"]):
        lines[row["cluster_id"]].append(step_of(row))
    return lines


def step_row(cluster_id: str, number: int, step: Step) -> Row:
    """A step as a row of `replays`."""
    snapshot = isinstance(step, PathCheckpoint)
    return {
        "cluster_id": cluster_id,
        "step": number,
        "first_offset": step.first_offset,
        "end_offset": step.end_offset,
        "leader_epoch": step.leader_epoch,
        "commit_status": COMMITTED if snapshot else step.commit_status,
        "content_digest": step.content_digest if snapshot else None,
        "last_contained_log_at": moment(step.timestamp) if snapshot else None,
    }


def step_of(row: Row) -> Step:
    if row["content_digest"] is None:
        return ReplayRange(row["first_offset"], row["end_offset"], row["leader_epoch"], row["commit_status"])
    at = milliseconds(row["last_contained_log_at"])
    return PathCheckpoint(row["end_offset"], row["leader_epoch"], row["content_digest"], at)


def in_groups(items: list[ReplayPlan], size: int) -> Iterator[list[ReplayPlan]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


@dataclass(frozen=True, slots=True)
class Clock:
    """The batches along a line, by offset: numpy arrays of first offsets, ends (exclusive) and times (ms).

    highest: the running maximum of the times, by which things take effect.
    """

    first: Any
    end: Any
    at: Any
    highest: Any

    def floors(self) -> list[Floor]:
        """Where effective_at differs from a batch's own time."""
        late = self.at < self.highest
        found = []
        for floor in np.unique(self.highest[late]):
            lagging = late & (self.highest == floor)
            found.append(Floor(int(self.first[lagging].min()), int(self.end[lagging].max()), int(floor)))
        return found

    def offset_at(self, time: int) -> int | None:
        """The last offset that took effect by a time (ms); None: none did."""
        count = int(np.searchsorted(self.highest, time, side="right"))
        return int(self.end[:count].max()) - 1 if count else None

    def time_before(self, offset: int) -> int | None:
        """The time (ms) of the batch that lies just below an offset; None where there is none."""
        count = int(np.searchsorted(self.first, offset - 1, side="right"))
        return int(self.at[count - 1]) if count else None


def clocks(lake: Path, replays: Iterable[ReplayPlan]) -> dict[str, Clock]:
    """The clock of each cluster by its batches."""
    by_cluster = {replay.cluster_id: replay for replay in replays}
    columns = ["cluster_id", "base_offset", "last_offset", "leader_epoch", "appended_at"]
    pieces: defaultdict[str, list[Times]] = defaultdict(list)
    if exists(lake, BATCHES):
        # Every replica's batches: only what lies on the line is kept of each piece.
        wanted = among({"cluster_id": by_cluster})
        # Little is read ahead, which would lie in memory: what is done with it takes no time.
        ahead = {"batch_readahead": 2, "fragment_readahead": 1}
        for batches in opened_table(lake, BATCHES).to_batches(columns=columns, filter=wanted, **ahead):
            owners = batches["cluster_id"].dictionary_encode()
            owner = owners.indices.to_numpy(zero_copy_only=False)
            first = batches["base_offset"].to_numpy()
            end = batches["last_offset"].to_numpy() + 1
            epoch = batches["leader_epoch"].to_numpy()
            at = batches["appended_at"].to_numpy().astype("datetime64[ms]").astype(np.int64)
            for index, cluster in enumerate(owners.dictionary.to_pylist()):
                kept = (owner == index) & on_line(by_cluster[cluster], first, end, epoch)
                add_times(pieces[cluster], (first[kept], end[kept], at[kept]))
    found = {cluster: clock(replay, pieces[cluster]) for cluster, replay in by_cluster.items()}
    # What Arrow took for the scan it would keep, beside all that comes now.
    pa.default_memory_pool().release_unused()
    return found


def add_times(pieces: list[Times], more: Times) -> None:
    """Add a piece to those of a cluster; the first of them is what was joined so far."""
    pieces.append(more)
    if sum(len(first) for first, _, _ in pieces[1:]) >= JOINED:
        pieces[:] = [joined(pieces)]


def joined(pieces: Sequence[Times]) -> Times:
    """The batches of all pieces by their first offsets, each once."""
    first, end, at = (np.concatenate([piece[n] for piece in pieces]) for n in range(3))
    order = np.argsort(first, kind="stable")
    first, end, at = first[order], end[order], at[order]
    new = np.ones(len(first), dtype=bool)
    new[1:] = (np.diff(first) != 0) | (np.diff(end) != 0) | (np.diff(at) != 0)
    return first[new], end[new], at[new]


def on_line(replay: ReplayPlan, first: Any, end: Any, epoch: Any) -> Any:
    """Which batches lie on the line, by their first and end offsets and epochs (numpy arrays)."""
    stretches = [s for s in replay.steps if isinstance(s, ReplayRange)]
    if not stretches:
        return np.zeros(len(first), dtype=bool)
    starts = np.array([s.first_offset for s in stretches])
    place = np.searchsorted(starts, first, side="right") - 1
    # A checkpoint may cut into the batch that the first stretch begins with.
    place = np.where(place < 0, np.searchsorted(starts, end, side="right") - 1, place)
    ends = np.array([s.end_offset for s in stretches])
    epochs = np.array([s.leader_epoch for s in stretches])
    return (place >= 0) & (first < ends[place]) & (epoch == epochs[place])


def clock(replay: ReplayPlan, pieces: Sequence[Times]) -> Clock:
    """The clock from batches on the line, in any order."""
    loads = [
        (s.first_offset, s.end_offset, s.timestamp) for s in replay.steps if isinstance(s, PathCheckpoint)
    ]
    timed = np.array([load for load in loads if load[2] is not None], dtype=np.int64).reshape(-1, 3)
    first, end, at = joined([*pieces, (timed[:, 0], timed[:, 1], timed[:, 2])])
    return Clock(first, end, at, np.maximum.accumulate(at))


def add_transactions(lake: Path, replays: Iterable[ReplayPlan]) -> None:
    """Metadata transactions along the line (KIP-868). One that is open at `start` moves it to its begin."""
    by_cluster = {replay.cluster_id: replay for replay in replays}
    columns = ["cluster_id", "offset", "leader_epoch", "appended_at", "type"]
    columns += ["begin_transaction", "abort_transaction"]
    markers: dict[str, list[Row]] = defaultdict(list)
    for row in rows_with(lake, RECORDS, columns, cluster_id=by_cluster, type=MARKERS):
        markers[row["cluster_id"]].append(row)
    for replay in by_cluster.values():
        replay.transactions = transactions(replay, markers[replay.cluster_id])
        crossing = [
            t.begin_offset for t in replay.transactions if t.begin_offset < replay.start <= t.last_offset
        ]
        replay.start = min([replay.start, *crossing])


def transactions(replay: ReplayPlan, markers: Iterable[Row]) -> list[Transaction]:
    """The transactions by their markers, rows of records. A jump over a gap drops an open one."""
    stretches = [s for s in replay.steps if isinstance(s, ReplayRange)]
    loads = [(s.first_offset, None, "") for s in replay.steps if isinstance(s, PathCheckpoint)]
    on_line = [(m["offset"], m, s.commit_status) for m in markers for s in stretches if holds(s, m)]
    found: list[Transaction] = []
    begun: tuple[Row, str] | None = None
    for offset, marker, status in sorted([*on_line, *loads], key=lambda each: each[0]):
        if marker is None:
            begun = None if begun is None else found.append(opened(*begun, last_offset=offset))
        elif marker["type"] == BEGIN:
            begun = begun or (marker, status)
        elif begun is not None:
            found.append(closed(replay, begun[0], marker, status))
            begun = None
    if begun is not None:
        found.append(opened(*begun, last_offset=replay.steps[-1].end_offset))
    return found


def holds(stretch: ReplayRange, record: Row) -> bool:
    inside = stretch.first_offset <= record["offset"] < stretch.end_offset
    return inside and stretch.leader_epoch == record["leader_epoch"]


def opened(begin: Row, status: str, last_offset: int) -> Transaction:
    return Transaction(
        begin_offset=begin["offset"],
        begun_at=milliseconds(begin["appended_at"]) or 0,
        name=transaction_name(begin),
        outcome="open",
        end_offset=None,
        ended_at=None,
        effective_at=None,
        reason=None,
        commit_status=status,
        last_offset=last_offset,
    )


def closed(replay: ReplayPlan, begin: Row, end: Row, status: str) -> Transaction:
    at = milliseconds(end["appended_at"]) or 0
    effective = max([at, *(f.at for f in replay.floors if f.first_offset <= end["offset"] < f.end_offset)])
    return Transaction(
        begin_offset=begin["offset"],
        begun_at=milliseconds(begin["appended_at"]) or 0,
        name=transaction_name(begin),
        outcome="ended" if end["type"] == END else "aborted",
        end_offset=end["offset"],
        ended_at=at,
        effective_at=effective,
        reason=(end["abort_transaction"] or {}).get("reason"),
        commit_status=status,
        last_offset=end["offset"],
    )


def transaction_name(begin: Row) -> str | None:
    return (begin["begin_transaction"] or {}).get("name")
