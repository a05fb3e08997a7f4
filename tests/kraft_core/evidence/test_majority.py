"""The majority rule: what counts as stored in the epoch, and by which voters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import conclude
from tests.kraft_core.evidence.narrated import Story

# Epoch 1 of leader 1 with voters 1 2 3; no data, so only majorities prove anything.
THREE = "1 2 3"


def three(sets: str = THREE) -> Story:
    return Story().leader(1, 0, 1, sets, sets=sets)


@pytest.mark.parametrize(
    ("story_text", "captures", "expected"),
    [
        (
            "the leader and one follower are a majority, up to what both hold",
            [("1", "1:0-30", 1), ("2", "1:0-20", 1)],
            ["1: 0-20 committed", "1: 20-30 undecided"],
        ),
        (
            "a leader stored its own batches whatever its quorum-state says now",
            [("1", "1:0-30", 9), ("2", "1:0-20", 1)],
            ["1: 0-20 committed", "1: 20-30 undecided"],
        ),
        (
            "a follower that has gone on to another epoch may have fetched them there",
            [("1", "1:0-30", 1), ("2", "1:0-20", 2)],
            ["1: 0-30 undecided"],
        ),
        (
            "the leader wrote what any log holds, so it counts without a capture (KIP-595)",
            [("2", "1:0-20", 1), ("3", "1:0-25", 1)],
            ["1: 0-25 committed"],
        ),
        (
            "one replica of three proves nothing",
            [("1", "1:0-30", 1)],
            ["1: 0-30 undecided"],
        ),
        (
            "another directory of a voter's id is another replica",
            [("1", "1:0-30", 1), ("2b", "1:0-20", 1)],
            ["1: 0-30 undecided"],
        ),
        (
            "so is a directory that is not known, where the set knows its voters' directories",
            [("1", "1:0-30", 1), ("2?", "1:0-20", 1)],
            ["1: 0-30 undecided"],
        ),
        (
            "the leader's id on another disk is not the leader",
            [("1b", "1:0-30", 1), ("2", "1:0-20", 2)],
            ["1: 0-30 undecided"],
        ),
        (
            "observers never count",
            [("1", "1:0-30", 1), ("4", "1:0-30", 1), ("5", "1:0-30", 1)],
            ["1: 0-30 undecided"],
        ),
    ],
)
def test_three_voters(story_text: str, captures: list[tuple[str, str, int]], expected: list[str]) -> None:
    story = three()
    for nth, (replica, log, in_epoch) in enumerate(captures):
        story.capture(replica, 1000 + nth, log, in_epoch)
    # Whoever is not captured may hold anything: only what is proven is reported.
    assert [row.replace("uncommitted", "undecided") for row in story.ranges()] == expected, story_text


def test_two_captures_of_one_replica_are_one_voter() -> None:
    """Node 2 and the leader are two of five."""
    story = three("1 2 3 4 5").capture("2", 1000, "1:0-10", 1).capture("2", 1001, "1:0-20", 1)
    assert "committed" not in " ".join(row.replace("uncommitted", "") for row in story.ranges())


def test_a_leader_that_was_not_captured_counts_only_as_a_voter() -> None:
    """A leader that removed itself wrote what node 2 holds, and counts for nothing (KIP-853)."""
    story = three().voters(1, 20, "2 3").capture("2", 1000, "1:0-30", 1)
    assert story.ranges() == ["1: 0-20 committed", "1: 20-30 undecided"]


def test_a_leader_that_was_not_captured_counts_in_its_own_epoch_only() -> None:
    """Node 2 fetched the tail of epoch 1 from the leader of epoch 2, perhaps (Raft, figure 8)."""
    story = three().leader(2, 20, 3, THREE).capture("2", 1000, "1:0-20", 2)
    assert story.ranges() == ["1: 0-20 undecided"]


def test_captures_of_different_times_add_up() -> None:
    """Node 3 died in epoch 1; its old capture still shows what it had stored there."""
    story = three("1 2 3 4 5").capture("3", 500, "1:0-30", in_epoch=1).capture("4", 900, "1:0-40", in_epoch=1)
    assert story.ranges() == ["1: 0-30 committed", "1: 30-40 undecided"]
    (row, *_) = story.evidence().log_ranges
    assert row.as_of == 900
    assert row.evidence.startswith(
        "a majority of {1,2,3,4,5} (VotersRecord 2/e1) stored it up to 30 in epoch 1: 1@"
    )
    story.captures = [replace(capture, captured_until=None) for capture in story.captures]
    assert story.evidence().log_ranges[0].as_of is None  # committed, but since when is not known


def test_a_copy_that_is_not_consistent_does_not_count() -> None:
    captures = [("1", "1:0-30", 1), ("2", "1:0-20", 1)]
    story = three()
    for replica, log, in_epoch in captures:
        story.capture(replica, 1000, log, in_epoch, consistent=replica == "1")
    assert [row.commit_status for row in story.evidence().log_ranges] == ["undecided"]


def test_a_quorum_state_older_than_the_log_does_not_count() -> None:
    story = three().leader(3, 20, 3, THREE)
    story.capture("1", 1000, "1:0-20", 1).capture("2", 1000, "1:0-20 3:20-21", in_epoch=1)
    assert "1: 0-20 committed" not in story.ranges()


def test_a_quorum_state_from_before_a_vote_does_not_count() -> None:
    """Node 2 voted for node 3 at 200 ms: its log may hold what node 3 sent it in epoch 3 (Raft, figure 8)."""
    story = three().leader(3, 20, 3, THREE, "2 3").capture("3", 1000, "1:0-20 3:20-21", 4)
    later = replace(story, captures=list(story.captures)).capture("2", 1000, "1:0-20", 1)
    assert later.ranges() == ["1: 0-20 undecided", "3: 20-21 undecided"]
    (capture,) = (c for c in conclude(later.facts()).facts.captures if c.node_id == 2)
    assert not capture.consistent
    earlier = replace(story, captures=list(story.captures)).capture("2", 199, "1:0-20", 1)
    assert earlier.ranges() == ["1: 0-20 committed", "3: 20-21 undecided"]
    other = replace(story, captures=list(story.captures)).capture("2b", 1000, "1:0-20", 1)
    assert all(capture.consistent for capture in conclude(other.facts()).facts.captures)


def test_the_leader_of_the_next_epoch_had_stored_what_its_log_holds() -> None:
    """It was in epoch 1 until it stood for epoch 2, at 200 ms: with leader 1 it is a majority."""
    story = three().leader(2, 20, 2, THREE).capture("3", 1000, "1:0-20 2:20-21", 9)
    assert story.ranges() == ["1: 0-20 committed", "2: 20-21 undecided"]
    assert story.evidence().log_ranges[0].as_of == 200


@pytest.mark.parametrize(
    "story",
    [
        three().leader(3, 20, 2, THREE).capture("3", 1000, "1:0-20 3:20-21", 9),  # perhaps stored in epoch 2
        three().leader(2, 20, 1, THREE).capture("3", 1000, "1:0-20 2:20-21", 9),  # one voter led both
        three().leader(2, 20, 2, THREE).capture("3", 1000, "1:0-10 2:20-21", 9),  # there is a gap
        three().leader(2, 20, 4, THREE).capture("3", 1000, "1:0-20 2:20-21", 9),  # node 4 is no voter
        three("1 2 3 4 5").leader(2, 20, 2, "1 2 3 4 5").capture("3", 1000, "1:0-20 2:20-21", 9),
    ],
)
def test_where_the_leader_of_the_next_epoch_proves_nothing(story: Story) -> None:
    assert "committed" not in " ".join(story.ranges())


def test_a_single_voter_commits_its_whole_log() -> None:
    story = three("1").capture("1", 1000, "1:0-30", in_epoch=7)
    assert story.ranges() == ["1: 0-30 committed"]


def test_the_next_set_counts_for_the_batches_before_it() -> None:
    """Two are not a majority of four voters, but of the three that the leader counted by from 20 on."""
    story = three("1 2 3 4").voters(1, 20, "1 2 3")
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-25", 1)
    assert story.ranges() == ["1: 0-25 committed", "1: 25-30 undecided"]


def test_the_next_set_does_not_count_before_it_was_appended() -> None:
    story = three("1 2 3 4").voters(1, 20, "1 2 3")
    story.capture("1", 150, "1:0-15", 1).capture("2", 150, "1:0-15", 1).capture("3", 999, "1:0-21", 2)
    (row, *_) = story.evidence().log_ranges
    assert (row.end_offset, row.commit_status, row.as_of) == (15, "committed", 10 * 20)


def test_a_next_set_that_differs_by_more_does_not_count() -> None:
    story = three("1 2 3 4").voters(1, 20, "1 2")
    story.capture("1", 1000, "1:0-20", 1).capture("2", 1000, "1:0-20", 1)
    assert story.ranges() == ["1: 0-3 committed", "1: 3-20 undecided"]


def test_a_set_counts_from_its_own_record_on() -> None:
    """Voter 4 is added at 20: below two of three suffice, from there on three of four are needed."""
    story = three().voters(1, 20, "1 2 3 4")
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-30", 1)
    assert story.ranges() == ["1: 0-20 committed", "1: 20-30 undecided"]
    story.capture("4", 1000, "1:0-28", 1)
    assert story.ranges() == ["1: 0-28 committed", "1: 28-30 undecided"]


def test_a_removed_leader_does_not_count_itself() -> None:
    story = three().voters(1, 20, "2 3")
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-30", 1)
    assert story.ranges()[0] == "1: 0-20 committed"
    assert "1: 0-30 committed" not in story.ranges()


def static() -> Story:
    return Story().leader(1, 0, 1, THREE)


def test_static_voters_match_by_id_alone() -> None:
    story = static().capture("1?", 1000, "1:0-30", 1).capture("2b", 1000, "1:0-20", 1)
    assert story.ranges() == ["1: 0-20 committed", "1: 20-30 undecided"]


def test_two_directories_of_a_static_voter_are_one_voter() -> None:
    five = Story().leader(1, 0, 1, "1 2 3 4 5")
    five.capture("2", 1000, "1:0-30", 1).capture("2b", 1000, "1:0-30", 1)
    assert five.ranges() == ["1: 0-30 undecided"]


@pytest.mark.parametrize("older", ["1:0-10", ""])
def test_a_second_directory_of_a_static_voter_does_not_count_alone(older: str) -> None:
    """Node 2 and the first directory of 3 can elect a log without what the second one holds."""
    story = static().capture("1", 1000, "1:0-30", 1).capture("3b", 1000, "1:0-20", 1)
    story.capture("3", 1000, older, 1)
    assert not any("20 committed" in row for row in story.ranges())


def test_what_a_static_voter_stored_before_its_disk_was_replaced_counted() -> None:
    story = static().leader(2, 10, 3, THREE).capture("1", 1000, "1:0-20", 1).capture("2", 1000, "1:0-20", 1)
    story.capture("2b", 3000, "1:0-10 2:10-30", 2)
    assert story.ranges() == ["1: 0-20 committed", "2: 10-30 committed"]
    # Without the order of the captures, both directories may have been live at once.
    story.captures = [replace(c, captured_from=None, captured_until=None) for c in story.captures]
    assert story.ranges() == ["1: 0-10 committed", "1: 10-20 undecided", "2: 10-30 undecided"]


def test_each_epoch_has_its_own_static_set() -> None:
    """The operator replaced voter 3 by 4 between the epochs."""
    story = static().leader(2, 20, 1, "1 2 4")
    story.capture("3", 1000, "1:0-20 2:20-30", 2).capture("1", 1000, "1:0-20 2:20-30", 2)
    assert story.ranges() == ["1: 0-20 undecided", "2: 20-30 undecided"]
    story.capture("4", 1000, "1:0-20 2:20-30", 2)
    assert story.ranges() == ["1: 0-20 committed", "2: 20-30 committed"]


def test_the_upgrade_gives_the_static_voters_their_directories() -> None:
    story = static().upgrade(1, 20, THREE)
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-30", 1)
    assert story.ranges() == ["1: 0-30 committed"]
    assert story.sets() == ["static 0/1: 1 2 3 None", "record 21/1: 1 2 3 committed"]


def test_figure_8() -> None:
    """Raft's figure 8: a batch of epoch 2 on three of five is committed only by one of epoch 4 above it."""
    five = "1 2 3 4 5"
    story = (
        Story().leader(1, 0, 1, five, sets=five).data(1, 3).snapshot(10, 1, "1 2 3 4 5", at=100, sets=five)
    )
    story.leader(2, 10, 1, five).leader(3, 10, 5, five).leader(4, 20, 1, five)
    story.capture("5", 1000, "1:0-10 3:10-20", 3).capture("4", 1000, "1:0-10", 4)
    story.capture("1", 1000, "1:0-10 2:10-20 4:20-25", 4)
    story.capture("2", 1000, "1:0-10 2:10-20", 4).capture("3", 1000, "1:0-10 2:10-20", 4)
    assert story.ranges() == [
        "1: 0-10 committed",
        "2: 10-20 undecided",
        "3: 10-20 uncommitted",
        "4: 20-25 uncommitted",
    ]
    # Case (e): leader 1 replicates a batch of its own epoch, which commits what lies below it, and only now
    # is epoch 3 gone, though its epoch is the higher one.
    story.capture("2", 1100, "1:0-10 2:10-20 4:20-24", 4).capture("3", 1100, "1:0-10 2:10-20 4:20-22", 4)
    assert story.ranges() == [
        "1: 0-10 committed",
        "2: 10-20 committed",
        "3: 10-20 truncated by 2",
        "4: 20-22 committed",
        "4: 22-25 uncommitted",
    ]


