"""Whole runs: a quorum, what happens to it, and the result; a failing run shrunk to a few actions.

The same run takes the same steps again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kraft_core.simulation.actions import Action, random_actions
from kraft_core.simulation.judge import BrokenRule
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.setup import Setup


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A seeded quorum and what happens to it."""

    setup: Setup
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """`steps` counts calls of the step function; `failure` is None where no rule was broken."""

    steps: int
    failure: BrokenRule | None
    history: tuple[str, ...]
    quorum: SimulatedQuorum


def random_run(setup: Setup, action_count: int) -> SimulatedRun:
    """`action_count` random actions by the setup's seed, then a healed quorum."""
    return SimulatedRun(setup, random_actions(setup.seed, action_count))


def simulate(run: SimulatedRun, *, tolerated: frozenset[int] = frozenset()) -> Result:
    """Run to the end, or to the first broken rule that is not `tolerated`."""
    quorum = SimulatedQuorum(run.setup, tolerated=tolerated)
    for action in run.actions:
        quorum.act(action)
        if quorum.failure:
            break
    return Result(quorum.steps, quorum.failure, tuple(quorum.history), quorum)


def shrink(run: SimulatedRun, *, tolerated: frozenset[int] = frozenset()) -> SimulatedRun:
    """A shorter run that breaks the same rule: ever smaller parts are left out as long as it does.

    Raises ValueError if `run` breaks no rule.
    """
    failure = simulate(run, tolerated=tolerated).failure
    if failure is None:
        raise ValueError("the run breaks no rule")
    part = max(1, len(run.actions) // 2)
    while True:
        smaller = _without_parts(run, part, failure.rule, tolerated)
        if part == 1 and len(smaller.actions) == len(run.actions):
            return smaller
        run, part = smaller, max(1, part // 2)


def _without_parts(run: SimulatedRun, part: int, rule: int, tolerated: frozenset[int]) -> SimulatedRun:
    start = 0
    while start < len(run.actions):
        shorter = replace(run, actions=run.actions[:start] + run.actions[start + part :])
        failure = simulate(shorter, tolerated=tolerated).failure
        if failure and failure.rule == rule:
            run = shorter
        else:
            start += part
    return run


def report(run: SimulatedRun, result: Result) -> str:
    """The run and its history as text."""
    lines = [f"{run.setup}", f"{result.steps} steps, {result.failure or 'no rule broken'}", *result.history]
    return "\n".join(lines)
