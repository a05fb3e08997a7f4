"""What replicas cut off, between two captures of each: every truncation that the scenarios were driven to."""

from __future__ import annotations

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.truncations import observed_truncations
from tests.kraft_core.evidence.golden import CLUSTERS
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.findings.golden import known

# Node, truncated to, old end, lost epochs, epoch in its place, lost VotersRecords in words.
LOST: dict[str, list[tuple[int, int, int, tuple[int, ...], int, str]]] = {
    "uncommitted": [
        (1, 352, 369, (1,), 3, "VotersRecord 355/e1 {1,2,3,4}, which added 4"),
        (3, 786, 803, (6,), 7, "VotersRecord 790/e6 {2,3}, which removed 1"),
        (4, 352, 369, (1,), 3, "VotersRecord 355/e1 {1,2,3,4}, which added 4"),
        (4, 786, 803, (6,), 7, "VotersRecord 790/e6 {2,3}, which removed 1"),
    ],
    "stale-split": [
        (1, 129, 1741, (1,), 3, ""),
        (1, 5006, 5230, (4,), 5, ""),
        (3, 5006, 5230, (4,), 5, ""),
    ],
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_truncation_is_found(name: str) -> None:
    rows = observed_truncations(known(f"all of {name}"))
    found = [
        (r.node_id, r.first_offset, r.end_offset, r.leader_epochs, r.truncated_by_epoch, r.lost_voter_changes)
        for r in rows
    ]
    assert found == LOST.get(name, [])
    captures = {c.capture_id: c for c in known(f"all of {name}").facts.captures}
    for row in rows:
        assert captures[row.held_capture_id].captured_at == row.held_at < row.lost_at
        assert captures[row.lost_capture_id].captured_at == row.lost_at
        assert bool(row.voter_set_offsets) == bool(row.lost_voter_changes)


def story() -> Story:
    return Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").leader(2, 40, 2, "1 2 3")


def test_only_a_higher_epoch_proves_a_truncation() -> None:
    """A shorter copy may be the older one, a deleted prefix is none, another directory another replica."""
    shorter = story().capture("1", 1000, "1:0-50", 1).capture("1", 2000, "1:0-40", 1)
    deleted = story().capture("1", 1000, "1:0-50", 1).capture("1", 2000, "1:45-60", 1)
    reformatted = story().capture("1", 1000, "1:0-50", 1).capture("1b", 2000, "1:0-40 2:40-60", 2)
    unknown = story().capture("1?", 1000, "1:0-50", 1).capture("1?", 2000, "1:0-40 2:40-60", 2)
    back = story().capture("1", 1000, "1:0-40 2:40-60", 2).capture("1", 2000, "1:0-50", 1)
    for cluster in (shorter, deleted, reformatted, unknown, back):
        assert observed_truncations(conclude(cluster.facts())) == []


def test_a_truncation_is_told_once_however_many_captures_follow() -> None:
    cluster = story().capture("1", 1000, "1:0-50", 1)
    for at in (2000, 3000):
        cluster.capture("1", at, "1:0-40 2:40-60", 2)
    (row,) = observed_truncations(conclude(cluster.facts()))
    assert (row.first_offset, row.end_offset, row.truncated_by_epoch, row.held_at, row.lost_at) == (
        40,
        50,
        2,
        1000,
        2000,
    )
