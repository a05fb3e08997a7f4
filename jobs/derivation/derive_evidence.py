"""Derive what the captures of clusters prove, and write it: in the driver, or by Spark.

Clusters are read in groups (transforms.evidence.cluster_facts). One group is derived in the driver: a
Spark query and Spark's replacement of a dozen small tables cost seconds each before they move a row, and most
nights bring little. Several groups are derived in Spark's tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel

from jobs.captures.ingest import PendingCommit
from jobs.runtime.progress import Counted, Progress
from kraft_core.wording import count
from transforms.evidence.cluster_facts import ClusterGroup, FreshRows, cluster_groups
from transforms.evidence.pinned_tables import PinnedTables
from transforms.lake.arrow_rows import to_arrow
from transforms.lake.lake import Lake
from transforms.lake.tables import CAPTURES, OBSERVATIONS, Table
from transforms.quality.derived import DERIVED, derive_by_spark, derive_in_driver, table_frame, table_rows

Row = dict[str, Any]
WRITERS = 4


def derive_evidence(
    lake: Lake, clusters: Sequence[str], fresh: PendingCommit, deviations: Sequence[Row], progress: Progress
) -> dict[str, str]:
    """Replace the rows of the clusters in the tables DERIVED. Returns those that failed, with the reason.

    `fresh`: what this run has read and will commit. `deviations`: of checkpoints from the log (rule 22).
    """
    tables = PinnedTables.newest(lake.path)
    groups = cluster_groups(tables, clusters, fresh_rows(clusters, fresh, deviations))
    if not groups:
        return {}
    if len(groups) == 1:
        return _derive_in_driver(lake, tables, groups[0], progress)
    return _derive_by_spark(lake, tables, groups, progress)


def fresh_rows(
    clusters: Iterable[str], fresh: PendingCommit, deviations: Iterable[Row]
) -> dict[str, FreshRows]:
    """By cluster the rows that this run will commit, as their tables will return them."""
    captures = _by_cluster(_as_stored(fresh.captures.values(), CAPTURES))
    observations = _by_cluster(_as_stored(fresh.observations, OBSERVATIONS))
    deviating = _by_cluster(deviations)
    return {c: FreshRows(captures[c], observations[c], deviating[c]) for c in clusters}


def _as_stored(rows: Iterable[Row], table: Table) -> list[Row]:
    return to_arrow(rows, table.arrow_schema).to_pylist()


def _by_cluster(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    """The rows of each cluster, without its id."""
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["cluster_id"]].append({name: row[name] for name in row if name != "cluster_id"})
    return found


def _derive_in_driver(
    lake: Lake, tables: PinnedTables, group: ClusterGroup, progress: Progress
) -> dict[str, str]:
    counted = Counted()
    with progress.stage("derive", _count(group.clusters), counted, "clusters"):
        derived = derive_in_driver(tables, group, lambda rows: counted.each(rows, len(group.clusters)))
    failed = _failures(derived.select(["cluster_id", "failure"]))
    done = [c for c in group.clusters if c not in failed]
    good = derived.filter(pc.is_null(derived["failure"])).combine_chunks()

    def write(table: Table) -> None:
        lake.replace_few(table, table_rows(good, table), done)

    if done:
        _write_each(write, progress)
    return failed


def _derive_by_spark(
    lake: Lake, tables: PinnedTables, groups: Sequence[ClusterGroup], progress: Progress
) -> dict[str, str]:
    clusters = [cluster for group in groups for cluster in group.clusters]
    with progress.stage("derive", _count(clusters)):
        derived = derive_by_spark(lake.spark, tables, groups).persist(StorageLevel.MEMORY_AND_DISK)
        failed = _failures(derived.select("cluster_id", "failure").where("failure IS NOT NULL").toArrow())
    done = [c for c in clusters if c not in failed]
    good = derived.where("failure IS NULL")

    def write(table: Table) -> None:
        lake.replace(table, table_frame(good, table), done)

    if done:
        _write_each(write, progress)
    derived.unpersist()
    return failed


def _write_each(write: Callable[[Table], None], progress: Progress) -> None:
    """Write all derived tables."""
    written: list[Table] = []

    def write_one(table: Table) -> None:
        write(table)
        written.append(table)

    stage = progress.stage("write derived tables", "", lambda: (len(written), len(DERIVED)), "tables")
    with stage, ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(write_one, DERIVED))


def _count(clusters: Sequence[str]) -> str:
    return count(len(clusters), "cluster")


def _failures(rows: pa.Table) -> dict[str, str]:
    """The clusters that could not be derived, with the reason."""
    return {row["cluster_id"]: row["failure"] for row in rows.to_pylist() if row["failure"] is not None}
