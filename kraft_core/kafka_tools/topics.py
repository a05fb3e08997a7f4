"""kafka-topics --describe (TopicCommand of releases 4.0 and later), by an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

from kraft_core.format.java_text import hash_order
from kraft_core.image.brokers import Broker
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS
from kraft_core.kafka_tools.quorum import NOT_KNOWN
from kraft_core.kafka_tools.topic_configs import shown_configs


def describe_topics(image: Image, broker_id: int | None = None, *, is_whole: bool = True) -> Iterator[str]:
    """The lines of all topics, in the tool's order: that of a HashMap of their names.

    broker_id: as in topic_configs.shown_configs. is_whole: whether no record is missing; otherwise the
    registration of a leader may be, and whether it leads is not known.
    """
    names = image.tables.topic_ids
    ids, leader = cache(_ids), cache(partial(_leader, image, is_whole=is_whole))
    for name in hash_order(sorted(names), _buckets(len(names))):
        held: Mapping[int, Partition] = image.tables.group(PARTITIONS, names[name])
        partitions = [held[partition] for partition in sorted(held)]
        if partitions:
            yield _topic_line(image, partitions, broker_id)
            yield from (_partition_line(each, leader(each.leader), ids) for each in partitions)


def _buckets(count: int) -> int:
    """Of a HashMap made for this many entries, once it holds them."""
    buckets = 1
    while buckets < count:
        buckets *= 2
    return buckets * 2 if count > buckets * 3 // 4 else buckets


def _topic_line(image: Image, partitions: list[Partition], broker_id: int | None) -> str:
    first = partitions[0]
    configs = ",".join(f"{name}={value}" for name, value in shown_configs(image, first.topic_name, broker_id))
    factor = len(first.replicas) - len(first.adding_replicas)
    return (
        f"Topic: {first.topic_name}\tTopicId: {first.topic_id}\tPartitionCount: {len(partitions)}"
        f"\tReplicationFactor: {factor}\tConfigs: {configs}"
    )


def _partition_line(partition: Partition, leader: str, ids: Callable[[tuple[int, ...]], str]) -> str:
    """ids: the words for brokers; partitions share them."""
    line = (
        f"\tTopic: {partition.topic_name}\tPartition: {partition.partition_id}\tLeader: {leader}"
        f"\tReplicas: {ids(partition.replicas)}\tIsr: {ids(partition.isr)}"
    )
    if partition.is_reassigned:
        line += f"\tAdding Replicas: {ids(partition.adding_replicas)}"
        line += f"\tRemoving Replicas: {ids(partition.removing_replicas)}"
    elr, last_known = partition.eligible_leader_replicas, partition.last_known_elr
    return f"{line}\tElr: {ids(elr)}\tLastKnownElr: {ids(last_known)}"


def _leader(image: Image, broker_id: int, *, is_whole: bool) -> str:
    """The leader of a partition, if its broker is registered and not fenced (KRaftMetadataCache)."""
    leader: Broker | None = image.tables.get(BROKERS, (broker_id,))
    if leader is not None:
        return "none" if leader.fenced else str(broker_id)
    return "none" if is_whole or broker_id < 0 else NOT_KNOWN


def _ids(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))
