"""What became of an offset: the lost change, the split, and what only a checkpoint holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.explain import Explanation, explain
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.findings.golden import known


def of(name: str, offset: int) -> Explanation:
    return explain(known(name), offset)


def test_a_lost_change() -> None:
    explained = of("all of uncommitted", 355)
    lost, kept = explained.batches
    assert (lost.leader_epoch, lost.leader_id, lost.status, lost.truncated_by_epoch) == (1, 1, "truncated", 3)
    assert lost.voters_in_force == "{1,2,3,4} (VotersRecord 355/e1)"
    assert [(held.node_id, held.still_held) for held in lost.held_by] == [(1, False), (4, False)]
    assert (kept.leader_epoch, kept.leader_id, kept.status) == (3, 2, "committed")
    assert [(held.node_id, held.still_held) for held in kept.held_by] == [(n, True) for n in (1, 2, 3, 4)]
    assert explained.words[0] == "Offset 355 of epoch 1 was written by leader 1."
    assert explained.words[1].startswith("Held earlier, but not in the newest capture, by 1@")
    assert explained.words[2].startswith("It is truncated, replaced by epoch 3: a committed batch of epoch 3")


def test_the_same_offset_while_nothing_was_decided() -> None:
    (batch,) = of("uncommitted-truncation/before", 355).batches
    assert (batch.status, batch.truncated_by_epoch) == ("uncommitted", None)
    assert [(held.node_id, held.still_held) for held in batch.held_by] == [(1, True), (4, True)]


def test_both_histories_of_the_split() -> None:
    stale, won = of("all of stale-split", 5100).batches
    assert (stale.leader_epoch, stale.is_lawful, stale.status) == (4, False, "truncated")
    assert (won.leader_epoch, won.is_lawful, won.status) == (5, True, "committed")
    assert "whose election was unlawful (rule 23)" in of("all of stale-split", 5100).words[0]


def test_what_lies_beyond_and_below() -> None:
    beyond = of("all of stale-split", 9000)
    assert beyond.batches == ()
    assert beyond.words == ("No captured log contains offset 9000; the longest ends at 5453.",)
    below = of("static-upgrade", 100)
    assert [name.split("@")[0] for name in below.in_checkpoints] == ["4"]
    assert below.words[-1].endswith("begin above it: they have it only in a checkpoint.")


def test_a_log_that_begins_above_proves_no_checkpoint() -> None:
    story = Story().leader(1, 0, 1, "1").capture("1", 1000, "1:50-90", 1)
    alone = explain(conclude(story.facts()), 20)
    assert alone.in_checkpoints == ()
    assert "begin above it, and no captured checkpoint of theirs contains it." in alone.words[-1]
    below = explain(conclude(story.snapshot(20, 1, "1").facts()), 20)
    assert below.in_checkpoints == ()
    with_one = explain(conclude(story.snapshot(50, 1, "1").facts()), 20)
    assert len(with_one.in_checkpoints) == 1
    assert with_one.words[-1].endswith("begin above it: they have it only in a checkpoint.")


def test_where_no_end_of_a_log_is_known_none_is_the_longest() -> None:
    story = Story().capture("1", 1000, "", readable=False)
    facts = story.facts()
    unread = replace(facts, captures=tuple(replace(c, log_end_offset=None) for c in facts.captures))
    assert explain(conclude(unread), 20).words[0] == "No captured log contains offset 20."


def held(story: Story, offset: int) -> list[bool | None]:
    (batch,) = explain(conclude(story.facts()), offset).batches
    return [held.still_held for held in batch.held_by]


def test_a_newest_capture_that_does_not_show_it_is_no_evidence_that_it_is_gone() -> None:
    def of(**later: Any) -> Story:
        story = Story().leader(1, 0, 1, "1").capture("1", 1000, "1:0-50", 1)
        return story.capture("1", 2000, "1:0-20", 1, **later)

    assert held(of(), 30) == [False]
    assert held(of(readable=False), 30) == [True]
    assert held(of(tail_damaged=True), 30) == [None]
    assert held(of(ends_inside_batch=True), 30) == [None]
    assert held(of(stated=False), 30) == [None]
    words = explain(conclude(of(stated=False).facts()), 30).words
    assert words[1].endswith("; its captures do not show whether it still is.")


def test_what_no_log_holds_may_be_in_one_that_could_not_be_read() -> None:
    story = Story().capture("1", 1000, "1:0-50", 1).capture("2", 1000, "", 1, readable=False)
    words = explain(conclude(story.facts()), 90).words
    assert words[0] == "No captured log contains offset 90; the longest ends at 50."
    assert words[1].startswith("Not all of the logs of 2@")


def test_nobody_knows_the_leader() -> None:
    story = Story().capture("1", 1000, "1:10-50", 1)
    words = explain(conclude(story.facts()), 20).words
    assert words[0] == "Offset 20 of epoch 1 was written by an unknown leader."
    assert "undecided" in words[2]