def test_figure_8_case_d() -> None:
    """Case (d): leader 5 comes back in epoch 5 and overwrites what three of five hold."""
    five = "1 2 3 4 5"
    story = (
        Story().leader(1, 0, 1, five, sets=five).data(1, 3).snapshot(10, 1, "1 2 3 4 5", at=100, sets=five)
    )
    story.leader(2, 10, 1, five).leader(3, 10, 5, five).leader(5, 20, 5, five)
    story.capture("1", 1000, "1:0-10 2:10-20", 4).capture("2", 1000, "1:0-10 2:10-20", 4)
    story.capture("3", 1000, "1:0-10 2:10-20", 4)
    for replica in ("2", "3", "5"):
        story.capture(replica, 2000, "1:0-10 3:10-20 5:20-21", 5)
    assert story.ranges() == [
        "1: 0-10 committed",
        "2: 10-20 truncated by 3",
        "3: 10-20 committed",
        "5: 20-21 committed",
    ]


def test_a_log_that_begins_at_a_snapshot_takes_its_voters_from_there() -> None:
    """Node 4's log begins at 356; nodes 1 and 4 hold epoch 8 from there, by a set known from the snapshot."""
    story = Story().leader(8, 300, 1, "1 2 4").snapshot(356, 8, "4", at=3600, sets="1 2 4")
    story.capture("4", 9000, "8:356-400", 9).capture("2", 9000, "8:356-390", 8)
    assert story.ranges() == ["8: 356-390 committed", "8: 390-400 undecided"]
    assert story.sets() == ["snapshot 355/8: 1 2 4 committed"]


