"""Compare checkpoints with the replay of the log below them (rule 22), replay by replay, in Spark's tasks.

A task holds two images at a time, that of the replay and that of the checkpoint it has reached, and a bounded
piece of the log: memory grows with a cluster's metadata, not with its log. The lake holds no secrets: a
checkpoint that differs in them alone is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.findings.snapshot_replays import CheckpointKey, SnapshotReplay
from kraft_core.image.from_columns import MESSAGES, StoredRecord
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import deviations
from transforms.histories.replay_plan import MARKERS
from transforms.histories.replay_records import (
    TOGETHER,
    WAS_READ,
    Held,
    checkpoint_columns,
    checkpoint_records,
    counted,
    in_memory,
    log_columns,
    log_records,
    opened,
)
from transforms.lake.arrow_rows import spark_types
from transforms.lake.isolation import described
from transforms.lake.spark_tasks import in_groups, in_tasks
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS

Row = dict[str, Any]
EQUAL, LAWFUL, DEVIATES = "equal", "lawful", "deviates"
UNREAD_LOG, UNREAD_CHECKPOINT = "unread_log", "unread_checkpoint"
KEY = ("end_offset", "leader_epoch", "content_digest")
KEY_FIELDS = [("end_offset", pa.int64()), ("leader_epoch", pa.int32()), ("content_digest", pa.string())]
DEVIATION = tuple(name for name in SnapshotDeviation.__slots__ if name not in KEY)
TYPES = tuple(MESSAGES)
# Records that count, and those of which nothing is known.
OF_LOG = ds.field("type").isin([*TYPES, *MARKERS]) | ~WAS_READ
# What a comparison reads: columns and condition by table.
READ = {
    RECORDS: (log_columns(TYPES), OF_LOG),
    SNAPSHOT_RECORDS: (checkpoint_columns(TYPES), ds.scalar(True)),
}
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
    spark: SparkSession, lake: Path, todo: Sequence[tuple[str, SnapshotReplay]]
) -> DataFrame:
    """One row of CHECKED for each comparison of the replays, each with its cluster; `replay`: place in todo.

    A replay that fails is one row with the failure.
    """
    schema = spark_types(CHECKED)
    clusters = sorted({cluster for cluster, _ in todo})
    sizes = counted(opened(lake, *READ), {table: where for table, (_, where) in READ.items()}, clusters)
    work = [Numbered(number, *each) for number, each in enumerate(todo)]

    def check(group: Sequence[Numbered]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist(list(checked_group(lake, group)), schema=schema)

    groups = in_groups(work, lambda each: sizes[each.cluster_id], TOGETHER)
    return in_tasks(spark, groups, check, CHECKED)


class Numbered(NamedTuple):
    """A replay of a cluster and its place among those asked for."""

    number: int
    cluster_id: str
    replay: SnapshotReplay


def checked_group(lake: Path, group: Sequence[Numbered]) -> Iterator[Row]:
    """The rows of CHECKED of some replays: small clusters are read together, one that is alone in pieces."""
    small: dict[str, Held] = {}
    if len(group) > 1:
        # What cannot be read together is read cluster by cluster: then one alone fails.
        with suppress(Exception):
            clusters = sorted({each.cluster_id for each in group})
            small = in_memory(opened(lake, *READ), READ, clusters)
    for each in group:
        for row in checked(lake, each.cluster_id, each.replay, small.get(each.cluster_id)):
            yield {"replay": each.number} | row


def checked(lake: Path, cluster: str, replay: SnapshotReplay, held: Held | None = None) -> Iterator[Row]:
    """The rows of CHECKED of one replay. held: the cluster's records, None to read them from the lake."""
    try:
        yield from outcomes(opened(lake, *READ) if held is None else held, cluster, replay)
    except Exception as error:  # what is wrong with one cluster must not fail the others
        yield {"failure": described(error)}


def outcomes(held: Held, cluster: str, replay: SnapshotReplay) -> Iterator[Row]:
    """The outcome of each comparison of a replay."""
    log = LogReplay(held, cluster, replay)
    for checkpoint in sorted(comparison.checkpoint for comparison in replay.comparisons):
        replayed = log.image_below(checkpoint.end_offset)
        key = {name: getattr(checkpoint, name) for name in KEY}
        yield key | compared(replayed, image_of(held, cluster, checkpoint), checkpoint)


class LogReplay:
    """Owns the image of a replay, and what was read of the log but not applied yet."""

    def __init__(self, held: Held, cluster: str, replay: SnapshotReplay) -> None:
        start = Image() if replay.start is None else image_of(held, cluster, replay.start)
        self._image = start or Image()
        self._is_known = start is not None
        pieces = log_records(held, {cluster: replay.log}, TYPES, OF_LOG)
        self._records = (record for _, piece in pieces for record in piece)
        self._next = next(self._records, None)

    def image_below(self, end_offset: int) -> Image | None:
        """The image of all records below an offset, at least that of the last call; None: it is not known.

        It is not above a record that cannot be read, or one of two at one offset: captures contradict each
        other there, which other rules report.
        """
        while self._is_known and self._next is not None and self._next.offset < end_offset:
            record, self._next = self._next, next(self._records, None)
            repeated = self._next is not None and self._next.offset == record.offset
            self._is_known = record.value is not None and not repeated
            if self._is_known:
                self._image.apply(record)
        return self._image if self._is_known else None


def image_of(held: Held, cluster: str, checkpoint: CheckpointKey) -> Image | None:
    """The image of a checkpoint; None where a record of it cannot be read."""
    epoch = ds.field("leader_epoch") == checkpoint.leader_epoch
    unread = False

    def readable() -> Iterator[StoredRecord]:
        nonlocal unread
        for record in checkpoint_records(held, cluster, checkpoint, TYPES, epoch):
            unread |= record.value is None
            yield record

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
