"""The records of the replay plan and of its checkpoints, each with when it takes effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from transforms.histories.history_events import ENVELOPE
from transforms.histories.replay_plan import ReplayPlan
from transforms.lake.arrow_rows import moment

Row = dict[str, Any]
# Offsets are joined to intervals bucket by bucket, so that many intervals cost no more than few.
BUCKET = 1 << 14
MOMENT = pa.timestamp("us", tz="UTC")
STRETCHES = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("leader_epoch", pa.int32()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("commit_status", pa.string()),
    ]
)
LOADS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("end_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("content_digest", pa.string()),
        ("load_at", MOMENT),
    ]
)
INTERVALS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("from_offset", pa.int64()),
        ("to_offset", pa.int64()),
        ("floor_at", MOMENT),
        ("closes_at_offset", pa.int64()),
        ("closed_at", MOMENT),
        ("closed_status", pa.string()),
    ]
)


def line_records(
    records: DataFrame,
    snapshot_records: DataFrame,
    replays: Sequence[ReplayPlan],
    types: Iterable[str],
    columns: Sequence[str],
) -> DataFrame:
    """The records of the types that are to be replayed: ENVELOPE, and the named columns of records.

    One whose value could not be read changes nothing.
    """
    spark = records.sparkSession
    chosen = F.col("type").isin(list(types)) & F.col("unread_reason").isNull()
    of_log = log_records(spark, records.where(chosen), replays).select(*ENVELOPE, *columns)
    loads = [load(replay, c) for replay in replays for c in replay.checkpoints]
    if not loads:
        return of_log
    return of_log.unionByName(
        loaded_records(spark, snapshot_records.where(chosen), replays, loads).select(*ENVELOPE, *columns)
    )


def log_records(spark: SparkSession, records: DataFrame, replays: Sequence[ReplayPlan]) -> DataFrame:
    stretches = [
        {
            "cluster_id": replay.cluster_id,
            "leader_epoch": s.leader_epoch,
            "first_offset": s.first_offset,
            "end_offset": s.end_offset,
            "commit_status": s.commit_status,
        }
        for replay in replays
        for s in replay.stretches
    ]
    lowest = min((s["first_offset"] for s in stretches), default=0)
    on_line = (
        records.where((F.col("offset") >= lowest) & F.col("cluster_id").isin([r.cluster_id for r in replays]))
        .join(F.broadcast(frame_of(spark, stretches, STRETCHES)), ["cluster_id", "leader_epoch"])
        .where((F.col("offset") >= F.col("first_offset")) & (F.col("offset") < F.col("end_offset")))
        .withColumn("at", F.col("appended_at"))
    )
    effective = in_transactions(spark, with_floors(spark, on_line, "offset", replays), replays)
    return (
        effective.withColumn("seq", F.col("offset"))
        .withColumn("record_offset", F.col("offset"))
        .withColumn("record_type", F.col("type"))
        .withColumn("record_leader_epoch", F.col("leader_epoch"))
        .withColumn("known_from_offset", F.lit(None).cast("bigint"))
        .withColumn("loaded", F.lit(False))
    )


def load(replay: ReplayPlan, checkpoint: Any) -> Row:
    return {
        "cluster_id": replay.cluster_id,
        "end_offset": checkpoint.end_offset,
        "leader_epoch": checkpoint.leader_epoch,
        "content_digest": checkpoint.content_digest,
        "load_at": moment(checkpoint.timestamp),
    }


def loaded_records(
    spark: SparkSession, snapshot_records: DataFrame, replays: Sequence[ReplayPlan], loads: list[Row]
) -> DataFrame:
    keys = ["cluster_id", "end_offset", "leader_epoch", "content_digest"]
    held = snapshot_records.join(F.broadcast(frame_of(spark, loads, LOADS)), keys)
    return with_load_envelope(spark, held, replays).withColumn("record_type", F.col("type"))


def with_load_envelope(spark: SparkSession, held: DataFrame, replays: Sequence[ReplayPlan]) -> DataFrame:
    """Rows with the columns of LOADS: ENVELOPE of what they tell, but for the CRC and the record's type."""
    placed = held.withColumn("seq", F.col("end_offset") - 1).withColumn("at", F.col("load_at"))
    return (
        with_floors(spark, placed, "seq", replays)
        .withColumn("visible_offset", F.col("seq"))
        .withColumn("effective_at", F.col("at"))
        .withColumn("commit_status", F.lit("committed"))
        .withColumn("record_offset", F.lit(None).cast("bigint"))
        .withColumn("record_leader_epoch", F.col("leader_epoch"))
        .withColumn("appended_at", F.col("load_at"))
        .withColumn("known_from_offset", F.col("seq"))
        .withColumn("loaded", F.lit(True))
    )


