"""Topics that records make and remove at once: in a metadata transaction, or by batches that conflict.

The histories show what such records lead to. What one of them acts upon, a topic that another one made or
removed before it, shows only a replay of them by kraft_core.image, record by record: Kafka writes few in
transactions, but in a migration from ZooKeeper.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.image.change import Change
from kraft_core.image.from_columns import MESSAGES, StoredRecord, fields_of
from kraft_core.image.from_rows import change_of
from kraft_core.image.image import Image, net
from kraft_core.image.partitions import NO_LEADER_CHANGE
from kraft_core.image.replay_path import ReplayRange, replay_order
from kraft_core.image.tables import PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from transforms.histories.partition_events import CHANGE, CLEAR_ELR, NEVER, Life
from transforms.histories.replay_plan import ReplayPlan, Transaction
from transforms.histories.replay_records import (
    WAS_READ,
    Held,
    in_ranges,
    log_columns,
    scanned,
    stored_records,
)
from transforms.lake.tables import RECORDS

TOPIC = "TOPIC_RECORD"
OF_TOPICS = (TOPIC, "REMOVE_TOPIC_RECORD")
# The checksum of its batch, and the record.
InBatch = tuple[int, StoredRecord]
# Of a partition: its topic's id, its number, and the offset at which it ended or began.
At = tuple[str, int, int]


def topic_records(
    held: Held, plans: Sequence[ReplayPlan], lives: Mapping[str, Sequence[Life]]
) -> dict[str, list[InBatch]]:
    """By cluster the records that make and remove topics, in any order: those in transactions, and those at
    offsets at which a topic is made again.
    """
    ranges = {plan.cluster_id: list(_at_once(plan, lives[plan.cluster_id])) for plan in plans}
    lowest = min((r.first_offset for of in ranges.values() for r in of), default=0)
    where = WAS_READ & ds.field("type").isin(OF_TOPICS) & (ds.field("offset") >= lowest)
    found: dict[str, list[InBatch]] = {cluster: [] for cluster in ranges}
    clusters = [cluster for cluster, of in ranges.items() if of]
    for cluster, rows in scanned(held, RECORDS, log_columns(OF_TOPICS), where, clusters):
        rows = in_ranges(rows, ranges[cluster])
        found[cluster] += zip(rows["batch_crc"].to_pylist(), stored_records(rows, "offset"), strict=True)
    return found


def _at_once(plan: ReplayPlan, lives: Sequence[Life]) -> Iterator[ReplayRange]:
    """The offsets of transactions and those at which a topic is made again, where the plan replays them."""
    spans = [(t.begin_offset, t.last_offset + 1) for t in plan.transactions]
    closed = {t.end_offset for t in plan.transactions}
    spans += [(end, end + 1) for end in {*_remade_at(lives)} - closed]
    for begun, end in spans:
        for each in plan.ranges:
            if each.first_offset < end and begun < each.end_offset:
                first = max(each.first_offset, begun)
                yield replace(each, first_offset=first, end_offset=min(each.end_offset, end))


def _remade_at(lives: Iterable[Life]) -> Iterator[int]:
    for life in lives:
        if life.end_type == TOPIC and life.end_offset is not None:
            yield life.end_offset


def partition_records(events: pa.Table) -> Iterator[InBatch]:
    """EVENTS of registrations and changes as records."""
    for row in events.to_pylist():
        type_ = row["record_type"]
        fields = fields_of(MESSAGES[type_], row, redacted=False)
        # An event has no field for what its record leaves unchanged.
        value = {"leader": NO_LEADER_CHANGE} | fields if type_ == CHANGE else fields
        yield row["batch_crc"], StoredRecord(row["seq"], row["record_leader_epoch"], -1, type_, value)


def in_order_of_replay(records: Iterable[InBatch]) -> list[StoredRecord]:
    """The records in the order of replay."""
    ordered = sorted(records, key=lambda each: replay_order(each[1].offset, each[1].type, each[0]))
    return [record for _, record in ordered]


def topic_of(record: StoredRecord) -> str:
    """The topic that a record of a topic or of a partition names."""
    assert record.value is not None, "it was read"
    return record.value["topicId"]


def partition_of(record: StoredRecord) -> int | None:
    """The partition that a record of a topic or of a partition names, if it does."""
    assert record.value is not None, "it was read"
    return record.value.get("partitionId")


def topics_before(offset: int, topics: Collection[str], lives: Iterable[Life]) -> Image:
    """Those of the topics that stand before an offset."""
    image = Image()
    for life in lives:
        stands = life.first_seq < offset <= (life.end_offset or NEVER)
        if stands and life.topic_id in topics:
            image.tables.put(Change(TOPICS, (life.topic_id,), Topic(life.topic_id, life.name)))
    return image


def versions_before(offset: int, topics: Collection[str], versions: pa.Table) -> pa.Table:
    """Those of the versions of partitions that are of the topics and valid before an offset."""
    began = pc.less(versions["valid_from_offset"], offset)
    goes_on = pc.fill_null(pc.greater_equal(versions["valid_to_offset"], offset), True)
    of_topics = pc.is_in(versions["topic_id"], pa.array(sorted(topics), pa.string()))
    return versions.filter(pc.and_(pc.and_(began, goes_on), of_topics))


def add_partitions(image: Image, versions: pa.Table) -> None:
    """Add what the versions of partitions (the columns of PARTITIONS but for the cluster's) state."""
    for row in versions.to_pylist():
        image.tables.put(change_of(PARTITIONS, row))


def is_named_inside(clears: pa.Table) -> Any:
    """Which records that clear ELRs name a topic, inside of a transaction."""
    return pc.and_(pc.not_equal(clears["topic_name"], ""), pc.is_valid(clears["transaction"]))


def with_topics(clears: pa.Table, topics: Sequence[InBatch], lives: Sequence[Life]) -> pa.Table:
    """Records that clear ELRs with the id of the topic that each means (topic_id, null: all) in place of its
    name (topic_name, empty: all), without those of unknown topics.

    topics: topic_records of the cluster; they may lack if none is_named_inside.
    """
    inside = _named_inside(clears.filter(is_named_inside(clears)), topics, lives)
    of_name: dict[str, list[Life]] = {name: [] for name in clears["topic_name"].to_pylist()}
    for life in lives:
        if life.name in of_name:
            of_name[life.name].append(life)

    def meant(clear: dict[str, Any]) -> str | None:
        seq, name = clear["seq"], clear["topic_name"]
        if name and clear["transaction"] is None:
            ids = {life.topic_id for life in of_name[name]}
            return topics_before(seq, ids, of_name[name]).tables.topic_ids.get(name)
        return inside.get((seq, clear["batch_crc"]))

    ids = pa.array(map(meant, clears.to_pylist()), pa.string())
    known = pc.or_(pc.is_valid(ids), pc.equal(clears["topic_name"], ""))
    return clears.drop_columns(["topic_name"]).append_column("topic_id", ids).filter(known)


def _named_inside(
    clears: pa.Table, topics: Sequence[InBatch], lives: Sequence[Life]
) -> dict[tuple[int, int], str | None]:
    """By offset and checksum of the batch, the topics that records in transactions name."""
    found: dict[tuple[int, int], str | None] = {}
    for begun in pc.unique(clears["transaction"]).to_pylist():
        rows = clears.filter(pc.equal(clears["transaction"], begun)).to_pylist()
        last, names = max(row["seq"] for row in rows), {row["topic_name"] for row in rows}
        records = [each for each in topics if begun <= each[1].offset <= last]
        ids = {life.topic_id for life in lives if life.name in names}
        image = topics_before(begun, ids | {topic_of(record) for _, record in records}, lives)
        ordered: list[tuple[tuple[int, int, int], StoredRecord | dict[str, Any]]] = [
            *((replay_order(record.offset, record.type, crc), record) for crc, record in records),
            *((replay_order(row["seq"], CLEAR_ELR, row["batch_crc"]), row) for row in rows),
        ]
        for _, each in sorted(ordered, key=itemgetter(0)):
            if isinstance(each, StoredRecord):
                image.apply(each)
            else:
                found[each["seq"], each["batch_crc"]] = image.tables.topic_ids.get(each["topic_name"])
    return found


def makes_again(plan: ReplayPlan, lives: Iterable[Life]) -> bool:
    """Whether a topic ends by a record that makes it, or in a transaction, which may do both."""
    closed = {t.end_offset for t in _ended(plan)}
    return any(life.end_type == TOPIC or life.end_offset in closed for life in lives)


def with_own_ends(
    plan: ReplayPlan, versions: pa.Table, events: pa.Table, topics: Sequence[InBatch], lives: Sequence[Life]
) -> pa.Table:
    """Versions of partitions (the columns of PARTITIONS but for the cluster's) by what ended them themselves.

    A topic ends by the last record of it of those that take effect at once. A partition of it may have been
    removed by an earlier one, or goes on because a later record registers it again. versions: of some topics
    as a whole; events: the EVENTS of these topics that took effect. topics: topic_records of the cluster.
    """
    at_once = _by_topic_and_end(plan, topics)
    several = {end for end, records in at_once.items() if len(records) > 1}
    offsets = pa.array(sorted({end for _, end in several} | {*_remade_at(lives)}), pa.int64())
    ended = pc.is_in(versions["valid_to_offset"], offsets).combine_chunks()
    rows = versions.filter(ended).to_pylist()
    if not rows:
        return versions
    by_records: dict[At, str] = {}
    begins = {t.end_offset: t.begin_offset for t in _ended(plan)}
    for topic_id, end in several & {(row["topic_id"], row["valid_to_offset"]) for row in rows}:
        first = begins.get(end, end)
        image = topics_before(first, (topic_id,), lives)
        add_partitions(image, versions_before(first, (topic_id,), versions))
        of_topic = events.filter(pc.equal(events["topic_id"], topic_id))
        records = [*at_once[topic_id, end], *_of_partitions(of_topic, first, end)]
        by_records |= _removals(image, records, end)
    begun = pc.is_in(versions["valid_from_offset"], offsets)
    for row in versions.filter(begun).to_pylist():
        by_records[row["topic_id"], row["partition_id"], row["valid_from_offset"]] = row["record_type"]
    own = [
        by_records.get((row["topic_id"], row["partition_id"], row["valid_to_offset"]), row["ended_by"])
        for row in rows
    ]
    place = versions.column_names.index("ended_by")
    found = pc.replace_with_mask(versions["ended_by"].combine_chunks(), ended, pa.array(own, pa.string()))
    return versions.set_column(place, "ended_by", found)


def _ended(plan: ReplayPlan) -> list[Transaction]:
    """The transactions that took effect."""
    return [t for t in plan.transactions if t.outcome == "ended"]


def _by_topic_and_end(
    plan: ReplayPlan, topics: Iterable[InBatch]
) -> Mapping[tuple[str, int], Sequence[InBatch]]:
    """The records by their topic and the offset at which they take effect, if they do."""
    found: defaultdict[tuple[str, int], list[InBatch]] = defaultdict(list)
    for crc, record in topics:
        place = bisect_right(plan.transactions, record.offset, key=attrgetter("begin_offset")) - 1
        around = plan.transactions[place] if place >= 0 else None
        if around is None or record.offset > around.last_offset:
            found[topic_of(record), record.offset].append((crc, record))
        elif around.outcome == "ended":
            found[topic_of(record), around.last_offset].append((crc, record))
    return found


def _of_partitions(events: pa.Table, first: int, last: int) -> Iterator[InBatch]:
    """The records of the log among the events, at some offsets (both inclusive)."""
    seq = events["seq"]
    at_once = pc.and_(pc.greater_equal(seq, first), pc.less_equal(seq, last))
    return partition_records(events.filter(pc.and_(at_once, pc.is_null(events["known_from_offset"]))))


def _removals(before: Image, records: Iterable[InBatch], end: int) -> dict[At, str]:
    """The types of the records that remove partitions, of those that take effect at an offset."""
    made = net(each for record in in_order_of_replay(records) for each in before.apply(record))
    return {
        (*each.change.key, end): each.record.type
        for each in made
        if each.change.kind == PARTITIONS and each.change.value is None
    }
