"""Bounds of the high watermark: what each file proves, and from when or until when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_core.evidence.rows import HighWatermarkRow
from tests.kraft_core.evidence.narrated import Story

THREE = "1 2 3"
FOUR = "1 2 3 4"


def rows(story: Story, evidence: str) -> list[HighWatermarkRow]:
    return [row for row in story.evidence().high_watermarks if row.evidence == evidence]


def lower(story: Story, evidence: str) -> list[tuple[int | None, int]]:
    return [(row.lower_bound, row.as_of) for row in rows(story, evidence)]


def upper(story: Story) -> list[tuple[int, int | None]]:
    return sorted((row.as_of, row.upper_bound) for row in rows(story, "log_ends"))


# --- snapshots


def test_a_snapshot_proves_its_end_at_its_header() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 1000, "1:0-30", 1)
    story.snapshot(20, 1, "1 2", at=400, sets=THREE)
    assert lower(story, "snapshot") == [(20, 400)]
    assert story.ranges() == ["1: 0-20 committed", "1: 20-30 undecided"]


def test_a_snapshot_that_ends_inside_a_batch_proves_the_whole_batch() -> None:
    story = Story().capture("1", 1000, "1:0-30", 1).snapshot(20, 1, "1", at=400, batch_end=23)
    assert lower(story, "snapshot") == [(23, 400)]
    assert story.ranges() == ["1: 0-23 committed", "1: 23-30 undecided"]


@pytest.mark.parametrize(
    ("end", "more"),
    [(0, {}), (20, {"unfinished": True}), (20, {"complete": False}), (20, {"header_timestamp": None})],
    ids=["0-0", ".part", "no footer", "no header"],
)
def test_what_is_no_proof(end: int, more: dict[str, Any]) -> None:
    story = Story().capture("1", 1000, "1:0-30", 1).snapshot(end, 1, "1", **({"at": 400} | more))
    assert rows(story, "snapshot") == []
    assert story.ranges() == ["1: 0-30 undecided"]


def test_of_two_copies_the_earlier_header_counts() -> None:
    story = (
        Story()
        .snapshot(20, 1, "1", at=450, content_digest="a")
        .snapshot(20, 1, "2", at=400, content_digest="b")
    )
    assert lower(story, "snapshot") == [(20, 400)]
    assert rows(story, "snapshot")[0].source.startswith("snapshot 20/e1 of 1@")


# --- the first data batch of an epoch


def old_and_new(level: int | None) -> Story:
    """Static voters; epoch 3 begins at 20 and has data at 21."""
    story = Story().leader(1, 0, 1, THREE).leader(3, 20, 2, THREE).data(3, 21)
    if level is not None:
        story.metadata_version(1, 5, level)
    return story.capture("1", 1000, "1:0-20 3:20-30", 4)  # so that no majority is known


def test_before_3_6_only_the_epochs_start_was_committed() -> None:
    story = old_and_new(7)
    assert lower(story, "first_data_batch") == [(20, 210)]
    assert story.ranges() == ["1: 0-20 committed", "3: 20-30 undecided"]


def test_since_3_6_the_leader_change_was_committed_too() -> None:
    story = old_and_new(12)
    assert lower(story, "first_data_batch") == [(21, 210)]
    assert story.ranges() == ["1: 0-20 committed", "3: 20-21 committed", "3: 21-30 undecided"]


def test_where_the_version_is_not_in_sight_the_weaker_bound_holds() -> None:
    story = Story().leader(1, 0, 1, THREE).leader(3, 20, 2, THREE).data(3, 21)
    story.capture("1", 1000, "1:10-20 3:20-30", 3)
    assert lower(story, "first_data_batch") == [(20, 210)]


def test_kraft_version_1_tells_as_well() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3).capture("1", 1000, "1:0-30", 1)
    assert lower(story, "first_data_batch") == [(3, 30)]


def test_an_upgrade_later_in_the_epoch_does_not_count() -> None:
    story = old_and_new(7).metadata_version(3, 25, 14)
    assert lower(story, "first_data_batch") == [(20, 210)]


def test_without_the_leader_change_in_sight_there_is_no_proof() -> None:
    story = Story().leader(3, 20, 2, THREE).data(3, 21).capture("1", 1000, "3:21-30", 3)
    assert rows(story, "first_data_batch") == []


# --- VotersRecords


def test_a_voters_record_proves_its_epochs_first_batch_and_the_set_before() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).voters(1, 10, FOUR).voters(1, 20, THREE)
    story.capture("1", 1000, "1:0-30", 1)
    assert sorted(lower(story, "voters_record")) == [(3, 100), (11, 200)]
    assert story.sets() == [
        "record 2/1: 1 2 3 committed",
        "record 10/1: 1 2 3 4 committed",
        "record 20/1: 1 2 3 undecided",
    ]


def test_a_voters_record_above_a_gap_proves_nothing_below_it() -> None:
    """No CRC covers where a batch begins: the record at 5000 may be a copy of the one at 10, damaged."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).voters(1, 10, FOUR).voters(1, 5000, FOUR)
    story.capture("1", 1000, "1:0-11", 1).capture("2", 1000, "1:0-10 1:5000-5001", 1)
    assert (11, 50_000) not in lower(story, "voters_record")
    assert {row.offset for row in story.evidence().voter_sets} >= {10, 5000}


