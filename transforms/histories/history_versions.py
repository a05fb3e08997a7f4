"""Events of things to their versions: what stood from where to where, by windows over a thing's events."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from kraft_core.image.history import SNAPSHOT
from transforms.histories.history_events import ENVELOPE


def in_order(*thing: str) -> WindowSpec:
    """Along the events of each thing."""
    return Window.partitionBy("cluster_id", *thing).orderBy("seq", "batch_crc")


def versions(events: DataFrame, thing: Sequence[str], values: Sequence[str], jumps: bool) -> DataFrame:
    """Versions of the things that the columns `thing` name, with their values and the columns of VERSION.

    Of what happened to a thing at one offset (a transaction, a snapshot) only the last counts. jumps:
    snapshots follow other events; what they tell alike goes on.
    """
    order = in_order(*thing)
    if jumps:
        events = without_repetition(events, order, values)

    def following(expression: str) -> Column:
        return F.lead(F.expr(expression)).over(order)

    standing = events.withColumn("next_offset", following("visible_offset")).where(
        F.col("next_offset").isNull() | (F.col("next_offset") > F.col("visible_offset"))
    )
    ended = standing.select(
        *ENVELOPE,
        *thing,
        "present",
        *values,
        following("visible_offset").alias("valid_to_offset"),
        following("effective_at").alias("valid_to_at"),
        following(ENDS).alias("ended_by"),
        following("commit_status").alias("end_commit_status"),
    )
    return (
        ended.where("present")
        .withColumnRenamed("visible_offset", "valid_from_offset")
        .withColumnRenamed("effective_at", "valid_from_at")
    )


# What is said of an event where it ends another.
ENDS = f"IF(loaded, '{SNAPSHOT}', record_type)"


def without_repetition(events: DataFrame, order: WindowSpec, values: Sequence[str]) -> DataFrame:
    """The events without what a snapshot repeats: values that stood already, absence of what was not."""
    before = F.lag(F.struct("present", *values)).over(order)
    same = F.col("before.present").eqNullSafe(F.col("present"))
    for value in values:
        same = same & F.col(f"before.{value}").eqNullSafe(F.col(value))
    return (
        events.withColumn("before", before)
        .where(~(F.col("loaded") & F.coalesce(same, F.lit(False))))
        .drop("before")
    )


def vanished(events: DataFrame, thing: Sequence[str], loads: DataFrame) -> DataFrame:
    """For each load (rows of ENVELOPE) an end of every thing told of before it that it does not hold."""
    known = events.groupBy("cluster_id", *thing).agg(F.min("seq").alias("first_seq"))
    held = events.where("loaded").select("cluster_id", *thing, "seq")
    absent = (
        known.join(F.broadcast(loads), "cluster_id")
        .where(F.col("first_seq") < F.col("seq"))
        .join(held, ["cluster_id", *thing, "seq"], "left_anti")
    )
    told = {"present": F.lit(False), "record_type": F.lit(SNAPSHOT)}
    kept = (*ENVELOPE, *thing)
    return absent.select(
        *[
            told.get(f.name, F.col(f.name) if f.name in kept else F.lit(None)).cast(f.dataType).alias(f.name)
            for f in events.schema.fields
        ]
    )
