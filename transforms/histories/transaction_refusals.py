"""Records of partitions in metadata transactions that Kafka refuses to replay, found by the core.

A controller replays a record as it comes, whatever becomes of its transaction: onto the topics and partitions
that the records before it made or removed. The histories do not show those: a transaction takes effect as a
whole or not at all. So what stood before it and its records are replayed by kraft_core.image, record by
record: Kafka writes few in transactions, but in a migration from ZooKeeper.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image.change import RefusedRecord
from kraft_core.image.image import Image
from transforms.histories.partition_events import CHANGE, REGISTRATION, Life
from transforms.histories.refused_records import sure
from transforms.histories.replay_plan import ReplayPlan
from transforms.histories.topics_at_once import (
    InBatch,
    add_partitions,
    in_order_of_replay,
    partition_of,
    partition_records,
    topic_of,
    topics_before,
    versions_before,
)


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
    for begun, each in zip(inside["transaction"].to_pylist(), partition_records(inside), strict=True):
        by_transaction[begun].append(each)
    begins = sorted(by_transaction)
    last_of = {t.begin_offset: t.last_offset for t in plan.transactions}
    for crc, record in topics:
        below = bisect_right(begins, record.offset)
        begun = begins[below - 1] if below else None
        if begun is not None and record.offset <= last_of[begun] and topic_of(record) in of_topics:
            by_transaction[begun].append((crc, record))
    refused: list[RefusedRecord] = []
    for begun in begins:
        records = by_transaction[begun]
        image = _standing_before(begun, records, lives, versions)
        for record in in_order_of_replay(records):
            image.apply(record)
        refused += (each for each in image.refusals if each.type in (REGISTRATION, CHANGE))
    return sure(refused, plan.unsure)


def _standing_before(
    offset: int, records: Sequence[InBatch], lives: Sequence[Life], versions: pa.Table
) -> Image:
    """What the records name, as of before an offset."""
    topics = {topic_of(record) for _, record in records}
    image = topics_before(offset, topics, lives)
    standing = versions_before(offset, topics, versions)
    named = {(topic_of(record), partition_of(record)) for _, record in records}
    keys = zip(standing["topic_id"].to_pylist(), standing["partition_id"].to_pylist(), strict=True)
    add_partitions(image, standing.filter(pa.array([key in named for key in keys], pa.bool_())))
    return image
