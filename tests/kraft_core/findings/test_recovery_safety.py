"""What forbids to call a recovery safe: each ground alone, on a case that is safe without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import copytree

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.facts import LogOrderFault, RuleFacts
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import RecoveryAdvice, recovery_advice
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.segment import scan
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.plan.captured import GOLDEN


def advised(story: Story, facts: RuleFacts | None = None, without: tuple[int, ...] = ()) -> RecoveryAdvice:
    known = conclude(story.facts())
    return recovery_advice(known, judge(known, facts or RuleFacts()), without)


def whole() -> Story:
    """Nodes 1 and 2 of three with all of epoch 1, and node 3 a little behind."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    story.capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)
    return story.capture("3", 1000, "1:0-40", 1)


def static(*names: str) -> Story:
    """A quorum without directory ids in its voter set: nodes with all of epoch 1."""
    story = Story().leader(1, 0, 1, "1 2 3")
    for name in names:
        story.capture(name, 1000, "1:0-50", 1)
    return story


def test_what_is_safe_to_begin_with() -> None:
    for story in (whole(), static("1", "2")):
        advice = advised(story)
        assert (advice.is_safe, advice.as_of) == (True, 1000)
        assert advice.why.endswith("the best claim has every committed record, as of the captures")


# --- a voter's capture ----------------------------------------------------------------------------


def changed(story: Story, nth: int, **fields: object) -> Story:
    story.captures[nth] = replace(story.captures[nth], **fields)
    return story


def without_capture(story: Story, nth: int) -> Story:
    del story.captures[nth]
    return story


def two(damage: Callable[[Story], Story]) -> Story:
    """The whole case without node 3, so that nodes 1 and 2 are both needed, and then damaged."""
    return damage(without_capture(whole(), 2))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda s: without_capture(s, 1), "was not captured: capture it."),
        (lambda s: changed(s, 1, tail_damaged=True), "could be read only in part: capture it again."),
        (lambda s: changed(s, 1, ends_inside_batch=True), "has a log that ends inside a batch: the node was"),
        (lambda s: changed(s, 1, consistent=False), "a quorum-state older than its log"),
        (
            lambda s: without_capture(s, 1).capture("2", 1000, "1:0-20 1:30-50", 1),
            "has a gap in its captured log",
        ),
        (lambda s: without_capture(s, 1).capture("2b", 1000, "1:0-50", 1), "was not captured"),
    ],
)
def test_a_capture_that_does_not_show_a_voters_log_does_not_count(
    damage: Callable[[Story], Story], words: str
) -> None:
    assert advised(two(lambda story: story)).is_safe
    advice = advised(two(damage))
    assert not advice.is_safe
    assert words in advice.why


def test_every_voter_that_would_help_is_named() -> None:
    advice = advised(without_capture(without_capture(whole(), 2), 1))
    assert [part[:7] for part in advice.why.split(". ") if "was not captured" in part] == [
        "Node 2@",
        "Node 3@",
    ]


def test_a_log_whose_voters_are_not_known_does_not_count() -> None:
    """Above a hole there may have been a VotersRecord."""
    story = two(lambda s: s).leader(2, 60, 2, "1 2 3")
    story.capture("2", 2000, "1:55-60 2:60-70", 2)
    advice = advised(story)
    assert not advice.is_safe
    assert "a log whose voter set in force is not known" in advice.why


def test_the_best_claim_itself_must_be_whole() -> None:
    """Nodes 2 and 3 are a majority, but node 1's log is chosen, and goes on unreadably."""
    story = whole()
    story.captures[1] = replace(story.captures[2], node_id=2, directory_id=story.captures[1].directory_id)
    assert advised(story).is_safe
    advice = advised(changed(story, 0, tail_damaged=True))
    assert not advice.is_safe
    assert advice.why.count("Node 1@") == 1


