"""The facts that kraft_core.evidence draws conclusions from, one row a cluster, from the lake's tables.

What goes to Python are runs, control records, snapshots and feature levels: their number grows with changes,
not with batches. All kinds travel in one frame, so that one shuffle brings a cluster together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from kraft_core.columnar.schema import message_columns

CONTROL_TYPES = ("LeaderChange", "KRaftVersion", "KRaftVoters")
CONTROL_COLUMNS = {m.type_name: m.column for m in message_columns() if m.type_name in CONTROL_TYPES}
SNAPSHOT_KEY = ("end_offset", "leader_epoch", "content_digest")


# What is told of batches that contradict each other: this many base offsets of each epoch, the lowest.
TOLD_CONFLICTS = 16


def cluster_facts(
    captures: DataFrame,
    batches: DataFrame,
    records: DataFrame,
    snapshots: DataFrame,
    snapshot_records: DataFrame,
    **others: DataFrame,
) -> DataFrame:
    """One row a cluster: cluster_id and an array of structs for each kind of fact.

    `others` are small tables that go along as they are, by the name of their kind.
    """
    return gathered(
        {
            "captures": captures,
            "control_records": control_records(records),
            "snapshots": snapshots,
            "snapshot_levels": snapshot_levels(snapshot_records),
            "batch_ends": batch_ends(batches, snapshots),
            "feature_levels": feature_levels(records),
            "batch_conflicts": batch_conflicts(batches),
            **others,
        }
    )


def gathered(kinds: Mapping[str, DataFrame]) -> DataFrame:
    """Rows of several kinds, each with a cluster_id, as one row a cluster: an array of structs a kind."""
    parts = [
        frame.select("cluster_id", F.struct(*[c for c in frame.columns if c != "cluster_id"]).alias(kind))
        for kind, frame in kinds.items()
    ]
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
    return together.groupBy("cluster_id").agg(*(F.collect_list(kind).alias(kind) for kind in kinds))


def control_records(records: DataFrame) -> DataFrame:
    """Control records; the value stays in the column of its type."""
    return records.where(F.col("is_control") & F.col("type").isin(*CONTROL_TYPES)).select(
        "cluster_id",
        "offset",
        "leader_epoch",
        "batch_base_offset",
        "batch_crc",
        "appended_at",
        "type",
        *CONTROL_COLUMNS.values(),
    )


def snapshot_levels(snapshot_records: DataFrame) -> DataFrame:
    """The metadata.version that checkpoints record."""
    return snapshot_records.where(is_metadata_version()).select(
        "cluster_id", *SNAPSHOT_KEY, F.col("feature_level.feature_level").alias("level")
    )


def batch_ends(batches: DataFrame, snapshots: DataFrame) -> DataFrame:
    """For each snapshot's end the end of the batch of its epoch that holds the record below it."""
    ends = snapshots.where("end_offset > 0").select("cluster_id", "end_offset", "leader_epoch").distinct()
    spans = batches.select(
        "cluster_id", "leader_epoch", "base_offset", (F.col("last_offset") + 1).alias("batch_end")
    )
    return (
        spans.join(F.broadcast(ends), ["cluster_id", "leader_epoch"])
        .where((F.col("base_offset") < F.col("end_offset")) & (F.col("batch_end") >= F.col("end_offset")))
        .select("cluster_id", "end_offset", "leader_epoch", "batch_end")
    )


def batch_conflicts(batches: DataFrame) -> DataFrame:
    """Batches of one base offset and epoch that differ: a row a distinct one, with the replicas that held it.

    Log matching (KIP-595) has none, so the whole table is only compared by its extremes.
    """
    place = ["cluster_id", "leader_epoch", "base_offset"]
    content = ["last_offset", "crc", "size_bytes"]
    differ = [F.min(name) != F.max(name) for name in content]
    conflicts = batches.groupBy(*place).agg(reduce(Column.__or__, differ).alias("differ")).where("differ")
    lowest = Window.partitionBy("cluster_id", "leader_epoch").orderBy("base_offset")
    told = conflicts.withColumn("nth", F.row_number().over(lowest)).where(F.col("nth") <= TOLD_CONFLICTS)
    return (
        batches.join(F.broadcast(told.select(*place)), place)
        .groupBy(*place, *content)
        .agg(F.collect_set(F.struct("node_id", "directory_id")).alias("held_by"))
    )


def feature_levels(records: DataFrame) -> DataFrame:
    """Changes of metadata.version in the log."""
    return records.where(is_metadata_version()).select(
        "cluster_id", "offset", "leader_epoch", F.col("feature_level.feature_level").alias("level")
    )


def is_metadata_version() -> Column:
    return (F.col("type") == "FEATURE_LEVEL_RECORD") & (F.col("feature_level.name") == "metadata.version")
