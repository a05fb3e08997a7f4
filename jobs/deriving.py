"""From what was read to what it proves, for the touched clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from jobs.checking import check_snapshots
from jobs.concluding import write_conclusions
from jobs.histories import derive_histories
from jobs.ingesting import Ingested, observed
from jobs.progress import Progress
from jobs.reading import Run
from transforms.cluster_facts import cluster_facts
from transforms.derived import derive_clusters, row_count
from transforms.frames import to_frame, to_rows
from transforms.lake import Lake, in_clusters
from transforms.snapshot_checks import deviation_schema
from transforms.tables import (
    ACKNOWLEDGEMENTS,
    BATCHES,
    CAPTURES,
    DERIVATIONS,
    OBSERVATIONS,
    RECORDS,
    SNAPSHOT_CHECKS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
)

Row = dict[str, Any]


def derive(
    lake: Lake, clusters: Sequence[str], fresh: Ingested, run: Run, progress: Progress
) -> dict[str, str]:
    """Replace what is derived for the clusters. Returns the clusters that failed, with the reason.

    `fresh`: captures and observations that this run has read and will commit after this. What was derived
    before of a cluster that fails stays; table derivations says so.
    """
    captures = all_captures(lake, clusters, list(fresh.captures.values()))
    observations = lake.read(OBSERVATIONS).where(in_clusters(clusters)).drop("run_id", "loaded_at")
    if fresh.observations:
        observations = observations.unionByName(observed(lake, fresh.observations))
    read = {
        t.name: lake.read(t).where(in_clusters(clusters))
        for t in (BATCHES, RECORDS, SNAPSHOTS, SNAPSHOT_RECORDS, ACKNOWLEDGEMENTS)
    }
    checks = check_snapshots(lake, clusters, fresh.captures.values(), progress)
    deviations = to_frame(lake.spark, checks.deviations, deviation_schema())
    with progress.stage("derive", f"{len(clusters)} clusters"):
        facts = cluster_facts(captures, observations=observations, snapshot_deviations=deviations, **read)
        tasks = min(len(clusters), 4 * lake.spark.sparkContext.defaultParallelism)
        derived = derive_clusters(facts.repartition(tasks)).persist(StorageLevel.MEMORY_AND_DISK)
        told = to_rows(derived.select("cluster_id", "failure", row_count().alias("rows")))
        failed = {row["cluster_id"]: row["failure"] for row in told if row["failure"] is not None}
    done = [c for c in clusters if c not in failed]
    lake.create(ACKNOWLEDGEMENTS)
    if done:
        with progress.stage("write conclusions"):
            count = sum(row["rows"] for row in told)
            write_conclusions(lake, derived.where("failure IS NULL"), done, count)
            if checks.changed:
                rows = to_frame(lake.spark, checks.rows, SNAPSHOT_CHECKS.schema)
                lake.replace(SNAPSHOT_CHECKS, rows, clusters)
    derived.unpersist()
    if done:
        derive_histories(lake, done, progress, whole=not fresh.captures)
    failed = checks.failed | failed
    states = [{"cluster_id": c, "failure": failed.get(c), **run.columns} for c in clusters]
    lake.replace(DERIVATIONS, to_frame(lake.spark, states, DERIVATIONS.schema), clusters)
    return failed


def all_captures(lake: Lake, clusters: Sequence[str], uncommitted: list[Row]) -> DataFrame:
    """The captures of the clusters: those committed, and those that this run will commit."""
    stored = lake.read(CAPTURES).where(in_clusters(clusters))
    if not uncommitted:
        return stored
    fresh = to_frame(lake.spark, uncommitted, CAPTURES.schema)
    return (
        stored.join(fresh.select("capture_id"), "capture_id", "left_anti")
        .select(CAPTURES.names)
        .unionByName(fresh)
    )
