"""Rows deleted for good: of expired captures and forgotten clusters; a killed removal is completed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.runtime.progress import Counted, Progress
from transforms.lake.arrow_rows import Row
from transforms.lake.commits import TableWriter, just_removed
from transforms.lake.delta_rs import among, exists, rows_with
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    BATCHES,
    BROKER_DIRECTORIES,
    CAPTURES,
    DERIVATIONS,
    EXPIRED_CAPTURES,
    METADATA_TRANSACTIONS,
    RECORDS,
    REPLAYS,
    RUNS,
    SEGMENTS,
    SNAPSHOT_CHECKS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
    TABLES,
    Table,
)
from transforms.quality.derived_counts import begun, removed

SNAPSHOT = list(SNAPSHOTS.key)
# The row of derivations goes last: until then, begun_by says that the others may be half done.
OF_CLUSTERS = (*(table for table in TABLES if table not in (RUNS, DERIVATIONS)), DERIVATIONS)
DERIVED = (*(t for t in TABLES if t.recomputed), SNAPSHOT_CHECKS, METADATA_TRANSACTIONS, REPLAYS, DERIVATIONS)


def complete_removals(lake: Lake, progress: Progress) -> None:
    """Remove what interrupted runs began to remove. What is derived from the rest is another step."""
    changed = begun(lake.path)
    if not changed:
        return
    forgotten = in_order_of_removal(removed(lake.path))
    names = ["cluster_id", "capture_id"]
    held = [
        row
        for table in (CAPTURES, BROKER_DIRECTORIES)
        for row in rows_with(lake.path, table, names, cluster_id=changed)
    ]
    expired = {row["capture_id"] for row in rows_with(lake.path, EXPIRED_CAPTURES, ["capture_id"])}
    expiring = sorted({row["cluster_id"] for row in held if row["capture_id"] in expired})
    if forgotten or expiring:
        with progress.stage("complete removals"):
            for cluster in forgotten:
                remove_cluster(lake.writer, cluster)
            if expiring:
                remove_expired(lake, expiring)


def in_order_of_removal(clusters: Iterable[str]) -> list[str]:
    """An id after its lives: while one of them is left, so is the note that the id is removed."""
    return sorted(clusters, reverse=True)


def remove_cluster(writer: TableWriter, cluster: str, counted: Counted | None = None) -> None:
    """Delete the rows of a cluster from every table. counted: counts the tables.

    captures and segments go first: if this is killed, a run that brings the captures again reads them again.
    """
    _forget_in_runs(writer, cluster)
    *others, last = OF_CLUSTERS
    remove_rows(writer, (counted or Counted()).each(others, len(OF_CLUSTERS)), [cluster])
    if exists(writer.lake, last):
        writer.remove_where(last, among({"cluster_id": [cluster]}), last_of=cluster)


def is_forgotten(lake: Location, cluster: str) -> bool:
    """Whether this run completed the removal of a cluster, or an interrupted one did."""
    return just_removed(lake, DERIVATIONS, cluster)


def remove_derived(lake: Lake, clusters: Sequence[str]) -> None:
    """Delete the derived rows of clusters of which there is no capture."""
    remove_rows(lake.writer, DERIVED, clusters)


def remove_rows(writer: TableWriter, tables: Iterable[Table], clusters: Sequence[str]) -> None:
    for table in tables:
        if exists(writer.lake, table):
            writer.remove_where(table, among({"cluster_id": clusters}))


def _forget_in_runs(writer: TableWriter, cluster: str) -> None:
    """Delete what the rows of runs say about a cluster."""
    changed: list[Row] = []
    for row in rows_with(writer.lake, RUNS):
        failed, reported = row["failed_clusters"] or (), row["reported_findings"] or ()
        others = {
            "failed_clusters": [(name, reason) for name, reason in failed if name != cluster],
            "reported_findings": [f for f in reported if f["cluster_id"] != cluster],
        }
        if sum(map(len, others.values())) < len(failed) + len(reported):
            changed.append(row | others)
    if changed:
        writer.put(RUNS, changed, by="run_id")


def remove_expired(lake: Lake, clusters: list[str]) -> None:
    """Delete what only expired captures of the clusters held, and the captures themselves last.

    Where none of these is left, but for copies of brokers' directories, all else is gone: Spark is not asked.
    """
    rows = rows_with(lake.path, EXPIRED_CAPTURES, ["capture_id"], cluster_id=clusters)
    expired = {row["capture_id"] for row in rows}
    if lake.exists(BROKER_DIRECTORIES):
        lake.writer.remove_where(BROKER_DIRECTORIES, among({"cluster_id": clusters, "capture_id": expired}))
    held = rows_with(lake.path, CAPTURES, ["cluster_id"], cluster_id=clusters, capture_id=expired)
    clusters = sorted({row["cluster_id"] for row in held})
    if not clusters:
        return
    ours = in_clusters(clusters)
    capture = ["cluster_id", "capture_id"]
    gone = lake.read(EXPIRED_CAPTURES).where(ours).select(*capture).distinct()
    stay = lake.read(CAPTURES).where(ours).join(gone, capture, "left_anti")
    batches = lake.read(BATCHES).where(ours)
    lake.keep(BATCHES, batches.join(held_runs(stay), is_held(), "left_semi"), clusters)
    identity = ["cluster_id", "batch_base_offset", "leader_epoch", "batch_crc"]
    kept = lake.read(BATCHES).where(ours).withColumnsRenamed({"base_offset": identity[1], "crc": identity[3]})
    records = lake.read(RECORDS).where(ours)
    lake.keep(RECORDS, records.join(kept.select(*identity).distinct(), identity, "left_semi"), clusters)
    if lake.exists(SNAPSHOTS):
        staying = stay.select("cluster_id", F.explode("snapshots").alias("s")).select("cluster_id", "s.*")
        for table in (SNAPSHOT_RECORDS, SNAPSHOTS):
            lake.keep(table, lake.read(table).where(ours).join(staying, SNAPSHOT, "left_semi"), clusters)
    for table in (SEGMENTS, CAPTURES):
        lake.keep(table, lake.read(table).where(ours).join(gone, capture, "left_anti"), clusters)


def held_runs(captures: DataFrame) -> DataFrame:
    """The epoch ranges that replicas held in the captures."""
    replica = ("cluster_id", "node_id", "directory_id")
    runs = captures.select(*replica, F.explode("epoch_ranges").alias("run"))
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
