"""Every golden capture through Spark into one lake, held against the pure core and the expected truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality

from kraft_core.evidence.collect import collect
from kraft_core.evidence.derive import derive
from kraft_core.logdir import find_controller_dirs
from transforms.derived import CONCLUSIONS, conclusion
from transforms.frames import to_frame


@pytest.fixture(scope="module")
def evidence(golden_captures: list[Path]) -> list[Any]:
    """What the pure core concludes from the same directories, without Spark."""
    found = find_controller_dirs(golden_captures)
    return [derive(facts) for facts in collect(found.directories)]


@pytest.mark.parametrize("table", CONCLUSIONS, ids=lambda table: table.name)
def test_spark_concludes_what_the_pure_core_concludes(lake: Any, evidence: list[Any], table: Any) -> None:
    times = {c.name for c in table.columns if c.type == "TIMESTAMP"}
    rows = [conclusion(row, table.names, times) for e in evidence for row in getattr(e, table.name)]
    assert rows
    found = lake.read(table).select(table.names)
    expected = to_frame(lake.spark, rows, table.schema)
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True, ignore_metadata=True)