def with_floors(
    spark: SparkSession, frame: DataFrame, offset: str, replays: Sequence[ReplayPlan]
) -> DataFrame:
    """Column `at` raised to what earlier batches reached, where clocks lag behind."""
    floors = [
        {
            "cluster_id": replay.cluster_id,
            "from_offset": f.first_offset,
            "to_offset": f.end_offset,
            "floor_at": moment(f.at),
        }
        for replay in replays
        for f in replay.floors
    ]
    if not floors:
        return frame
    raised = F.greatest("at", "floor_at")
    return within(spark, frame, offset, floors, ["floor_at"]).withColumn("at", raised).drop("floor_at")


def in_transactions(spark: SparkSession, frame: DataFrame, replays: Sequence[ReplayPlan]) -> DataFrame:
    """Columns visible_offset and effective_at; what is in an aborted or open transaction is left out."""
    spans = [
        {
            "cluster_id": replay.cluster_id,
            "from_offset": t.begin_offset,
            "to_offset": t.last_offset + 1,
            "closes_at_offset": t.end_offset if t.outcome == "ended" else None,
            "closed_at": moment(t.effective_at),
            "closed_status": t.commit_status,
        }
        for replay in replays
        for t in replay.transactions
    ]
    if not spans:
        return frame.withColumn("visible_offset", F.col("offset")).withColumn("effective_at", F.col("at"))
    columns = ["closes_at_offset", "closed_at", "closed_status"]
    inside = F.col("closed_status").isNotNull()
    return (
        within(spark, frame, "offset", spans, columns)
        .where(~inside | F.col("closes_at_offset").isNotNull())
        .withColumn("visible_offset", F.coalesce("closes_at_offset", "offset"))
        .withColumn("effective_at", F.when(inside, F.col("closed_at")).otherwise(F.col("at")))
        .withColumn("commit_status", F.coalesce("closed_status", "commit_status"))
        .drop(*columns)
    )


def within(
    spark: SparkSession, frame: DataFrame, offset: str, intervals: list[Row], columns: Sequence[str]
) -> DataFrame:
    """The frame with the columns of the interval that holds its offset; null outside of all."""
    buckets = F.explode(
        F.sequence(
            F.floor(F.col("from_offset") / BUCKET).cast("bigint"),
            F.floor((F.col("to_offset") - 1) / BUCKET).cast("bigint"),
        )
    )
    found = frame_of(spark, intervals, INTERVALS).select(
        F.col("cluster_id").alias("of_cluster"), "from_offset", "to_offset", *columns, buckets.alias("bucket")
    )
    inside: Column = (
        (F.col("cluster_id") == F.col("of_cluster"))
        & (F.floor(F.col(offset) / BUCKET).cast("bigint") == F.col("bucket"))
        & (F.col(offset) >= F.col("from_offset"))
        & (F.col(offset) < F.col("to_offset"))
    )
    joined = frame.join(F.broadcast(found), inside, "left")
    return joined.drop("of_cluster", "from_offset", "to_offset", "bucket")


def frame_of(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> DataFrame:
    """Rows of the driver as a small frame."""
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), schema=schema))
