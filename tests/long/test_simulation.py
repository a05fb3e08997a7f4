"""100,000 simulated steps of quorums of one to seven voters, and not one broken rule."""

from __future__ import annotations

import pytest

from kraft_core.simulation.runs import random_run, report, shrink, simulate
from tests.kraft_core.simulation.test_simulation import setup

STEPS = 100_000


@pytest.mark.long
def test_a_hundred_thousand_steps_break_no_rule() -> None:
    steps = 0
    seed = 100
    while steps < STEPS:
        run = random_run(setup(seed), 120)
        result = simulate(run)
        if result.failure is not None:
            small = shrink(run)
            pytest.fail(report(small, simulate(small)))
        steps += result.steps
        seed += 1
