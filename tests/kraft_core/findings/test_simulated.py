"""Simulated quorums that keep every rule, captured at random: no subset of their captures shows an error.

Nor do the high watermarks that their leaders reported, compared with any subset.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.judge import judge
from tests.kraft_core.evidence.golden import union
from tests.kraft_core.evidence.test_simulated import SEEDS, Life


def reported_by_leaders(life: Life, random: Random) -> tuple[Observation, ...]:
    """What some of them would have answered, and when."""
    return tuple(
        Observation(
            "simulated",
            f"{at}-{node_id}",
            at,
            at,
            "status",
            node_id,
            directory_id,
            "Leader",
            leader_epoch=epoch,
            high_watermark=high_watermark,
        )
        for at, (node_id, directory_id), epoch, high_watermark in life.reported
        if random.random() < 0.2
    )


def check(seed: int) -> None:
    life = Life(seed)
    reported = RuleFacts(observations=reported_by_leaders(life, Random(seed)))
    for chosen in life.subsets():
        if chosen:
            findings = judge(conclude(union(life.captures[nth] for nth in chosen)), reported)
            # 16: the stale voter set; 46: copied after an election, before its LEADER_CHANGE was appended.
            assert {f.rule for f in findings} <= {16, 46}, [f.sentence for f in findings]
            assert all(f.severity == "warning" for f in findings)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
@example(seed=560807)  # what a leader wrote was truncated, and committed by a later leader
@example(seed=31169)  # a snapshot in an epoch that the leader of the next one lacked, and a later one had
def test_a_lawful_quorum_has_no_error(seed: int) -> None:
    check(seed)


@pytest.mark.long
@settings(max_examples=5_000, deadline=None)
@given(seed=SEEDS)
def test_a_lawful_quorum_has_no_error_many_times(seed: int) -> None:
    check(seed)
