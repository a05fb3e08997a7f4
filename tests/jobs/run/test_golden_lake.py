"""Every golden capture in one lake: its derived tables are those that the pure core derives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.describe_files import find_describe_files
from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.format.controller_dir import find_controller_dirs
from tests.kraft_core.findings.golden import rule_facts
from transforms.lake.arrow_rows import to_arrow
from transforms.lake.delta_rs import arrow_with
from transforms.lake.tables import FINDINGS, OBSERVATIONS, QUARANTINE
from transforms.quality.derived import DERIVED, column, derived_values, row_types
from transforms.quality.findings import finding_rows, observation_rows

Row = dict[str, Any]


@pytest.fixture(scope="module")
def expected_rows(lake: Any, golden_captures: list[Path]) -> dict[str, list[Row]]:
    """By table the rows that the pure core derives from the same directories and describe outputs."""
    assert lake.spark  # Spark parses the columns' types
    described = find_describe_files(golden_captures).files
    rows: dict[str, list[Row]] = {table.name: [] for table in (*DERIVED, OBSERVATIONS)}
    types = row_types()
    for facts in collect(find_controller_dirs(golden_captures).directories):
        own = {"cluster_id": facts.cluster_id}
        files = [file for file in described if file.cluster_id == facts.cluster_id]
        of_rules = replace(
            rule_facts()[facts.cluster_id],
            observations=tuple(o for file in files for o in file.observations),
        )
        conclusions = conclude(facts)
        findings = judge(conclusions, of_rules)
        for name, items in derived_values(conclusions, of_rules, findings).items():
            rows[name] += [own | column(item, types[name]) for item in items]
        rows[FINDINGS.name] += [own | row for row in finding_rows(findings, [])]
        for file in files:
            rows[OBSERVATIONS.name] += observation_rows(
                file.cluster_id, file.observation_id, file.observations
            )
    return rows


@pytest.mark.parametrize("table", [*DERIVED, OBSERVATIONS], ids=lambda table: table.name)
def test_the_lake_holds_what_the_pure_core_derives(
    lake: Any, expected_rows: dict[str, list[Row]], table: Any
) -> None:
    rows = expected_rows[table.name]
    assert bool(rows) == (table is not QUARANTINE)
    names = [name for name in table.names if name not in ("run_id", "loaded_at")]
    expected = to_arrow(rows, table.arrow_schema).select(names)
    found = arrow_with(lake.path, table, names)
    assert found.schema.names == names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))