def test_a_part_of_the_best_claim_that_is_not_needed_must_be_whole() -> None:
    """All three nodes have the same log; two are a majority without node 1, whose log goes on unreadably."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    for name in "123":
        story.capture(name, 1000, "1:0-50", 1)
    assert advised(story).is_safe
    advice = advised(changed(story, 0, tail_damaged=True))
    assert not advice.is_safe
    assert " has the best claim and does not count. Node 1@" in advice.why


def test_the_best_claim_must_be_its_replicas_newest_log() -> None:
    """Nodes 2 and 3 would do; whether node 1 still holds the log that is chosen, no time shows."""
    story = whole()
    story.captures[1] = replace(story.captures[2], node_id=2, directory_id=story.captures[1].directory_id)
    story.capture("1", 900, "1:0-60", 1, stated=False)
    advice = advised(story)
    assert not advice.is_safe
    assert advice.why.count("Node 1@") == 1


def test_without_stated_times_it_is_safe_as_of_what_the_logs_date() -> None:
    """The newest timestamp in a copied log is a sound bound of its time; that of its files is none."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 9000, "1:0-50", 1, stated=False)
    story.capture("2", 9000, "1:0-40", 1, stated=False)
    advice = advised(story)
    assert (advice.is_safe, advice.as_of) == (True, 390)


def test_a_capture_that_could_not_be_read_hides_no_earlier_one() -> None:
    story = two(lambda s: s).capture("2", 5000, "", 1, readable=False)
    advice = advised(story)
    assert (advice.is_safe, advice.as_of) == (True, 1000)


