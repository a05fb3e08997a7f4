"""Partitions: leader, ISR, replicas, ELR and directories, by full and partial records.

The rules are those of Kafka's PartitionRegistration (its constructor and merge) and TopicDelta.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.image import refusals
from kraft_core.image.change import Change, RecordRefusedError, Refusal
from kraft_core.image.names import LEADER_RECOVERY_STATES, MIGRATING_DIRECTORY, word
from kraft_core.image.tables import PARTITIONS, TOPICS, Tables

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_STATE_CHANGE = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """leader NO_LEADER: none. directories: a uuid per replica, in the order of replicas."""

    topic_id: str
    topic_name: str
    partition_id: int
    replicas: tuple[int, ...]
    directories: tuple[str, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment is in progress (PartitionReassignmentReplicas)."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def in_sync(self) -> set[int]:
        """The brokers in its ISR and ELR (KIP-966): any of them may lead without a loss."""
        return {*self.isr, *self.eligible_leader_replicas}

    def directory_of(self, broker_id: int) -> str:
        """The log directory of a replica. Raises ValueError if the broker has none."""
        return self.directories[self.replicas.index(broker_id)]


def create(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """PARTITION_RECORD: a full registration, which replaces an earlier one."""
    topic = tables.get(TOPICS, (value["topicId"],))
    if topic is None:
        raise RecordRefusedError(refusals.partition_of_unknown_topic(value["topicId"], value["partitionId"]))
    replicas = tuple(value["replicas"])
    partition = Partition(
        topic_id=value["topicId"],
        topic_name=topic.name,
        partition_id=value["partitionId"],
        replicas=replicas,
        directories=_directories(value["topicId"], value.get("directories"), replicas),
        isr=tuple(value["isr"]),
        removing_replicas=tuple(value["removingReplicas"]),
        adding_replicas=tuple(value["addingReplicas"]),
        eligible_leader_replicas=tuple(value.get("eligibleLeaderReplicas") or ()),
        last_known_elr=tuple(value.get("lastKnownElr") or ()),
        leader=value["leader"],
        leader_recovery_state=_recovery_state(value["topicId"], value["leaderRecoveryState"]),
        leader_epoch=value["leaderEpoch"],
        partition_epoch=value["partitionEpoch"],
    )
    yield _put(partition)


def change(tables: Tables, value: Mapping[str, Any]) -> Iterable[Change]:
    """PARTITION_CHANGE_RECORD: changes the fields that it has; always increments the partition epoch."""
    key = (value["topicId"], value["partitionId"])
    partition: Partition | None = tables.get(PARTITIONS, key)
    if partition is None:
        if tables.get(TOPICS, key[:1]) is None:
            raise RecordRefusedError(refusals.partition_of_unknown_topic(*key))
        raise RecordRefusedError(refusals.unknown_partition(*key))
    return (_put(_merge(partition, value)),)


def clear_elr(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """CLEAR_ELR_RECORD: of one topic, or of all topics for an empty name; only partitions with ELR change."""
    name = value["topicName"]
    if name and name not in tables.topic_ids:
        raise RecordRefusedError(
            Refusal(refusals.UNKNOWN_TOPIC, f"topic {name}", f"ELR of unknown topic {name}")
        )
    prefixes = [(tables.topic_ids[name],)] if name else list(tables.groups(PARTITIONS))
    for prefix in prefixes:
        for partition in tables.group(PARTITIONS, *prefix).values():
            if partition.eligible_leader_replicas or partition.last_known_elr:
                yield _put(
                    replace(
                        partition,
                        eligible_leader_replicas=(),
                        last_known_elr=(),
                        partition_epoch=_bumped(partition.partition_epoch),
                    )
                )


def _put(partition: Partition) -> Change:
    return Change(PARTITIONS, (partition.topic_id, partition.partition_id), partition)


def _merge(before: Partition, value: Mapping[str, Any]) -> Partition:
    def changed(field: str, kept: tuple[int, ...]) -> tuple[int, ...]:
        new = value.get(field)
        return kept if new is None else tuple(new)

    replicas = changed("replicas", before.replicas)
    directories = value.get("directories")
    if directories is None and replicas is before.replicas:
        placed = before.directories
    else:
        given = before.directories if directories is None else directories
        placed = _directories(before.topic_id, given, replicas)
    elected = value["leader"] != NO_LEADER_CHANGE
    state = value.get("leaderRecoveryState", NO_RECOVERY_STATE_CHANGE)
    if state == NO_RECOVERY_STATE_CHANGE:
        recovers = before.leader_recovery_state
    else:
        recovers = _recovery_state(before.topic_id, state)
    # By position: most records of a log come here, and dataclasses.replace takes three times as long.
    return Partition(
        before.topic_id,
        before.topic_name,
        before.partition_id,
        replicas,
        placed,
        changed("isr", before.isr),
        changed("removingReplicas", before.removing_replicas),
        changed("addingReplicas", before.adding_replicas),
        changed("eligibleLeaderReplicas", before.eligible_leader_replicas),
        changed("lastKnownElr", before.last_known_elr),
        value["leader"] if elected else before.leader,
        recovers,
        # Any leader in the record bumps the leader epoch, also the current one.
        _bumped(before.leader_epoch) if elected else before.leader_epoch,
        _bumped(before.partition_epoch),
    )


def _bumped(epoch: int) -> int:
    """The next epoch; behind the largest 32-bit number the smallest follows, as in Java."""
    return (epoch + 1 + (1 << 31)) % (1 << 32) - (1 << 31)


def _directories(
    topic_id: str, given: list[str] | tuple[str, ...] | None, replicas: tuple[int, ...]
) -> tuple[str, ...]:
    if all(directory == MIGRATING_DIRECTORY for directory in given or ()):
        return (MIGRATING_DIRECTORY,) * len(replicas)
    directories = tuple(given or ())
    if len(directories) != len(replicas):
        raise RecordRefusedError(refusals.wrong_directories(topic_id, len(directories), len(replicas)))
    return directories


def _recovery_state(topic_id: str, state: int) -> int:
    if state not in LEADER_RECOVERY_STATES:
        raise RecordRefusedError(refusals.unknown_recovery_state(topic_id, state))
    return state


def row(partition: Partition) -> dict[str, Any]:
    return {
        "topic_id": partition.topic_id,
        "topic_name": partition.topic_name,
        "partition_id": partition.partition_id,
        "replicas": list(partition.replicas),
        "directories": list(partition.directories),
        "isr": list(partition.isr),
        "removing_replicas": list(partition.removing_replicas),
        "adding_replicas": list(partition.adding_replicas),
        "eligible_leader_replicas": list(partition.eligible_leader_replicas),
        "last_known_elr": list(partition.last_known_elr),
        "leader": partition.leader,
        "leader_recovery_state": word(LEADER_RECOVERY_STATES, partition.leader_recovery_state),
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
    }


def to_record(partition: Partition) -> tuple[str, dict[str, Any]]:
    return "PARTITION_RECORD", {
        "partitionId": partition.partition_id,
        "topicId": partition.topic_id,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "removingReplicas": list(partition.removing_replicas),
        "addingReplicas": list(partition.adding_replicas),
        "leader": partition.leader,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
        "leaderRecoveryState": partition.leader_recovery_state,
        "directories": list(partition.directories),
        "eligibleLeaderReplicas": list(partition.eligible_leader_replicas) or None,
        "lastKnownElr": list(partition.last_known_elr) or None,
    }


RULES = {"PARTITION_RECORD": create, "PARTITION_CHANGE_RECORD": change, "CLEAR_ELR_RECORD": clear_elr}
