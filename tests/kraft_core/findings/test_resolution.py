"""When a fault is over: a later capture of each replica, read as a whole, does not show it."""

from __future__ import annotations

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from tests.kraft_core.evidence.narrated import Story

NODE_2 = f"2@{'2':D>22}"


def lost() -> Story:
    """Node 2 held 30 to 49, which were committed, and then did not."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 1000, "1:0-50", 1)
    return story.capture("2", 1000, "1:0-50", 1).capture("2", 2000, "1:0-30", 1)


def of_rule_5(story: Story) -> Finding:
    (found,) = (f for f in judge(conclude(story.facts())) if f.rule == 5)
    return found


def test_a_newer_capture_in_order_ends_it_and_says_so() -> None:
    assert of_rule_5(lost()).resolution is None
    over = of_rule_5(lost().capture("2", 3000, "1:0-60", 1))
    assert over.resolution == f"not in the newer capture of {NODE_2} of 1970-01-01 00:00:03Z"


def test_a_newer_capture_that_could_not_be_read_ends_nothing() -> None:
    damaged = lost().capture("2", 3000, "1:0-60", 1, tail_damaged=True)
    assert of_rule_5(damaged).resolution is None
    again = damaged.capture("2", 4000, "1:0-60", 1)
    assert "1970-01-01 00:00:04Z" in (of_rule_5(again).resolution or "")


def test_an_unreadable_capture_in_between_changes_nothing() -> None:
    over = lost().capture("2", 3000, "1:0-60", 1).capture("2", 4000, "", 1, readable=False)
    assert "1970-01-01 00:00:03Z" in (of_rule_5(over).resolution or "")


def test_a_capture_whose_time_is_open_ends_nothing() -> None:
    """A file time is no time; a timestamp in the copy is one if it is newer than the others' by a minute."""
    for log in ("1:0-60", "1:0-260"):
        unstated = lost().capture("2", 3000, log, 1, stated=False)
        assert of_rule_5(unstated).resolution is None
    newer = lost().capture("2", 3000, "1:0-6300", 1, stated=False)
    assert of_rule_5(newer).resolution is not None


def test_each_replica_needs_a_newer_capture() -> None:
    """Epoch 2 has two leaders by the quorum-states of nodes 1 and 3."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    story.capture("1", 1000, "1:0-50", 2, quorum_state_leader_id=1)
    story.capture("3", 1000, "1:0-50", 2, quorum_state_leader_id=3)

    def state() -> bool:
        (finding,) = (f for f in judge(conclude(story.facts())) if f.rule == 1)
        return finding.resolved

    assert not state()
    story.capture("1", 2000, "1:0-60", 3)
    assert not state()
    story.capture("3", 2000, "1:0-60", 3)
    assert state()
