"""Checkpoints held against the replay of the log (rule 22), replay by replay, in Python beside the executors.

A task sees one replay's records in their order and holds two images at a time, that of the replay and that
of the checkpoint it has come to: memory grows with a cluster's metadata, not with its log. The
lake holds no secrets, so a checkpoint whose secrets alone differ is not found.
"""

from __future__ import annotations

import json
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.findings.snapshot_replays import CheckpointKey, SnapshotReplay
from kraft_core.image.from_columns import MESSAGES, StoredRecord, fields_of
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import deviations
from transforms.histories.replay_plan import MARKERS
from transforms.lake.arrow_rows import spark_types
from transforms.lake.lake import in_clusters

Row = dict[str, Any]
EQUAL, LAWFUL, DEVIATES = "equal", "lawful", "deviates"
UNREAD_LOG, UNREAD_CHECKPOINT = "unread_log", "unread_checkpoint"
# In this order at one offset: where the replay starts, what it has come to, and the record that goes on.
START, CHECKPOINT, RECORD = range(3)
KEY = ("end_offset", "leader_epoch", "content_digest")
KEY_FIELDS = [("end_offset", pa.int64()), ("leader_epoch", pa.int32()), ("content_digest", pa.string())]
LOGS = pa.schema(
    [
        ("replay", pa.int32()),
        ("cluster_id", pa.string()),
        ("leader_epoch", pa.int32()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
    ]
)
CHECKPOINTS = pa.schema(
    [("replay", pa.int32()), ("rank", pa.int32()), ("cluster_id", pa.string()), *KEY_FIELDS]
)
CHECKED = pa.schema(
    [
        ("replay", pa.int32()),
        *KEY_FIELDS,
        ("outcome", pa.string()),
        (
            "deviations",
            pa.list_(
                pa.struct(
                    [
                        ("kind", pa.string()),
                        ("thing", pa.string()),
                        ("is_missing", pa.bool_()),
                        ("is_extra", pa.bool_()),
                        ("explanation", pa.string()),
                    ]
                )
            ),
        ),
        ("failure", pa.string()),
    ]
)


def checked_snapshots(
    records: DataFrame, snapshot_records: DataFrame, todo: Sequence[tuple[str, SnapshotReplay]], tasks: int
) -> DataFrame:
    """One row of CHECKED a comparison of the replays, each with its cluster; `replay` is its place in todo.

    A replay that fails is one row with the failure.
    """
    spark = records.sparkSession
    clusters = {cluster for cluster, _ in todo}
    steps = log_records(spark, records.where(in_clusters(clusters)), todo).unionByName(
        checkpoint_records(spark, snapshot_records.where(in_clusters(clusters)), todo)
    )
    starts = {number: replay.start for number, (_, replay) in enumerate(todo)}
    schema = spark_types(CHECKED)

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for number, of_replay in groupby(rows, key=itemgetter("replay")):
            found = [{"replay": number} | row for row in checked(starts[number], of_replay)]
            yield pa.RecordBatch.from_pylist(found, schema=schema)

    return (
        steps.repartitionById(tasks, F.col("replay") % tasks)
        .sortWithinPartitions("replay", "at", "rank", "leader_epoch", "content_digest", "place")
        .mapInArrow(check, from_arrow_schema(CHECKED))
    )


def log_records(
    spark: SparkSession, records: DataFrame, todo: Sequence[tuple[str, SnapshotReplay]]
) -> DataFrame:
    """The records to be replayed, and all that could not be read."""
    parts = [
        {
            "replay": number,
            "cluster_id": cluster,
            "leader_epoch": part.leader_epoch,
            "first_offset": part.first_offset,
            "end_offset": part.end_offset,
        }
        for number, (cluster, replay) in enumerate(todo)
        for part in replay.log
    ]
    lowest = min((part["first_offset"] for part in parts), default=0)
    logs = F.broadcast(spark.createDataFrame(pa.Table.from_pylist(parts, schema=LOGS)))
    counts = F.col("type").isin(*MESSAGES, *MARKERS) | F.col("unread_reason").isNotNull()
    return (
        records.where((F.col("offset") >= lowest) & counts)
        .join(logs, ["cluster_id", "leader_epoch"])
        .where((F.col("offset") >= F.col("first_offset")) & (F.col("offset") < F.col("end_offset")))
        .select(
            "replay",
            F.col("offset").alias("at"),
            F.lit(RECORD).alias("rank"),
            "leader_epoch",
            F.lit(None).cast("string").alias("content_digest"),
            F.col("offset").alias("place"),
            *content(),
        )
    )


def checkpoint_records(
    spark: SparkSession, snapshot_records: DataFrame, todo: Sequence[tuple[str, SnapshotReplay]]
) -> DataFrame:
    """All records of the checkpoints that replays start from or come to, their header too."""
    wanted = [
        {"replay": number, "rank": rank, "cluster_id": cluster}
        | {name: getattr(checkpoint, name) for name in KEY}
        for number, (cluster, replay) in enumerate(todo)
        for rank, checkpoint in (
            *((START, start) for start in (replay.start,) if start),
            *((CHECKPOINT, comparison.checkpoint) for comparison in replay.comparisons),
        )
    ]
    lowest = min(row["end_offset"] for row in wanted)
    keys = F.broadcast(spark.createDataFrame(pa.Table.from_pylist(wanted, schema=CHECKPOINTS)))
    return (
        snapshot_records.where(F.col("end_offset") >= lowest)
        .join(keys, ["cluster_id", *KEY])
        .select(
            "replay",
            F.col("end_offset").alias("at"),
            "rank",
            "leader_epoch",
            "content_digest",
            F.col("position").alias("place"),
            *content(),
        )
    )


def content() -> list[Any]:
    """What a record says, as one text: rows as wide as the tables would fill the shuffle with nulls."""
    values = F.struct(*(message.column for message in MESSAGES.values()))
    unread = F.col("unread_reason").isNotNull().alias("is_unread")
    return ["type", "redacted", unread, F.to_json(values).alias("value")]


def checked(start: CheckpointKey | None, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of CHECKED of one replay, from its records in order."""
    try:
        yield from outcomes(start, rows)
    except Exception as error:  # what is wrong with one cluster must not fail the others
        at = traceback.extract_tb(error.__traceback__)[-1]
        yield {"failure": f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"}


def outcomes(start: CheckpointKey | None, rows: Iterable[Row]) -> Iterator[Row]:
    """What each checkpoint of a replay came to."""
    replayed, is_known, last = Image(), start is None, -1
    for (rank, *key), some in groupby(rows, key=itemgetter("rank", "at", "leader_epoch", "content_digest")):
        if rank == RECORD:
            for row in some:
                # Two records at one offset: captures contradict each other, which other rules tell.
                is_known = is_known and not row["is_unread"] and row["place"] > last
                last = row["place"]
                if is_known:
                    replayed.apply(told(row))
            continue
        checkpoint = CheckpointKey(*key)
        image = image_of(checkpoint, some)
        if rank == START:
            replayed, is_known = image or replayed, image is not None
        else:
            reached = replayed if is_known else None
            yield dict(zip(KEY, key, strict=True)) | compared(reached, image, checkpoint)


def image_of(checkpoint: CheckpointKey, rows: Iterable[Row]) -> Image | None:
    """The image of a checkpoint; None where a record of it cannot be read."""
    unread: list[int] = []

    def readable() -> Iterator[StoredRecord]:
        for row in rows:
            if row["is_unread"]:
                unread.append(row["place"])
            else:
                yield told(row)

    image = Image.of_snapshot(readable(), checkpoint.end_offset, checkpoint.leader_epoch, -1)
    return None if unread else image


def compared(replayed: Image | None, image: Image | None, checkpoint: CheckpointKey) -> Row:
    """The outcome of a comparison; None for an image that is not known."""
    if replayed is None or image is None:
        return {"outcome": UNREAD_LOG if replayed is None else UNREAD_CHECKPOINT, "deviations": []}
    found = list(deviations(replayed, image))
    breaches = list(
        unlawful_deviations(found, checkpoint.end_offset, checkpoint.leader_epoch, checkpoint.content_digest)
    )
    # Nothing can be replayed onto a checkpoint inside a metadata transaction, of which it holds no record.
    lawful = LAWFUL if found or replayed.in_transaction else EQUAL
    return {
        "outcome": DEVIATES if breaches else lawful,
        "deviations": [{name: getattr(breach, name) for name in DEVIATION} for breach in breaches],
    }


DEVIATION = tuple(name for name in SnapshotDeviation.__slots__ if name not in KEY)


def told(row: Row) -> StoredRecord:
    """A record from its row."""
    message = MESSAGES.get(row["type"])
    value: Mapping[str, Any] = {}
    if message is not None:
        # Columns that are null are not in the text.
        columns = json.loads(row["value"], object_hook=partial(defaultdict, none))
        value = fields_of(message, columns[message.column], row["redacted"])
    return StoredRecord(row["place"], row["leader_epoch"], -1, row["type"], value)


def none() -> None:
    """What a column holds that is not there."""
