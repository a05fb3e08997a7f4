"""Rule 24: a leader that removed itself counted itself for the high watermark, and when captures show it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from tests.kraft_core.evidence.narrated import Story, directory


def output(high_watermark: int, epoch: int = 1, leader: str = "1") -> RuleFacts:
    """What the leader printed at some moment between 990 and 1000."""
    status = Observation(
        "story", "a", 990, 1000, "status", *directory(leader), "Leader", epoch, high_watermark
    )
    return RuleFacts(observations=(status,))


def errors(story: Story, facts: RuleFacts) -> list[Finding]:
    return [finding for finding in judge(conclude(story.facts()), facts) if finding.severity == "error"]


def rules(story: Story, facts: RuleFacts) -> list[int]:
    return [finding.rule for finding in errors(story, facts)]


def removed(without: str = "") -> Story:
    """Leader 1 of voters 1, 2 and 3 removed itself at 40; node 2 has stored up to 60, node 3 up to 45.

    Without one of the captures, by name.
    """
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").voters(1, 40, "2 3")
    logs = {"1": "1:0-70", "2": "1:0-60", "3": "1:0-45"}
    for name, log in logs.items():
        if name != without:
            story.capture(name, 1100, log, 1)
    return story


def test_a_high_watermark_that_only_the_removed_leader_makes_a_majority_of() -> None:
    (finding,) = errors(removed(), output(55))
    assert (finding.rule, finding.name) == (24, "leader_outside_voters_is_not_counted")
    assert (finding.first_offset, finding.end_offset, finding.leader_epochs) == (54, 55, (1,))
    assert finding.replicas == (f"1@{directory('1')[1]}",)
    assert finding.sentence == (
        "Leader 1 of epoch 1 counted itself for the high watermark 55: it is not a voter of {2,3} "
        "(VotersRecord 40/e1), and what lies below can be held by [2] of [2, 3] only, no majority "
        "without it."
    )


def test_the_leader_counts_below_its_removal() -> None:
    assert rules(removed(), output(40)) == []
    assert rules(removed(), output(45)) == []


def test_a_majority_of_the_other_voters_is_none_of_its_business() -> None:
    story = removed(without="3").capture("3", 1100, "1:0-55", 1)
    assert rules(story, output(55)) == []


def test_too_few_with_the_leader_too_is_rule_8() -> None:
    story = removed(without="2").capture("2", 1100, "1:0-45", 1)
    assert rules(story, output(55)) == [8]


def test_of_four_voters_the_leaders_own_capture_is_not_needed() -> None:
    """One of the three that are left is less than half: no change out of sight makes it a majority."""
    story = Story().leader(1, 0, 1, "1 2 3 4", sets="1 2 3 4").voters(1, 40, "2 3 4")
    story.capture("2", 1100, "1:0-60", 1).capture("3", 1100, "1:0-45", 1).capture("4", 1100, "1:0-45", 1)
    assert rules(story, output(55)) == [24]


@pytest.mark.parametrize("name", ["1", "2", "3"])
def test_each_capture_is_needed(name: str) -> None:
    """But that of 2: without 1 another set may have counted, without 3 that voter may have stored it."""
    expected = [24] if name == "2" else []
    assert rules(removed(without=name), output(55)) == expected


def test_the_output_is_needed() -> None:
    assert rules(removed(), RuleFacts()) == []
    assert 24 not in rules(removed(), output(55, leader="2"))


def test_a_capture_before_the_output_does_not_show_what_a_voter_lacked() -> None:
    story = removed(without="3").capture("3", 900, "1:0-45", 1)
    assert rules(story, output(55)) == []


def test_a_leader_captured_before_the_output_may_have_appended_another_set_since() -> None:
    story = removed(without="1").capture("1", 900, "1:0-70", 1)
    assert rules(story, output(55)) == []


def test_the_removal_must_be_readable() -> None:
    story = removed()
    story.control_records = [
        replace(record, value=None) if record.offset == 40 else record for record in story.control_records
    ]
    assert rules(story, output(55)) == []


def test_the_leader_must_be_known() -> None:
    story = removed()
    story.control_records = [record for record in story.control_records if record.type != "LeaderChange"]
    assert 24 not in rules(story, output(55))


def test_the_set_before_must_be_known() -> None:
    story = (
        Story()
        .leader(1, 0, 1, "1 2 3", sets="1 2 3")
        .voters(1, 40, "2 3")
        .snapshot(45, 1, "1 2 3", sets="2 3")
    )
    story.capture("1", 1100, "1:45-70", 1).capture("2", 1100, "1:45-60", 1).capture("3", 1100, "1:45-50", 1)
    assert rules(story, output(55)) == []


def test_a_removal_of_an_earlier_epoch_is_not_the_leaders_own() -> None:
    """Such a leader was elected by a set that is not its log's: rule 23 reports that."""
    story = Story().leader(1, 0, 2, "1 2 3", sets="1 2 3").voters(1, 40, "2 3")
    story.leader(2, 50, 1, "1 2 3", "1 2")
    story.capture("1", 1100, "1:0-50 2:50-70", 2).capture("2", 1100, "1:0-50 2:50-60", 2)
    story.capture("3", 1100, "1:0-45", 1)
    assert 24 not in rules(story, output(58, epoch=2))
    assert 23 in rules(story, output(58, epoch=2))


def test_a_set_appended_above_that_has_the_leader_again_may_count_it() -> None:
    story = removed().voters(1, 65, "1 2 3")
    assert rules(story, output(55)) == []
