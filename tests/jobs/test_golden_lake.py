"""Every golden capture through Spark into one lake, held against the pure core and the expected truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.derive import derive
from kraft_core.logdir import find_controller_dirs
from tests.jobs.lakes import opened, run
from transforms.derived import CONCLUSIONS, conclusion
from transforms.frames import to_rows

SCENARIOS = (
    "disk-failure",
    "dynamic-membership",
    "election-storm",
    "old-mv-3.3-IV0-fatal-on-4.3.1",
    "static-upgrade",
    "uncommitted-removal",
    "uncommitted-then-committed",
    "uncommitted-truncation",
    "v4.4.0-mini",
)


@pytest.fixture(scope="module")
def lake(spark: Any, golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("golden") / "lake"
    assert run(path, *(golden / scenario for scenario in SCENARIOS)) == 0
    return opened(spark, path)


@pytest.fixture(scope="module")
def evidence(golden: Path) -> list[Any]:
    """What the pure core concludes from the same directories, without Spark."""
    found = find_controller_dirs([golden / scenario for scenario in SCENARIOS])
    return [derive(facts) for facts in collect(found.directories)]


@pytest.mark.parametrize("table", CONCLUSIONS, ids=lambda table: table.name)
def test_spark_concludes_what_the_pure_core_concludes(lake: Any, evidence: list[Any], table: Any) -> None:
    times = {c.name for c in table.columns if c.type == "TIMESTAMP"}
    expected = [conclusion(row, table.names, times) for e in evidence for row in getattr(e, table.name)]
    assert expected
    assert sorted(map(repr, to_rows(lake.read(table).select(table.names)))) == sorted(map(repr, expected))