def test_without_the_snapshot_the_voters_are_unknown() -> None:
    story = (
        Story()
        .leader(8, 300, 1, "1 2 4")
        .capture("4", 9000, "8:356-400", 8)
        .capture("2", 9000, "8:356-390", 8)
    )
    assert story.ranges() == ["8: 356-400 undecided"]
    assert "voter set is unknown" in story.evidence().log_ranges[0].evidence


def test_above_a_hole_the_voters_are_unknown_until_another_log_fills_it() -> None:
    story = three()
    story.capture("1", 1000, "1:0-10 1:20-30", 1).capture("2", 1000, "1:0-10 1:20-30", 1)
    assert story.ranges() == ["1: 0-10 committed", "1: 20-30 undecided"]
    story.capture("4", 500, "1:0-20", 1)
    assert story.ranges() == ["1: 0-30 committed"]


def test_a_batch_of_a_damaged_offset_is_not_what_a_voter_had_stored() -> None:
    """No CRC covers where a batch begins: the one at 10 in the log of 2 reads as one at 5000."""
    story = three().capture("1", 1000, "1:0-20", 1).capture("2", 1000, "1:0-10 1:5000-5001", 1)
    assert story.ranges() == ["1: 0-10 committed", "1: 10-20 undecided", "1: 5000-5001 undecided"]


def test_captures_that_contradict_each_other_prove_nothing_of_that_epoch() -> None:
    """The same offsets of the same epoch with other batches: one of the copies was tampered with."""
    story = three().leader(2, 20, 2, THREE)
    story.capture("1", 1000, "1:0-20 2:20-30", 2).capture("2", 1000, "1:0-20 2:20-30", 2, digests="*")
    assert [row.split(": ")[1] for row in story.ranges()] == ["0-20 undecided", "20-30 undecided"]
    assert "contradict" in story.evidence().log_ranges[0].evidence
