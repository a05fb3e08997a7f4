"""Compare checkpoints with the replay of the log below them (rule 22): few by the driver, many by tasks.

A task holds two states at a time, that of the replay and that of the checkpoint it has reached, and a piece
of the log, bounded or as large as they are: memory grows with a cluster's metadata, and with its log by ten
bytes a record. The reference is the core's image, record by record, with which tests compare. The lake
contains no secrets: a checkpoint that differs only in them is not detected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.findings.snapshot_deviations import MAX_REPORTED, unlawful_deviations
from kraft_core.findings.snapshot_replays import CheckpointKey, SnapshotReplay
from kraft_core.image.snapshot_check import deviations
from transforms.histories.replay_records import END, TOGETHER, Held, counted, in_memory, opened
from transforms.lake.isolation import described, raise_if_of_store
from transforms.lake.spark_rows import spark_types, to_rows
from transforms.lake.spark_tasks import in_groups, in_tasks
from transforms.lake.storage.location import Location
from transforms.quality.partition_differences import unequal_shown
from transforms.quality.replay_pieces import (
    KEY,
    READ,
    Piece,
    RecordPlaces,
    Records,
    SmallRecords,
    StoredRecords,
    pieces,
)
from transforms.quality.replayed import Replayed

Row = dict[str, Any]
Count = Callable[[int], None]
EQUAL, LAWFUL, DEVIATES = "equal", "lawful", "deviates"
UNREAD_LOG, UNREAD_CHECKPOINT = "unread_log", "unread_checkpoint"
KEY_FIELDS = [("end_offset", pa.int64()), ("leader_epoch", pa.int32()), ("content_digest", pa.string())]
DEVIATION = tuple(name for name in SnapshotDeviation.__slots__ if name not in KEY)
# A second's work, which the driver does: a query costs Spark as much before it reads a record.
IN_DRIVER = 20_000
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
                        ("subject", pa.string()),
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
    spark: SparkSession,
    lake: Location,
    todo: Sequence[tuple[str, SnapshotReplay]],
    count: Count = lambda _: None,
) -> list[Row]:
    """One row of CHECKED for each comparison of the replays, each with its cluster; `replay`: place in todo.

    A replay that fails is one row with the failure. count: called, perhaps in tasks, with how many more
    offsets of logs were replayed.
    """
    clusters = sorted({cluster for cluster, _ in todo})
    sizes = counted(opened(lake, *READ), {table: where for table, (_, where) in READ.items()}, clusters)
    work = [
        Numbered(number, cluster, sizes[cluster], replay) for number, (cluster, replay) in enumerate(todo)
    ]
    if sum(each.size for each in work) <= IN_DRIVER:
        return pa.Table.from_pylist(list(checked_group(lake, work, count)), schema=CHECKED).to_pylist()
    return to_rows(_checked_in_tasks(spark, lake, work, count))


class Numbered(NamedTuple):
    """A replay of a cluster, of which the lake holds `size` records, and its place among those asked for."""

    number: int
    cluster_id: str
    size: int
    replay: SnapshotReplay


def _checked_in_tasks(
    spark: SparkSession, lake: Location, work: Sequence[Numbered], count: Count
) -> DataFrame:
    schema = spark_types(CHECKED)

    def check(group: Sequence[Numbered]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist(list(checked_group(lake, group, count)), schema=schema)

    return in_tasks(spark, in_groups(work, lambda each: each.size, TOGETHER), check, CHECKED)


def checked_group(lake: Location, group: Sequence[Numbered], count: Count) -> Iterator[Row]:
    """The rows of CHECKED of some replays: small clusters are read together, a large one in pieces."""
    small: dict[str, Held] = {}
    if sum(each.size for each in group) <= TOGETHER:
        # What cannot be read together is read cluster by cluster: then one alone fails.
        with suppress(Exception):
            small = in_memory(opened(lake, *READ), READ, sorted({each.cluster_id for each in group}))
    read = cache(lambda cluster: _records(lake, cluster, small.get(cluster)))
    for each in group:
        for row in _checked(lake, read, each, count):
            yield {"replay": each.number} | row


def _records(lake: Location, cluster: str, held: Held | None) -> Records:
    """held: all that is read of the cluster, where it is in memory."""
    return StoredRecords(opened(lake, *READ), cluster) if held is None else SmallRecords(held)


def _checked(
    lake: Location, read: Callable[[str], Records], numbered: Numbered, count: Count
) -> Iterator[Row]:
    """The rows of CHECKED of one replay."""
    try:
        yield from outcomes(read(numbered.cluster_id), numbered.replay, count)
    except Exception as error:  # what is wrong with one cluster must not fail the others
        raise_if_of_store(error, lake)
        yield {"failure": described(error)}


def outcomes(records: Records, replay: SnapshotReplay, count: Count = lambda _: None) -> Iterator[Row]:
    """The outcome of each comparison of a replay."""
    log = LogReplay(records, replay, count)
    for checkpoint in sorted(comparison.checkpoint for comparison in replay.comparisons):
        replayed = log.below(checkpoint.end_offset)
        key = {name: getattr(checkpoint, name) for name in KEY}
        yield key | compared(replayed, loaded(records, checkpoint), checkpoint)
    log.finish()


class LogReplay:
    """Owns the state of a replay, and what was read of the log but not added to it yet.

    count: called with how many more offsets were replayed.
    """

    def __init__(self, records: Records, replay: SnapshotReplay, count: Count = lambda _: None) -> None:
        start = Replayed() if replay.start is None else loaded(records, replay.start)
        self._state = start or Replayed()
        source = records.log(replay.log)
        places = RecordPlaces.of(source)
        # Two records at one offset: captures contradict each other there, which other rules report.
        self._known_below = -1 if start is None else min(places.unread, places.repeated)
        self._pieces = pieces(source, places, self._known_below)
        self._next: Piece | None = None
        self._reached = min((part.first_offset for part in replay.log), default=0)
        self._end = max((part.end_offset for part in replay.log), default=0)
        self._count = count

    def below(self, end_offset: int) -> Replayed | None:
        """The state after all records below an offset, at least that of the last call.

        None: it is not known, above a record that cannot be read, or one of two at one offset.
        """
        if end_offset > self._known_below:
            return None
        while piece := self._next or next(self._pieces, None):
            self._state.add(piece.below(end_offset))
            self._reach(min(piece.end, end_offset))
            self._next = piece.from_(end_offset)
            if len(self._next):
                break
        self._state.apply()
        self._reach(min(end_offset, self._end))
        return self._state

    def finish(self) -> None:
        """Count what is not replayed, as nothing asks for it or it is not known."""
        self._reach(self._end)

    def _reach(self, offset: int) -> None:
        if offset > self._reached:
            self._count(offset - self._reached)
            self._reached = offset


def loaded(records: Records, checkpoint: CheckpointKey) -> Replayed | None:
    """The state in a checkpoint; None where a record of it cannot be read."""
    source = records.checkpoint(checkpoint)
    places = RecordPlaces.of(source)
    if places.unread < END:
        return None
    state = Replayed()
    for piece in pieces(source, places, END):
        state.add(piece)
    state.apply()
    state.forget_transaction()
    return state


def compared(replayed: Replayed | None, state: Replayed | None, checkpoint: CheckpointKey) -> Row:
    """The outcome of a comparison; None for a state that is not known."""
    if replayed is None or state is None:
        return {"outcome": UNREAD_LOG if replayed is None else UNREAD_CHECKPOINT, "deviations": []}
    with unequal_shown(replayed, state, MAX_REPORTED) as (before, after):
        found = list(deviations(before, after))
    breaches = list(
        unlawful_deviations(found, checkpoint.end_offset, checkpoint.leader_epoch, checkpoint.content_digest)
    )
    # Nothing can be replayed onto a checkpoint inside a metadata transaction, of which it holds no record.
    lawful = LAWFUL if found or replayed.in_transaction else EQUAL
    return {
        "outcome": DEVIATES if breaches else lawful,
        "deviations": [{name: getattr(breach, name) for name in DEVIATION} for breach in breaches],
    }
