"""Exactly once: a run killed at any moment and run again leaves the tables of one clean run."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from pathlib import Path

import pytest

from tests.long.processes import run, tables

KILLS = int(os.environ.get("KRAFTLAKE_KILLS", "20"))
MOST_IN_A_ROW = 6


@pytest.mark.long
def test_killed_at_random_moments(golden: Path, tmp_path: Path) -> None:
    """Runs that add captures to a lake that has some are killed, several in a row; then one may end.

    A moment lies in one of the stages, all equally likely: the short ones are those that commit.
    """
    seed = random.randrange(10**6)
    rnd, began = random.Random(seed), time.monotonic()

    def say(*words: object) -> None:
        print(f"{time.monotonic() - began:6.0f} s ", *words, flush=True)

    say("seed", seed)
    family = golden / "uncommitted-truncation"
    first, both = [family / "before"], [family, golden / "v4.4.0-mini"]
    begun, clean = tmp_path / "begun", tmp_path / "clean"
    assert run(tmp_path / "first", begun, first).ended() == 0
    shutil.copytree(begun, clean)
    whole = run(tmp_path / "whole", clean, both)
    assert whole.ended() == 0, whole.err.read_text()
    stages = json.loads(whole.out.read_text().splitlines()[-1])["stage_seconds"]
    stages.pop("session")
    assert {"scan", "write records", "derive", "write derived tables", "histories", "commit"} <= stages.keys()
    expected = tables(clean)
    assert sum(map(len, expected.values())) > 2000
    say("seconds of a clean run's stages:", stages)

    kills = attempts = lakes = 0
    while kills < KILLS:
        lakes += 1
        lake = tmp_path / f"lake-{lakes}"
        shutil.copytree(begun, lake)
        for _ in range(min(rnd.randint(1, MOST_IN_A_ROW), KILLS - kills)):
            attempts += 1
            stage = rnd.choice(list(stages))
            moment, only_python = rnd.uniform(0, stages[stage]), rnd.random() < 0.5
            again = run(tmp_path / f"run-{attempts}", lake, both, "--wait", "600")
            killed = again.until(stage) and again.kill_after(moment, only_python)
            kills += killed
            said = again.err.read_text().splitlines()[-1:]
            say(f"lake {lakes}:", f"kill {kills}" if killed else "ended", f"{stage} + {moment:.2f} s", said)
            if not killed:
                assert again.ended() == 0, again.err.read_text()
                break
        last = run(tmp_path / f"last-{lakes}", lake, both, "--wait", "600")
        assert last.ended() == 0, last.err.read_text()
        assert tables(lake) == expected
        say(f"lake {lakes}: equal")
        shutil.rmtree(lake)


@pytest.mark.long
def test_a_jvm_killed_at_random_moments(golden: Path, tmp_path: Path) -> None:
    """Python outlives Spark's JVM: the run ends well, or with one sentence; the next completes it."""
    seed = random.randrange(10**6)
    rnd, captures = random.Random(seed), [golden / "v4.4.0-mini"]
    print("seed", seed)
    clean = tmp_path / "clean"
    whole = run(tmp_path / "whole", clean, captures)
    assert whole.ended() == 0, whole.err.read_text()
    killed = 0
    for number in range(6):
        lake = tmp_path / f"lake-{number}"
        started = run(tmp_path / f"run-{number}", lake, captures)
        assert started.until("scan")
        time.sleep(rnd.uniform(0, 4))
        started.kill_jvm()
        code, said = started.ended(), started.err.read_text()
        assert code == 0 or (code == 75 and "Spark's JVM has ended" in said), said
        assert "Traceback" not in said
        killed += code == 75
        again = run(tmp_path / f"again-{number}", lake, captures, "--wait", "600")
        assert again.ended() == 0, again.err.read_text()
        assert tables(lake) == tables(clean)
    assert killed
