"""What the active controller decides about topics from: its image, its own file, its random generator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kraft_core.image.brokers import Broker, is_online
from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.effective_configs import elr_enabled, min_isr
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.names import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, CONFIGS, FEATURES, PARTITIONS
from kraft_core.messages.releases import METADATA_VERSION
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller_file import MIN_ISR, ControllerFile
from kraft_core.topic_control.java import Chooser, hash_map_order
from kraft_core.topic_control.placement import UsableBroker
from kraft_core.topic_control.requests import TopicRecord, TopicRefusedError

_DIRECTORIES, _ELR = 17, 23
"""metadata.version 3.7-IV2, which assigns directories, and 4.0-IV1, whose records have room for ELRs."""


RULES_OF = ("4.3", "4.4")
"""The releases whose rules these are, compared with their jars."""


@dataclass(frozen=True, slots=True)
class ActiveController:
    """image: at the end of its log, with its metadata.version. stopping: unfenced brokers that it knows to be
    in controlled shutdown by their heartbeats, which take no new replicas; no log tells them from those that
    were so when another controller led. release: of its software, one of RULES_OF.
    """

    image: Image
    node_id: int
    file: ControllerFile
    chooser: Chooser
    stopping: frozenset[int] = field(default_factory=frozenset[int])
    release: str = RULES_OF[0]

    @property
    def metadata_version(self) -> int:
        feature: Feature | None = self.image.tables.get(FEATURES, (METADATA_VERSION,))
        return 0 if feature is None else feature.level

    @property
    def elr_enabled(self) -> bool:
        return elr_enabled(self.image)

    @property
    def assigns_directories(self) -> bool:
        return self.metadata_version >= _DIRECTORIES

    @property
    def partition_version(self) -> int:
        """Of PartitionRecord and PartitionChangeRecord (MetadataVersion.partitionRecordVersion)."""
        return (self.metadata_version >= _DIRECTORIES) + (self.metadata_version >= _ELR)

    def broker(self, broker_id: int) -> Broker | None:
        return self.image.tables.get(BROKERS, (broker_id,))

    def is_active(self, broker_id: int) -> bool:
        broker = self.broker(broker_id)
        return broker is not None and broker.is_active

    def topic_id(self, name: str) -> str | None:
        return self.image.tables.topic_ids.get(name)

    def partition(self, topic_id: str, partition_id: int) -> Partition | None:
        return self.image.tables.get(PARTITIONS, (topic_id, partition_id))

    def partitions(self, topic_id: str) -> dict[int, Partition]:
        return dict(self.image.tables.group(PARTITIONS, topic_id))

    def effective_min_isr(self, partition: Partition) -> int:
        """What the controller takes for the topic's, at most the replicas of its partition 0."""
        found = min_isr(self.image, partition.topic_name, self.node_id)
        first: Partition = self.image.tables.get(PARTITIONS, (partition.topic_id, 0)) or partition
        return min(self.file.integer(MIN_ISR) if found is None else found, len(first.replicas))

    def accepts_leader(self, partition: Partition, replica: int) -> bool:
        """An active broker whose log directory is online (LeaderAcceptor)."""
        broker = self.broker(replica)
        if broker is None or not broker.is_active:
            return False
        return is_online(broker, partition.directory_of(replica))

    def topic_configs(self, name: str) -> dict[str, str]:
        """The topic's own."""
        found: Iterable[tuple[str, Config]] = self.image.tables.group(CONFIGS, TOPIC_RESOURCE, name).items()
        return {name: config.value for name, config in found}

    def usable_brokers(self) -> list[UsableBroker]:
        """Those that take new replicas (BrokerHeartbeatManager.usableBrokers)."""
        brokers = sorted(broker_id for (broker_id,), _ in self.image.tables.items(BROKERS))
        found = [self.broker(broker_id) for broker_id in hash_map_order(brokers, int)]
        return [
            UsableBroker(each.broker_id, each.rack, each.fenced)
            for each in found
            if each is not None and each.broker_id not in self.stopping and not is_cordoned(each)
        ]

    def default_directory(self, broker_id: int) -> str:
        """Of a new replica (ClusterControlManager.defaultDir)."""
        if not self.assigns_directories:
            return MIGRATING_DIRECTORY
        broker = self.broker(broker_id)
        if broker is None or len(broker.log_dirs) > 1:
            return UNASSIGNED_DIRECTORY
        return broker.log_dirs[0] if broker.log_dirs else MIGRATING_DIRECTORY

    def check_replicas(self, replicas: tuple[int, ...], wanted: int | None) -> None:
        """Of a manual assignment; wanted: how many there must be. Raises TopicRefusedError."""
        if not replicas:
            raise _wrong("The manual partition assignment includes an empty replica list.")
        before: int | None = None
        for broker_id in sorted(replicas):
            broker = self.broker(broker_id)
            if broker is None:
                raise _wrong(
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is "
                    "registered."
                )
            if broker_id == before:
                raise _wrong(
                    f"The manual partition assignment includes the broker {broker_id} more than once."
                )
            if self.release != RULES_OF[0] and is_cordoned(broker):
                raise _wrong(
                    f"The manual partition assignment includes broker {broker_id}, but all its log "
                    "directories are cordoned."
                )
            before = broker_id
        if wanted is not None and len(replicas) != wanted:
            raise _wrong(
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but "
                f"this is not consistent with previous partitions, which have {wanted} replica(s)."
            )

    def in_sync(self, replicas: Iterable[int]) -> tuple[int, ...]:
        """The ISR of a new partition: its active replicas."""
        return tuple(each for each in replicas if self.is_active(each))

    def new_partition(self, topic_id: str, partition_id: int, replicas: tuple[int, ...]) -> TopicRecord:
        """The record of a new partition, which has an active replica."""
        isr = self.in_sync(replicas)
        value: dict[str, Any] = {
            "partitionId": partition_id,
            "topicId": topic_id,
            "replicas": list(replicas),
            "isr": list(isr),
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": isr[0],
            "leaderEpoch": 0,
            "partitionEpoch": 0,
        }
        if self.assigns_directories:
            value["directories"] = [self.default_directory(each) for each in replicas]
        return TopicRecord("PARTITION_RECORD", self.partition_version, value)


def is_cordoned(broker: Broker) -> bool:
    """Whether it has directories, all of them cordoned, so that it takes no new replicas (KIP-1066)."""
    return bool(broker.log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())


def _wrong(text: str) -> TopicRefusedError:
    return TopicRefusedError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