@pytest.mark.parametrize(
    ("entries", "is_safe"),
    [
        (((1, 0), (3, 20), (6, 30)), True),
        (((6, 35),), True),  # copied after the beginning of the log had been deleted
        (None, True),
        (((1, 0), (4, 20), (6, 30)), False),
    ],
)
def test_a_log_that_leader_epoch_checkpoint_contradicts_does_not_count(
    entries: tuple[tuple[int, int], ...] | None, is_safe: bool
) -> None:
    """A segment copied before its end was truncated: on its disk the voter has epoch 4 there."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").leader(3, 20, 2, "1 2 3").leader(6, 30, 1, "1 2 3")
    story.capture("1", 1000, "1:0-20 3:20-30 6:30-50", 6)
    advice = advised(story.capture("3", 1000, "1:0-20 3:20-30 6:30-50", 6, leader_epoch_checkpoint=entries))
    assert advice.is_safe is is_safe
    assert ("has a leader-epoch-checkpoint that contradicts its log" in advice.why) is not is_safe


def test_a_leaders_log_without_what_it_had_written_by_then_does_not_count() -> None:
    """Leader 1 of voters 1, 2 and 3, and node 2, to which it had sent more than is in its copy; 3 is gone."""
    for end in range(10, 60, 10):
        story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 1000, f"1:0-{end}", 1)
        advice = advised(story.capture("2", 1000, "1:0-40", 1))
        assert advice.is_safe == (end >= 40), end
        assert advice.is_safe or "has a log that lacks what it had written by then" in advice.why


def test_an_empty_log_of_a_static_voter_may_be_a_new_disk() -> None:
    story = static("1").capture("2", 1000, "", 1)
    advice = advised(story)
    assert not advice.is_safe
    assert "Node 2 has an empty log" in advice.why
    assert advised(static("1", "3").capture("2", 1000, "", 1)).is_safe


def test_a_static_voter_without_quorum_state_may_have_a_new_disk() -> None:
    """Its first disk may have stored up to 50 with leader 3, before kraft.version was upgraded."""
    story = Story().leader(1, 0, 3, "1 2 3").capture("1", 1000, "1:0-30", 1)
    advice = advised(story.capture("2b", 1000, "1:0-30"))
    assert not advice.is_safe
    assert "Node 2 may have a new disk" in advice.why
    # An earlier quorum-state of that directory has the static voters.
    assert advised(story.capture("2b", 900, "1:0-20", 1, current_voters=(1, 2, 3))).is_safe


def test_an_empty_log_of_a_known_directory_may_be_formatted_again() -> None:
    """kafka-storage format gives a voter of --initial-controllers the same directory id each time.

    Nodes 1 and 2 had committed up to 50; 1 is lost, and 2 was formatted again.
    """
    story = without_capture(without_capture(whole(), 0), 0).capture("2", 1000, "", 1, end=0)
    advice = advised(story)
    assert not advice.is_safe
    assert "D2 has an empty log, as on a disk that was formatted again: capture" in advice.why
    assert advised(without_capture(whole(), 1).capture("2", 1000, "", 1, end=0)).is_safe


def reconfigured() -> Story:
    """Static voters: leader 1 of {1,2,3,4} was elected at 50, and in a later epoch 3 of {3,4,5} at 40."""
    story = Story().leader(1, 0, 1, "1 2 3").leader(3, 50, 1, "1 2 3 4", "1 2 4").leader(5, 40, 3, "3 4 5")
    story.capture("1", 1000, "1:0-50 3:50-51", 3).capture("2", 1000, "1:0-40", 3)
    return story.capture("3", 1000, "1:0-40 5:40-45", 5)


def test_of_static_sets_the_newest_is_that_of_the_last_election() -> None:
    """Voters 4 and 5 may have committed more in epoch 5, whatever lies above of other epochs."""
    advice = advised(reconfigured())
    assert not advice.is_safe
    assert "of voters {3,4,5} (LEADER_CHANGE 40/e5), 3 counts, and 2 are needed" in advice.why


def test_static_sets_count_back_to_the_last_one_that_elected_a_leader_for_good() -> None:
    """Of {1,2,3} a majority must be captured, too, until a leader of {3,4,5} has committed its election."""
    story = Story().leader(1, 0, 1, "1 2 3").leader(5, 40, 3, "3 4 5")
    story.capture("3", 1000, "1:0-40 5:40-45", 5).capture("4", 1000, "1:0-40", 5)
    advice = advised(story)
    assert not advice.is_safe
    assert "of voters {1,2,3} (LEADER_CHANGE 0/e1), 3 counts, and 2 are needed" in advice.why
    story.capture("4", 2000, "1:0-40 5:40-45", 5)
    assert advised(story).is_safe


# --- what captures contradict ---------------------------------------------------------------------


def new_disk() -> Story:
    """A static quorum: nodes 1 and 2 held 10 to 19 of epoch 1; node 2 on a new disk and node 3 did not."""
    story = Story().leader(1, 0, 1, "1 2 3").leader(2, 10, 3, "1 2 3", "2 3")
    story.capture("1", 1000, "1:0-20", 1).capture("2", 1000, "1:0-20", 1)
    return story.capture("2b", 2000, "1:0-10 2:10-30", 2).capture("3", 2000, "1:0-10 2:10-30", 2)


def test_recovery_after_a_disk_was_replaced_in_a_static_quorum() -> None:
    advice = advised(new_disk())
    assert not advice.is_safe
    assert "The best claim lacks 10 to 19 of epoch 1 (committed)" in advice.why
    assert (
        "Rule 7 is broken: Leader 3 of epoch 2 lacked the committed offsets 10 to 19 of epoch 1" in advice.why
    )
    assert "Rule 4 is broken: Offsets 10 to 19 were committed twice: in epoch 1 and in epoch 2." in advice.why


def test_two_directories_of_one_static_id_count_for_none() -> None:
    advice = advised(without_capture(new_disk(), 0))
    assert "Node 2 is identified by id alone and has 2 directories" in advice.why


@pytest.mark.parametrize("name", ["1", "1?"])
def test_what_a_voter_held_in_a_directory_that_is_not_known_may_be_forgotten(name: str) -> None:
    """Node 1 held 30 to 49 of epoch 1, which epoch 2 lacks: truncated lawfully, or its disk was replaced."""
    story = Story().leader(1, 0, 1, "1 2 3").leader(2, 30, 3, "1 2 3").capture(name, 1000, "1:0-50", 1)
    for voter in ("1", "2", "3"):
        story.capture(voter, 5000, "1:0-30 2:30-40", 2)
    advice = advised(story)
    assert advice.is_safe == (name == "1")
    assert ("find out whether its disk was replaced" in advice.why) == (name == "1?")


@pytest.mark.parametrize("nth", [0, 2, 3])
def test_it_is_not_safe_with_one_capture_less(nth: int) -> None:
    """Without the capture of node 2's old disk no file shows that there was one: 2b and 3 look lawful."""
    advice = advised(without_capture(new_disk(), nth))
    assert not advice.is_safe


