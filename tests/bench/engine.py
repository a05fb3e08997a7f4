"""How fast the protocol engine steps: simulated quorums, every rule judged after each step, and bare."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.runs import SimulatedRun, random_run
from kraft_core.simulation.setup import Setup
from tests.bench.frame import Bench, Row

VOTERS = (1, 3, 5, 7)
ACTIONS = 120


class Unjudged:
    """In the place of a judge: nothing is looked at."""

    tolerated: frozenset[int] = frozenset()

    def judge(self, *_: object) -> None:
        return None

    def lose_disk(self, _: object) -> None:
        return None


def rows(bench: Bench) -> Iterator[Row]:
    """Steps a second of one process, over the same runs."""
    seeds = bench.size(6, 1)
    runs = [random_run(Setup(seed * 10 + n, voters=n), ACTIONS) for n in VOTERS for seed in range(seeds)]
    bare_steps, bare = taken(runs, judged=False)
    steps, judged = taken(runs, judged=True)
    assert steps == bare_steps
    detail = f"{steps:,} steps of quorums of {', '.join(map(str, VOTERS))} voters"
    yield Row("engine steps", bare_steps / bare, "steps/s", detail=f"{detail}, unjudged, {bare:.1f} s")
    yield Row(
        "engine steps, every rule judged", steps / judged, "steps/s", detail=f"{detail}, {judged:.1f} s"
    )


def taken(runs: list[SimulatedRun], *, judged: bool) -> tuple[int, float]:
    """Steps and processor seconds of some runs: no other process on the machine counts."""
    steps, began = 0, time.process_time()
    for run in runs:
        quorum = SimulatedQuorum(run.setup)
        if not judged:
            quorum.judge = Unjudged()  # type: ignore[assignment]
        for action in run.actions:
            quorum.act(action)
        assert quorum.failure is None
        steps += quorum.steps
    return steps, time.process_time() - began
