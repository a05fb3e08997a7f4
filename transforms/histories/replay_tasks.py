"""Replays as Spark tasks: each takes whole clusters and reads the lake's files itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transforms.histories.other_kinds import OTHERS, other_versions
from transforms.histories.partition_replay import partition_rows
from transforms.histories.replay_plan import ReplayPlan, lowest_start
from transforms.lake.arrow_rows import arrow_schema
from transforms.lake.spark_tasks import ROWS, in_tasks
from transforms.lake.tables import PARTITIONS, Table

# Rows of one history each, in the struct of its name; a row without any marks that the history changed.
CHANGED = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("history", pa.string()),
        *(pa.field(table.name, pa.struct(list(arrow_schema(table.schema)))) for table in OTHERS),
    ]
)


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
