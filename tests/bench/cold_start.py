"""What people wait for before the first row: whole processes, beside the plainest script for the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from jobs.cli import VERBS
from jobs.runtime.jars import jars
from tests.bench.frame import ROUNDS, Bench, Row, best, seconds
from tests.bench.inputs import made

CHECKOUT = Path(__file__).parents[2]
GOLDEN = CHECKOUT / "tests" / "golden"
KNOWN = ("dynamic-membership", "uncommitted-truncation")
NEW = "v4.4.0-mini"
PLAIN = """
import sys
from pyspark.sql import SparkSession
lake, jars = sys.argv[1:]
spark = (
    SparkSession.builder.config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
sets = spark.read.format("delta").load(f"{lake}/voter_sets")
sets.orderBy("cluster_id", "offset", "leader_epoch").show(100, truncate=False)
"""


def rows(bench: Bench) -> Iterator[Row]:
    """A question, a run with one new capture, and help; the archive of classes is made before."""
    lake = _lake(bench)
    ask = ("sql", "SELECT * FROM voter_history", "--lake", lake)
    _kraftlake(*ask)
    words = [sys.executable, "-c", PLAIN, lake, ",".join(map(str, jars()))]
    plain = median(seconds(lambda: _process(words)) for _ in range(ROUNDS))
    asked = median(seconds(lambda: _kraftlake(*ask)) for _ in range(ROUNDS))
    detail = f"{asked:.1f} s, {plain:.1f} s"
    yield Row(
        "kraftlake sql / a plain script that prints the rows", asked / plain, at_most=0.25, detail=detail
    )
    run = median(_run_seconds(lake, bench.folder / "cold-run") for _ in range(ROUNDS))
    detail = f"{run:.1f} s, {plain:.1f} s"
    # 0.6 of what it was before the JVM started directly, with an archive of classes: 14.6 s beside 16.1 s.
    yield Row("kraftlake run, one new capture / the same script", run / plain, at_most=0.54, detail=detail)
    helped = {verb: best(partial(_help_seconds, verb)) for verb in VERBS}
    slowest = max(helped, key=lambda verb: helped[verb])
    yield Row("slowest --help", helped[slowest], "s", at_most=0.3, detail=slowest)


def _lake(bench: Bench) -> Path:
    captures = [GOLDEN / name for name in KNOWN]
    return made(
        bench.folder / "cold-lake",
        lambda path: _kraftlake("run", "--captures", *captures, "--lake", path, "--fail-on", "never"),
    )


def _run_seconds(lake: Path, copy: Path) -> float:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(lake, copy)
    words = ("run", "--captures", GOLDEN / NEW, "--lake", copy, "--fail-on", "never")
    return seconds(lambda: _kraftlake(*words))


def _help_seconds(verb: str) -> float:
    return seconds(lambda: _kraftlake(verb, "--help"))


def _kraftlake(*words: str | Path) -> None:
    _process([sys.executable, "-m", "jobs.cli", *words])


def _process(words: list[str | Path]) -> None:
    """Run a process until it ends; its JVM may outlive it by what it takes to clean up."""
    subprocess.run(
        list(map(str, words)),
        cwd=CHECKOUT,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
