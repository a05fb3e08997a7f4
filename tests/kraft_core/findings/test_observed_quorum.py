"""What describe outputs and quorum-states report enters the tables as observed, and proves nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import tables
from kraft_core.evidence.rows import EpochRow, VoterSetRow
from kraft_core.findings.facts import Observation
from kraft_core.findings.observed_quorum import observed_epochs, observed_voter_sets
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.evidence.golden import MOMENTS
from tests.kraft_core.evidence.narrated import Story, directory
from tests.kraft_core.findings.golden import known, observations

THREE = "1 2 3"


def status(at: int, epoch: int, leader: int, names: str, high_watermark: int | None = None) -> Observation:
    """An output of a command that ran from `at` on for 5 ms."""
    return Observation(
        "story", f"{at}-status.txt", at, at + 5, "status", leader, ZERO_UUID, "Leader", epoch,
        high_watermark, voters=tuple(directory(name) for name in names.split()),
    )  # fmt: skip


def epochs(story: Story, *outputs: Observation) -> list[EpochRow]:
    return observed_epochs(tables(conclude(story.facts())).epochs, outputs)


def sets(story: Story, *outputs: Observation) -> list[VoterSetRow]:
    conclusions = conclude(story.facts())
    return observed_voter_sets(conclusions, tables(conclusions).voter_sets, outputs)


def evening() -> Story:
    """Epoch 4 is captured from its LEADER_CHANGE on, above a snapshot of epoch 3; epoch 1 is not."""
    story = Story().snapshot(100, 3, "4", at=1200, sets="1 2 3 4 5").leader(4, 120, 5, "1 2 3 4 5")
    return story.capture("4", 2000, "3:100-120 4:120-150", 4, leader_epoch_checkpoint=((3, 100), (4, 120)))


SPOKEN = (
    status(300, 1, 3, "1 2 3", 20),
    status(500, 1, 3, "1 2 3", 40),
    status(700, 3, 2, "1 2 3", 60),
    status(800, 3, 2, "1 2 3 4", 80),
    status(1250, 3, 2, "1 2 3 4 5", 110),
)


def test_who_led_before_the_captured_log_is_observed() -> None:
    first, third, fourth = epochs(evening(), *SPOKEN)
    assert (first.leader_epoch, first.leader_id, first.source, first.leader_source) == (
        1,
        3,
        "describe",
        "describe",
    )
    assert (first.elected_at, first.known_from, first.known_to) == (None, 305, None)
    assert (first.observed_from, first.observed_to, first.leaderless_ms) == (300, 505, None)
    # Epoch 3 is known from the log, who led it only from the outputs.
    assert (third.leader_epoch, third.leader_id, third.source, third.leader_source) == (
        3,
        2,
        "log",
        "describe",
    )
    assert (third.known_from, third.known_to, third.observed_from) == (705, 1190, 700)
    assert (fourth.leader_id, fourth.leader_source, fourth.known_from, fourth.known_to) == (
        5,
        "record",
        1200,
        1490,
    )


def test_each_output_that_is_taken_away_is_missed() -> None:
    wanted = epochs(evening(), *SPOKEN), sets(evening(), *SPOKEN)
    for gone in SPOKEN:
        left = [output for output in SPOKEN if output is not gone]
        assert (epochs(evening(), *left), sets(evening(), *left)) != wanted
    assert epochs(evening()) == tables(conclude(evening().facts())).epochs
    assert [(row.leader_epoch, row.leader_id) for row in epochs(evening())] == [(3, None), (4, 5)]
    assert sets(evening()) == []


def test_a_record_names_the_leader_whatever_is_reported() -> None:
    story = Story().leader(1, 0, 1, THREE).capture("1", 1000, "1:0-20", 1)
    (row,) = epochs(story, status(100, 1, 2, THREE))
    assert (row.leader_id, row.leader_source, row.known_from) == (1, "record", 0)


def test_reports_that_contradict_one_another_name_no_leader() -> None:
    story = Story().capture("1", 1000, "", 9, end=50, quorum_state_leader_id=3)
    (row,) = epochs(story)
    assert (row.leader_id, row.source, row.leader_source, row.known_from) == (
        3,
        "quorum-state",
        "quorum-state",
        1000,
    )
    (row,) = epochs(story, status(100, 9, 2, THREE))
    assert (row.leader_id, row.leader_source, row.known_from) == (None, None, 105)
    story.capture("2", 1000, "", 9, end=50, quorum_state_leader_id=2)
    (row,) = epochs(story)
    assert (row.leader_id, row.leader_source) == (None, None)


def test_a_copy_without_a_stated_time_bounds_no_election() -> None:
    story = Story().capture("1", 1000, "", 9, end=50, quorum_state_leader_id=3, stated=False)
    (row,) = epochs(story)
    assert (row.leader_id, row.known_from) == (3, None)


def test_voters_before_the_captured_log_are_observed() -> None:
    """The output of 1250 reports the set of the snapshot of 1200, which explains it."""
    rows = sets(evening(), *SPOKEN)
    assert [(row.offset, row.leader_epoch, row.voter_ids) for row in rows] == [
        (-1, 1, (1, 2, 3)),
        (-1, 3, (1, 2, 3)),
        # Appended after 1 2 3 was reported with the high watermark 60.
        (60, 3, (1, 2, 3, 4)),
    ]
    assert {(row.source, row.commit_status, row.in_force_from_exact) for row in rows} == {
        ("describe", "undecided", False)
    }
    times = [(row.in_force_from, row.in_force_to, row.observed_from, row.observed_to) for row in rows]
    assert times == [(305, 705, 300, 505), (705, 805, 700, 705), (805, 1200, 800, 805)]
    assert {row.in_force_to_exact for row in rows} == {False}
    assert rows[0].evidence == (
        "reported by leader 3 of epoch 1 in 300-status.txt to 500-status.txt; not proven"
    )


def test_a_set_reported_before_the_snapshot_that_shows_it_is_observed_earlier() -> None:
    (row,) = sets(evening(), status(1100, 3, 2, "1 2 3 4 5", 95))
    assert (row.in_force_from, row.in_force_to, row.voter_ids) == (1105, 1200, (1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    ("names", "explained"), [("1 2 3", True), ("1? 2? 3?", True), ("1 2 3b", False), ("1 2", False)]
)
def test_a_proven_set_explains_a_report_of_the_same_voters(names: str, explained: bool) -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 1000, "1:0-50", 1)
    assert (sets(story, status(100, 1, 1, names, 20)) == []) is explained


def test_a_change_that_was_not_captured_is_observed() -> None:
    """Two sets at one high watermark: the second lies above it."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 200, "1:0-21", 1)
    reports = status(300, 1, 1, THREE, 50), status(400, 1, 1, "1 2 3 4", 50), status(500, 1, 1, THREE, 50)
    (row, back) = sets(story, *reports, status(600, 1, 1, "1 2 3 4 5", 50), status(700, 1, 1, THREE, 60))
    assert (row.offset, row.voter_ids, row.in_force_from, row.in_force_to) == (50, (1, 2, 3, 4), 405, 505)
    assert (back.offset, back.voter_ids, back.in_force_to) == (52, (1, 2, 3, 4, 5), 705)


