"""maintain and forget: what goes leaves a lake as if it had never been there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.lakes import report
from tests.jobs.lakes import run as run_here
from tests.long.processes import tables
from transforms.lake.delta_rs import rows_with, small_files
from transforms.lake.tables import BATCHES, CAPTURES, EXPIRED_CAPTURES, RECORDS, TABLES

FAMILY = "iWP35uOsShu1pFlBJh_E7w"
# Between the two captures of each replica in golden/uncommitted-truncation.
BETWEEN = "2026-11-21T09:15:50Z"


def verb(*words: Any) -> int:
    from jobs.cli import main

    return main([str(w) for w in words])


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_old_captures_expire(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lake is then that of the captures that stay; the others are not loaded again."""
    lake, mini = tmp_path / "lake", golden / "v4.4.0-mini"
    captures = [golden / "uncommitted-truncation/before", golden / "uncommitted-truncation/after", mini]
    assert run_here(lake, *captures) == 0
    held = {r["capture_id"] for r in rows_with(lake, CAPTURES)}
    assert verb("maintain", "--lake", lake, "--keep-days", 0, "--now", BETWEEN) == 0
    expired = {r["capture_id"] for r in rows_with(lake, EXPIRED_CAPTURES)}
    stay = {r["capture_id"] for r in rows_with(lake, CAPTURES)}
    assert len(expired) > 2
    assert held == stay | expired
    assert not stay & expired

    assert run_here(tmp_path / "clean", captures[1], mini) == 0
    assert without_expired(tables(lake)) == without_expired(tables(tmp_path / "clean"))
    capsys.readouterr()
    before = tables(lake)
    assert run_here(lake, *captures) == 0
    assert report(capsys.readouterr().out)["captures_read"] == 0
    assert tables(lake) == before


def without_expired(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: rows for name, rows in found.items() if name != EXPIRED_CAPTURES.name}


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_cluster_is_forgotten(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of it is left in any file of the newest versions; loaded again it is as it was."""
    lake, family, mini = tmp_path / "lake", golden / "uncommitted-truncation/before", golden / "v4.4.0-mini"
    assert run_here(lake, family, mini) == 0
    whole = tables(lake)
    capsys.readouterr()
    assert verb("forget", "--lake", lake, "--cluster", FAMILY) == 0
    said = capsys.readouterr().out
    records = sum(FAMILY in row for row in whole[RECORDS.name])
    assert f"removed {records} rows of records" in said
    assert json.loads(said.splitlines()[-1])["records"] == records
    assert not [row for rows in tables(lake).values() for row in rows if FAMILY in row]
    assert not [row for row in rows_with(lake, TABLES[0]) if FAMILY in repr(row)]
    assert run_here(tmp_path / "clean", mini) == 0
    assert tables(lake) == tables(tmp_path / "clean")
    assert run_here(lake, family) == 0
    assert tables(lake) == whole
    assert verb("forget", "--lake", lake, "--cluster", "nobody") == 2


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_maintain_joins_small_files(golden: Path, tmp_path: Path) -> None:
    lake, family = tmp_path / "lake", golden / "uncommitted-truncation/before"
    for node in sorted(family.glob("node-*")):
        assert run_here(lake, node) == 0
    before = tables(lake)
    assert small_files(lake, BATCHES, 1 << 20) > 1
    began = time.monotonic()
    assert verb("maintain", "--lake", lake) == 0
    print(f"maintain took {time.monotonic() - began:.0f} s")
    assert {t.name: small_files(lake, t, 1 << 20) for t in TABLES if small_files(lake, t, 1 << 20) > 1} == {}
    assert tables(lake) == before
