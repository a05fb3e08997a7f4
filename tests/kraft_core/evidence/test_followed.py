"""What leaders sent as committed: proven by their word, and stored by nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import derive, tables
from kraft_core.evidence.facts import AnsweredWatermark, ClusterFacts
from kraft_core.evidence.rows import ClusterEvidence
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.format.capture import FOLLOWED_NODE_ID
from tests.kraft_core.evidence.narrated import Story, directory

THREE = "1 2 3"


def begun() -> Story:
    return Story().leader(1, 0, 1, THREE, sets=THREE)


def with_followed(story: Story, log: str, at: int = 1000, stated: bool = True) -> ClusterFacts:
    """The facts of a story, and a log that was followed until a time."""
    facts = story.facts()
    copies = Story(first_batches=story.first_batches).capture("9", at, log, stated=stated).captures
    followed = tuple(replace(copy, node_id=FOLLOWED_NODE_ID) for copy in copies)
    return replace(facts, followed=followed)


def ranges(found: ClusterEvidence) -> list[str]:
    return [f"{r.leader_epoch}: {r.first_offset}-{r.end_offset} {r.commit_status}" for r in found.log_ranges]


def test_all_of_it_is_committed_from_then_on() -> None:
    found = derive(with_followed(begun(), "1:0-30"))
    assert ranges(found) == ["1: 0-30 committed"]
    (row,) = (row for row in found.high_watermarks if row.evidence == "live")
    assert (row.lower_bound, row.upper_bound, row.as_of) == (30, None, 1000)


def test_it_proves_what_captures_alone_leave_open() -> None:
    story = begun().capture("1", 900, "1:0-40", 1)
    assert story.ranges() == ["1: 0-40 undecided"]
    assert ranges(derive(with_followed(story, "1:0-30"))) == ["1: 0-30 committed", "1: 30-40 undecided"]


def test_it_is_no_replica_s_log() -> None:
    """It counts for no majority, bounds nothing from above, and no advice recovers from it."""
    facts = with_followed(begun().capture("1", 900, "1:0-40", 1), "1:0-30")
    known = conclude(facts)
    assert {replica.id for replica in known.holdings.captures} == {1}
    assert {replica.id for by_epoch in known.holdings.by_epoch.values() for replica in by_epoch} == {1}
    found = derive(facts)
    assert [row for row in found.high_watermarks if row.upper_bound is not None] == []
    assert {row.node_id for row in found.replica_ranges} == {FOLLOWED_NODE_ID, 1}
    advice = recovery_advice(known, judge(known))
    assert {each.node_id for each in (*advice.best, *advice.others)} == {1}


def test_what_an_unlawful_leader_may_have_sent_is_only_believed() -> None:
    """Leader 2 counts by three of five voters."""
    story = Story().leader(1, 0, 1, "1 2 3 4 5", sets="1 2 3 4 5").leader(2, 30, 2, THREE, granted="2 3")
    found = derive(with_followed(story, "1:0-30 2:30-40"))
    (row,) = (row for row in found.high_watermarks if row.evidence == "live")
    assert (row.lower_bound, row.believed_bound) == (None, 40)
    assert "committed" not in repr(ranges(found))


def test_without_a_time_it_proves_nothing() -> None:
    found = derive(with_followed(begun(), "1:0-30", stated=False))
    assert [row for row in found.high_watermarks if row.evidence == "live"] == []
    assert ranges(found) == ["1: 0-30 undecided"]


def test_what_was_read_after_the_stated_time_was_committed_at_an_unknown_one() -> None:
    """follow was killed before the pass ended: the last record, of 290, was read later."""
    found = derive(with_followed(begun(), "1:0-30", at=289))
    assert [row for row in found.high_watermarks if row.evidence == "live"] == []
    assert ranges(found) == ["1: 0-30 undecided"]
    assert ranges(derive(with_followed(begun(), "1:0-30", at=290))) == ["1: 0-30 committed"]


def test_where_captures_contradict_it_nothing_is_proven() -> None:
    facts = replace(with_followed(begun().capture("1", 900, "1:0-30", 1), "1:0-30"), contested_epochs=(1,))
    found = derive(facts)
    assert ranges(found) == ["1: 0-30 undecided"]
    assert found.high_watermarks == []


def answers(facts: ClusterFacts, *told: tuple[int, int, int, int], voters: str = "") -> ClusterFacts:
    named = tuple(map(directory, voters.split()))
    return replace(facts, answered=tuple(AnsweredWatermark(*each, named) for each in told))


def test_an_answer_commits_what_lies_below_it_in_its_leader_s_epoch() -> None:
    story = begun().leader(2, 20, 2, THREE).capture("2", 900, "1:0-20 2:20-40", 2)
    known = conclude(answers(story.facts(), (2, 2, 30, 600), (2, 2, 35, 700)))
    assert known.commit.of_batch(2, 29, 30).as_of == 600
    assert known.commit.of_batch(2, 34, 35).as_of == 700
    assert known.commit.of_batch(2, 35, 36).status == "undecided"
    assert known.committed_in[2].first.committed_in == 2
    assert [row for row in tables(known).high_watermarks if row.evidence == "answer"] == []


@pytest.mark.parametrize("told", [(2, 3, 30, 600), (2, 2, 20, 600), (3, 2, 30, 600)], ids=repr)
def test_an_answer_of_nobody_s_leader_proves_nothing(told: tuple[int, int, int, int]) -> None:
    """Of another leader than the record names, below its own epoch, of an epoch that no log holds."""
    story = begun().leader(2, 20, 2, THREE).capture("2", 900, "1:0-20 2:20-40", 2)
    found = conclude(answers(story.facts(), told))
    assert found.commit.of_batch(2, 25, 26).status == "undecided"


@pytest.mark.parametrize(
    ("voters", "status"),
    [
        ("1 2 3", "committed"),
        ("1 2b 3b", "committed"),  # two disks were replaced
        ("1b 2b 3b", "undecided"),
        ("1? 2? 3?", "committed"),  # before Kafka 3.9
        ("4b 5b", "committed"),  # of which no capture has a directory
    ],
)
def test_an_answer_that_names_the_disks_of_other_voters_proves_nothing(voters: str, status: str) -> None:
    """Another quorum with the same cluster id, of which the same node leads the same epoch."""
    story = begun().leader(2, 20, 2, THREE).capture("2", 900, "1:0-20 2:20-40", 2)
    found = conclude(answers(story.facts(), (2, 2, 30, 600), voters=voters))
    assert found.commit.of_batch(2, 25, 26).status == status


def test_where_captures_contradict_each_other_an_answer_may_be_of_either_history() -> None:
    story = begun().leader(2, 20, 2, THREE).capture("2", 900, "1:0-20 2:20-40", 2)
    facts = replace(answers(story.facts(), (2, 2, 30, 600)), contested_epochs=(1,))
    assert conclude(facts).commit.of_batch(2, 25, 26).status == "undecided"


def test_what_an_unlawful_leader_answered_commits_nothing() -> None:
    story = Story().leader(1, 0, 1, "1 2 3 4 5", sets="1 2 3 4 5").leader(2, 30, 2, THREE, granted="2 3")
    found = conclude(answers(with_followed(story, "1:0-30 2:30-40"), (2, 2, 35, 600)))
    assert found.commit.of_batch(2, 31, 32).status != "committed"
