"""Epochs by what names them, and the ranges replicas held."""

from __future__ import annotations

from dataclasses import replace

from tests.kraft_core.evidence.narrated import Story

THREE = "1 2 3"


def test_a_leader_change_tells_everything() -> None:
    story = Story().leader(1, 0, 1, THREE).leader(4, 20, 2, THREE, granted="2 3")
    story.capture("1", 1000, "1:0-20 4:20-30", 4)
    first, second = story.evidence().epochs
    assert (first.leader_id, first.start_offset, first.start_offset_exact, first.leaderless_ms) == (
        1,
        0,
        True,
        None,
    )
    assert (second.leader_id, second.elected_at, second.granting_voters) == (2, 200, (2, 3))
    # The last append below was that of offset 19, at 190.
    assert second.leaderless_ms == 10


def test_clocks_that_contradict_give_no_time_without_leader() -> None:
    story = Story().leader(1, 0, 1, THREE).leader(4, 20, 2, THREE)
    story.capture("1", 1000, "1:0-20 4:20-30", 4)
    (capture,) = story.captures
    below, own = capture.epoch_ranges
    story.captures[0] = replace(capture, epoch_ranges=(replace(below, last_appended_at=250), own))
    assert story.evidence().epochs[1].leaderless_ms is None


def test_an_epoch_without_its_leader_change_is_inexact() -> None:
    story = Story().capture("1", 1000, "3:15-30 5:30-40", 5, leader_epoch_checkpoint=((3, 12), (5, 30)))
    rows = [
        (e.leader_epoch, e.leader_id, e.start_offset, e.start_offset_exact) for e in story.evidence().epochs
    ]
    assert rows == [(3, None, 12, False), (5, None, 30, False)]


def test_snapshots_and_quorum_states_name_epochs_too() -> None:
    story = Story().snapshot(50, 4, "1", at=600)
    story.capture("1", 1000, "", 9, end=50, quorum_state_leader_id=3)
    story.capture("2", 1000, "", 11, end=50, quorum_state_leader_id=-1)
    rows = [(e.leader_epoch, e.leader_id, e.start_offset) for e in story.evidence().epochs]
    assert rows == [(4, None, None), (9, 3, None)]


def test_replica_ranges_leave_gaps_open() -> None:
    story = Story().capture("1", 500, "1:0-10 1:15-20", 1).capture("1", 900, "1:5-10 1:18-30", 1)
    story.capture("2", 700, "1:0-10", 1)
    rows = [
        (r.node_id, r.first_offset, r.end_offset, r.first_captured_at, r.last_captured_at)
        for r in story.evidence().replica_ranges
    ]
    assert rows == [(1, 0, 10, 500, 900), (1, 15, 30, 500, 900), (2, 0, 10, 700, 700)]


def test_nothing_captured_proves_nothing() -> None:
    evidence = Story().evidence()
    assert not any(getattr(evidence, table) for table in evidence.__slots__)