def test_what_was_lost_stays_lost_after_the_log_is_cleaned() -> None:
    """Newer captures begin above the place: no log shows the broken rules any more."""
    story = new_disk().snapshot(25, 2, "2b 3", at=260)
    story.capture("2b", 3000, "2:25-60", 2).capture("3", 3000, "2:25-60", 2)
    story.capture("1", 3000, "2:25-60", 2).snapshot(25, 2, "1", at=260)
    advice = advised(story)
    assert not advice.is_safe
    assert "Rule 7 is broken" in advice.why


def test_two_logs_of_one_epoch_contest_it() -> None:
    """A cloned cluster with one cluster id: both go on in epoch 1."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    story.capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)
    assert advised(story).is_safe
    story.capture("3", 1000, "1:0-50", 1, digests="cloned")
    advice = advised(story)
    assert not advice.is_safe
    assert "Captured logs contradict each other in epoch 1" in advice.why


def test_an_open_error_on_an_advised_log_forbids_it_until_a_newer_capture_is_in_order() -> None:
    story = whole()
    names = [capture.capture_id for capture in story.captures]
    faults = [RuleFacts(order_faults=(LogOrderFault(name, 30, 1, "duplicate", 31),)) for name in names]
    for facts in faults:
        assert not advised(story, facts).is_safe
        assert "Rule 0 is broken: The log of " in advised(story, facts).why
    story.capture("1", 2000, "1:0-60", 1)
    assert advised(story, faults[0]).is_safe
    assert not advised(story, faults[1]).is_safe


def test_an_error_of_a_replica_that_is_neither_advised_nor_counted_is_no_ground() -> None:
    story = whole().capture("4", 1000, "1:0-30", 1)
    name = story.captures[-1].capture_id
    facts = RuleFacts(order_faults=(LogOrderFault(name, 30, 1, "duplicate", 31),))
    assert [f.severity for f in judge(conclude(story.facts()), facts)] == ["error"]
    assert advised(story, facts).is_safe


@pytest.mark.parametrize("beside", ["1?", "2?"])
def test_an_error_of_an_unknown_directory_concerns_each_directory_of_its_node(beside: str) -> None:
    story = whole().capture(beside, 1000, "1:0-50", 1)
    assert advised(story).is_safe
    fault = LogOrderFault(story.captures[-1].capture_id, 30, 1, "duplicate", 31)
    assert not advised(story, RuleFacts(order_faults=(fault,))).is_safe


def test_an_error_of_a_known_directory_concerns_a_log_of_an_unknown_one() -> None:
    story = static("1?", "2?").capture("1", 1000, "1:0-30", 1)
    fault = LogOrderFault(story.captures[-1].capture_id, 30, 1, "duplicate", 31)
    assert "Rule 0 is broken" in advised(story, RuleFacts(order_faults=(fault,))).why


def test_a_proof_above_the_best_log_forbids_it() -> None:
    """A checkpoint proves that 60 was reached; the captured logs end at 50."""
    story = whole().snapshot(60, 1, "4", at=900)
    advice = advised(story)
    assert not advice.is_safe
    assert "Everything below 60 was committed, and the best claim ends at 50" in advice.why


# --- nodes that are gone --------------------------------------------------------------------------


def test_without_a_node_that_is_not_needed() -> None:
    advice = advised(whole(), without=(3,))
    assert advice.is_safe
    assert {c.node_id for c in (*advice.best, *advice.others)} == {1, 2}


def test_without_the_majority_nothing_is_safe_and_what_only_they_held_is_named() -> None:
    advice = advised(whole(), without=(1, 2))
    assert not advice.is_safe
    assert [c.node_id for c in advice.best] == [3]
    assert advice.best[0].loses == "40 to 49 of epoch 1 (committed)"
    assert "The best claim lacks 40 to 49 of epoch 1 (committed)" in advice.why
    assert "is gone: what it stored after its capture is lost" in advice.why


def test_without_one_node_what_it_alone_held_may_be_lost() -> None:
    """Node 1 alone holds 40 to 49: not known to be committed, so safe, and named."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 1000, "1:0-50", 1)
    story.capture("2", 1000, "1:0-40", 1).capture("3", 1000, "1:0-40", 1)
    advice = advised(story, without=(1,))
    assert (advice.is_safe, advice.best[0].loses) == (True, "40 to 49 of epoch 1 (uncommitted)")


