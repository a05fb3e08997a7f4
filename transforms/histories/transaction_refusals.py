"""Records of partitions in metadata transactions that Kafka refuses to replay, found by the core.

A controller replays a record as it comes, whatever becomes of its transaction: onto the topics and partitions
that the records before it made or removed. The histories do not show those: a transaction takes effect as a
whole or not at all. So what stood before it and its records are replayed by kraft_core.image, record by
record: Kafka writes few in transactions, but in a migration from ZooKeeper.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.image.change import Change, RefusedRecord
from kraft_core.image.from_columns import MESSAGES, StoredRecord, fields_of
from kraft_core.image.from_rows import change_of
from kraft_core.image.image import Image
from kraft_core.image.partitions import NO_LEADER_CHANGE
from kraft_core.image.replay_path import ReplayRange, replay_order
from kraft_core.image.tables import PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from transforms.histories.partition_events import CHANGE, NEVER, REGISTRATION, Life
from transforms.histories.refused_records import sure
from transforms.histories.replay_plan import ReplayPlan
from transforms.histories.replay_records import (
    WAS_READ,
    Held,
    in_ranges,
    log_columns,
    scanned,
    stored_records,
)
from transforms.lake.tables import RECORDS

OF_TOPICS = ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD")
# The checksum of its batch, and the record.
InBatch = tuple[int, StoredRecord]


def topic_records(held: Held, plans: Sequence[ReplayPlan]) -> dict[str, list[InBatch]]:
    """By cluster the records in transactions that make and remove topics, in any order."""
    ranges = {plan.cluster_id: list(_inside(plan)) for plan in plans}
    lowest = min((r.first_offset for of in ranges.values() for r in of), default=0)
    where = WAS_READ & ds.field("type").isin(OF_TOPICS) & (ds.field("offset") >= lowest)
    found: dict[str, list[InBatch]] = {cluster: [] for cluster in ranges}
    clusters = [cluster for cluster, of in ranges.items() if of]
    for cluster, rows in scanned(held, RECORDS, log_columns(OF_TOPICS), where, clusters):
        rows = in_ranges(rows, ranges[cluster])
        found[cluster] += zip(rows["batch_crc"].to_pylist(), stored_records(rows, "offset"), strict=True)
    return found


def refused_inside(
    plan: ReplayPlan,
    inside: pa.Table,
    topics: Sequence[InBatch],
    lives: Sequence[Life],
    versions: pa.Table,
) -> list[RefusedRecord]:
    """The first records of partitions in order that Kafka refuses, all of them in transactions.

    inside: their EVENTS, of some topics as a whole. topics: topic_records of the cluster. lives, versions: of
    the topics, and of these partitions (the columns of PARTITIONS but for the cluster's).
    """
    of_topics = set(pc.unique(inside["topic_id"]).to_pylist())
    lives = [life for life in lives if life.topic_id in of_topics]
    by_transaction: defaultdict[int, list[InBatch]] = defaultdict(list)
    for begun, each in zip(inside["transaction"].to_pylist(), _records(inside), strict=True):
        by_transaction[begun].append(each)
    begins = sorted(by_transaction)
    last_of = {t.begin_offset: t.last_offset for t in plan.transactions}
    for crc, record in topics:
        below = bisect_right(begins, record.offset)
        begun = begins[below - 1] if below else None
        if begun is not None and record.offset <= last_of[begun] and _named(record)[0] in of_topics:
            by_transaction[begun].append((crc, record))
    refused: list[RefusedRecord] = []
    for begun in begins:
        held = by_transaction[begun]
        image = _standing_before(begun, held, lives, versions)
        for _, record in sorted(held, key=lambda each: replay_order(each[1].offset, each[1].type, each[0])):
            image.apply(record)
        refused += (each for each in image.refusals if each.type in (REGISTRATION, CHANGE))
    return sure(refused, plan.unsure)


def _inside(plan: ReplayPlan) -> Iterator[ReplayRange]:
    """The offsets of transactions that the plan replays."""
    for transaction in plan.transactions:
        begun, end = transaction.begin_offset, transaction.last_offset + 1
        for each in plan.ranges:
            if each.first_offset < end and begun < each.end_offset:
                first = max(each.first_offset, begun)
                yield replace(each, first_offset=first, end_offset=min(each.end_offset, end))


def _records(events: pa.Table) -> Iterator[InBatch]:
    for row in events.to_pylist():
        type_ = row["record_type"]
        fields = fields_of(MESSAGES[type_], row, redacted=False)
        # An event has no field for what its record leaves unchanged.
        value = {"leader": NO_LEADER_CHANGE} | fields if type_ == CHANGE else fields
        yield row["batch_crc"], StoredRecord(row["seq"], row["record_leader_epoch"], -1, type_, value)


def _standing_before(
    offset: int, held: Sequence[InBatch], lives: Sequence[Life], versions: pa.Table
) -> Image:
    """What the records name, as of before an offset."""
    image = Image()
    named = {_named(record) for _, record in held}
    topics = {topic_id for topic_id, _ in named}
    for life in lives:
        stands = life.first_seq < offset <= (life.end_offset or NEVER)
        if stands and life.topic_id in topics:
            image.tables.put(Change(TOPICS, (life.topic_id,), Topic(life.topic_id, life.name)))
    began = pc.less(versions["valid_from_offset"], offset)
    goes_on = pc.fill_null(pc.greater_equal(versions["valid_to_offset"], offset), True)
    of_topics = pc.is_in(versions["topic_id"], pa.array(sorted(topics), pa.string()))
    standing = versions.filter(pc.and_(pc.and_(began, goes_on), of_topics))
    keys = zip(standing["topic_id"].to_pylist(), standing["partition_id"].to_pylist(), strict=True)
    chosen = pa.array([key in named for key in keys], pa.bool_())
    for row in standing.filter(chosen).to_pylist():
        image.tables.put(change_of(PARTITIONS, row))
    return image


def _named(record: StoredRecord) -> tuple[str, int | None]:
    """The topic that a record names, and the partition, if it does."""
    assert record.value is not None, "it was read"
    return record.value["topicId"], record.value.get("partitionId")
