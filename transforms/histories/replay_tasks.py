"""Replays as Spark tasks: each takes whole clusters and reads the lake's files itself."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transforms.histories.other_kinds import OTHERS, other_versions
from transforms.histories.partition_replay import partition_rows
from transforms.histories.replay_plan import ReplayPlan, lowest_start
from transforms.lake.arrow_rows import arrow_schema
from transforms.lake.tables import PARTITIONS, Table

# From a piece of work to rows.
Make = Callable[[Any], Iterator[pa.RecordBatch]]
WORK = pa.schema([("task", pa.int32()), ("work", pa.binary())])
# Rows of one history each, in the struct of its name; a row without any marks that the history changed.
CHANGED = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("history", pa.string()),
        *(pa.field(table.name, pa.struct(list(arrow_schema(table.schema)))) for table in OTHERS),
    ]
)
# Rows that go to Spark at once.
ROWS = 10_000


def in_tasks(spark: SparkSession, work: Sequence[Any], make: Make, schema: pa.Schema) -> DataFrame:
    """What a function makes of each piece of work, a value that can be pickled, spread over tasks."""
    tasks = max(1, min(len(work), 4 * spark.sparkContext.defaultParallelism))
    rows = [{"task": n % tasks, "work": pickle.dumps(piece)} for n, piece in enumerate(work)]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch["work"].to_pylist():
                for made in make(pickle.loads(piece)):
                    yield from pa.Table.from_batches([made]).to_batches(max_chunksize=ROWS)

    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=WORK))
    return frame.repartitionById(tasks, F.col("task")).mapInArrow(run, from_arrow_schema(schema))


def in_groups(plans: Sequence[ReplayPlan], sizes: Mapping[str, int], most: int) -> list[list[ReplayPlan]]:
    """The plans in groups that read `most` rows or a few more; the largest first."""
    groups: list[list[ReplayPlan]] = []
    room = 0
    for plan in sorted(plans, key=lambda plan: sizes[plan.cluster_id], reverse=True):
        if room <= 0:
            groups.append([])
            room = most
        groups[-1].append(plan)
        room -= sizes[plan.cluster_id]
    return groups


def partitions_by_tasks(spark: SparkSession, lake: Path, groups: Sequence[Sequence[ReplayPlan]]) -> DataFrame:
    """Rows of PARTITIONS, as partition_rows makes them."""
    lowest = lowest_start(chain(*groups))

    def make(plans: Sequence[ReplayPlan]) -> Iterator[pa.RecordBatch]:
        return partition_rows(lake, plans, lowest)

    return in_tasks(spark, groups, make, arrow_schema(PARTITIONS.schema))


def others_by_tasks(spark: SparkSession, lake: Path, groups: Sequence[Sequence[ReplayPlan]]) -> DataFrame:
    """Rows of CHANGED: what other_versions makes."""
    lowest = lowest_start(chain(*groups))

    def make(plans: Sequence[ReplayPlan]) -> Iterator[pa.RecordBatch]:
        for cluster, table, rows in other_versions(lake, plans, lowest):
            yield from changed(cluster, table, rows, CHANGED)

    return in_tasks(spark, groups, make, CHANGED)


def changed(cluster: str, table: Table, rows: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows of a history as rows of CHANGED."""
    yield pa.RecordBatch.from_pylist([{"cluster_id": cluster, "history": table.name}], schema=schema)
    for batch in rows.combine_chunks().to_batches(max_chunksize=ROWS):
        columns = {
            "cluster_id": pa.repeat(pa.scalar(cluster), len(batch)),
            "history": pa.repeat(pa.scalar(table.name), len(batch)),
            table.name: pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)),
        }
        every = [columns[f.name] if f.name in columns else pa.nulls(len(batch), f.type) for f in schema]
        yield pa.RecordBatch.from_arrays(every, schema=schema)
