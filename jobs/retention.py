"""Retention: old captures expire; the lake then holds what it would hold without them.

A batch, record or checkpoint is deleted when no remaining capture holds it, and the tables are derived again.
The newest capture of a replica stays, however old it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.job import Job
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import rows_with
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.storage import begin_generation
from transforms.lake.tables import (
    BATCHES,
    CAPTURES,
    EXPIRED_CAPTURES,
    LOADED,
    RECORDS,
    RUNS,
    SEGMENTS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
)

SNAPSHOT = list(SNAPSHOTS.key)
NAMES = [c.name for c in EXPIRED_CAPTURES.columns if c not in LOADED]


def expire(job: Job, before: datetime) -> tuple[int, list[str]]:
    """Remove the captures made before a time. Returns how many, and their clusters.

    They are recorded as expired first, so that no run loads them again, and the next resumes a killed expiry.
    """
    lake = job.lake
    held = rows_with(lake.path, CAPTURES, NAMES)
    remembered = rows_with(lake.path, EXPIRED_CAPTURES, [*NAMES, "run_id"])
    known = {row["capture_id"] for row in remembered}
    killed = interrupted(lake)
    gone = [row for row in remembered if row["run_id"] in killed]
    gone += [row for row in expired(held, before) if row["capture_id"] not in known]
    clusters = sorted({row["cluster_id"] for row in gone})
    if not clusters:
        return 0, []
    with job.progress.stage("expire", f"{len(gone)} captures of {len(clusters)} clusters"):
        begin_generation(lake.path)
        stamped = [row | job.record.columns for row in gone]
        lake.put(EXPIRED_CAPTURES, stamped, by="capture_id")
        remove(lake, clusters)
    job.derive(clusters)
    return len(gone), clusters


def expired(captures: Iterable[Row], before: datetime) -> list[Row]:
    """The rows of captures made before a time, without the newest of each replica."""
    ordered = sorted(captures, key=lambda c: (c["captured_at"], c["capture_id"]))
    newest = {(c["cluster_id"], c["node_id"], c["directory_id"]): c["capture_id"] for c in ordered}
    staying = set(newest.values())
    return [c for c in ordered if c["captured_at"] < before and c["capture_id"] not in staying]


def interrupted(lake: Lake) -> set[str]:
    """The runs that did not finish."""
    return {
        r["run_id"] for r in rows_with(lake.path, RUNS, ["run_id", "exit_code"]) if r["exit_code"] is None
    }


def remove(lake: Lake, clusters: list[str]) -> None:
    """Delete what only expired captures of the clusters held, and the captures themselves last."""
    ours = in_clusters(clusters)
    gone = lake.read(EXPIRED_CAPTURES).where(ours).select("cluster_id", "capture_id").distinct()
    stay = lake.read(CAPTURES).where(ours).join(gone, ["cluster_id", "capture_id"], "left_anti")
    batches = lake.read(BATCHES).where(ours)
    lost = batches.join(held_runs(stay), is_held(), "left_anti").select(*BATCHES.key)
    lake.delete(BATCHES, lost, BATCHES.key)
    identity = ["cluster_id", "batch_base_offset", "leader_epoch", "batch_crc"]
    kept = lake.read(BATCHES).where(ours).withColumnsRenamed({"base_offset": identity[1], "crc": identity[3]})
    records = lake.read(RECORDS).where(ours).select(*identity).distinct()
    lake.delete(RECORDS, records.join(kept.select(*identity), identity, "left_anti"), identity)
    if lake.exists(SNAPSHOTS):
        staying = stay.select("cluster_id", F.explode("snapshots").alias("s")).select("cluster_id", "s.*")
        old = lake.read(SNAPSHOTS).where(ours).join(staying, SNAPSHOT, "left_anti").select(*SNAPSHOT)
        old = old.localCheckpoint()
        lake.delete(SNAPSHOT_RECORDS, old, SNAPSHOT)
        lake.delete(SNAPSHOTS, old, SNAPSHOT)
    lake.delete(SEGMENTS, gone, ["cluster_id", "capture_id"])
    lake.delete(CAPTURES, gone, ["cluster_id", "capture_id"])


def held_runs(captures: DataFrame) -> DataFrame:
    """The epoch ranges that replicas held in the captures."""
    replica = ("cluster_id", "node_id", "directory_id")
    runs = captures.select(*replica, F.explode("runs").alias("run"))
    return runs.select(
        *(F.col(c).alias(f"run_{c}") for c in replica),
        F.col("run.leader_epoch").alias("run_epoch"),
        F.col("run.first_offset").alias("run_first"),
        F.col("run.end_offset").alias("run_end"),
    )


def is_held() -> Column:
    """The condition that a batch lies in a range of held_runs."""
    return (
        (F.col("cluster_id") == F.col("run_cluster_id"))
        & (F.col("node_id") == F.col("run_node_id"))
        & (F.col("directory_id") == F.col("run_directory_id"))
        & (F.col("leader_epoch") == F.col("run_epoch"))
        & (F.col("base_offset") >= F.col("run_first"))
        & (F.col("base_offset") < F.col("run_end"))
    )
