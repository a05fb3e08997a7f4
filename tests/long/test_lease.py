"""Two runs on one lake at once, as real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.long.processes import Started, run, tables
from transforms.delta_rs import rows_with
from transforms.tables import RUNS


@pytest.mark.long
def test_two_runs_at_once(golden: Path, tmp_path: Path) -> None:
    """On a lake that neither finds there: both load their part; one that will not wait is told who writes."""
    parts = [golden / "uncommitted-truncation/before"], [golden / "v4.4.0-mini"]
    lake = tmp_path / "lake"
    pair = [run(tmp_path / f"part-{n}", lake, part, "--wait", "1500") for n, part in enumerate(parts)]
    writing = next_to_scan(pair)
    hasty = run(tmp_path / "hasty", lake, [golden / "static-upgrade"])
    assert hasty.ended() == 4
    said = hasty.err.read_text()
    assert "is busy: run " in said
    assert "its lease lasts until" in said
    assert "Traceback" not in said
    assert [p.ended() for p in pair] == [0, 0], [p.err.read_text() for p in pair]
    assert writing in pair
    assert run(tmp_path / "clean", tmp_path / "whole", [*parts[0], *parts[1]]).ended() == 0
    assert tables(lake) == tables(tmp_path / "whole")
    ended = rows_with(lake, RUNS)
    assert [r["exit_code"] for r in ended] == [0, 0]
    assert all(r["lease"] for r in ended)


def next_to_scan(pair: list[Started]) -> Started:
    """The run that is the first to read."""
    while True:
        for started in pair:
            if started.said("scan"):
                return started


@pytest.mark.long
def test_a_killed_holder(golden: Path, tmp_path: Path) -> None:
    """Killed where it holds the lease: the next run on this machine need not wait for the expiry."""
    lake, captures = tmp_path / "lake", [golden / "v4.4.0-mini"]
    holder = run(tmp_path / "holder", lake, captures)
    assert holder.until("scan")
    assert holder.kill_after(0.1, only_python=False)
    held = rows_with(lake, RUNS)
    assert [r["finished_at"] for r in held] == [None]
    assert run(tmp_path / "next", lake, captures).ended() == 0
