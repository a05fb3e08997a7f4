"""Whether the metadata assigns to a broker what one of its log directories holds.

Where it does not, Kafka renames the partition's directory to -stray when the broker starts, and serves it no
more.
Source: LogManager.isStrayReplica and BrokerMetadataPublisher of release 4.3; KIP-858, log directory ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from kraft_core.image.brokers import Broker
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS, TOPICS
from kraft_core.restore.broker_dirs import HeldPartition

StrayReason = Literal["other_topic_id", "unknown_topic", "stray_replica"]
STRAY: tuple[str, ...] = get_args(StrayReason)
HeldState = Literal["assigned", "other_directory", "unregistered_directory", "unregistered_broker"]


def is_stray(each: HeldPartition, broker_id: int, image: Image) -> bool:
    """Whether Kafka renames the directory: the metadata does not assign that partition to the broker."""
    assigned: Partition | None = image.tables.get(PARTITIONS, each.key)
    return assigned is None or broker_id not in assigned.replicas


def topic_ids(image: Image) -> dict[str, str]:
    """The id of each topic, by name."""
    return {topic.name: key[0] for key, topic in image.tables.items(TOPICS)}


def stray_reason(
    each: HeldPartition, broker_id: int, image: Image, ids: Mapping[str, str]
) -> StrayReason | None:
    """Why the directory is stray, None if it is not. ids: topic_ids of the image.

    other_topic_id: the topic of that name has another id. unknown_topic: there is none of that name and id.
    stray_replica: the topic exists, and the broker is not a replica of the partition.
    """
    if not is_stray(each, broker_id, image):
        return None
    if image.tables.get(TOPICS, (each.topic_id,)) is not None:
        return "stray_replica"
    return "other_topic_id" if each.topic_name in ids else "unknown_topic"


def held_state(
    each: HeldPartition, directory_id: str | None, image: Image, ids: Mapping[str, str]
) -> StrayReason | HeldState:
    """What the metadata says of a partition in a log directory of its broker. ids: topic_ids of the image.

    unregistered_broker, unregistered_directory: the broker, or that directory of it, is not registered.
    other_directory: the replica is assigned to another registered directory of the broker.
    """
    reason = stray_reason(each, each.broker_id, image, ids)
    if reason is not None:
        return reason
    broker: Broker | None = image.tables.get(BROKERS, (each.broker_id,))
    if broker is None:
        return "unregistered_broker"
    if not is_registered(directory_id, broker):
        return "unregistered_directory"
    return "other_directory" if is_elsewhere(each, directory_id, broker, image) else "assigned"


def is_registered(directory_id: str | None, broker: Broker) -> bool:
    """Whether a broker registered the directory; true where it registered none, as before 3.7-IV2."""
    return not broker.log_dirs or directory_id in broker.log_dirs


def is_elsewhere(each: HeldPartition, directory_id: str | None, broker: Broker, image: Image) -> bool:
    """Whether the replica is assigned to another registered directory; a future copy is about to move."""
    assigned: Partition | None = image.tables.get(PARTITIONS, each.key)
    if each.is_future or assigned is None or broker.broker_id not in assigned.replicas:
        return False
    nth = assigned.replicas.index(broker.broker_id)
    directory = assigned.directories[nth] if nth < len(assigned.directories) else None
    return directory in broker.log_dirs and directory != directory_id