def test_without_all_nodes_there_is_no_choice() -> None:
    advice = advised(whole(), without=(1, 2, 3))
    assert (advice.is_safe, advice.best, advice.others) == (False, (), ())
    assert advice.why.count("is gone: what it stored after its capture is lost.") == 3
    assert "could be read" not in advice.why


# --- partial copies -------------------------------------------------------------------------------


def test_checkpoints_alone_show_nobodys_log_end(tmp_path: Path) -> None:
    """Of nodes 1 and 2 only the checkpoints were copied; node 3 is lost, with what all three held above."""
    copied = copytree(GOLDEN / "dynamic-membership", tmp_path / "copied")
    nodes = [copied / "node-1", copied / "node-2"]
    assert _of(nodes).is_safe
    for segment in (file for node in nodes for file in node.rglob("*.log")):
        segment.unlink()
    advice = _of(nodes)
    assert not advice.is_safe
    assert "no segment of it was captured" in advice.why


def test_a_last_segment_of_which_only_the_index_was_copied_hides_the_logs_end(tmp_path: Path) -> None:
    """Nodes 1 and 3 of three voters: what they hold from 408 on lies in segments that are missing."""
    nodes = [
        copytree(GOLDEN / "uncommitted-truncation/after" / name, tmp_path / name)
        for name in ("node-1", "node-3")
    ]
    assert _of(nodes).is_safe
    for segment in [node / "__cluster_metadata-0/00000000000000000408.log" for node in nodes]:
        segment.rename(segment.with_suffix(".index"))
    assert not _of(nodes).is_safe


def test_a_copy_that_was_cut_off_inside_a_batch_is_no_whole_log(tmp_path: Path) -> None:
    """Of three voters the leader's copy ends at each byte of its last batches, and node 3 holds less.

    A majority may have stored what was cut off: node 2, which is gone, with the leader.
    """
    nodes = [
        copytree(GOLDEN / "uncommitted-truncation/after" / name, tmp_path / name)
        for name in ("node-1", "node-3")
    ]
    assert _of(nodes).is_safe
    segments = [node / "__cluster_metadata-0/00000000000000000408.log" for node in nodes]
    wholes = [segment.read_bytes() for segment in segments]
    batches = [batch.position for batch in scan(wholes[0], end=len(wholes[0]), next_offset=408)]
    segments[1].write_bytes(wholes[1][: batches[-4]])
    for position, end in pairwise([*batches[-3:], len(wholes[0])]):
        for cut in range(position + 1, end):
            segments[0].write_bytes(wholes[0][:cut])
            advice = _of(nodes)
            assert not advice.is_safe
            assert "has a log that ends inside a batch" in advice.why
    segments[0].write_bytes(wholes[0])
    assert _of(nodes).is_safe


def _of(nodes: list[Path]) -> RecoveryAdvice:
    (facts,) = collect(find_controller_dirs(nodes).directories)
    known = conclude(facts)
    return recovery_advice(known, judge(known))
