"""Topics: created, and removed with their partitions and configs (TopicsDelta, ConfigurationsDelta)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.image import configs
from kraft_core.image.change import Change, RecordRefusedError, Refusal
from kraft_core.image.refusals import TOPIC_EXISTS, UNKNOWN_TOPIC
from kraft_core.image.tables import PARTITIONS, TOPICS, Tables


@dataclass(frozen=True, slots=True)
class Topic:
    topic_id: str
    name: str


def create(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """TOPIC_RECORD. An existing id is replaced by a topic without partitions."""
    topic = Topic(value["topicId"], value["name"])
    yield from _without_partitions(tables, topic.topic_id)
    yield Change(TOPICS, (topic.topic_id,), topic)


def remove(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REMOVE_TOPIC_RECORD: removes the topic, its partitions and its configs, but not ACLs on its name."""
    topic_id = value["topicId"]
    topic: Topic | None = tables.get(TOPICS, (topic_id,))
    if topic is None:
        raise RecordRefusedError(Refusal(UNKNOWN_TOPIC, f"topic {topic_id}", f"no topic has id {topic_id}"))
    yield from _without_partitions(tables, topic_id)
    yield from configs.without_topic(tables, topic.name)
    yield Change(TOPICS, (topic_id,), None)


def _without_partitions(tables: Tables, topic_id: str) -> Iterator[Change]:
    for partition_id in tables.group(PARTITIONS, topic_id):
        yield Change(PARTITIONS, (topic_id, partition_id), None)


def row(topic: Topic) -> dict[str, Any]:
    return {"topic_id": topic.topic_id, "topic_name": topic.name}


def to_record(topic: Topic) -> tuple[str, dict[str, Any]]:
    return "TOPIC_RECORD", {"name": topic.name, "topicId": topic.topic_id}


def is_new(tables: Tables, value: Mapping[str, Any]) -> Refusal | None:
    """A controller refuses a name that a topic has (ReplicationControlManager)."""
    held = tables.topic_ids.get(value["name"])
    if held is None:
        return None
    reason = f"topic {value['name']} exists with id {held}"
    return Refusal(TOPIC_EXISTS, f"topic {value['name']}", reason, by_controllers_only=True)


RULES = {"TOPIC_RECORD": create, "REMOVE_TOPIC_RECORD": remove}
CONTROLLER_CHECKS = {"TOPIC_RECORD": is_new}
