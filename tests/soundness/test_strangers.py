"""Quorums that bear one cluster id: no life of it gives a false answer, whatever else bears the id.

The seed differs from run to run and is in every failure.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace

import pytest

from kraft_core.evidence import lower_bounds
from tests.soundness.strangers import false_answers, strangers, told_apart

RUNS = 60


def failures(seed: int, runs: int) -> tuple[list[str], Counter[str]]:
    """The false answers, each with its seed; how many lives there were, and how many of several quorums."""
    found: list[str] = []
    counts: Counter[str] = Counter()
    for run_seed in range(seed, seed + runs):
        drawn = strangers(random.Random(run_seed))
        lives = told_apart(drawn)
        counts["lives"] += len(lives)
        counts["mixed"] += sum(len(life.quorums) > 1 for life in lives)
        counts["followed"] += sum(bool(life.facts.followed) for life in lives)
        found += [f"seed {run_seed}, {drawn.fault}: {words}" for words in false_answers(drawn, lives)]
    return found, counts


@pytest.mark.parametrize("runs", [RUNS, pytest.param(2_000, marks=pytest.mark.long)])
def test_no_life_gives_a_false_answer(runs: int) -> None:
    found, counts = failures(time.time_ns() % 1_000_000_000, runs)
    assert not found, "\n".join(found)
    assert counts["lives"] > 3 * runs // 2
    assert counts["mixed"] < runs // 2
    assert counts["followed"] > runs // 6


@pytest.mark.parametrize("seed", [710, 1144])
def test_without_what_the_other_lives_say_an_answer_is_false(seed: int) -> None:
    """A disk that was restored or wiped is captured in another life: only that voids SAFE here."""
    drawn = strangers(random.Random(seed))
    lives = told_apart(drawn)
    assert not list(false_answers(drawn, lives))
    apart = [replace(life, facts=replace(life.facts, elsewhere=())) for life in lives]
    assert any("is safe as of" in words for words in false_answers(drawn, apart))


@pytest.mark.parametrize("seed", [20678, 21703])
def test_what_the_leader_of_strangers_answered_commits_nothing(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Only their answers are left: of another quorum, in which the same node led the same epoch."""
    drawn = strangers(random.Random(seed))
    assert not list(false_answers(drawn, told_apart(drawn)))
    monkeypatch.setattr(lower_bounds, "are_of_others", lambda *_: False)
    assert any(" is committed as of " in words for words in false_answers(drawn, told_apart(drawn)))
