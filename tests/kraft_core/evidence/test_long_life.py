"""The derivation over many epochs and many captures; the bench measures how its time grows (growth)."""

from __future__ import annotations

import pytest

from kraft_core.evidence.derive import derive
from tests.kraft_core.evidence.long_life import long_life


@pytest.mark.parametrize(("epochs", "times"), [(500, 1), (50, 50)])
def test_every_epoch_is_committed(epochs: int, times: int) -> None:
    evidence = derive(long_life(epochs, replicas=5, times=times))
    assert [row.commit_status for row in evidence.log_ranges] == ["committed"] * epochs
    assert len(evidence.replica_ranges) == 5 * epochs