def test_a_voters_record_of_a_new_epoch_proves_that_epoch() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(2, 10, 2, THREE).voters(2, 20, FOUR)
    story.capture("1", 1000, "1:0-10 2:10-30", 3)
    assert lower(story, "voters_record") == [(11, 200)]
    assert story.ranges() == ["1: 0-10 committed", "2: 10-11 committed", "2: 11-30 undecided"]


def test_one_in_a_leader_change_batch_proves_nothing() -> None:
    """A leader whose endpoints differ writes the set anew before anything of its epoch is committed."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(2, 10, 2, THREE, sets=THREE)
    story.capture("1", 1000, "1:0-10 2:10-30", 2)
    assert rows(story, "voters_record") == []


def test_one_of_the_upgrade_batch_proves_nothing() -> None:
    story = Story().leader(1, 0, 1, THREE).upgrade(1, 10, THREE).capture("1", 1000, "1:0-30", 1)
    assert rows(story, "voters_record") == []


def test_after_a_snapshot_the_set_before_is_committed_but_its_offset_is_not_known() -> None:
    """The record may have been written before the snapshot: only the epoch's first batch would show it."""
    story = Story().snapshot(10, 1, "1", at=500, sets=THREE).voters(1, 20, FOUR)
    story.capture("1", 1000, "1:10-30", 1)
    assert rows(story, "voters_record") == []


# --- unlawful elections


def test_what_an_unlawful_leader_did_is_only_believed() -> None:
    """Five voters by the log; node 1 still counts by three and is granted by two of the five."""
    five = "1 2 3 4 5"
    story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3).voters(1, 10, FOUR).voters(1, 11, five)
    story.leader(2, 20, 1, THREE, granted="1 3").data(2, 21).voters(2, 25, FOUR)
    story.snapshot(24, 2, "1", at=900, sets=THREE)
    story.capture("1", 1000, "1:0-20 2:20-30", 2).capture("3", 1000, "1:0-20 2:20-30", 2)
    believed = [row for row in story.evidence().high_watermarks if row.believed_bound is not None]
    assert sorted((row.evidence, row.believed_bound) for row in believed) == [
        ("first_data_batch", 21),
        ("snapshot", 24),
        ("voters_record", 21),
    ]
    assert all(row.lower_bound is None and row.upper_bound is None for row in believed)
    assert story.bounds()[0] == 11
    assert story.ranges() == ["1: 0-11 committed", "1: 11-20 undecided", "2: 20-30 undecided"]


@pytest.mark.parametrize(("ids", "granted"), [(THREE, "1"), ("1 2", "1 2"), (FOUR, "1 2 3")])
def test_wrong_voters_or_too_few_grants_are_unlawful(ids: str, granted: str) -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(2, 20, 1, ids, granted=granted).data(2, 21)
    story.capture("1", 1000, "1:0-20 2:20-30", 2)
    assert [row.believed_bound for row in rows(story, "first_data_batch")] == [21]


@pytest.mark.parametrize(("in_epoch", "believed"), [(1, False), (2, True), (3, True), (None, True)], ids=repr)
def test_a_snapshot_of_an_unlawful_leaders_follower_is_only_believed(
    in_epoch: int | None, believed: bool
) -> None:
    """Leader 2 counts by three of five voters, and found the batches of epoch 1 committed by these."""
    story = Story().leader(1, 0, 1, "1 2 3 4 5", sets="1 2 3 4 5").leader(2, 30, 2, THREE, granted="2 3")
    story.snapshot(30, 1, "1", at=500, sets="1 2 3 4 5")
    story.capture("1", 2000, "1:0-30", in_epoch).capture("2", 2000, "1:0-30 2:30-40", 2)
    (row,) = rows(story, "snapshot")
    assert (row.lower_bound, row.believed_bound) == ((None, 30) if believed else (30, None))
    assert ("1: 0-30 committed" in story.ranges()) is not believed


def test_the_majority_rule_holds_regardless() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(2, 20, 1, "1 2", granted="1 2").data(2, 21)
    story.capture("1", 1000, "1:0-20 2:20-30", 2).capture("3", 1000, "1:0-20 2:20-28", 2)
    assert story.ranges()[:2] == ["1: 0-20 committed", "2: 20-28 committed"]


def test_static_sets_are_the_operators_and_break_nothing() -> None:
    story = Story().leader(1, 0, 1, THREE).leader(2, 20, 1, "1 2 4").data(2, 21).metadata_version(1, 5, 14)
    story.capture("1", 1000, "1:0-20 2:20-30", 2)
    assert lower(story, "first_data_batch") == [(21, 210)]


# --- log ends


def test_the_bound_is_the_middle_of_the_voters_ends() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3)
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-25", 1).capture("3", 1000, "1:0-20", 1)
    story.capture("4", 1000, "1:0-5", 1)
    assert upper(story) == [(1000, 25)]


