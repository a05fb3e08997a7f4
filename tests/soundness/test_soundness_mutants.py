"""What the soundness checker catches: a rule of proof is broken on purpose, and a false answer is found."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from kraft_core.evidence import conclusions, log_ends, majority, replica_ends
from kraft_core.evidence.commit import CommitStatus
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.log_ends import LogEnds
from kraft_core.evidence.lower_bounds import LowerBound, LowerBounds
from kraft_core.findings import describe, recovery_safety
from kraft_core.findings.recovery import recovery_advice
from kraft_core.plan import engine, standings, verdicts
from kraft_core.plan.engine import World
from kraft_core.plan.parts import ActionPart
from kraft_core.raft.voters import ReplicaKey
from kraft_core.restore import choice
from kraft_core.simulation.setup import Setup
from tests.soundness import captures, checker
from tests.soundness.captures import Copy
from tests.soundness.checker import Checked, counterexamples
from tests.soundness.claims import ClaimCheck
from tests.soundness.drawing import copies_by_other_clocks, copies_while_running
from tests.soundness.execution import Execution, begin, go_on
from tests.soundness.missing import Missing
from tests.soundness.moves import Append, Elect, EmptyDisk, LawfulMove, Pull, UpgradeKRaftVersion

# The first of these seeds catch each mutant; where the drawing has changed, others may.
SEEDS = (1318, 471, 476, 477, 496, 531, 575, 577, *range(472, 577))
Patch = Callable[[pytest.MonkeyPatch], None]
DrawCopies = Callable[[random.Random, Execution], tuple[Copy, ...]]


def file_times_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(captures, "copied_between", lambda at, *_: (at, at, "capture.json"))


def batches_of_older_epochs_count(patch: pytest.MonkeyPatch) -> None:
    """Raft, figure 8: stored in whatever epoch."""
    made = Capture.__post_init__

    def in_last_epoch(one: Capture) -> None:
        made(one)
        object.__setattr__(one, "in_epoch", one.last_epoch if one.epoch_ranges else None)

    patch.setattr(Capture, "__post_init__", in_last_epoch)
    patch.setattr(majority.MajorityRule, "_steps_of", _steps_of_any_epoch)


def _steps_of_any_epoch(rule: majority.MajorityRule, voter: Any, _: Any, epoch: int) -> Any:
    for place, replica in enumerate(rule.holdings.replicas_of(voter)):
        holding = rule.holdings.by_epoch.get(epoch, {}).get(replica)
        if holding is not None:
            yield from ((place, step) for step in holding.held.steps())


def a_leader_counts_that_is_no_voter(patch: pytest.MonkeyPatch) -> None:
    """KIP-853: a leader that removed itself."""
    patch.setattr(InForce, "leader_among", lambda _, voters, __: next(iter(voters), None))


def one_less_than_a_majority_commits(patch: pytest.MonkeyPatch) -> None:
    def with_one_more(ends: Any, reverse: bool) -> list[int]:
        return sorted([*ends, max(ends)], reverse=reverse)

    patch.setattr(majority, "sorted", with_one_more, raising=False)


def who_was_not_captured_lacks_it(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_ends, "inf", 0)
    patch.setattr(replica_ends, "inf", 0)


def no_set_follows_that_was_not_captured(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogEnds, "_leader_shows", lambda *_: True)
    patch.setattr(CommitStatus, "_leader_stayed", lambda *_: True)


def a_change_of_voters_is_committed_at_once(patch: pytest.MonkeyPatch) -> None:
    found = LowerBounds.all
    patch.setattr(
        LowerBounds, "all", lambda bounds: [replace(one, bound=one.bound + 1) for one in found(bounds)]
    )


def recovery_needs_no_majority(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery_safety, "_too_few_voters", lambda _: ())


def who_lags_counts_for_a_plan(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(standings, "_not_keeping_up", lambda *_: None)


def an_added_voter_is_taken_for_in_sync(patch: pytest.MonkeyPatch) -> None:
    def joined(_: ActionPart, key: ReplicaKey, here: tuple[World, ...]) -> tuple[World, ...]:
        return tuple(engine.joining(world, key, fetches=True) for world in here)

    patch.setattr(verdicts, "_joined", joined)


def who_answers_is_the_newest_leader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(describe, "newest_until", lambda *_: defaultdict(lambda: inf))


def an_answer_commits_the_leader_s_log(patch: pytest.MonkeyPatch) -> None:
    answered = LowerBounds._answered

    def to_its_end(bounds: LowerBounds) -> Iterator[LowerBound]:
        for one in answered(bounds):
            end = bounds.lineage.lines[one.leader_epoch].end_offset
            yield replace(one, commits=((one.leader_epoch, end),))

    patch.setattr(LowerBounds, "_answered", to_its_end)


def a_backup_of_a_node_that_is_gone_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(choice, "recovery_advice", lambda known, findings, **_: recovery_advice(known, findings))


MUTANTS: tuple[tuple[Patch, str], ...] = (
    (file_times_count, "uncommitted"),
    (a_leader_counts_that_is_no_voter, "committed"),
    (one_less_than_a_majority_commits, "committed"),
    (who_was_not_captured_lacks_it, "upper bound"),
    (no_set_follows_that_was_not_captured, "upper bound"),
    (a_change_of_voters_is_committed_at_once, "lower bound"),
    (recovery_needs_no_majority, "safe"),
    (who_lags_counts_for_a_plan, "Lose"),
    (who_lags_counts_for_a_plan, "Remove"),
    (who_lags_counts_for_a_plan, "Replace"),
    (who_lags_counts_for_a_plan, "Update"),
    (an_added_voter_is_taken_for_in_sync, "Add"),
    (who_answers_is_the_newest_leader, "upper bound"),
    (an_answer_commits_the_leader_s_log, "committed"),
    (a_backup_of_a_node_that_is_gone_counts, "nothing lost"),
)


@pytest.mark.parametrize(("broken", "claim"), MUTANTS, ids=lambda one: getattr(one, "__name__", one))
def test_a_broken_rule_of_proof_is_caught(monkeypatch: pytest.MonkeyPatch, broken: Patch, claim: str) -> None:
    broken(monkeypatch)
    assert any(found.unsound.claim == claim for seed in SEEDS for found in counterexamples(seed, Checked()))


# Raft, figure 8: leader 1 is elected again and replicates its old batch; node 2 can still win without it.
FIGURE_8 = (Elect(1, (2,)), Elect(2, (3,)), Elect(3, (1,)), Elect(1, (3,)), Pull(3, 1, 0))


# Mutants that one kind of copies catches by itself; the first of these seeds do.
BY_DRAW = (
    (copies_while_running, one_less_than_a_majority_commits, "committed"),
    (copies_while_running, a_leader_counts_that_is_no_voter, "committed"),
    (copies_while_running, recovery_needs_no_majority, "safe"),
    (copies_by_other_clocks, one_less_than_a_majority_commits, "committed"),
    (copies_by_other_clocks, who_was_not_captured_lacks_it, "upper bound"),
    (copies_by_other_clocks, an_answer_commits_the_leader_s_log, "committed"),
)


@pytest.mark.parametrize(("draw", "broken", "claim"), BY_DRAW, ids=lambda one: getattr(one, "__name__", one))
def test_clocks_and_copies_that_take_a_while_hide_no_broken_rule(
    monkeypatch: pytest.MonkeyPatch, draw: DrawCopies, broken: Patch, claim: str
) -> None:
    monkeypatch.setattr(checker, "SETS_OF_COPIES", (draw,))
    broken(monkeypatch)
    found = (each.unsound.claim for seed in range(470, 800) for each in counterexamples(seed, Checked()))
    assert claim in found


def executed(*moves: LawfulMove) -> Execution:
    """Of three static voters."""
    execution = begin(Setup(1, 3, 0, static=True))
    assert all(go_on(execution, 3_000, move) for move in moves)
    return execution


def test_a_batch_that_is_stored_in_a_later_epoch_only_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = executed(*FIGURE_8)
    last = len(execution.moments) - 1
    copies = tuple(Copy(slot, last, last, execution.at[last], 0) for slot in (1, 3))
    assert [*ClaimCheck(execution, copies).unsound()] == []
    batches_of_older_epochs_count(monkeypatch)
    assert "committed" in {found.claim for found in ClaimCheck(execution, copies).unsound()}


# Voters 1 and 2 commit what 3 lacks; then kraft.version is upgraded, and a new disk of 1 fetches one batch.
def new_disk(*, static: bool = False) -> Execution:
    committed = Elect(2, (1, 3)), Pull(1, 2, 2), Append(2, 2), Pull(1, 2, 2), Append(2, 2), Pull(1, 2, 2)
    upgraded = UpgradeKRaftVersion(2), Pull(3, 2, 3), Pull(1, 2, 3)
    return executed(*committed, *upgraded, EmptyDisk(1, static=static), Pull(1, 2, 1, one=True))


def a_directory_that_names_no_static_voters_is_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conclusions, "reconfigured", lambda *_: ())
    a_new_disk_is_the_voter_of_its_id(patch)


def a_new_disk_is_the_voter_of_its_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conclusions, "on_new_disks", lambda *_: frozenset[str]())


@pytest.mark.parametrize(
    ("broken", "static", "missing", "leader_at"),
    [
        (a_directory_that_names_no_static_voters_is_one, False, Missing(), 6),
        (a_new_disk_is_the_voter_of_its_id, False, Missing(quorum_state=True), 6),
        (a_new_disk_is_the_voter_of_its_id, False, Missing(quorum_state=True), 11),
        (a_new_disk_is_the_voter_of_its_id, True, Missing(), 11),
    ],
)
def test_a_new_disk_that_is_taken_for_the_static_voter_of_its_id_is_caught(
    monkeypatch: pytest.MonkeyPatch, broken: Patch, static: bool, missing: Missing, leader_at: int
) -> None:
    """leader_at: the moment of the leader's copy; the last one shows the upgrade."""
    execution = new_disk(static=static)
    copies = tuple(
        Copy(slot, at, at, execution.at[at], 0, missing=lacks)
        for slot, at, lacks in ((1, 11, missing), (2, leader_at, Missing()), (3, 6, Missing()))
    )
    assert [*ClaimCheck(execution, copies).unsound()] == []
    broken(monkeypatch)
    assert "upper bound" in {one.claim for one in ClaimCheck(execution, copies).unsound()}
