"""Requests about topics as JSON of tests/long/TopicRequests.java, and the engine's answers in its form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.configs import Config
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, CONFIGS, FEATURES, PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.messages.releases import ELR_VERSION, METADATA_VERSION
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.configuration import ConfigOp, TopicConfigChanges, alter_configs
from kraft_core.topic_control.controller import RULES_OF, ActiveController
from kraft_core.topic_control.controller_file import ControllerFile
from kraft_core.topic_control.creation import create_distinct
from kraft_core.topic_control.deletion import delete_topics
from kraft_core.topic_control.elections import elect_leaders
from kraft_core.topic_control.java import JavaRandom
from kraft_core.topic_control.partition_change import ElectionType
from kraft_core.topic_control.partition_creation import create_distinct_partitions
from kraft_core.topic_control.reassignments import PartitionMove, alter_reassignments
from kraft_core.topic_control.requests import NewPartitions, NewTopic, RequestRefusedError, TopicResult


def image_of(asked: dict[str, Any]) -> Image:
    image = Image()
    for name, level in ((METADATA_VERSION, asked["metadataVersion"]), (ELR_VERSION, asked["elr"])):
        if level:
            image.tables.put(Change(FEATURES, (name,), Feature(name, level)))
    for each in asked["brokers"]:
        cordoned = each["cordonedLogDirs"]
        broker = Broker(
            each["id"],
            7,
            "i",
            (),
            (),
            each["rack"],
            each["fenced"],
            each["inControlledShutdown"],
            False,
            tuple(sorted(each["logDirs"])),
            None if cordoned is None else tuple(cordoned),
        )
        image.tables.put(Change(BROKERS, (broker.broker_id,), broker))
    for topic in asked["topics"]:
        image.tables.put(Change(TOPICS, (topic["id"],), Topic(topic["id"], topic["name"])))
        for each in topic["partitions"]:
            partition = partition_of(topic, each)
            image.tables.put(Change(PARTITIONS, (topic["id"], partition.partition_id), partition))
    for kind, resource, name, value in asked["configs"]:
        image.tables.put(Change(CONFIGS, (kind, resource, name), Config(kind, resource, name, value)))
    return image


def partition_of(topic: dict[str, Any], fields: dict[str, Any]) -> Partition:
    return Partition(
        topic["id"],
        topic["name"],
        fields["partitionId"],
        tuple(fields["replicas"]),
        tuple(fields["directories"]),
        tuple(fields["isr"]),
        tuple(fields["removingReplicas"]),
        tuple(fields["addingReplicas"]),
        tuple(fields["eligibleLeaderReplicas"]),
        tuple(fields["lastKnownElr"]),
        fields["leader"],
        fields["leaderRecoveryState"],
        3,
        4,
    )


def controller_of(asked: dict[str, Any], release: str = RULES_OF[0]) -> ActiveController:
    stopping = frozenset(each["id"] for each in asked["brokers"] if each["stopping"])
    file = ControllerFile(asked["file"])
    return ActiveController(image_of(asked), 1, file, JavaRandom(asked["seed"]), stopping, release)


def new_topics(request: dict[str, Any]) -> list[NewTopic]:
    return [
        NewTopic(
            topic["name"],
            topic["partitions"],
            topic["replicationFactor"],
            tuple((partition_id, tuple(replicas)) for partition_id, replicas in topic["assignments"]),
            tuple((name, value) for name, value in topic["configs"]),
        )
        for topic in request["topics"]
    ]


def _create(controller: ActiveController, request: dict[str, Any]) -> list[TopicResult]:
    return create_distinct(controller, new_topics(request))


def _add_partitions(controller: ActiveController, request: dict[str, Any]) -> list[TopicResult]:
    topics = [
        NewPartitions(
            topic["name"],
            topic["count"],
            None if topic["assignments"] is None else tuple(map(tuple, topic["assignments"])),
        )
        for topic in request["topics"]
    ]
    return create_distinct_partitions(controller, topics)


def _delete(controller: ActiveController, request: dict[str, Any]) -> list[TopicResult]:
    """By id, as ReplicationControlManager is asked; ControllerApis, and delete_topics, name the topics."""
    names = {topic_id: name for name, topic_id in controller.image.tables.topic_ids.items()}
    return [
        replace(delete_topics(controller, [names[each]])[0], name=each)
        if each in names
        else TopicResult(each, ErrorCode.UNKNOWN_TOPIC_ID)
        for each in request["topics"]
    ]


def _configure(controller: ActiveController, request: dict[str, Any]) -> list[TopicResult]:
    topics = [
        TopicConfigChanges(
            topic["name"], {name: (ConfigOp(op), value) for op, name, value in topic["changes"]}
        )
        for topic in request["topics"]
    ]
    return alter_configs(controller, topics)


def _elect(controller: ActiveController, request: dict[str, Any]) -> list[TopicResult]:
    partitions = {topic["name"]: topic["partitions"] for topic in request["topics"]}
    election = ElectionType.UNCLEAN if request["electionType"] else ElectionType.PREFERRED
    return elect_leaders(controller, election, partitions)


def _reassign(controller: ActiveController, request: dict[str, Any]) -> list[TopicResult]:
    moves = [
        PartitionMove(
            topic["name"],
            each["partitionId"],
            None if each["replicas"] is None else tuple(each["replicas"]),
        )
        for topic in request["topics"]
        for each in topic["partitions"]
    ]
    return alter_reassignments(controller, moves, may_change_factor=request["allowReplicationFactorChange"])


ASKS: dict[str, Callable[[ActiveController, dict[str, Any]], Sequence[TopicResult]]] = {
    "create": _create,
    "add-partitions": _add_partitions,
    "delete": _delete,
    "configure": _configure,
    "elect": _elect,
    "reassign": _reassign,
}


def answer_of(asked: dict[str, Any], release: str = RULES_OF[0]) -> dict[str, Any]:
    """The engine's answer."""
    request = asked["request"]
    try:
        results = ASKS[asked["ask"]](controller_of(asked, release), request)
    except RequestRefusedError as refused:
        return {"error": refused.error.name, "text": refused.text}
    records = [] if request.get("validateOnly") else written(results)
    if asked["ask"] == "configure":
        records.sort(key=lambda record: record["type"] == "CLEAR_ELR_RECORD")
    return {"results": [[each.name, each.error.name, each.text] for each in results], "records": records}


def written(results: Iterable[TopicResult]) -> list[dict[str, Any]]:
    return [
        {"type": record.type, "version": record.version, "value": dict(record.value)}
        for result in results
        for record in result.records
    ]


def told(answer: dict[str, Any]) -> dict[str, Any]:
    """Kafka's answer, without the ids that it draws for new topics."""
    names = {
        record["value"]["topicId"]: "<random>"
        for record in answer.get("records", ())
        if record["type"] == "TOPIC_RECORD"
    }
    for record in answer.get("records", ()):
        topic_id = record["value"].get("topicId")
        if topic_id in names:
            record["value"]["topicId"] = names[topic_id]
    answer.setdefault("results", []) if "error" not in answer else None
    return answer
