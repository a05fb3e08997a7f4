"""Lakes made by the command line inside this process, so that all tests share one Spark session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobs.cli import main
from transforms.frames import to_rows
from transforms.lake import Lake, existing_lake
from transforms.tables import TABLES

# Columns that say when a row was written, and by which run.
OF_THE_RUN = {"run_id", "loaded_at"}


def run(lake: Path, *captures: Path, verb: str = "run", flags: tuple[str, ...] = ()) -> int:
    """kraftlake run over captures. Returns the exit code."""
    return main([verb, "--lake", str(lake), "--captures", *map(str, captures), *flags])


def report(out: str) -> dict[str, Any]:
    """The JSON line at the end of a job's output."""
    return json.loads(out.strip().splitlines()[-1])


def opened(spark: Any, path: Path) -> Lake:
    return existing_lake(spark, path)


def content(lake: Lake) -> dict[str, list[str]]:
    """Every row of every table but `runs`, sorted, without the columns of the run."""
    tables = {}
    for table in TABLES:
        if table.name != "runs":
            columns = [n for n in table.names if n not in OF_THE_RUN]
            tables[table.name] = sorted(repr(r) for r in to_rows(lake.read(table).select(columns)))
    return tables


def versions(lake: Lake) -> dict[str, int]:
    """The Delta version of every table but `runs`."""
    found = {}
    for table in TABLES:
        if table.name != "runs" and lake.exists(table):
            log = lake.path / table.name / "_delta_log"
            found[table.name] = max(int(f.stem) for f in log.glob("*.json"))
    return found
