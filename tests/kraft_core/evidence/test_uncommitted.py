"""When a batch is known not to be committed as of a moment, and when that is not known."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.evidence.narrated import Story

THREE = "1 2 3"
FOUR = "1 2 3 4"


def three(ids: str = THREE) -> Story:
    """Leader 1 of epoch 1."""
    return Story().leader(1, 0, 1, ids, sets=ids)


def statuses(story: Story) -> list[str]:
    return [row.split(": ")[1] for row in story.ranges()]


def test_two_of_three_lack_it() -> None:
    story = (
        three()
        .capture("1", 1000, "1:0-30", 1)
        .capture("2", 1010, "1:0-20", 1)
        .capture("3", 1020, "1:0-10", 1)
    )
    assert statuses(story) == ["0-20 committed", "20-30 uncommitted"]
    row = story.evidence().log_ranges[1]
    assert row.as_of == 1010
    assert "2@DDDDDDDDDDDDDDDDDDDDD2 (by capture.json), 3@DD" in row.evidence


def test_a_capture_from_before_the_record_says_nothing() -> None:
    """The batches up to 30 were appended by 290; node 2 was captured before, so it may hold them by now."""
    story = (
        three().capture("1", 1000, "1:0-30", 1).capture("2", 280, "1:0-20", 1).capture("3", 1020, "1:0-20", 1)
    )
    assert statuses(story) == ["0-20 committed", "20-30 undecided"]


def test_only_the_newest_capture_of_a_voter_counts() -> None:
    story = (
        three()
        .capture("1", 1000, "1:0-30", 1)
        .capture("2", 1010, "1:0-20", 1)
        .capture("3", 1020, "1:0-20", 1)
    )
    story.capture("2", 2000, "1:0-30", 9)
    assert statuses(story) == ["0-20 committed", "20-30 undecided"]


def test_a_voter_with_another_batch_there_lacks_it() -> None:
    story = three().leader(2, 20, 3, THREE)
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-20", 2).capture(
        "3", 1000, "1:0-20 2:20-40", 2
    )
    assert statuses(story) == ["0-20 committed", "20-30 uncommitted", "20-40 uncommitted"]


def test_a_deleted_prefix_a_hole_or_a_tail_that_is_not_whole_may_have_held_it() -> None:
    cut = [("1:0-20", {"tail_damaged": True}), ("1:0-20", {"ends_inside_batch": True})]
    for log, more in (("1:40-50", {}), ("1:0-20 1:35-40", {}), *cut):
        story = three().capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-20", 1)
        story.capture("3", 1000, log, 9, **more)
        assert "uncommitted" not in " ".join(statuses(story)), log


def test_a_set_needs_a_majority_of_its_own() -> None:
    """Voter 4 is being added: two of four hold the record, and no third one does."""
    story = three().voters(1, 20, FOUR)
    story.capture("1", 1000, "1:0-30", 1).capture("4", 1000, "1:0-30", 1)
    assert story.sets()[-1] == "record 20/1: 1 2 3 4 undecided"
    story.capture("2", 1000, "1:0-20", 1).capture("3", 1000, "1:0-20", 1)
    assert story.sets()[-1] == "record 20/1: 1 2 3 4 uncommitted"
    assert statuses(story) == ["0-20 committed", "20-30 uncommitted"]


def test_half_of_an_even_set_may_have_committed_it_by_a_set_that_was_not_captured() -> None:
    """Leader 1 may have removed 3 or 4 after 20 and counted by the remaining three, of which it is one."""
    story = Story().leader(1, 0, 1, FOUR, sets=FOUR)
    story.capture("2", 1000, "1:0-30", 1)
    story.capture("3", 1000, "1:0-20", 1).capture("4", 1000, "1:0-20", 1)
    assert statuses(story) == ["0-20 committed", "20-30 undecided"]
    story.capture("1", 1000, "1:0-30", 1)
    assert statuses(story) == ["0-20 committed", "20-30 uncommitted"]


@pytest.mark.parametrize("log", ["1:0-22 1:25-30", "1:25-30"])
def test_what_lies_in_a_gap_of_the_leaders_log_may_be_such_a_set(log: str) -> None:
    """A set after the gap is known; the one that counted may lie in it."""
    story = Story().leader(1, 0, 1, FOUR, sets=FOUR).voters(1, 27, FOUR)
    story.capture("2", 1000, "1:0-22", 1)
    story.capture("3", 1000, "1:0-20", 1).capture("4", 1000, "1:0-20", 1)
    story.capture("1", 1000, log, 1)
    assert statuses(story)[1] == "20-22 undecided"
    story.captures.pop()
    story.capture("1", 1000, "1:0-30", 1)
    assert statuses(story)[1] == "20-30 uncommitted"


def test_a_captured_next_set_counts_too() -> None:
    story = Story().leader(1, 0, 1, FOUR, sets=FOUR).voters(1, 25, THREE)
    story.capture("1", 1000, "1:0-30", 1).capture("2", 1000, "1:0-30", 9)
    story.capture("3", 1000, "1:0-20", 1).capture("4", 1000, "1:0-20", 1)
    assert statuses(story) == ["0-20 committed", "20-30 undecided"]


def test_a_dead_replica_with_a_diverged_tail() -> None:
    """Node 1 died with a tail of its own; the others went on, and the tail is gone for good."""
    story = three().leader(2, 20, 2, THREE)
    story.capture("1", 500, "1:0-30", 1)
    story.capture("2", 1000, "1:0-20 2:20-30", 2).capture("3", 1000, "1:0-20 2:20-30", 2)
    assert story.ranges() == ["1: 0-20 committed", "1: 20-30 truncated by 2", "2: 20-30 committed"]


def test_no_order_of_captures_follows_from_file_times() -> None:
    """What is uncommitted by stated times is undecided by file times, whichever voter has them."""
    logs = {"1": "1:0-30", "2": "1:0-20", "3": "1:0-20"}

    def with_file_time(*replicas: str) -> list[str]:
        story = three()
        for replica, log in logs.items():
            story.capture(replica, 1000, log, 1, stated=replica not in replicas)
        return statuses(story)

    assert with_file_time() == ["0-20 committed", "20-30 uncommitted"]
    assert with_file_time("1") == ["0-20 committed", "20-30 uncommitted"]
    assert with_file_time("2") == ["0-20 committed", "20-30 undecided"]
    assert with_file_time("3") == ["0-20 committed", "20-30 undecided"]


def test_the_newest_timestamp_in_a_log_is_the_earliest_time_of_its_copy() -> None:
    """Nodes 2 and 3 hold what was appended by 390: so their copies are newer than 290, and lack 20 to 29."""
    story = three().leader(2, 20, 3, THREE).capture("1", 1000, "1:0-30", 1)
    for replica in ("2", "3"):
        story.capture(replica, 7, "1:0-20 2:20-40", 3, stated=False)
    assert statuses(story) == ["0-20 committed", "20-30 uncommitted", "20-40 undecided"]
    assert story.evidence().log_ranges[1].as_of == 390


def test_a_log_that_shrank_lacks_nothing() -> None:
    """Node 2 held 10 to 29 of epoch 1, and then it did not: a restored backup or an old disk."""
    five = "1 2 3 4 5"
    story = three(five).capture("2", 400, "1:0-30", 1).capture("2", 800, "1:0-10", 1)
    story.capture("3", 800, "1:0-10", 1).capture("4", 800, "1:0-10", 1)
    assert statuses(story) == ["0-10 committed", "10-30 undecided"]
    story.capture("5", 800, "1:0-10", 1)
    assert statuses(story) == ["0-10 committed", "10-30 uncommitted"]


def test_a_log_that_shrank_in_a_higher_epoch_was_truncated() -> None:
    story = (
        three().capture("1", 400, "1:0-30", 1).capture("2", 400, "1:0-30", 2).capture("2", 800, "1:0-10", 3)
    )
    story.capture("3", 800, "1:0-10", 3)
    assert statuses(story) == ["0-10 undecided", "10-30 uncommitted"]


def test_what_a_removed_leader_wrote_is_uncommitted_while_its_removal_is() -> None:
    """{2,3} commits its own record and, until then, no next set: leader 1 need not be captured."""
    story = three().voters(1, 20, "2 3").capture("2", 1000, "1:0-30", 1).capture("3", 1000, "1:0-20", 1)
    assert statuses(story) == ["0-20 committed", "20-30 uncommitted"]
    assert story.sets()[-1] == "record 20/1: 2 3 uncommitted"
    of_two = three().voters(1, 20, "2 3").capture("2", 1000, "1:0-30", 1)
    assert statuses(of_two) == ["0-20 committed", "20-30 undecided"]
    after = three().voters(1, 20, "2 3").capture("2", 1000, "1:0-30", 1).capture("3", 1000, "1:0-25", 1)
    assert statuses(after) == ["0-25 committed", "25-30 undecided"]


@pytest.mark.parametrize(("ids", "status"), [("1 2 3", "uncommitted"), ("1 2 3 4 5", "undecided")])
def test_later_static_voters_may_have_committed_it(ids: str, status: str) -> None:
    """Voters 1 and 2 lack what leader 3 had appended; of {1,2,3,4,5} the others are a majority."""
    story = Story().leader(1, 0, 3, THREE).leader(2, 30, 3, ids, "3 4 5")
    story.capture("1", 1000, "1:0-20", 1).capture("2", 1000, "1:0-20", 1)
    story.capture("3", 1000, "1:0-30 2:30-31", 2)
    assert statuses(story)[:2] == ["0-20 committed", f"20-30 {status}"]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"current_voters": (1, 2, 3)}, "uncommitted"),
        ({"current_voters": ()}, "undecided"),
        ({"voted_directory_id": ZERO_UUID}, "undecided"),
    ],
)
def test_a_static_voter_may_have_a_new_disk_since_an_upgrade(more: dict[str, Any], status: str) -> None:
    """Its quorum-state names no static voters: kraft.version was 1, and its first disk may have had all."""
    story = Story().leader(1, 0, 3, THREE).capture("3", 600, "1:0-50", 1).capture("1", 1000, "1:0-20", 1)
    story.capture("2b", 1000, "1:0-20", 1, **more)
    assert statuses(story) == ["0-20 committed", f"20-50 {status}"]
    bounds = [20] if status == "uncommitted" else []
    assert [row.upper_bound for row in story.evidence().high_watermarks if row.upper_bound] == bounds
    # The upgrade is captured, and at the time of the first captures the static set counted.
    for named in ("1 2b 3", THREE) if status == "uncommitted" else (THREE,):
        upgraded = Story([*story.control_records], [*story.captures], first_batches=story.first_batches)
        upgraded.upgrade(1, 70, named).capture("3", 2000, "1:0-80", 1)
        rows = upgraded.evidence().high_watermarks
        found = [(row.as_of or 0, row.upper_bound) for row in rows if row.upper_bound]
        assert (20 in [bound for at, bound in found if at <= 1000]) is ("2b" in named)
        assert status == "uncommitted" or not [at for at, _ in found if at <= 600]


@pytest.mark.parametrize("named", ["2b", "2?"])
def test_a_static_voter_without_quorum_state_may_have_a_new_disk_since_an_upgrade(named: str) -> None:
    """Its first disk may have had up to 50, with leader 3; its new one is a replica that has got up to 20."""
    story = Story().leader(1, 0, 3, THREE).capture("3", 600, "1:0-50", 1).capture("1", 1000, "1:0-20", 1)
    story.capture(named, 1000, "1:0-20")
    assert statuses(story) == ["0-20 committed", "20-50 undecided"]
    assert story.bounds()[1] == 50
    # An earlier quorum-state of that directory has the static voters.
    story.capture(named, 400, "1:0-10", 1, current_voters=(1, 2, 3))
    assert statuses(story) == ["0-20 committed", f"20-50 {'undecided' if '?' in named else 'uncommitted'}"]


def test_the_first_voters_that_are_captured_need_not_be_those_of_the_upgrade() -> None:
    """The new disk of node 2 was added later; the segments with the upgrade were deleted."""
    story = Story().leader(1, 0, 3, THREE).capture("3", 600, "1:0-50", 1).capture("1", 1000, "1:0-20", 1)
    story.capture("2b", 1000, "1:0-20", 1, voted_directory_id=ZERO_UUID)
    story.voters(1, 90, "1 2b 3").capture("3", 2000, "1:80-100", 1)
    assert statuses(story)[:2] == ["0-20 committed", "20-50 undecided"]


def test_the_directory_that_a_voter_had_at_the_upgrade_is_that_voter() -> None:
    story = Story().leader(1, 0, 3, THREE).upgrade(1, 40, THREE).capture("3", 600, "1:0-50", 1)
    for node in "12":
        story.capture(node, 1000, "1:0-20", 1, voted_directory_id=ZERO_UUID)
    assert statuses(story) == ["0-20 committed", "20-50 uncommitted"]


@pytest.mark.parametrize(("in_epoch", "status"), [(1, "uncommitted"), (None, "undecided")])
def test_an_empty_log_without_quorum_state_may_be_a_disk_formatted_again(
    in_epoch: int | None, status: str
) -> None:
    story = Story().leader(1, 0, 3, THREE).capture("3", 600, "1:0-50", 1).capture("1", 1000, "1:0-20", 1)
    story.capture("2", 1000, "", in_epoch, end=0)
    assert statuses(story) == ["0-20 committed", f"20-50 {status}"]


@pytest.mark.parametrize("end", [20, 25, 29])
def test_a_leader_cannot_lack_what_it_had_written_by_then(end: int) -> None:
    """Leader 1 wrote up to 30 by 290 ms, as observer 4's log shows: a copy without it is not whole."""
    for at, in_epoch in product((289, 290, 2000), (None, 1, 2)):
        story = three().capture("4", 2000, "1:0-30", 1).capture("3", 2000, "1:0-20", 1)
        story.capture("1", at, f"1:0-{end}", in_epoch)
        is_lawful = at < 290 or in_epoch == 2  # a leader of epoch 2 may have truncated it
        holdings = conclude(story.facts()).holdings
        assert holdings.lacks_own == frozenset(() if is_lawful else (story.captures[-1].capture_id,))
        bounds = [row.upper_bound for row in story.evidence().high_watermarks if row.upper_bound]
        assert bounds == ([end] if is_lawful else [])
        assert ("uncommitted" in " ".join(statuses(story))) == (at >= 290 and in_epoch == 2)
