"""Replay plans: which records of a cluster are replayed, from which offset on, and when each takes effect.

Made from small tables and a few columns of `batches`, before any record is read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pyarrow.dataset as ds

from kraft_core.image.history import ReplayGap
from kraft_core.image.missing_records import MissingRecords
from kraft_core.image.replay_path import (
    PathCheckpoint,
    ReplayRange,
    Step,
    first_difference,
    replay_order,
    replay_path,
)
from transforms.histories.clocks import Clock, Floor, clocks
from transforms.histories.missing import lacking_by_cluster, times_of
from transforms.histories.replay_steps import checkpoint_of, known_paths, range_of
from transforms.lake.arrow_rows import milliseconds
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import EPOCHS, LOG_RANGES, RECORDS, REPLAY_VERSION, SNAPSHOTS

Row = dict[str, Any]
# Clusters whose batches are read together: what is read lies in memory.
TOGETHER = 32
BEGIN, END, ABORT = "BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"
MARKERS = (BEGIN, END, ABORT)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A metadata transaction. outcome: ended, aborted, or open, then end_offset is None.

    Times in ms. effective_at: when its records took effect; commit_status: of the record that closed it;
    last_offset: of the last record in it.
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
    """The replay path of a cluster; its histories hold up to `start` and are replayed again from there.

    gaps: by the offset at which it is loaded, the gap that a checkpoint covers; the first step covers none.
    missing, unsure: what the path lacks (missing.Lacking). missing_at: times of its offsets, as
    missing.times_of returns them.
    """

    cluster_id: str
    steps: list[Step]
    start: int = 0
    floors: list[Floor] = field(default_factory=list[Floor])
    transactions: list[Transaction] = field(default_factory=list[Transaction])
    gaps: dict[int, ReplayGap] = field(default_factory=dict[int, ReplayGap])
    missing: list[MissingRecords] = field(default_factory=list[MissingRecords])
    unsure: list[MissingRecords] = field(default_factory=list[MissingRecords])
    missing_at: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def ranges(self) -> list[ReplayRange]:
        """Of the records to replay."""
        return [
            replace(step, first_offset=max(step.first_offset, self.start))
            for step in self.steps
            if isinstance(step, ReplayRange) and step.end_offset > self.start
        ]

    @property
    def checkpoints(self) -> list[PathCheckpoint]:
        """Those to load."""
        return [s for s in self.steps if isinstance(s, PathCheckpoint) and s.first_offset >= self.start]

    def floor_at(self, offset: int) -> int:
        """The time (ms) before which nothing at an offset takes effect; -1: its own timestamp decides."""
        place = bisect_right(self.floors, offset, key=lambda floor: floor.first_offset) - 1
        floor = self.floors[place] if place >= 0 else None
        return floor.at if floor is not None and offset < floor.end_offset else -1


def replays(lake: Location, clusters: Sequence[str], whole: Collection[str]) -> list[ReplayPlan]:
    """The replay plans of the clusters; those whose replay path did not change have none.

    whole: clusters that are replayed from the beginning, whatever was replayed before.
    """
    plans = {cluster: ReplayPlan(cluster, steps) for cluster, steps in current_paths(lake, clusters).items()}
    for cluster, before in known_paths(lake, clusters, [REPLAY_VERSION]).items():
        if cluster in whole:
            continue
        start = first_difference(before, plans[cluster].steps)
        if start is None:
            del plans[cluster]
        else:
            plans[cluster].start = start
    found = list(plans.values())
    lacking = lacking_by_cluster(lake, {plan.cluster_id: plan.steps for plan in found})
    for first in range(0, len(found), TOGETHER):
        group = found[first : first + TOGETHER]
        for cluster, clock in clocks(lake, {plan.cluster_id: plan.steps for plan in group}).items():
            plans[cluster].floors = clock.floors(undated(plans[cluster].steps))
            plans[cluster].gaps = gaps(plans[cluster].steps, clock)
            plans[cluster].missing = lacking[cluster].missing
            plans[cluster].unsure = lacking[cluster].unsure
            plans[cluster].missing_at = times_of(plans[cluster].missing, plans[cluster].steps, clock)
        add_transactions(lake, group)
    return found


def undated(steps: Iterable[Step]) -> list[int]:
    """The offsets at which checkpoints that bear no timestamp are loaded."""
    return [s.first_offset for s in steps if isinstance(s, PathCheckpoint) and s.timestamp is None]


def gaps(steps: Iterable[Step], clock: Clock) -> dict[int, ReplayGap]:
    """The gaps of a path by the offset at which the checkpoint that covers each is loaded."""
    return {
        step.first_offset: ReplayGap(before.end_offset, clock.highest_below(before.end_offset))
        for before, step in pairwise(steps)
        if isinstance(step, PathCheckpoint)
    }


def lowest_start(plans: Iterable[ReplayPlan]) -> int:
    return min(plan.start for plan in plans)


def replaced_by(plans: Iterable[ReplayPlan], clusters: Iterable[str]) -> ds.Expression:
    """The condition of the versions of these clusters that the replays replace.

    One offset serves all clusters, since long conditions are slow: versions that end between it and the start
    of their own cluster's replay meet the condition and are written again.
    """
    valid_to = ds.field("valid_to_offset")
    return among({"cluster_id": clusters}) & (valid_to.is_null() | (valid_to >= lowest_start(plans)))


def current_paths(lake: Location, clusters: Sequence[str]) -> dict[str, list[Step]]:
    """The replay path of each cluster by the log ranges, epochs and checkpoints of the lake."""
    ranges: dict[str, list[ReplayRange]] = {cluster: [] for cluster in clusters}
    columns = ["cluster_id", "first_offset", "end_offset", "leader_epoch", "commit_status"]
    for row in rows_with(lake, LOG_RANGES, columns, cluster_id=clusters):
        ranges[row["cluster_id"]].append(range_of(row))
    checkpoints: dict[str, list[PathCheckpoint]] = {cluster: [] for cluster in clusters}
    columns = ["cluster_id", "end_offset", "leader_epoch", "content_digest", "last_contained_log_at"]
    for row in rows_with(lake, SNAPSHOTS, [*columns, "complete"], cluster_id=clusters, kind=["snapshot"]):
        if row["complete"]:
            checkpoints[row["cluster_id"]].append(checkpoint_of(row))
    previous: dict[str, dict[int, int]] = {cluster: {} for cluster in clusters}
    columns = ["cluster_id", "leader_epoch", "previous_epoch"]
    for row in rows_with(lake, EPOCHS, columns, cluster_id=clusters):
        if row["previous_epoch"] is not None:
            previous[row["cluster_id"]][row["leader_epoch"]] = row["previous_epoch"]
    return {
        cluster: replay_path(ranges[cluster], checkpoints[cluster], previous[cluster]) for cluster in clusters
    }


def add_transactions(lake: Location, plans: Iterable[ReplayPlan]) -> None:
    """Metadata transactions on the path (KIP-868). One that is open at `start` moves it to its begin."""
    by_cluster = {plan.cluster_id: plan for plan in plans}
    columns = ["cluster_id", "offset", "leader_epoch", "batch_crc", "appended_at", "type"]
    columns += ["begin_transaction", "abort_transaction"]
    markers: dict[str, list[Row]] = defaultdict(list)
    for row in rows_with(lake, RECORDS, columns, cluster_id=by_cluster, type=MARKERS):
        markers[row["cluster_id"]].append(row)
    for plan in by_cluster.values():
        plan.transactions = transactions(plan, markers[plan.cluster_id])
        crossing = [t.begin_offset for t in plan.transactions if t.begin_offset < plan.start <= t.last_offset]
        plan.start = min([plan.start, *crossing])


def transactions(plan: ReplayPlan, markers: Iterable[Row]) -> list[Transaction]:
    """The transactions by their markers, rows of records. A jump over a gap drops an open one."""
    ranges = [s for s in plan.steps if isinstance(s, ReplayRange)]
    on_path = [
        (replay_order(m["offset"], m["type"], m["batch_crc"]), m, r.commit_status)
        for m in markers
        for r in ranges
        if holds(r, m)
    ]
    loads = [((s.first_offset, 0, 0), None, "") for s in plan.steps if isinstance(s, PathCheckpoint)]
    found: list[Transaction] = []
    begun: tuple[Row, str] | None = None
    for (offset, _, _), marker, status in sorted([*on_path, *loads], key=lambda each: each[0]):
        if marker is None:
            if begun is not None:
                found.append(opened(*begun, last_offset=offset))
            begun = None
        elif marker["type"] == BEGIN:
            begun = begun or (marker, status)
        elif begun is not None:
            found.append(closed(plan, begun[0], marker, status))
            begun = None
    if begun is not None:
        found.append(opened(*begun, last_offset=plan.steps[-1].end_offset))
    return found


def holds(range_: ReplayRange, record: Row) -> bool:
    inside = range_.first_offset <= record["offset"] < range_.end_offset
    return inside and range_.leader_epoch == record["leader_epoch"]


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


def closed(plan: ReplayPlan, begin: Row, end: Row, status: str) -> Transaction:
    at = milliseconds(end["appended_at"]) or 0
    return Transaction(
        begin_offset=begin["offset"],
        begun_at=milliseconds(begin["appended_at"]) or 0,
        name=transaction_name(begin),
        outcome="ended" if end["type"] == END else "aborted",
        end_offset=end["offset"],
        ended_at=at,
        effective_at=max(at, plan.floor_at(end["offset"])),
        reason=(end["abort_transaction"] or {}).get("reason"),
        commit_status=status,
        last_offset=end["offset"],
    )


def transaction_name(begin: Row) -> str | None:
    return (begin["begin_transaction"] or {}).get("name")
