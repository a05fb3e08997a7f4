"""Histories of the metadata for the touched clusters, from the first offset at which anything changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from jobs.runtime.progress import Progress
from kraft_core.image.change import RefusedRecord
from kraft_core.wording import count
from transforms.histories import partition_replay
from transforms.histories.other_kinds import OTHERS, count_others, other_versions
from transforms.histories.partition_replay import changed_partitions, count_partitions
from transforms.histories.partition_shares import Share, in_shares
from transforms.histories.refused_records import OfCluster, changed_rows
from transforms.histories.replay_plan import ReplayPlan, lowest_start, replaced_by, replays
from transforms.histories.replay_steps import step_row
from transforms.histories.replay_tasks import RefusedInTasks, others_by_tasks, partitions_by_tasks
from transforms.lake.arrow_rows import moment
from transforms.lake.delta_rs import among
from transforms.lake.isolation import apart
from transforms.lake.lake import Lake
from transforms.lake.spark_tasks import in_groups
from transforms.lake.tables import METADATA_TRANSACTIONS, PARTITIONS, REFUSED_RECORDS, REPLAYS, Table

Row = dict[str, Any]
# A second's work, which the driver does: more goes to Spark's tasks. Of partitions it is one bucket.
OTHERS_IN_DRIVER, PARTITIONS_IN_DRIVER = 20_000, partition_replay.TOGETHER
# Events of partitions in the time that any cluster takes.
PARTITIONS_OF_CLUSTER = 400


@dataclass(slots=True)
class Histories:
    """failed: clusters whose histories could not be made, with the reason; some are older, some new.

    refusing: those of which other records than before are refused by Kafka's replay (table refused_records).
    """

    failed: dict[str, str]
    refusing: list[str]


def derive_histories(
    lake: Lake, clusters: Sequence[str], progress: Progress, whole: Collection[str] = ()
) -> Histories:
    """Write the histories of the clusters whose replay path is not what they were last made from.

    whole: those that are made again from the beginning, whatever they were made from. The table replays,
    written last, is the mark that all histories are whole.
    """
    refusing: set[str] = set()

    def write(some: Sequence[str]) -> None:
        plans = replays(lake.path, some, whole)
        if plans:
            refusing.update(write_histories(lake, plans))

    with progress.stage("histories", count(len(clusters), "cluster")):
        failed = apart(clusters, write)
    reasons = {cluster: f"replaying its histories failed: {reason}" for cluster, reason in failed.items()}
    return Histories(reasons, sorted(refusing))


def write_histories(lake: Lake, plans: Sequence[ReplayPlan]) -> list[str]:
    """Partitions come last: they end with their topics, which are read from the lake.

    Returns the clusters whose rows of refused_records changed.
    """
    lowest = lowest_start(plans)
    found: set[OfCluster] = set()

    def refused(cluster: str, records: Sequence[RefusedRecord]) -> None:
        found.update((cluster, record) for record in records)

    sizes = count_others(lake.path, plans)
    if sizes.total() <= OTHERS_IN_DRIVER:
        write_changed(lake, plans, other_versions(lake.path, plans, lowest, refused))
    else:
        in_tasks = RefusedInTasks(lake.spark)
        write_others_by_tasks(lake, plans, grouped(plans, sizes, OTHERS_IN_DRIVER), in_tasks)
        found |= in_tasks.found
    sizes = count_partitions(lake.path, plans)
    work = Counter({cluster: size + PARTITIONS_OF_CLUSTER for cluster, size in sizes.items()})
    if work.total() <= PARTITIONS_IN_DRIVER:
        share = Share(plans, sizes.total())
        write_changed(lake, plans, changed_partitions(lake.path, share, lowest, refused))
    else:
        in_tasks = RefusedInTasks(lake.spark)
        groups = grouped(plans, work, PARTITIONS_IN_DRIVER)
        shares = in_shares(groups, sizes, lake.spark.sparkContext.defaultParallelism)
        write = lake.task_writer(PARTITIONS)
        files = partitions_by_tasks(lake.spark, lake.path, shares, in_tasks, write)
        lake.replace_by_files(PARTITIONS, files, replaced_by(plans, sizes))
        found |= in_tasks.found
    refusing = write_refused(lake, plans, found)
    write_path(lake, plans)
    return refusing


def write_refused(lake: Lake, plans: Sequence[ReplayPlan], found: Iterable[OfCluster]) -> list[str]:
    """Replace the rows of refused_records; returns the clusters whose rows changed."""
    changed = changed_rows(lake.path, plans, found)
    if changed:
        every = [row for rows in changed.values() for row in rows]
        lake.writer.replace_where(REFUSED_RECORDS, among({"cluster_id": changed}), every)
    return list(changed)


def write_path(lake: Lake, plans: Sequence[ReplayPlan]) -> None:
    """Replace the transactions and, last, the replay paths."""
    of_them = among({"cluster_id": [plan.cluster_id for plan in plans]})
    transactions = list(transaction_rows(plans))
    if transactions or lake.exists(METADATA_TRANSACTIONS):
        lake.writer.replace_where(METADATA_TRANSACTIONS, of_them, transactions)
    steps = [step_row(plan.cluster_id, n, step) for plan in plans for n, step in enumerate(plan.steps)]
    lake.writer.replace_where(REPLAYS, of_them, steps)


def grouped(plans: Sequence[ReplayPlan], sizes: Mapping[str, int], most: int) -> list[list[ReplayPlan]]:
    """The plans in groups that read about `most` rows."""
    return in_groups(plans, lambda plan: sizes[plan.cluster_id], most)


def write_changed(
    lake: Lake, plans: Sequence[ReplayPlan], changed: Iterable[tuple[str, Table, pa.Table]]
) -> None:
    """Replace the versions of the clusters and histories that changed."""
    by_table: defaultdict[Table, dict[str, pa.Table]] = defaultdict(dict)
    for cluster, table, rows in changed:
        by_table[table][cluster] = rows
    for table, by_cluster in by_table.items():
        rows = pa.concat_tables(by_cluster.values())
        lake.writer.replace_where(table, replaced_by(plans, by_cluster), rows)


def write_others_by_tasks(
    lake: Lake, plans: Sequence[ReplayPlan], groups: Sequence[Sequence[ReplayPlan]], refused: RefusedInTasks
) -> None:
    """All histories but partitions; one with few rows is written by delta-rs, which takes less time."""
    # A checkpoint: else the replays would run again for each history.
    changed = others_by_tasks(lake.spark, lake.path, groups, refused).localCheckpoint()
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in changed.groupBy("history", "cluster_id").count().collect():
        counts[row["history"]][row["cluster_id"]] = row["count"]

    def write(table: Table) -> None:
        of_table = counts[table.name]
        rows = changed.where(F.col(table.name).isNotNull()).select(f"{table.name}.*")
        if sum(of_table.values()) <= OTHERS_IN_DRIVER:
            found = rows.toArrow().cast(table.arrow_schema)
            lake.writer.replace_where(table, replaced_by(plans, of_table), found)
        else:
            lake.replace_where(table, rows, replaced_by(plans, of_table))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, [table for table in OTHERS if table.name in counts]))


def transaction_rows(plans: Sequence[ReplayPlan]) -> Iterator[Row]:
    """Rows of METADATA_TRANSACTIONS."""
    for plan in plans:
        for t in plan.transactions:
            yield {
                "cluster_id": plan.cluster_id,
                "begun_offset": t.begin_offset,
                "ended_offset": t.end_offset,
                "name": t.name,
                "outcome": t.outcome,
                "reason": t.reason,
                "begun_at": moment(t.begun_at),
                "ended_at": moment(t.ended_at),
                "commit_status": t.commit_status,
            }
