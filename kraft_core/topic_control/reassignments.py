"""AlterPartitionReassignments, as the active controller answers it (ReplicationControlManager, KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kraft_core.image.effective_configs import unclean_election
from kraft_core.image.partitions import Partition
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import UNCLEAN_ELECTION
from kraft_core.topic_control.partition_change import ElectionType, Target, change_record
from kraft_core.topic_control.requests import MOST_RECORDS, TopicRecord, TopicRefusedError, TopicResult


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """The replicas that a partition should have; None: give its reassignment up."""

    topic: str
    partition_id: int
    replicas: tuple[int, ...] | None


def alter_reassignments(
    controller: ActiveController, moves: Sequence[PartitionMove], *, may_change_factor: bool = True
) -> list[TopicResult]:
    """The answer about each partition (TOPIC-N) of a request, in its order."""
    results: list[TopicResult] = []
    left = MOST_RECORDS
    for move in moves:
        name = f"{move.topic}-{move.partition_id}"
        controller.file.taken()
        try:
            record = _record(controller, move, may_change_factor=may_change_factor)
            records = () if record is None else (record,)
            if len(records) > left:
                # The controller takes a full list of records for an unknown fault of this partition.
                raise TopicRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            left -= len(records)
            result = TopicResult(name, records=records, assumed=controller.file.taken())
        except TopicRefusedError as refused:
            result = TopicResult(name, refused.error, refused.text, assumed=controller.file.taken())
        results.append(result)
    return results


def _record(
    controller: ActiveController, move: PartitionMove, *, may_change_factor: bool
) -> TopicRecord | None:
    topic_id = controller.topic_id(move.topic)
    if topic_id is None:
        text = f"Unable to find a topic named {move.topic}."
        raise TopicRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    partition = controller.partition(topic_id, move.partition_id)
    if partition is None:
        text = f"Unable to find partition {move.topic}:{move.partition_id}."
        raise TopicRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if move.replicas is None:
        return _given_up(controller, partition)
    controller.check_replicas(move.replicas, None)
    if not may_change_factor:
        _check_factor(partition, len(move.replicas))
    return change_record(controller, partition, _toward(partition, move.replicas), ElectionType.ONLINE)


def _toward(partition: Partition, replicas: tuple[int, ...]) -> Target:
    """The new replicas first, then those that go; what is added and removed only where something is."""
    removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    adding = tuple(sorted(set(replicas) - set(partition.replicas)))
    now = Target.of(partition)
    return replace(
        now,
        replicas=(*replicas, *removing),
        removing=removing or now.removing,
        adding=adding or now.adding,
    )


def _check_factor(partition: Partition, wanted: int) -> None:
    has = len(partition.replicas)
    if partition.is_reassigned:
        after = {*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas)
        has = len(after)
    if has != wanted:
        text = f"The replication factor is changed from {has} to {wanted}"
        raise TopicRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _given_up(controller: ActiveController, partition: Partition) -> TopicRecord | None:
    """Back to the replicas before the reassignment (PartitionReassignmentRevert)."""
    adding = set(partition.adding_replicas)
    if not adding and not partition.removing_replicas:
        raise TopicRefusedError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    replicas = tuple(each for each in partition.replicas if each not in adding)
    isr = tuple(each for each in partition.isr if each not in adding)
    if not isr and not replicas:
        text = "Invalid replica assignment: addingReplicas contains all replicas."
        raise TopicRefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    may_be_unclean = is_unclean_enabled(controller, partition.topic_name)
    if not isr and not may_be_unclean:
        raise TopicRefusedError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {partition.topic_name}:{partition.partition_id} "
            "because it would require an unclean leader election.",
        )
    target = replace(Target.of(partition), replicas=replicas, isr=isr or replicas[:1], removing=(), adding=())
    election = ElectionType.UNCLEAN if may_be_unclean else ElectionType.ONLINE
    return change_record(controller, partition, target, election)


def is_unclean_enabled(controller: ActiveController, topic: str) -> bool:
    """By the topic, the controller's and the cluster's dynamic configs, else by the controller's file."""
    found = unclean_election(controller.image, topic, controller.node_id)
    return controller.file.is_on(UNCLEAN_ELECTION) if found is None else found
