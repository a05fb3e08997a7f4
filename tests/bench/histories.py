"""From records to histories, beside the ingest of the same log; the image of a moment from the histories."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.cli import main
from jobs.histories import derive_histories
from jobs.lake_source import open_cluster
from jobs.progress import Progress
from tests.bench.frame import Bench, Row, seconds
from tests.bench.inputs import mixed_log
from tests.bench.lakes import new_lake, reported
from transforms.delta_rs import rows_with
from transforms.lake import existing_lake
from transforms.tables import CAPTURES, PARTITIONS


def rows(bench: Bench) -> Iterator[Row]:
    """A log of many partitions; a second derivation, which has nothing to do; one offset of it."""
    records = bench.size(10_000_000, 100_000)
    log = mixed_log(bench, records)
    path = new_lake(bench)
    ingest_cpu, ingest = with_cpu(bench, lambda: reported(path, "ingest", log))
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["derive", "--lake", str(path)]) == 0
    lake = existing_lake(bench.spark, path)
    (cluster,) = {row["cluster_id"] for row in rows_with(path, CAPTURES, ["cluster_id"])}

    def derive(whole: bool) -> None:
        derive_histories(lake, [cluster], Progress(), whole=whole)

    cpu, took = with_cpu(bench, lambda: derive(whole=True))
    versions = lake.read(PARTITIONS).count()
    detail = f"{took:.1f} s, {cpu:.0f} CPU-s, {versions:,} versions of partitions; ingest {ingest:.1f} s"
    yield Row(f"histories / ingest, {records:,} records", took / ingest, detail=detail)
    yield Row(f"histories / ingest, CPU, {records:,} records", cpu / ingest_cpu, detail=f"{cpu:.0f} CPU-s")
    yield Row("histories of a log that is as it was", seconds(lambda: derive(whole=False)), "s", at_most=1)
    asked = f"cluster_id = '{cluster}' AND valid_from_offset <= {records // 2} AND " + (
        f"(valid_to_offset IS NULL OR valid_to_offset > {records // 2})"
    )
    standing = lake.read(PARTITIONS).where(asked)
    took = seconds(standing.count)
    yield Row(f"partitions as of an offset, {standing.count():,}", took, "s", at_most=10)
    image = seconds(lambda: open_cluster(path, None).image_at(records // 2))
    yield Row("image of an offset without Spark", image, "s", detail="what kraftlake shell --lake reads")


def with_cpu(bench: Bench, work: Any) -> tuple[float, float]:
    """CPU seconds of this process and its JVM, wall seconds."""
    jvm = int(bench.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    before = cpu_seconds(jvm) + cpu_seconds(os.getpid())
    took = seconds(work)
    return cpu_seconds(jvm) + cpu_seconds(os.getpid()) - before, took


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
