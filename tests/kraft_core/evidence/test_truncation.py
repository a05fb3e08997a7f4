"""What counts as truncated, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kraft_core.evidence.narrated import Story

THREE = "1 2 3"


def two_epochs() -> Story:
    """Leader 1 in epoch 1; leader 2 in epoch 3 from offset 20 on, of which there is one capture only."""
    return Story().leader(1, 0, 1, THREE, sets=THREE).leader(3, 20, 2, THREE)


def test_a_replica_that_held_it_and_then_a_higher_epoch() -> None:
    """Undecided until epoch 3 is committed: another log may have kept it and lead again (figure 8)."""
    story = two_epochs().capture("1", 500, "1:0-30", 1).capture("1", 900, "1:0-20 3:20-22", 4)
    assert story.ranges() == ["1: 0-30 undecided", "3: 20-22 undecided"]
    story.capture("1", 700, "1:0-20 3:20-22", 3)
    assert story.ranges() == ["1: 0-20 committed", "1: 20-30 truncated by 3", "3: 20-22 committed"]


def test_a_replica_that_held_a_higher_epoch_and_then_it() -> None:
    """Leader 1 of epoch 6 brings the batch back to 2, whose log ends in epoch 1 until its next fetch."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(3, 20, 2, THREE)
    story.capture("2", 100, "1:0-20 3:20-21", 4).capture("2", 120, "1:0-30", 6)
    assert story.ranges() == ["1: 0-30 undecided", "3: 20-21 undecided"]


def test_the_clock_of_a_superseding_log_does_not_matter() -> None:
    """The clock of the second capture was wrong."""
    story = two_epochs().capture("1", 900, "1:0-30", 1).capture("1", 500, "1:0-20 3:20-22", 3)
    assert story.ranges()[1] == "1: 20-30 truncated by 3"


def test_what_another_replica_holds_is_no_truncation() -> None:
    story = two_epochs().capture("1", 500, "1:0-30", 1).capture("2", 900, "1:0-20 3:20-22", 3)
    assert story.ranges() == ["1: 0-30 undecided", "3: 20-22 undecided"]


def test_what_another_directory_of_the_node_holds_is_no_truncation() -> None:
    story = two_epochs().capture("1", 500, "1:0-30", 1).capture("1b", 900, "1:0-20 3:20-22", 3)
    assert "truncated" not in " ".join(story.ranges())


def test_unknown_directories_may_be_different_ones() -> None:
    story = two_epochs().capture("1?", 500, "1:0-30", 1).capture("1?", 900, "1:0-20 3:20-22", 3)
    assert "truncated" not in " ".join(story.ranges())


def test_a_deleted_prefix_is_no_truncation() -> None:
    story = two_epochs().capture("1", 500, "1:0-20", 1).capture("1", 900, "3:25-40", 3)
    assert story.ranges() == ["1: 0-20 undecided", "3: 25-40 undecided"]


def test_a_missing_segment_is_no_truncation() -> None:
    story = two_epochs().capture("1", 500, "1:0-20", 1).capture("1", 900, "1:0-10 3:20-40", 3)
    assert story.ranges() == ["1: 0-20 undecided", "3: 20-40 undecided"]


def test_a_fetched_snapshot_is_no_truncation_below_its_end() -> None:
    story = two_epochs().capture("1", 500, "1:0-30", 1).capture("1", 900, "3:28-40", 4)
    story.snapshot(28, 3, "1", at=800, sets=THREE)
    # The snapshot shows that the record at 27 is of epoch 3.
    assert story.ranges() == ["1: 0-27 undecided", "1: 27-30 truncated by 3", "3: 28-40 undecided"]


def test_a_shorter_log_is_no_truncation() -> None:
    story = two_epochs().capture("1", 900, "1:0-10", 1).capture("1", 500, "1:0-20", 1)
    assert "truncated" not in " ".join(story.ranges())


def test_a_committed_batch_of_a_higher_epoch_supersedes() -> None:
    story = two_epochs().capture("1", 500, "1:0-30", 1)
    story.capture("2", 900, "1:0-20 3:20-25", 3).capture("3", 950, "1:0-20 3:20-24", 3)
    assert story.ranges() == [
        "1: 0-20 committed",
        "1: 20-30 truncated by 3",
        "3: 20-24 committed",
        "3: 24-25 uncommitted",
    ]
    row = story.evidence().log_ranges[1]
    assert row.as_of == 950
    assert row.evidence.startswith("a committed batch of epoch 3 lies at 20: a majority of {1,2,3}")


