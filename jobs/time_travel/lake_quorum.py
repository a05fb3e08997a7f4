"""The voter sets and epochs of a cluster, as a lake keeps them."""

from __future__ import annotations

from typing import Any

from jobs.time_travel.source import Epoch, SourcedVoterSet
from kraft_core.raft.voters import VoterSet
from transforms.evidence.fact_values import voter_value
from transforms.lake.arrow_rows import milliseconds
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import EPOCHS, VOTER_SETS

Row = dict[str, Any]


def voter_sets(lake: Location, cluster_id: str) -> list[SourcedVoterSet]:
    """By offset, without those that were truncated."""
    rows = rows_with(lake, VOTER_SETS, cluster_id=[cluster_id])
    rows = [row for row in rows if row["commit_status"] != "truncated"]
    return [_voter_set(row) for row in sorted(rows, key=lambda row: row["offset"])]


def epochs(lake: Location, cluster_id: str) -> list[Epoch]:
    """Those whose leader is known or reported."""
    rows = [row for row in rows_with(lake, EPOCHS, cluster_id=[cluster_id]) if row["leader_source"]]
    return [_epoch(row) for row in sorted(rows, key=lambda row: row["leader_epoch"])]


def _voter_set(row: Row) -> SourcedVoterSet:
    voters = None if row["source"] == "static" else row["voters"]
    return SourcedVoterSet(
        offset=row["offset"],
        leader_epoch=row["leader_epoch"],
        timestamp=milliseconds(row["appended_at" if row["observed_to"] is None else "in_force_from"]),
        source=row["source"],
        voters=None if voters is None else VoterSet.from_record({"voters": [voter_value(v) for v in voters]}),
        ids=tuple(row["voter_ids"]),
    )


def _epoch(row: Row) -> Epoch:
    return Epoch(
        leader_epoch=row["leader_epoch"],
        start_offset=row["start_offset"] if row["start_offset_exact"] else None,
        leader_id=row["leader_id"],
        timestamp=milliseconds(row["known_from"]),
        voters=tuple(row["voter_ids"] or ()),
        granting_voters=tuple(row["granting_voters"] or ()),
        leaderless_ms=row["leaderless_ms"],
        source=row["leader_source"],
    )
