"""The facts that kraft_core.evidence draws conclusions from, one row a cluster, from the lake's tables.

What goes to Python are runs, control records, snapshots and feature levels: their number grows with changes,
not with batches.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraft_core.columnar.schema import message_columns

CONTROL_TYPES = ("LeaderChange", "KRaftVersion", "KRaftVoters")
CONTROL_COLUMNS = {m.type_name: m.column for m in message_columns() if m.type_name in CONTROL_TYPES}


def cluster_facts(
    captures: DataFrame,
    batches: DataFrame,
    records: DataFrame,
    snapshots: DataFrame,
    snapshot_records: DataFrame,
) -> DataFrame:
    """One row a cluster: cluster_id and arrays of captures, control_records, snapshots and feature_levels."""
    facts = captures.groupBy("cluster_id").agg(
        F.collect_list(F.struct(*[c for c in captures.columns if c != "cluster_id"])).alias("captures")
    )
    parts = {
        "control_records": control_records(records, batches),
        "snapshots": snapshot_facts(captures, batches, snapshots, snapshot_records),
        "feature_levels": feature_levels(records),
    }
    for name, rows in parts.items():
        columns = [c for c in rows.columns if c != "cluster_id"]
        listed = rows.groupBy("cluster_id").agg(F.collect_list(F.struct(*columns)).alias(name))
        facts = facts.join(listed, "cluster_id", "left")
    return facts


def control_records(records: DataFrame, batches: DataFrame) -> DataFrame:
    """Control records with the bounds of their batch; the value stays in the column of its type."""
    control = records.where(F.col("is_control") & F.col("type").isin(*CONTROL_TYPES)).select(
        "cluster_id",
        "offset",
        "leader_epoch",
        F.col("batch_base_offset"),
        "batch_crc",
        "appended_at",
        "type",
        *CONTROL_COLUMNS.values(),
    )
    bounds = (
        batches.where("is_control")
        .groupBy("cluster_id", "base_offset", "leader_epoch", "crc")
        .agg((F.max("last_offset") + 1).alias("batch_end_offset"))
        .withColumnsRenamed({"base_offset": "batch_base_offset", "crc": "batch_crc"})
    )
    return control.join(bounds, ["cluster_id", "batch_base_offset", "leader_epoch", "batch_crc"])


def snapshot_facts(
    captures: DataFrame, batches: DataFrame, snapshots: DataFrame, snapshot_records: DataFrame
) -> DataFrame:
    """Checkpoints with who held them, the metadata.version they record, and the end of the batch they cut."""
    key = ["cluster_id", "end_offset", "leader_epoch", "content_digest"]
    held = captures.select(
        "cluster_id", "node_id", "directory_id", "captured_at", F.explode("snapshots").alias("held")
    ).select("cluster_id", "node_id", "directory_id", "captured_at", "held.*")
    holders = held.groupBy(*key).agg(
        F.collect_set(F.struct("node_id", "directory_id")).alias("held_by"),
        F.min("captured_at").alias("first_captured_at"),
    )
    levels = (
        snapshot_records.where(is_metadata_version())
        .groupBy(*key)
        .agg(F.max_by("feature_level.feature_level", "position").alias("metadata_version"))
    )
    return (
        snapshots.join(holders, key)
        .join(levels, key, "left")
        .join(batch_ends(batches, snapshots), ["cluster_id", "end_offset", "leader_epoch"], "left")
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
        .groupBy("cluster_id", "end_offset", "leader_epoch")
        .agg(F.min("batch_end").alias("batch_end"))
    )


def feature_levels(records: DataFrame) -> DataFrame:
    """Changes of metadata.version in the log."""
    return records.where(is_metadata_version()).select(
        "cluster_id", "offset", "leader_epoch", F.col("feature_level.feature_level").alias("level")
    )


def is_metadata_version() -> Column:
    return (F.col("type") == "FEATURE_LEVEL_RECORD") & (F.col("feature_level.name") == "metadata.version")
