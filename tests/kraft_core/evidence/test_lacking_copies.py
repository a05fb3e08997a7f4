"""A capture that lacks what a majority had stored before proves nothing uncommitted and bounds nothing."""

from __future__ import annotations

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from tests.kraft_core.evidence.narrated import Story

CHECKPOINT_AT = 600


def cut(at: int = 2000, ids: str = "1 3", checkpoint: int | None = 50) -> Story:
    """Leader 1 wrote up to 60, of which a checkpoint needs 50; the copy of node 3 ends at 30."""
    story = Story().leader(1, 0, 1, ids, sets=ids).capture("1", 2000, "1:0-60", 1)
    story.capture("3", at, "1:0-30", 1)
    return story if checkpoint is None else story.snapshot(checkpoint, 1, "1", at=CHECKPOINT_AT)


def lacking(story: Story) -> set[str]:
    return {name.split()[0] for name in conclude(story.facts()).holdings.lacks_committed}


@pytest.mark.parametrize("at", [CHECKPOINT_AT, CHECKPOINT_AT + 1, 2000])
def test_a_cut_copy_proves_nothing_uncommitted(at: int) -> None:
    assert lacking(cut(at)) == {"3"}
    assert cut(at).ranges() == ["1: 0-50 committed", "1: 50-60 undecided"]
    assert cut(at).bounds() == (50, None)


@pytest.mark.parametrize(
    ("story", "ranges"),
    [
        (cut(checkpoint=None), ["1: 0-30 committed", "1: 30-60 uncommitted"]),
        (cut(checkpoint=30), ["1: 0-30 committed", "1: 30-60 uncommitted"]),
        (cut(CHECKPOINT_AT - 1), ["1: 0-50 committed", "1: 50-60 uncommitted"]),
    ],
    ids=["no proof", "it holds that", "copied before"],
)
def test_without_the_contradiction_it_shows_the_end(story: Story, ranges: list[str]) -> None:
    assert lacking(story) == set()
    assert story.ranges() == ranges


def test_of_three_voters_two_contradict_what_a_majority_had_stored() -> None:
    """Which of the two is cut nobody knows: neither counts, and no recovery is safe."""
    story = cut(ids="1 2 3")
    assert lacking(story) == set()
    story.capture("2", 2000, "1:0-40", 1)
    assert lacking(story) == {"2", "3"}
    assert story.ranges()[-1] == "1: 50-60 undecided"
    known = conclude(story.facts())
    advice = recovery_advice(known, judge(known))
    assert not advice.is_safe
    whole = cut(ids="1 2 3").capture("2", 2000, "1:0-50", 1)
    assert lacking(whole) == set()
    assert whole.ranges()[-1] == "1: 50-60 uncommitted"


def test_the_best_of_the_captured_logs_is_not_safe_if_the_others_were_cut() -> None:
    """Voters 1 and 2 may have committed more than 4 holds, and one of their copies lacks it."""
    story = Story().leader(1, 0, 4, "1 2 4", sets="1 2 4").capture("4", 2000, "1:0-60", 1)
    story.capture("1", 2000, "1:0-30", 1).capture("2", 2000, "1:0-40", 1).snapshot(
        50, 1, "4", at=CHECKPOINT_AT
    )
    known = conclude(story.facts())
    advice = recovery_advice(known, judge(known))
    assert not advice.is_safe
    assert "lacks what a majority had stored by then" in advice.why


def test_rules_are_judged_by_the_captures_as_they_are() -> None:
    """What looks like a cut copy may be a broken rule: the leader changed the voters before a commit."""
    known = conclude(cut().facts())
    assert known.at_face_value().holdings.lacks_committed == frozenset()
    plain = conclude(cut(checkpoint=None).facts())
    assert plain.at_face_value() is plain
