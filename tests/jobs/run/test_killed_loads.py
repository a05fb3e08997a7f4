"""Loads that were killed after the big tables were written, and before the rest: nothing comes twice.

Kills at any moment are tests/long/test_kill.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.lakes import content, opened, run, versions
from transforms.ingest import new_batches
from transforms.ingest.new_batches import MOST_AT_HAND
from transforms.lake.tables import (
    BATCHES,
    CAPTURES,
    DERIVATIONS,
    RECORDS,
    SEGMENTS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
)

CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
BIG = (RECORDS, BATCHES, SNAPSHOT_RECORDS)
REST = (SNAPSHOTS, SEGMENTS, CAPTURES)


@pytest.fixture
def killed(spark: Any, golden: Path, tmp_path: Path) -> Any:
    """The lake as a load of one of three replicas has left it."""
    assert run(tmp_path / "lake", golden / "dynamic-membership" / "node-2", verb="ingest") == 0
    for table in REST:
        shutil.rmtree(tmp_path / "lake" / table.name)
    return opened(spark, tmp_path / "lake")


def test_the_same_load_again(killed: Any, golden: Path) -> None:
    before = versions(killed)
    assert run(killed.path, golden / "dynamic-membership" / "node-2", verb="ingest") == 0
    after = versions(killed)
    assert {table.name: after[table.name] for table in BIG} == {
        table.name: before[table.name] for table in BIG
    }
    assert set(after) == {table.name for table in (*BIG, *REST, DERIVATIONS)}


@pytest.mark.parametrize("at_hand", [0, MOST_AT_HAND])
def test_a_load_of_more(
    killed: Any, golden: Path, lake: Any, monkeypatch: pytest.MonkeyPatch, at_hand: int
) -> None:
    """Spark reads the keys of more rows than the driver may hold."""
    monkeypatch.setattr(new_batches, "MOST_AT_HAND", at_hand)
    assert run(killed.path, golden / "dynamic-membership", verb="ingest") == 0
    found, wanted = content(killed, CLUSTER), content(lake, CLUSTER)
    for table in (*BIG, *REST):
        assert found[table.name] == wanted[table.name] != []