def test_static_voters_of_a_quorum_state_are_observed() -> None:
    def story(stated: bool) -> Story:
        return Story().capture("1", 900, "3:40-50", 3, current_voters=(1, 2, 3), stated=stated)

    (row,) = sets(story(stated=True))
    assert (row.source, row.offset, row.leader_epoch, row.voter_ids) == ("quorum-state", -1, 3, (1, 2, 3))
    assert (row.in_force_from, row.commit_status) == (900, "undecided")
    (row,) = sets(story(stated=False))
    assert row.in_force_from is None
    proven = Story().leader(3, 0, 1, THREE).capture("1", 900, "3:0-50", 3, current_voters=(1, 2, 3))
    assert sets(proven) == []


def test_the_order_of_outputs_carries_no_meaning() -> None:
    wanted = epochs(evening(), *SPOKEN), sets(evening(), *SPOKEN)
    for outputs in permutations(SPOKEN):
        assert (epochs(evening(), *outputs, outputs[0]), sets(evening(), *outputs, outputs[0])) == wanted


@pytest.mark.parametrize("moment", MOMENTS)
def test_of_real_quorums_the_keys_are_unique_and_nothing_proven_changes(moment: str) -> None:
    conclusions, seen = known(moment), observations(moment.split("/")[0])
    proven = tables(conclusions)
    rows = observed_voter_sets(conclusions, proven.voter_sets, seen)
    keys = [(row.offset, row.leader_epoch, row.source) for row in (*proven.voter_sets, *rows)]
    assert len(set(keys)) == len(keys)
    epochs_then = {row.leader_epoch: row for row in proven.epochs}
    for row in observed_epochs(proven.epochs, seen):
        if row.source == "record":
            assert replace(row, observed_from=None, observed_to=None) == epochs_then[row.leader_epoch]
