"""A run with nothing new: over without Spark, and only its own row is written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.jobs.lakes import report, versions
from transforms.lake.arrow_rows import to_rows
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, RUNS

# A process in which no JVM can be started.
COMMAND = """
import sys
from pyspark import java_gateway
from jobs.cli import main
del java_gateway.launch_gateway
sys.exit(main(sys.argv[1:]))
"""


def test_it_starts_no_spark_and_notes_itself(
    lake: Any, golden_captures: list[Path], golden: Path, tmp_path: Path
) -> None:
    """In a process that could not start one; the directories come in another order, and one twice."""
    before = versions(lake)
    shutil.copytree(golden / "dynamic-membership/node-2", tmp_path / "elsewhere")
    captures = [*golden_captures[::-1], tmp_path]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "run", "--lake", str(lake.path), "--captures", *map(str, captures)],
        capture_output=True,
        text=True,
        check=True,
    )
    said = report(done.stdout)
    assert (said["captures"], said["captures_read"], said["touched_clusters"]) == (56, 0, 0)
    assert versions(lake) == before
    noted = [r for r in to_rows(lake.read(RUNS)) if r["run_id"] == said["run_id"]]
    assert [(r["job"], r["exit_code"], dict(r["counts"])["captures"]) for r in noted] == [("run", 0, 56)]


def test_rows_without_a_session_are_those_of_spark(lake: Any) -> None:
    clusters = {r["cluster_id"] for r in to_rows(lake.read(CAPTURES).select("cluster_id"))}
    chosen = sorted(clusters)[:2]
    alone = rows_with(lake.path, CAPTURES, cluster_id=chosen)
    by_spark = to_rows(lake.read(CAPTURES).where(f"cluster_id IN {tuple(chosen)}"))
    assert len(alone) > 2
    assert sorted(alone, key=lambda r: r["capture_id"]) == sorted(by_spark, key=lambda r: r["capture_id"])
    assert rows_with(lake.path, CAPTURES, cluster_id=["no such cluster"]) == []