def test_who_was_not_captured_may_have_stored_anything() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3).capture("2", 1000, "1:0-25", 1)
    assert upper(story) == []
    story.capture("3", 1000, "1:0-20", 1)
    assert upper(story) == [(1000, 25)]


def test_the_bound_holds_up_to_the_earliest_capture_it_uses() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3)
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1010, "1:0-25", 1).capture("3", 1020, "1:0-20", 1)
    # From 1001 on node 1 is not captured any more, but the two others still bound a majority.
    assert upper(story) == [(1010, 25)]
    (proof,) = rows(story, "log_ends")
    assert "not known from then on" in proof.source.split(", ")[0]
    assert "at 25 (by capture.json)" in proof.source


def test_a_later_set_counts_too() -> None:
    story = Story().leader(1, 0, 1, "1 2", sets="1 2").data(1, 3).voters(1, 20, THREE)
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-15", 1).capture("3", 1000, "1:0-28", 1)
    assert upper(story) == [(1000, 28)]


def test_a_later_moment_may_be_bounded_though_voters_changed_since() -> None:
    """Of the sets only those count that a leader had appended by then."""
    story = Story().leader(1, 0, 1, "1 2", sets="1 2").data(1, 3).voters(1, 20, THREE).voters(1, 40, FOUR)
    story.capture("1", 250, "1:0-25", 1).capture("2", 250, "1:0-15", 1).capture("3", 250, "1:0-5", 1)
    story.capture("1", 900, "1:0-60", 1).capture("4", 900, "1:0-60", 1)
    assert upper(story) == [(250, 15)]


def test_an_even_set_is_bounded_only_where_its_leader_was_captured() -> None:
    """Leader 1 may have removed node 2 and count by itself alone."""
    story = Story().leader(1, 0, 1, "1 2", sets="1 2").data(1, 3).capture("2", 1000, "1:0-25", 1)
    assert upper(story) == []
    story.capture("1", 1000, "1:0-30", 1)
    assert upper(story) == [(1000, 25)]


@pytest.mark.parametrize("cut", ["tail_damaged", "ends_inside_batch"])
def test_a_damaged_or_incomplete_tail_bounds_nothing(cut: str) -> None:
    for is_cut, bounds in ((False, [(1000, 30)]), (True, [])):
        story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3)
        story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-25", 1, **{cut: is_cut})
        assert upper(story) == bounds


def test_a_directory_without_log_counts_as_empty_an_unknown_end_not() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).data(1, 3).capture("1", 1000, "1:0-30", 1)
    story.capture("2", 1000, "", 1, end=0)
    assert upper(story) == [(1000, 30)]


def test_sets_known_only_from_snapshots_may_hide_others() -> None:
    story = Story().leader(1, 0, 1, "1 2", sets="1 2").data(1, 3).capture("1", 100, "1:0-10", 1)
    story.capture("2", 100, "1:0-10", 1)
    assert upper(story) == [(100, 10)]
    story.snapshot(500, 1, "1", at=9000, sets="1 2 3 4 5")
    assert upper(story) == []


@pytest.mark.parametrize("replica", ["2", "3"])
def test_a_file_time_bounds_nothing_but_by_the_newest_timestamp_inside(replica: str) -> None:
    """The log of node 2 or 3 ends at 20, at 190 ms or later: what leader 1 wrote since is not known."""
    logs = {"1": "1:0-30", "2": "1:0-20", "3": "1:0-20"}
    story = Story().leader(1, 0, 1, THREE, sets=THREE)
    for name, log in logs.items():
        story.capture(name, 1000, log, 1, stated=name != replica)
    assert upper(story) == [(190, 20), (1000, 30)]
    row = min(rows(story, "log_ends"), key=lambda row: row.as_of)
    assert f"{replica}@DDDDDDDDDDDDDDDDDDDDD{replica} at 20 (by newest timestamp in the log)" in row.source


def test_a_log_that_ends_below_its_checkpoint_bounds_nothing() -> None:
    """Its last segments were not copied: nobody knows what they held."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 1000, "1:0-100", 1)
    story.capture("2", 1000, "1:0-50", 1).capture("3", 1000, "1:0-50", 1)
    assert upper(story) == [(1000, 50)]
    assert story.ranges() == ["1: 0-50 committed", "1: 50-100 uncommitted"]
    story.captures[1:] = [replace(capture, log_end_offset=60) for capture in story.captures[1:]]
    assert upper(story) == []
    assert story.ranges() == ["1: 0-50 committed", "1: 50-100 undecided"]


@pytest.mark.parametrize("name", ["2", "2?"], ids=["directory id", "no directory id, as before Kafka 3.7"])
def test_a_log_that_shrank_bounds_nothing(name: str) -> None:
    story = Story().leader(1, 0, 1, THREE)
    story.capture(name, 400, "1:0-30", 1).capture(name, 800, "1:0-10", 1).capture("3", 800, "1:0-10", 1)
    assert upper(story) == [(400, 30)]
