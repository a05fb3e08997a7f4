"""Judging grows with runs and control records: neither epochs nor captures nor observations make it slow."""

from __future__ import annotations

import time

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.kraft_core.evidence.test_scale import PER_EPOCH, long_life


@pytest.mark.parametrize(("epochs", "moments", "seconds"), [(500, 1, 4), (50, 50, 4)])
def test_it_is_quick(epochs: int, moments: int, seconds: float) -> None:
    check_time(epochs, moments, seconds)


@pytest.mark.long
@pytest.mark.parametrize(("epochs", "moments", "seconds"), [(10_000, 1, 20), (365, 365, 40)])
def test_it_is_quick_where_there_is_much(epochs: int, moments: int, seconds: float) -> None:
    check_time(epochs, moments, seconds)


def check_time(epochs: int, moments: int, seconds: float) -> None:
    """An output an epoch, from its leader, once all of its batches are written."""
    known = conclude(long_life(epochs, replicas=5, moments=moments))
    told = tuple(
        Observation(
            "long",
            f"{epoch}-status.txt",
            100 * epoch + 91,
            100 * epoch + 95,
            "status",
            1 + epoch % 5,
            ZERO_UUID,
            "Leader",
            leader_epoch=epoch,
            high_watermark=PER_EPOCH * epoch,
        )
        for epoch in range(1, epochs + 1)
    )
    started = time.process_time()
    findings = judge(known, RuleFacts(observations=told))
    advice = recovery_advice(known)
    truncations = observed_truncations(known)
    took = time.process_time() - started
    assert findings == []
    assert (advice.is_safe, len(advice.best), truncations) == (True, 5, [])
    assert took < seconds
