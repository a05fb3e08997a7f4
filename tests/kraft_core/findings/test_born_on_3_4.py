"""A quorum born on Kafka 3.4, whose first leader wrote a record before its LEADER_CHANGE (KAFKA-15345)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import derive
from kraft_core.findings.judge import judge
from kraft_core.findings.observed_quorum import observed_voter_sets, static_voters_reported
from kraft_core.findings.recovery import recovery_advice
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.actions import Lose
from kraft_core.plan.captured_quorum import quorum_of
from kraft_core.plan.plan import plan
from tests.kraft_core.plan.captured import GOLDEN, facts_of


def known(*nodes: int) -> Conclusions:
    folders = [GOLDEN / "born-on-3.4" / f"node-{node}" for node in nodes]
    (facts,) = collect(find_controller_dirs(folders).directories)
    return conclude(facts)


def ranges(conclusions: Conclusions) -> list[tuple[int, int, int, str]]:
    rows = derive(conclusions.facts).log_ranges
    return [(row.leader_epoch, row.first_offset, row.end_offset, row.commit_status) for row in rows]


def test_no_rule_is_broken_and_the_voters_are_known_from_the_first_leader_on() -> None:
    quorum = known(1, 2, 3)
    assert not judge(quorum)
    (voters,) = derive(quorum.facts).voter_sets
    assert (voters.source, voters.offset, voters.voter_ids) == ("static", 1, (1, 2, 3))
    assert ranges(quorum) == [
        (4, 0, 149, "committed"),
        (6, 149, 337, "committed"),
        (6, 337, 338, "uncommitted"),
    ]
    advice = recovery_advice(quorum, judge(quorum))
    assert (advice.is_safe, [best.node_id for best in advice.best]) == (True, [3])


def test_where_no_leader_change_is_in_sight_quorum_state_names_the_voters_and_proves_nothing() -> None:
    (facts,) = collect(find_controller_dirs([GOLDEN / "born-on-3.4"]).directories)
    facts = replace(facts, control_records=())
    words = "quorum-state of 3 names the static voters {1,2,3} of epoch 6, which proves no majority"
    advice = recovery_advice(conclude(facts), ())
    assert words in advice.why
    assert "could be read" not in advice.why
    assert (advice.is_safe, advice.best) == (False, ())
    (row,) = observed_voter_sets(conclude(facts), derive(facts).voter_sets, ())
    assert (row.source, row.voter_ids, row.commit_status) == ("quorum-state", (1, 2, 3), "undecided")
    _, registrations = facts_of("born-on-3.4")
    quorum = quorum_of(conclude(facts), registrations)
    assert quorum is not None
    verdict = plan(quorum, Lose((2,))).judged.verdict
    assert verdict.name == "not_known"
    assert words in verdict.reason
    silent = conclude(replace(facts, captures=tuple(replace(c, current_voters=None) for c in facts.captures)))
    assert static_voters_reported(silent) is None
    assert "static voters" not in recovery_advice(silent, ()).why


def with_voters(node: int, voters: tuple[int, ...], epoch: int = 6) -> Conclusions:
    """The quorum, whose node was started with other static voters."""
    (facts,) = collect(find_controller_dirs([GOLDEN / "born-on-3.4"]).directories)
    captures = (
        replace(c, current_voters=voters, quorum_state_epoch=epoch) if c.node_id == node else c
        for c in facts.captures
    )
    return conclude(replace(facts, captures=tuple(captures)))


@pytest.mark.parametrize(("voters", "epoch"), [((1,), 6), ((1, 2, 3, 4, 5), 6), ((1, 2, 3, 4, 5), 7)])
def test_where_a_voter_is_configured_with_others_nothing_is_safe_or_bounded(
    voters: tuple[int, ...], epoch: int
) -> None:
    """What a majority of those may have stored, captures of these do not show."""
    quorum = with_voters(1, voters, epoch)
    (finding,) = [f for f in judge(quorum) if f.rule == 50]
    ids = ",".join(map(str, voters))
    words = f"of epoch {epoch} names the static voters {{{ids}}}, and the newest election {{1,2,3}}"
    assert (finding.severity, finding.replicas) == ("warning", ("1",))
    assert finding.sentence == f"1 is configured with other voters than the quorum: its quorum-state {words}."
    advice = recovery_advice(quorum, judge(quorum))
    assert not advice.is_safe
    assert f"Node 1 is configured with other voters: its quorum-state {words}" in advice.why
    assert not [row for row in derive(quorum.facts).high_watermarks if row.upper_bound is not None]
    assert ranges(quorum)[-1] == (6, 337, 338, "undecided")
    _, registrations = facts_of("born-on-3.4")
    captured = quorum_of(quorum, registrations)
    assert captured is not None
    verdict = plan(captured, Lose((2,))).judged.verdict
    assert verdict.name == "not_known"
    assert (words if epoch == 6 else "no captured log contains a record of epoch 7") in verdict.reason


@pytest.mark.parametrize(
    ("node", "voters", "epoch"), [(1, (3, 2, 1), 6), (1, (1,), 5), (4, (1, 2), 6)], ids=str
)
def test_who_is_no_voter_or_was_configured_before_the_newest_election_says_nothing(
    node: int, voters: tuple[int, ...], epoch: int
) -> None:
    quorum = with_voters(1, voters, epoch)
    captures = (replace(c, node_id=node) if c.node_id == 1 else c for c in quorum.facts.captures)
    quorum = conclude(replace(quorum.facts, captures=tuple(captures)))
    assert not [f for f in judge(quorum) if f.rule == 50]
    assert recovery_advice(quorum, judge(quorum)).is_safe


@pytest.mark.parametrize(("node", "committed"), [(1, 336), (2, 337), (3, 301)])
def test_one_node_proves_what_the_leader_had_and_what_its_snapshots_cover(node: int, committed: int) -> None:
    quorum = known(node)
    assert not judge(quorum)
    assert max(end for *_, end, status in ranges(quorum) if status == "committed") == committed
    assert not recovery_advice(quorum, judge(quorum)).is_safe


@pytest.mark.parametrize(
    ("earlier_s", "words"),
    [(100, "100 s"), (7_199, "7199 s"), (30 * 3_600, "30 hours"), (222 * 86_400 + 5, "222 days")],
)
def test_how_far_a_stated_time_is_off_reads_in_a_unit_of_its_size(earlier_s: int, words: str) -> None:
    directories = find_controller_dirs([GOLDEN / "born-on-3.4" / "node-3"]).directories
    (facts,) = collect(directories)
    newest = max(
        epoch_range.last_appended_at for capture in facts.captures for epoch_range in capture.epoch_ranges
    )
    (facts,) = collect(directories, newest - 1000 * earlier_s)
    (wrong,) = [f for f in judge(conclude(facts)) if f.rule == 48]
    assert f" is {words} before its newest timestamp, and is ignored" in wrong.sentence
