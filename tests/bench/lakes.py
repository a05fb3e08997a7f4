"""Jobs of the command line run by the bench in its own process, and what they say of themselves."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
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
    """Run a job over captures. Returns its JSON line; `seconds` does not count a session that is open."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main([verb, "--lake", str(lake), "--captures", *map(str, captures)])
    if code:
        raise RuntimeError(f"kraftlake {verb} ended with {code}: {out.getvalue()}")
    return json.loads(out.getvalue().strip().splitlines()[-1])


def ingest_seconds(bench: Bench, *captures: Path) -> float:
    """Wall seconds of an ingest into a new lake, the session not counted."""
    assert bench.spark
    return reported(new_lake(bench), "ingest", *captures)["seconds"]


def commits(lake: Path) -> dict[str, int]:
    """How many commits each table has."""
    return {log.parent.name: len(list(log.glob("*.json"))) for log in lake.glob("*/_delta_log")}
