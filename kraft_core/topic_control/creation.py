"""CreateTopics, as the active controller answers it (ReplicationControlManager.createTopics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kraft_core.image.configs import TOPIC_RESOURCE
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control import controller_file as file_names
from kraft_core.topic_control.config_types import ConfigRefusedError
from kraft_core.topic_control.controller import RULES_OF, ActiveController
from kraft_core.topic_control.java import utf16_length
from kraft_core.topic_control.placement import PlacementRefusedError, place
from kraft_core.topic_control.requests import (
    MOST_RECORDS,
    NEW_TOPIC_ID,
    UNSET,
    NewTopic,
    RequestRefusedError,
    TopicRecord,
    TopicRefusedError,
    TopicResult,
    within_limit,
)
from kraft_core.topic_control.topic_configs import check, in_java_order
from kraft_core.topic_control.topic_names import CLUSTER_METADATA, colliding, invalid_name

LONGEST_VALUE = 32_767
TOO_LONG = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."


def create_topics(controller: ActiveController, topics: Sequence[NewTopic]) -> list[TopicResult]:
    """The answer about each topic of a request, in its order. Raises RequestRefusedError.

    A topic named twice, and the log of the metadata itself, are refused before the controller is asked
    (ControllerApis). A request to validate gets the same answer, and its records are not written.
    """
    times = Counter(topic.name for topic in topics)
    asked = [topic for topic in topics if times[topic.name] == 1 and topic.name != CLUSTER_METADATA]
    answers = {result.name: result for result in create_distinct(controller, asked)}
    for name, count in times.items():
        if count > 1:
            answers[name] = TopicResult(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif name == CLUSTER_METADATA:
            text = f"Creation of internal topic {name} is prohibited."
            answers[name] = TopicResult(name, ErrorCode.INVALID_REQUEST, text)
    return [answers[name] for name in times]


def create_distinct(controller: ActiveController, topics: Sequence[NewTopic]) -> list[TopicResult]:
    """The same for topics of different names, as ReplicationControlManager has them."""
    partitions = sum(_asked_partitions(controller, topic) for topic in topics)
    if controller.release == RULES_OF[0]:
        # It sums in 32 bits, so that two topics of 2^31 - 1 partitions pass.
        partitions = (partitions + (1 << 31)) % (1 << 32) - (1 << 31)
    if partitions > MOST_RECORDS:
        text = "Excessively large number of partitions per request."
        raise RequestRefusedError(ErrorCode.POLICY_VIOLATION, text)
    controller.file.taken()
    existing = controller.image.tables.topic_ids
    results: list[TopicResult] = []
    written = 0
    for topic in topics:
        try:
            _check_name(topic.name, existing)
            configs = _config_records(controller, topic)
            records = (
                TopicRecord("TOPIC_RECORD", 0, {"name": topic.name, "topicId": NEW_TOPIC_ID}),
                *configs,
                *_partition_records(controller, topic),
            )
        except TopicRefusedError as refused:
            assumed = controller.file.taken()
            results.append(TopicResult(topic.name, refused.error, refused.text, assumed=assumed))
            continue
        controller.file.pass_policy(file_names.CREATE_POLICY)
        written += len(records)
        within_limit(written)
        results.append(TopicResult(topic.name, records=records, assumed=controller.file.taken()))
    return results


def _asked_partitions(controller: ActiveController, topic: NewTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.partitions == UNSET:
        return controller.file.integer(file_names.DEFAULT_PARTITIONS)
    return max(topic.partitions, 0)


def _check_name(name: str, existing: Iterable[str]) -> None:
    if name in existing:
        raise TopicRefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    others = colliding(name, existing)
    text = f"Topic '{name}' collides with existing topic: {others[0]}" if others else invalid_name(name)
    if text is not None:
        raise TopicRefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


def _config_records(controller: ActiveController, topic: NewTopic) -> list[TopicRecord]:
    nulls = [name for name, value in topic.configs if value is None]
    if nulls:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise TopicRefusedError(ErrorCode.INVALID_CONFIG, text)
    values = {name: value for name, value in topic.configs if value is not None}
    ordered = {name: values[name] for name in in_java_order(values)}
    if not ordered:
        return []
    if any(utf16_length(value) > LONGEST_VALUE for value in ordered.values()):
        raise TopicRefusedError(ErrorCode.INVALID_CONFIG, TOO_LONG)
    try:
        check(ordered, {}, controller.file)
    except ConfigRefusedError as refused:
        raise TopicRefusedError(ErrorCode.INVALID_CONFIG, str(refused)) from None
    controller.file.pass_policy(file_names.ALTER_POLICY)
    records = [config_record(topic.name, name, value) for name, value in ordered.items()]
    return records + clear_elr(controller, topic.name, ordered)


def config_record(topic: str, name: str, value: str | None) -> TopicRecord:
    """value None removes the config."""
    fields = {"resourceType": TOPIC_RESOURCE, "resourceName": topic, "name": name, "value": value}
    return TopicRecord("CONFIG_RECORD", 0, fields)


def clear_elr(controller: ActiveController, topic: str, changed: Iterable[str]) -> list[TopicRecord]:
    """With ELRs, a new min.insync.replicas clears those of the topic (KIP-966)."""
    if not controller.elr_enabled or file_names.MIN_ISR not in changed:
        return []
    return [TopicRecord("CLEAR_ELR_RECORD", 0, {"topicName": topic})]


def _partition_records(controller: ActiveController, topic: NewTopic) -> list[TopicRecord]:
    placed = _assigned(controller, topic) if topic.assignments else _placed(controller, topic)
    return [
        controller.new_partition(NEW_TOPIC_ID, partition_id, replicas)
        for partition_id, replicas in enumerate(placed)
    ]


def _assigned(controller: ActiveController, topic: NewTopic) -> list[tuple[int, ...]]:
    """The replicas that the request lists, by partition."""
    for value, what in (
        (topic.replication_factor, "replication factor"),
        (topic.partitions, "numPartitions"),
    ):
        if value != UNSET:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise TopicRefusedError(ErrorCode.INVALID_REQUEST, text)
    found: dict[int, tuple[int, ...]] = {}
    wanted: int | None = None
    for partition_id, replicas in topic.assignments:
        if partition_id in found:
            raise _wrong(f"Found multiple manual partition assignments for partition {partition_id}")
        controller.check_replicas(replicas, wanted)
        wanted = len(replicas)
        if not controller.in_sync(replicas):
            raise _wrong(
                "All brokers specified in the manual partition assignment for partition "
                f"{partition_id} are fenced or in controlled shutdown."
            )
        found[partition_id] = replicas
    if sorted(found) != list(range(len(found))):
        raise _wrong("partitions should be a consecutive 0-based integer sequence")
    return [found[partition_id] for partition_id in range(len(found))]


def _placed(controller: ActiveController, topic: NewTopic) -> list[tuple[int, ...]]:
    """The replicas that the controller chooses."""
    replication_factor, partitions = topic.replication_factor, topic.partitions
    if replication_factor < UNSET or replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise TopicRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if partitions < UNSET or partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise TopicRefusedError(ErrorCode.INVALID_PARTITIONS, text)
    if partitions == UNSET:
        partitions = controller.file.integer(file_names.DEFAULT_PARTITIONS)
    if replication_factor == UNSET:
        replication_factor = controller.file.integer(file_names.DEFAULT_REPLICATION_FACTOR)
    brokers = controller.usable_brokers()
    reason = "All brokers are currently fenced or in controlled shutdown."
    try:
        placed = place(brokers, partitions, replication_factor, controller.chooser, most=MOST_RECORDS + 1)
        if all(controller.in_sync(replicas) for replicas in placed):
            return placed
    except PlacementRefusedError as refused:
        reason = str(refused)
    text = f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    raise TopicRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _wrong(text: str) -> TopicRefusedError:
    return TopicRefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
