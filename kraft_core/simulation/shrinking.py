"""A failing run made small: the fewest actions found that break the same rule."""

from __future__ import annotations

from dataclasses import replace

from kraft_core.simulation.simulation import Result, SimulatedRun, simulate


def shrink(run: SimulatedRun, *, tolerated: frozenset[int] = frozenset()) -> SimulatedRun:
    """Leave out ever smaller parts, as long as the rule that `run` breaks is still broken.

    Raises ValueError if it breaks none.
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
    """The run and what happened in it, for people to read."""
    lines = [f"{run.setup}", f"{result.steps} steps, {result.failure or 'no rule broken'}", *result.history]
    return "\n".join(lines)
