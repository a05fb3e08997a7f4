"""Exactly once: a run killed at any moment and run again leaves the tables of one clean run."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from tests.long.processes import run, tables

KILLS = int(os.environ.get("KRAFTLAKE_KILLS", "20"))


@pytest.mark.long
def test_killed_at_random_moments(golden: Path, tmp_path: Path) -> None:
    """Each run adds captures to a lake that has some; it is killed and repeated until it ends by itself."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rnd = random.Random(seed)
    family = golden / "uncommitted-truncation"
    first, both = [family / "before"], [family, golden / "v4.4.0-mini"]
    begun, clean = tmp_path / "begun", tmp_path / "clean"
    assert run(tmp_path / "first", begun, first).ended() == 0
    shutil.copytree(begun, clean)
    whole = run(tmp_path / "whole", clean, both)
    assert whole.until("scan")
    began = time.monotonic()
    assert whole.ended() == 0
    took = time.monotonic() - began
    expected = tables(clean)
    assert sum(map(len, expected.values())) > 2000
    kills = attempts = 0
    while kills < KILLS:
        lake = tmp_path / f"lake-{kills}"
        shutil.copytree(begun, lake)
        killed = True
        while killed:
            attempts += 1
            again = run(tmp_path / f"run-{attempts}", lake, both, "--wait", "600")
            killed = again.until("scan") and again.kill_after(
                rnd.uniform(0, took), only_python=rnd.random() < 0.5
            )
            kills += killed
            print(attempts, "killed" if killed else "ended", again.err.read_text().splitlines()[-1:])
        assert again.ended() == 0, again.err.read_text()
        assert tables(lake) == expected
        shutil.rmtree(lake)
