"""leader-hwm: Kafka's LeaderState fed with appends, fetches and changing voter sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.raft.watermark import (
    LeaderProgress,
    ReplicaProgress,
    begin_leading,
    follower_fetched,
    leader_reached,
)
from tests.conformance.tally import Tally
from tests.conformance.trace import Line, voter_set

STATE = ("updated", "hwm", "v", "o", "order", "noack", "error")


def compare(lines: Iterable[Line]) -> Tally:
    """Every step; what Kafka refuses must be refused, and nothing must change."""
    tally = Tally()
    voters = VoterSet(())
    progress = begin_leading(ReplicaKey(-1), 0, voters)
    for line in lines:
        place = f"case {line['case']} step {line.get('i', 'head')}"
        if "op" not in line:
            voters = voter_set(line["voters"])
            leader = ReplicaKey(line["leader"], line["leader_dir"])
            progress = begin_leading(leader, line["epoch_start"], voters)
            continue
        tally.step(line["op"])
        if line["op"] == "voters":
            voters = voter_set(line["voters"])
        after, error = _apply(progress, line, voters)
        updated = after.high_watermark != progress.high_watermark
        found = _state(after) | {"updated": updated} | ({"error": error} if error else {})
        tally.compare_all(place, found, _expected(line))
        progress = after
    return tally


def _apply(progress: LeaderProgress, line: Line, voters: VoterSet) -> tuple[LeaderProgress, str | None]:
    try:
        if line["op"] == "fetch":
            return follower_fetched(progress, ReplicaKey(line["id"], line["dir"]), line["offset"]), None
        return leader_reached(progress, line["leo"], voters), None
    except ValueError:
        return progress, "IllegalStateException"


def _state(progress: LeaderProgress) -> dict[str, Any]:
    return {
        "hwm": progress.high_watermark,
        "v": _rows(progress.voters),
        "o": _rows(progress.observers),
        "order": [key.id for key in progress.followers_by_end_offset()],
        "noack": [voter.key.id for voter in progress.voters if not voter.has_acknowledged],
    }


def _expected(line: Line) -> dict[str, Any]:
    """The line's state; the order of observers, that of a Java hash map, means nothing."""
    expected = {name: line[name] for name in STATE if name in line}
    return expected | {"o": sorted(line["o"], key=_row_order)}


def _rows(entries: Iterable[ReplicaProgress]) -> list[list[Any]]:
    rows = ([entry.key.id, entry.key.directory_id, entry.end_offset] for entry in entries)
    return sorted(rows, key=_row_order)


def _row_order(row: list[Any]) -> tuple[int, str]:
    return row[0], row[1] or ""
