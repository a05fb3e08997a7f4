"""The bytes that no captured copy supplied.

Damage of one capture is no loss where another capture of the same replica holds the offsets, or where a
checkpoint of the same id could be read whole. Values that no decoder understood are in every copy.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.tables import QUARANTINE

# Reasons of kraft_core.segment that speak of a file's bytes; the others speak of values inside good batches.
FILE_REASONS = (
    "torn_tail",
    "zero_tail",
    "garbage_tail",
    "zero_bytes",
    "bad_crc",
    "bad_magic",
    "bad_length",
    "bad_offset",
)


def quarantined(captures: DataFrame, batches: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Rows of QUARANTINE for the clusters of `captures`."""
    damage = captures.select(
        "cluster_id", "capture_id", "node_id", "directory_id", F.explode("damage").alias("damage")
    ).select("cluster_id", "capture_id", "node_id", "directory_id", "damage.*")
    of_file = F.col("reason").isin(*FILE_REASONS) | F.col("reason").startswith("unreadable")
    in_log = of_file & F.col("lost_from_offset").isNotNull()
    in_checkpoint = of_file & F.col("lost_from_offset").isNull()
    lost = (
        without_supplied(damage.where(in_log), batches)
        .unionByName(without_whole(damage.where(in_checkpoint), snapshots, captures))
        .unionByName(damage.where(~of_file))
        .unionByName(unopened(captures))
    )
    return lost.select(QUARANTINE.names).dropDuplicates(list(QUARANTINE.key))


def without_supplied(damage: DataFrame, batches: DataFrame) -> DataFrame:
    """Damage whose lost offsets no capture of the same replica holds in full."""
    replica = ["cluster_id", "node_id", "directory_id"]
    lost_to = F.coalesce(F.col("lost_to_offset"), F.col("lost_from_offset") + 1)
    spans = batches.select(*replica, "base_offset", (F.col("last_offset") + 1).alias("end_offset")).distinct()
    overlap = F.least("end_offset", "lost_to") - F.greatest("base_offset", "lost_from_offset")
    key = ["capture_id", "file", "position"]
    supplied = (
        spans.join(F.broadcast(damage.withColumn("lost_to", lost_to)), replica)
        .where((F.col("base_offset") < F.col("lost_to")) & (F.col("end_offset") > F.col("lost_from_offset")))
        .groupBy(*key, "lost_from_offset", "lost_to")
        .agg(F.sum(overlap).alias("held"))
        .where(F.col("held") >= F.col("lost_to") - F.col("lost_from_offset"))
    )
    return damage.join(supplied.select(*key), key, "left_anti")


def without_whole(damage: DataFrame, snapshots: DataFrame, captures: DataFrame) -> DataFrame:
    """Damage of checkpoints of which no capture of the same replica holds a whole copy."""
    replica = ["cluster_id", "node_id", "directory_id"]
    whole = snapshots.where("complete").select("cluster_id", "end_offset", "leader_epoch", "content_digest")
    held = (
        captures.select(*replica, F.explode("snapshots").alias("held"))
        .select(*replica, "held.*")
        .join(whole, ["cluster_id", "end_offset", "leader_epoch", "content_digest"])
    )
    name = F.format_string("__cluster_metadata-0/%020d-%010d.checkpoint", "end_offset", "leader_epoch")
    names = held.select(*replica, name.alias("file")).distinct()
    return damage.join(names, [*replica, "file"], "left_anti")


def unopened(captures: DataFrame) -> DataFrame:
    """Segments and checkpoints that could not be opened at all, whole."""
    faults = captures.select(
        "cluster_id", "capture_id", "node_id", "directory_id", F.explode("file_faults").alias("fault")
    ).where(F.col("fault.file").rlike(r"\.(log|checkpoint)$"))
    return faults.select(
        "cluster_id",
        "capture_id",
        "node_id",
        "directory_id",
        F.col("fault.file").alias("file"),
        F.lit(0).cast("long").alias("position"),
        F.lit(0).cast("long").alias("size_bytes"),
        F.lit(None).cast("string").alias("sha256"),
        F.concat(F.lit("unreadable: "), F.col("fault.reason")).alias("reason"),
        F.lit(None).cast("long").alias("lost_from_offset"),
        F.lit(None).cast("long").alias("lost_to_offset"),
    )
