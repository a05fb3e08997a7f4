"""Two thousand damaged inputs; tests/long/test_mutations.py reads a million."""

from __future__ import annotations

from tests.mutations.check import KINDS, check_all

INPUTS = 2_000


def test_two_thousand_damaged_inputs() -> None:
    failures = check_all(0, INPUTS)
    assert failures == []
    assert sum(share for _, share in KINDS.values()) == 100
