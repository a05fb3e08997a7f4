"""ElectLeaders, as the active controller answers it (ReplicationControlManager.electLeaders)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.image.tables import PARTITIONS
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.partition_change import ElectionType, Target, change_record
from kraft_core.topic_control.requests import TopicResult, within_limit

_TEXTS = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}


def elect_leaders(
    controller: ActiveController, election: ElectionType, partitions: Mapping[str, Sequence[int]] | None
) -> list[TopicResult]:
    """The answer about each partition (TOPIC-N) of a request. Raises RequestRefusedError.

    election: PREFERRED or UNCLEAN. partitions: by topic; None for all, of which Kafka leaves out those that
    need no election.
    """
    if partitions is not None:
        asked = [(topic, partition_id) for topic, ids in partitions.items() for partition_id in ids]
    else:
        found: list[Partition] = [each for _, each in controller.image.tables.items(PARTITIONS)]
        asked = sorted((each.topic_name, each.partition_id) for each in found)
    results = [elect_leader(controller, election, *each) for each in asked]
    within_limit(sum(len(each.records) for each in results))
    if partitions is None:
        return [each for each in results if each.error is not ErrorCode.ELECTION_NOT_NEEDED]
    return results


def elect_leader(
    controller: ActiveController, election: ElectionType, topic: str, partition_id: int
) -> TopicResult:
    """The answer about one partition."""
    name = f"{topic}-{partition_id}"
    topic_id = controller.topic_id(topic)
    if topic_id is None:
        return TopicResult(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = controller.partition(topic_id, partition_id)
    if partition is None:
        return TopicResult(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}")
    if election is ElectionType.PREFERRED:
        is_done = partition.leader == (partition.replicas[0] if partition.replicas else NO_LEADER)
    else:
        is_done = partition.leader != NO_LEADER
    error = ErrorCode.ELECTION_NOT_NEEDED
    if not is_done:
        controller.file.taken()
        record = change_record(controller, partition, Target.of(partition), election)
        if record is not None:
            return TopicResult(name, records=(record,), assumed=controller.file.taken())
        error = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        if election is ElectionType.PREFERRED:
            error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return TopicResult(name, error, _TEXTS[error], assumed=controller.file.taken())
