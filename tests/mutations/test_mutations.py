"""Five hundred damaged inputs; tests/long/test_mutations.py reads a million."""

from __future__ import annotations

from tests.mutations.check import KINDS, check_all

INPUTS = 500


def test_five_hundred_damaged_inputs() -> None:
    failures = check_all(0, INPUTS)
    assert failures == []
    assert sum(share for _, share in KINDS.values()) == 100
