"""Two runs on one lake at once, as real processes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.long.processes import LONGEST, Started, run, tables
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import RUNS


@pytest.mark.long
def test_two_runs_at_once(golden: Path, tmp_path: Path) -> None:
    """On a new lake: both load their part; a run that does not wait learns who writes."""
    parts = [golden / "uncommitted-truncation/before"], [golden / "v4.4.0-mini"]
    lake = tmp_path / "lake"
    pair = [run(tmp_path / f"part-{n}", lake, part, "--wait", "1500") for n, part in enumerate(parts)]
    until_one_reads(pair)
    hasty = run(tmp_path / "hasty", lake, [golden / "static-upgrade"])
    assert hasty.ended() == 4
    said = hasty.err.read_text()
    assert "is busy: run " in said
    assert "its lease lasts until" in said
    assert "Traceback" not in said
    assert [p.ended() for p in pair] == [0, 0], [p.err.read_text() for p in pair]
    assert run(tmp_path / "clean", tmp_path / "whole", [*parts[0], *parts[1]]).ended() == 0
    assert tables(lake) == tables(tmp_path / "whole")
    ended = rows_with(lake, RUNS)
    assert [r["exit_code"] for r in ended] == [0, 0]
    assert all(r["lease"] for r in ended)


def until_one_reads(pair: list[Started]) -> None:
    """Wait for the first of them."""
    give_up = time.monotonic() + LONGEST
    while not any(started.said("scan") for started in pair):
        assert time.monotonic() < give_up
        time.sleep(0.02)


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
