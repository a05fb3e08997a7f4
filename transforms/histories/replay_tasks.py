"""Replays as Spark tasks: each takes whole clusters and reads the lake's files itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from kraft_core.image.change import RefusedRecord
from transforms.histories.other_kinds import OTHERS, other_versions
from transforms.histories.partition_replay import partition_rows
from transforms.histories.partition_shares import Share
from transforms.histories.refused_records import OfCluster
from transforms.histories.replay_plan import ReplayPlan, lowest_start
from transforms.lake.spark_tasks import ROWS, in_tasks
from transforms.lake.storage.location import Location
from transforms.lake.table_files import FILES, Task
from transforms.lake.tables import Table

# Rows of one history each, in the struct of its name; a row without any marks that the history changed.
CHANGED = pa.schema(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("history", pa.string()),
        *(pa.field(table.name, pa.struct(list(table.arrow_schema))) for table in OTHERS),
    ]
)


class _Union(AccumulatorParam[frozenset[OfCluster]]):
    """A task that runs twice adds the same records."""

    def zero(self, value: frozenset[OfCluster]) -> frozenset[OfCluster]:
        return value - value

    def addInPlace(  # noqa: N802
        self, value1: frozenset[OfCluster], value2: frozenset[OfCluster]
    ) -> frozenset[OfCluster]:
        return value1 | value2


class RefusedInTasks:
    """Takes what Kafka refuses to replay (AddRefused) in Spark's tasks; the driver asks for it afterwards."""

    def __init__(self, spark: SparkSession) -> None:
        self._found = spark.sparkContext.accumulator(frozenset[OfCluster](), _Union())

    def __call__(self, cluster: str, records: Sequence[RefusedRecord]) -> None:
        if records:
            self._found.add(frozenset((cluster, record) for record in records))

    @property
    def found(self) -> frozenset[OfCluster]:
        """What the tasks that have ended took, each with its cluster."""
        return self._found.value


def partitions_by_tasks(
    spark: SparkSession,
    lake: Location,
    shares: Sequence[Share],
    refused: RefusedInTasks,
    write: Callable[[Task], Task],
) -> DataFrame:
    """Files (rows of table_files.FILES) of PARTITIONS that tasks write of what partition_rows makes."""
    lowest = lowest_start(plan for share in shares for plan in share.plans)

    def make(share: Share) -> Iterator[pa.RecordBatch]:
        return partition_rows(lake, share, lowest, refused)

    return in_tasks(spark, shares, make, FILES, write)


def others_by_tasks(
    spark: SparkSession, lake: Location, groups: Sequence[Sequence[ReplayPlan]], refused: RefusedInTasks
) -> DataFrame:
    """Rows of CHANGED: what other_versions makes."""
    lowest = lowest_start(chain(*groups))

    def make(plans: Sequence[ReplayPlan]) -> Iterator[pa.RecordBatch]:
        for cluster, table, rows in other_versions(lake, plans, lowest, refused):
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
