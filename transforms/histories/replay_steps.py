"""The steps of replay paths as rows of table `replays`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from kraft_core.image.replay_path import COMMITTED, PathCheckpoint, ReplayRange, Step
from transforms.lake.arrow_rows import milliseconds, moment
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import REPLAY_VERSION, REPLAYS

Row = dict[str, Any]


def known_paths(
    lake: Location, clusters: Sequence[str], versions: Sequence[int] | None = None
) -> dict[str, list[Step]]:
    """The replay paths that the histories were last made from, by replays of some versions (None: of any)."""
    paths: dict[str, list[Step]] = defaultdict(list)
    for row in sorted(rows_with(lake, REPLAYS, cluster_id=clusters), key=lambda r: r["step"]):
        if versions is not None and row["replay_version"] not in versions:
            continue
        step = range_of(row) if row["content_digest"] is None else checkpoint_of(row)
        paths[row["cluster_id"]].append(step)
    return paths


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
        "replay_version": REPLAY_VERSION,
    }


def range_of(row: Row) -> ReplayRange:
    return ReplayRange(row["first_offset"], row["end_offset"], row["leader_epoch"], row["commit_status"])


def checkpoint_of(row: Row) -> PathCheckpoint:
    at = milliseconds(row["last_contained_log_at"])
    return PathCheckpoint(row["end_offset"], row["leader_epoch"], row["content_digest"], at)