def test_a_snapshot_alone_supersedes_too() -> None:
    story = two_epochs().capture("1", 500, "1:0-30", 1).snapshot(25, 3, "2", at=700, sets=THREE)
    assert story.ranges() == ["1: 0-24 undecided", "1: 24-30 truncated by 3"]


def test_a_batch_that_a_later_leader_brought_back_is_not_truncated() -> None:
    """Figure 8 with a replica that lost the batch in between: epoch 4's log holds it again."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(3, 20, 3, THREE).leader(4, 30, 1, THREE)
    story.capture("2", 500, "1:0-30", 2).capture("2", 600, "1:0-20 3:20-22", 4)
    assert story.ranges() == ["1: 0-30 undecided", "3: 20-22 undecided"]
    story.capture("1", 700, "1:0-30 4:30-31", 4)
    assert story.ranges() == ["1: 0-30 undecided", "3: 20-22 undecided", "4: 30-31 undecided"]
    story.capture("2", 800, "1:0-30 4:30-31", 4)
    assert story.ranges() == ["1: 0-30 committed", "3: 20-22 truncated by 1", "4: 30-31 committed"]


def test_a_lost_voter_set() -> None:
    story = two_epochs().voters(1, 25, "1 2 3 4").capture("1", 500, "1:0-30", 1)
    story.capture("2", 900, "1:0-20 3:20-25", 3).capture("3", 950, "1:0-20 3:20-24", 3)
    assert story.sets() == ["record 2/1: 1 2 3 committed", "record 25/1: 1 2 3 4 truncated"]
    first, lost = story.evidence().voter_sets
    assert (first.in_force_to_offset, first.in_force_to) == (None, None)
    assert (lost.in_force_from_offset, lost.in_force_to_offset, lost.truncated_by_epoch) == (25, 30, 3)
    # Leader 1 appended it without knowing that epoch 3 was elected at 200.
    assert (lost.in_force_from, lost.in_force_to) == (250, 250)
    assert [(c.kind, c.voter_id, c.commit_status) for c in story.evidence().voter_changes][3:] == [
        ("added", 4, "truncated")
    ]


@pytest.mark.parametrize("log", ["1:0-30 3:40-50", "1:0-30 3:20-50", "1:0-30 3:30-50"])
def test_segments_of_two_moments_do_not_show_where_an_epoch_begins(log: str) -> None:
    """Node 3's first segment was copied before 20 to 29 of epoch 1 were truncated, the others after that."""
    story = two_epochs().capture("3", 900, log, 3).snapshot(50, 3, "2", at=800, sets=THREE)
    assert not any(row.startswith("1: 0-30 committed") for row in story.ranges())
    story.capture("2", 900, "1:0-20 3:20-50", 3)
    contested = log == "1:0-30 3:30-50"
    known = ["1: 0-20 committed", "1: 20-30 truncated by 3", "3: 20-50 committed"]
    assert story.ranges() == (["1: 0-30 undecided", "3: 20-50 undecided"] if contested else known)


@pytest.mark.parametrize(
    ("epochs", "status"),
    [
        (((1, 0), (3, 30)), "committed"),
        (((1, 0), (2, 20), (3, 30)), "undecided"),
        (((3, 30),), "undecided"),
        ((), "undecided"),
        (None, "committed"),
    ],
)
def test_leader_epoch_checkpoint_shows_segments_of_two_moments(
    epochs: tuple[tuple[int, int], ...] | None, status: str
) -> None:
    """Node 3's first segment may have been copied before its last batches of epoch 1 were truncated."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(3, 30, 2, THREE)
    story.capture("2", 900, "3:40-50", 3).snapshot(50, 3, "2", at=800, sets=THREE)
    story.capture("3", 900, "1:0-30 3:30-50", 3, leader_epoch_checkpoint=epochs)
    assert story.ranges() == [f"1: 0-30 {status}", "3: 30-50 committed"]


def test_what_leader_epoch_checkpoint_has_is_not_lacked() -> None:
    """By it, node 2 holds 20 to 29 of epoch 3; its segment there was copied before it fetched them."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(3, 20, 1, THREE).leader(5, 30, 2, THREE)
    story.capture("1", 900, "1:0-20 3:20-30", 3).capture("3", 900, "1:0-20", 3)
    story.capture("2", 900, "1:0-30 5:30-31", 5)
    assert "3: 20-30 uncommitted" in story.ranges()
    epochs = ((1, 0), (3, 20), (5, 30))
    story.captures[-1] = replace(story.captures[-1], leader_epoch_checkpoint=epochs)
    assert "3: 20-30 undecided" in story.ranges()
