"""Whole quorums in memory: no rule is broken, and the stale voter set is found when it is switched on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.runs import SimulatedRun, random_run, report, shrink, simulate
from kraft_core.simulation.setup import Setup
from tests.conformance.test_roles import reachable

# What Kafka believes, and what it then writes into snapshots: the stale set itself, not what comes of it.
STALENESS = frozenset({16, 17})
SPLIT_SEED = Setup(seed=106, voters=7, observers=0, brokers=0)
SPLIT_WITHIN_STEPS = 6_000
STALE_SEED = Setup(seed=45, voters=3, observers=1)
STALE_WITHIN_STEPS = 1_000


def setup(seed: int) -> Setup:
    return Setup(
        seed,
        voters=1 + seed % 7,
        observers=seed % 3,
        brokers=seed % 2,
        static=seed % 5 == 4,
        auto_join=seed % 4 == 3,
    )


@pytest.mark.parametrize("seed", range(7))
def test_no_rule_is_broken(seed: int) -> None:
    run = random_run(setup(seed), 25)
    result = simulate(run)
    assert result.failure is None, report(run, result)


def test_the_same_run_takes_the_same_steps() -> None:
    run = random_run(setup(2), 25)
    one, other = simulate(run), simulate(run)
    assert (one.steps, one.history) == (other.steps, other.history)


def test_a_quorum_without_faults_elects_a_leader_and_commits() -> None:
    quorum = simulate(SimulatedRun(Setup(1, voters=3), random_run(Setup(1), 0).actions)).quorum
    leader = quorum.leader()
    assert leader is not None
    assert leader.log.known_high_watermark == leader.log.end_offset > 3
    assert {replica.log.end_offset for replica in quorum.replicas.values()} == {leader.log.end_offset}


def test_the_stale_voter_set_is_found() -> None:
    run = random_run(replace(STALE_SEED, stale_voters=True), 60)
    failure = simulate(run).failure
    assert failure is not None
    assert failure.rule == 16
    assert failure.step < STALE_WITHIN_STEPS


def test_the_stale_voter_set_leads_to_an_election_by_the_wrong_voters() -> None:
    run = random_run(replace(SPLIT_SEED, stale_voters=True), 120)
    failure = simulate(run, tolerated=STALENESS).failure
    assert failure is not None
    assert failure.rule == 23
    assert failure.step < SPLIT_WITHIN_STEPS


@pytest.mark.parametrize(("quorum", "actions"), [(STALE_SEED, 60), (SPLIT_SEED, 120)])
def test_without_the_fault_the_same_run_breaks_no_rule(quorum: Setup, actions: int) -> None:
    run = random_run(quorum, actions)
    result = simulate(run)
    assert result.failure is None, report(run, result)


def test_a_failing_run_shrinks_to_one_that_breaks_the_same_rule() -> None:
    run = random_run(replace(STALE_SEED, stale_voters=True), 60)
    small = shrink(run)
    result = simulate(small)
    assert result.failure is not None
    assert result.failure.rule == 16
    assert len(small.actions) < len(run.actions) // 2
    printed = report(small, result)
    assert "BROKEN" in printed
    assert "stale_voters=True" in printed


def test_role_transitions_follow_the_table() -> None:
    run = random_run(setup(6), 40)
    quorum = SimulatedQuorum(run.setup)
    before = {node: (replica.role, replica.epoch) for node, replica in quorum.replicas.items()}
    for action in run.actions:
        quorum.act(action)
        after = {node: (replica.role, replica.epoch) for node, replica in quorum.replicas.items()}
        for node, (role, epoch) in after.items():
            was, had = before[node]
            assert epoch >= had or quorum.replicas[node].log.end_offset == 0
            # One action may take several steps.
            assert role in reachable(was, within_epoch=epoch == had)
        before = after
