"""Judging many epochs, captures and observations; the bench measures how its time grows (growth)."""

from __future__ import annotations

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from tests.kraft_core.evidence.long_life import long_life
from tests.kraft_core.findings.observed_life import observed_life


@pytest.mark.parametrize(("epochs", "times"), [(500, 1), (50, 50)])
def test_a_long_life_breaks_no_rule(epochs: int, times: int) -> None:
    known = conclude(long_life(epochs, replicas=5, times=times))
    assert judge(known, observed_life(epochs)) == []
    advice = recovery_advice(known, judge(known))
    assert (advice.is_safe, len(advice.best), observed_truncations(known)) == (True, 5, [])
