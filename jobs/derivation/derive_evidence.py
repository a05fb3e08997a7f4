"""What the facts of clusters prove, derived and written: here where there is little, else by Spark.

By Spark the query that gathers the facts and the replacement of a dozen small tables cost seconds each before
they move a row. On most nights there is little to derive, and few of the tables change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from jobs.captures.ingesting import Ingested, observed
from jobs.runtime.progress import Progress
from transforms.evidence.cluster_facts import cluster_facts
from transforms.evidence.facts_at_hand import facts_row
from transforms.lake.arrow_rows import arrow_schema, to_arrow, to_frame, to_rows
from transforms.lake.delta_rs import count_rows
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.tables import (
    ACKNOWLEDGEMENTS,
    BATCHES,
    CAPTURES,
    OBSERVATIONS,
    RECORDS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
    Table,
)
from transforms.quality.derived import DERIVED, derive_at_hand, derive_clusters, rows_of
from transforms.quality.snapshot_checks import deviation_schema

Row = dict[str, Any]
# With more there is work for several processes.
MOST_CLUSTERS = 8
MOST_BATCHES = 1_000_000


def conclude(
    lake: Lake, clusters: Sequence[str], fresh: Ingested, deviations: Sequence[Row], progress: Progress
) -> dict[str, str]:
    """Replace the rows of the clusters in the tables DERIVED. Returns those that failed, with the reason.

    `fresh`: what this run has read and will commit. `deviations`: of checkpoints from the log (rule 22).
    """
    if is_little(lake.path, clusters):
        return conclude_at_hand(lake, clusters, fresh, deviations, progress)
    return conclude_by_spark(lake, clusters, fresh, deviations, progress)


def is_little(lake: Path, clusters: Sequence[str]) -> bool:
    """Whether one process is the quickest."""
    return len(clusters) <= MOST_CLUSTERS and count_rows(lake, BATCHES, cluster_id=clusters) <= MOST_BATCHES


# --- in this process ---


def conclude_at_hand(
    lake: Lake, clusters: Sequence[str], fresh: Ingested, deviations: Sequence[Row], progress: Progress
) -> dict[str, str]:
    with progress.stage("derive", f"{len(clusters)} clusters"):
        derived = derive_at_hand(facts_readers(lake, clusters, fresh, deviations))
    failed = failures(derived.select(["cluster_id", "failure"]).to_pylist())
    done = [c for c in clusters if c not in failed]
    with progress.stage("write conclusions"), ThreadPoolExecutor(4) as threads:
        good = derived.filter(pc.is_null(derived["failure"])).combine_chunks()
        list(threads.map(lambda table: lake.replace_few(table, rows_at_hand(good, table), done), DERIVED))
    return failed


def facts_readers(
    lake: Lake, clusters: Sequence[str], fresh: Ingested, deviations: Sequence[Row]
) -> dict[str, Callable[[], Row]]:
    """What reads the facts of each cluster, from the lake and from what this run will commit."""
    captures = by_cluster(as_stored(fresh.captures.values(), CAPTURES))
    observations = by_cluster(as_stored(fresh.observations, OBSERVATIONS))
    deviating = by_cluster(deviations)
    return {c: partial(facts_row, lake.path, c, captures[c], observations[c], deviating[c]) for c in clusters}


def as_stored(rows: Iterable[Row], table: Table) -> list[Row]:
    """The rows as the table will give them back."""
    return to_arrow(rows, table.schema).to_pylist()


def by_cluster(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["cluster_id"]].append(row)
    return found


def rows_at_hand(derived: pa.Table, table: Table) -> pa.Table:
    """The rows of one table."""
    rows = derived[table.name].combine_chunks()
    clusters = derived["cluster_id"].combine_chunks().take(pc.list_parent_indices(rows))
    held = pc.list_flatten(rows)
    columns = {"cluster_id": clusters} | {n: held.field(n) for n in table.names if n != "cluster_id"}
    return pa.table(columns).select(table.names).cast(arrow_schema(table.schema))


# --- by Spark ---


def conclude_by_spark(
    lake: Lake, clusters: Sequence[str], fresh: Ingested, deviations: Sequence[Row], progress: Progress
) -> dict[str, str]:
    with progress.stage("derive", f"{len(clusters)} clusters"):
        facts = gathered_facts(lake, clusters, fresh, deviations)
        tasks = min(len(clusters), 4 * lake.spark.sparkContext.defaultParallelism)
        derived = derive_clusters(facts.repartition(tasks)).persist(StorageLevel.MEMORY_AND_DISK)
        failed = failures(to_rows(derived.select("cluster_id", "failure").where("failure IS NOT NULL")))
    done = [c for c in clusters if c not in failed]
    if done:
        with progress.stage("write conclusions"), ThreadPoolExecutor(4) as threads:
            good = derived.where("failure IS NULL")
            list(threads.map(lambda table: lake.replace(table, rows_of(good, table), done), DERIVED))
    derived.unpersist()
    return failed


def gathered_facts(
    lake: Lake, clusters: Sequence[str], fresh: Ingested, deviations: Sequence[Row]
) -> DataFrame:
    """The facts of the clusters, from the lake and from what this run will commit."""
    observations = lake.read(OBSERVATIONS).where(in_clusters(clusters)).drop("run_id", "loaded_at")
    if fresh.observations:
        observations = observations.unionByName(observed(lake, fresh.observations))
    read = {
        t.name: lake.read(t).where(in_clusters(clusters))
        for t in (BATCHES, RECORDS, SNAPSHOTS, SNAPSHOT_RECORDS, ACKNOWLEDGEMENTS)
    }
    return cluster_facts(
        all_captures(lake, clusters, list(fresh.captures.values())),
        observations=observations,
        snapshot_deviations=to_frame(lake.spark, deviations, deviation_schema()),
        **read,
    )


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


def failures(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The clusters that could not be derived, with the reason."""
    return {row["cluster_id"]: row["failure"] for row in rows if row["failure"] is not None}
