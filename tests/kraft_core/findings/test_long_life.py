"""Judging many epochs, captures and observations; the bench measures how its time grows (growth)."""

from __future__ import annotations

import time

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.facts import Capture, ClusterFacts, EpochRange
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


def test_a_log_full_of_gaps() -> None:
    """Advice on 4,000 ranges of one epoch: it took half a minute when each was compared with each."""
    runs = tuple(EpochRange(1, at, at + 2, str(at), 0, 0, at + 2, None, None) for at in range(0, 40_000, 10))
    capture = Capture("c", 1, None, 0, 0, 39_992, runs)
    known = conclude(ClusterFacts("gaps", (capture,), ()))
    started = time.process_time()
    (only,) = recovery_advice(known, []).others
    assert only.keeps.count(" of epoch 1") == 4000
    assert time.process_time() - started < 5
