"""A run writes no history that has no rows; the page asks its views as if it were there, and empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards import embedded_sql
from tests.dashboards.histories import topic
from tests.dashboards.small_lakes import BY_NAME, write, write_for
from transforms.lake.tables import REPLAYS

ROWS = {"topics": [topic("t1", "orders", 5)]}


@pytest.mark.parametrize("view", ["admin_events", "under_min_isr"])
def test_histories_that_were_never_written_are_empty(tmp_path: Path, view: str) -> None:
    whole, first_run = tmp_path / "whole", tmp_path / "first run"
    write_for(whole, view, ROWS)
    for name in ("topics", "runs", "records"):
        write(first_run, BY_NAME[name], ROWS.get(name, []))
    asked = f"SELECT * FROM {view}"
    assert embedded_sql.query(first_run, view, asked) is None  # nothing is derived
    write(first_run, REPLAYS, [])
    found, expected = (embedded_sql.query(lake, view, asked) for lake in (first_run, whole))
    assert found is not None
    assert expected is not None
    assert found.to_pylist() == expected.to_pylist()
    assert [row["subject"] for row in found.to_pylist()] == (["orders"] if view == "admin_events" else [])
