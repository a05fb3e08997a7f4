"""Histories of the metadata for the touched clusters, from the first offset of which anything changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.runtime.progress import Progress
from transforms.histories.histories import Histories, histories
from transforms.histories.history_line import frame_of
from transforms.histories.partition_replay import partition_rows
from transforms.histories.replay_plan import STARTS, ReplayPlan, replaced_by, replays, step_row
from transforms.histories.replayed_histories import Rewritten, replayed_histories
from transforms.lake import delta_rs
from transforms.lake.arrow_rows import moment, to_arrow
from transforms.lake.lake import Lake, in_clusters, of_clusters
from transforms.lake.tables import (
    HISTORIES,
    METADATA_TRANSACTIONS,
    PARTITIONS,
    RECORDS,
    REPLAYS,
    SNAPSHOT_RECORDS,
    Table,
)

Row = dict[str, Any]
OTHERS = tuple(table for table in HISTORIES if table is not PARTITIONS)
# Records and versions that stand, together: so many take the core a second, and ten with 400 MB.
MOST_IN_ALL, MOST_BUT_PARTITIONS = 20_000, 200_000


def derive_histories(lake: Lake, clusters: Sequence[str], progress: Progress, whole: bool = False) -> None:
    """Write the histories of the clusters whose log is not what they were made from last.

    whole: all of them, from the beginning. The table replays, written last, is the mark that all are whole.
    """
    with progress.stage("histories", f"{len(clusters)} clusters"):
        todo = replays(lake.path, clusters, whole)
        if todo:
            write_histories(lake, todo)


def write_histories(lake: Lake, todo: Sequence[ReplayPlan]) -> None:
    """What is little by the core; else partitions by columns, and the rest by the core or by SQL."""
    of_them = delta_rs.among_texts("cluster_id", (replay.cluster_id for replay in todo))
    little = replayed_histories(lake.path, todo, HISTORIES, MOST_IN_ALL)
    if little is not None:
        write_all(lake, little)
    else:
        others = replayed_histories(lake.path, todo, OTHERS, MOST_BUT_PARTITIONS)
        if others is not None:
            write_all(lake, others)
        else:
            write_by_sql(lake, todo)
        write_rows(lake, PARTITIONS, partition_rows(lake.path, todo), replaced_by(todo, of_them))
    rows = list(transaction_rows(todo))
    if rows or lake.exists(METADATA_TRANSACTIONS):
        write_rows(lake, METADATA_TRANSACTIONS, rows, of_them)
    steps = [step_row(replay.cluster_id, n, step) for replay in todo for n, step in enumerate(replay.steps)]
    write_rows(lake, REPLAYS, steps, of_them)


def write_all(lake: Lake, made: Sequence[Rewritten]) -> None:
    for each in made:
        write_rows(lake, each.table, each.rows, each.condition)


def write_rows(lake: Lake, table: Table, rows: list[Row] | pa.RecordBatchReader, condition: str) -> None:
    """Replace the rows that meet the condition."""
    found: Any = rows if isinstance(rows, pa.RecordBatchReader) else to_arrow(rows, table.schema)
    delta_rs.replace_where(lake.path, table, found, condition)


def write_by_sql(lake: Lake, todo: Sequence[ReplayPlan]) -> None:
    """All but partitions (transforms.histories.histories)."""
    touched = [replay.cluster_id for replay in todo]
    records, snapshot_records = (
        lake.read(t).where(in_clusters(touched)) for t in (RECORDS, SNAPSHOT_RECORDS)
    )
    starts = starts_of(lake, todo)
    made = histories(records, snapshot_records, kept_versions(lake, starts), todo)
    rewritten = any(replay.rewrites for replay in todo)
    tables = [t for t in OTHERS if t.name in made.changed or (rewritten and lake.exists(t))]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda table: write_history(lake, table, made, todo, starts), tables))


def starts_of(lake: Lake, todo: Sequence[ReplayPlan]) -> DataFrame | None:
    """Rows of STARTS of the replays that do not start at the beginning; None if all do."""
    going_on = [{"cluster_id": r.cluster_id, "start": r.start} for r in todo if r.start > 0]
    return F.broadcast(frame_of(lake.spark, going_on, STARTS)) if going_on else None


def kept_versions(lake: Lake, starts: DataFrame | None) -> dict[str, DataFrame]:
    """By table, the versions that stand where the replays start."""
    if starts is None:
        return {}
    standing = "valid_from_offset < start AND (valid_to_offset IS NULL OR valid_to_offset >= start)"
    held = [table for table in OTHERS if lake.exists(table)]
    return {t.name: lake.read(t).join(starts, "cluster_id").where(standing).drop("start") for t in held}


def write_history(
    lake: Lake, table: Table, made: Histories, todo: Sequence[ReplayPlan], starts: DataFrame | None
) -> None:
    """Replace the versions that stand at the starts of the replays, and all later ones.

    With them go those that end later than the lowest start, but before their own: these are written again.
    """
    rows = made.rows(table)
    lowest = min(replay.start for replay in todo)
    if starts is not None and any(replay.start > lowest for replay in todo) and lake.exists(table):
        ended = f"valid_to_offset >= {lowest} AND valid_to_offset < start"
        rows = rows.unionByName(lake.read(table).join(starts, "cluster_id").where(ended).select(table.names))
    lake.replace_where(table, rows, replaced_by(todo, of_clusters(r.cluster_id for r in todo)))


def transaction_rows(todo: Sequence[ReplayPlan]) -> Iterator[Row]:
    """Rows of METADATA_TRANSACTIONS."""
    for replay in todo:
        for t in replay.transactions:
            yield {
                "cluster_id": replay.cluster_id,
                "begin_offset": t.begin_offset,
                "end_offset": t.end_offset,
                "name": t.name,
                "outcome": t.outcome,
                "reason": t.reason,
                "begun_at": moment(t.begun_at),
                "ended_at": moment(t.ended_at),
                "commit_status": t.commit_status,
            }
