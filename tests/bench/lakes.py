"""Jobs of the command line run by the bench, and what they say of themselves."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from jobs.cli import main
from tests.bench.frame import Bench


def new_lake(bench: Bench) -> Path:
    """A path for a lake, cleared of what was there."""
    path = bench.folder / "lake"
    shutil.rmtree(path, ignore_errors=True)
    return path


def reported(lake: Path, verb: str, *captures: Path) -> dict[str, Any]:
    """Run a job over captures in this process. Returns its JSON line.

    Its `seconds` do not count an open session.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([verb, "--lake", str(lake), "--captures", *map(str, captures)])
    if code:
        raise RuntimeError(f"kraftlake {verb} ended with {code}: {out.getvalue()}")
    return json.loads(out.getvalue().strip().splitlines()[-1])


def ingest_seconds(bench: Bench, *captures: Path) -> float:
    """Wall seconds of an ingest into a new lake, by a process whose session's start is not counted.

    The verb opens another session than the bench: its JVM compiles less.
    """
    words = [sys.executable, "-m", "jobs.cli", "ingest", "--master", "local[2]"]
    words += ["--lake", new_lake(bench), "--captures", *captures]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"kraftlake ingest ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def commits(lake: Path) -> dict[str, int]:
    """How many commits each table has."""
    return {log.parent.name: len(list(log.glob("*.json"))) for log in lake.glob("*/_delta_log")}
