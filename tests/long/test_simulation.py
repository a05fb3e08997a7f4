"""100,000 simulated steps without a broken rule, and 100,000 sets of captures without a false answer."""

from __future__ import annotations

import pytest

from kraft_core.simulation.runs import random_run, report, shrink, simulate
from kraft_core.simulation.setup import Setup
from tests.kraft_core.simulation.test_simulation import setup
from tests.soundness.checker import check
from tests.soundness.exhaustive import weigh
from tests.soundness.test_soundness import failures
from tests.soundness.unlawful import KINDS, Unlawful, check_unlawful

STEPS = 100_000
RUNS = 100_000
UNLAWFUL_RUNS = 2_000


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


@pytest.mark.long
def test_a_hundred_thousand_sets_of_captures_give_no_false_answer() -> None:
    checked = check(RUNS, 1_000_000)
    assert checked.runs >= RUNS
    assert failures(checked) == ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("voters", "static", "moves"), [(2, True, 9), (2, False, 8), (3, True, 5), (3, False, 4)]
)
def test_no_execution_of_some_moves_makes_a_verdict_false(voters: int, static: bool, moves: int) -> None:
    weighed = weigh(Setup(1, voters, 0, static=static), moves)
    assert [words for *_, words in weighed.unsound] == []


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_kraft_does_not_allow_is_raised_many_times(kind: Unlawful) -> None:
    raised = check_unlawful(kind, UNLAWFUL_RUNS, 1_000_000)
    assert raised.shown == UNLAWFUL_RUNS
    assert raised.failures == []
