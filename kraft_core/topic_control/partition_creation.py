"""CreatePartitions, as the active controller answers it (ReplicationControlManager.createPartitions)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller import RULES_OF, ActiveController
from kraft_core.topic_control.java import timeline_order
from kraft_core.topic_control.placement import PlacementRefusedError, place
from kraft_core.topic_control.requests import (
    MOST_RECORDS,
    NewPartitions,
    RequestRefusedError,
    TopicRecord,
    TopicRefusedError,
    TopicResult,
)


def create_partitions(controller: ActiveController, topics: Sequence[NewPartitions]) -> list[TopicResult]:
    """The answer about each topic of a request, in its order. Raises RequestRefusedError.

    A topic named twice is refused before the controller is asked (ControllerApis).
    """
    times = Counter(topic.name for topic in topics)
    asked = [topic for topic in topics if times[topic.name] == 1]
    answers = {result.name: result for result in create_distinct_partitions(controller, asked)}
    twice = TopicResult("", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    return [answers.get(name) or TopicResult(name, twice.error, twice.text) for name in times]


def create_distinct_partitions(
    controller: ActiveController, topics: Sequence[NewPartitions]
) -> list[TopicResult]:
    """The same for topics of different names, as ReplicationControlManager has them."""
    if controller.release != RULES_OF[0]:
        _check_total(controller, topics)
    results: list[TopicResult] = []
    left = MOST_RECORDS
    for topic in topics:
        controller.file.taken()
        records: list[TopicRecord] = []
        error, text = ErrorCode.NONE, None
        try:
            for record in _records(controller, topic, left + 1):
                if len(records) == left:
                    # The controller takes a full list of records for an unknown fault of this topic.
                    raise TopicRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
                records.append(record)
        except TopicRefusedError as refused:
            error, text = refused.error, refused.text
        left -= len(records)
        results.append(TopicResult(topic.name, error, text, tuple(records), controller.file.taken()))
    return results


def _check_total(controller: ActiveController, topics: Sequence[NewPartitions]) -> None:
    """From 4.4 on. Raises RequestRefusedError."""
    total = 0
    for topic in topics:
        topic_id = controller.topic_id(topic.name)
        if topic_id is not None and topic.count >= 0:
            total += max(topic.count - len(controller.partitions(topic_id)), 0)
    if total > MOST_RECORDS:
        text = "Excessively large number of additional partitions per request."
        raise RequestRefusedError(ErrorCode.POLICY_VIOLATION, text)


def _records(controller: ActiveController, topic: NewPartitions, most: int) -> Iterator[TopicRecord]:
    """At most so many. Raises TopicRefusedError, also after some of them: Kafka writes those."""
    topic_id = controller.topic_id(topic.name)
    if topic_id is None:
        raise TopicRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    partitions = controller.partitions(topic_id)
    begin = len(partitions)
    additional = _additional(topic, begin)
    first = timeline_order(sorted(partitions), int)[0]
    factor = len(partitions[first].replicas)
    placed = _replicas(controller, topic, begin, additional, factor, most)
    for partition_id, replicas in enumerate(placed, begin):
        if not controller.in_sync(replicas):
            raise TopicRefusedError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently fenced or in "
                "controlled shutdown.",
            )
        yield controller.new_partition(topic_id, partition_id, replicas)


def _additional(topic: NewPartitions, begin: int) -> int:
    if topic.count == begin:
        text = f"Topic already has {begin} partition(s)."
        raise TopicRefusedError(ErrorCode.INVALID_PARTITIONS, text)
    if topic.count < begin:
        text = (
            f"The topic {topic.name} currently has {begin} partition(s); {topic.count} would not be an "
            "increase."
        )
        raise TopicRefusedError(ErrorCode.INVALID_PARTITIONS, text)
    additional = topic.count - begin
    if topic.assignments is not None and len(topic.assignments) != additional:
        text = (
            f"Attempted to add {additional} additional partition(s), but only {len(topic.assignments)} "
            "assignment(s) were specified."
        )
        raise TopicRefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return additional


def _replicas(
    controller: ActiveController, topic: NewPartitions, begin: int, additional: int, factor: int, most: int
) -> Sequence[tuple[int, ...]]:
    """Of each new partition those of the request, else the controller's choice for `most` of them."""
    if topic.assignments is None:
        try:
            return place(controller.usable_brokers(), additional, factor, controller.chooser, most)
        except PlacementRefusedError as refused:
            raise TopicRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, str(refused)) from None
    for partition_id, replicas in enumerate(topic.assignments, begin):
        controller.check_replicas(replicas, factor)
        if not controller.in_sync(replicas):
            raise TopicRefusedError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers specified in the manual partition assignment for partition {partition_id} are "
                "fenced or in controlled shutdown.",
            )
    return topic.assignments
