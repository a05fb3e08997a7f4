"""What Kafka's controller does to partitions when a broker is fenced, shuts down or is unregistered.

The rules are those of ReplicationControlManager.generateLeaderAndIsrUpdates and of PartitionChangeBuilder,
with eligible leader replicas as in KIP-966. All three events take the broker out of the ISR in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraft_core.image.brokers import Broker, is_online
from kraft_core.image.effective_configs import elr_enabled, min_isr, unclean_election
from kraft_core.image.image import Image
from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.image.tables import BROKERS, PARTITIONS


@dataclass(frozen=True, slots=True)
class PartitionState:
    """leader -1: none. min_isr: what its leader demands of acks=all, at most the number of replicas; None
    where no log shows it.
    """

    leader: int
    isr: tuple[int, ...]
    min_isr: int | None

    @property
    def is_offline(self) -> bool:
        return self.leader == NO_LEADER

    @property
    def is_under_min_isr(self) -> bool | None:
        """Whether a leader refuses acks=all (NOT_ENOUGH_REPLICAS); None where its min ISR decides and is not
        known. False without a leader.
        """
        if self.is_offline:
            return False
        return None if self.min_isr is None else len(self.isr) < self.min_isr


@dataclass(frozen=True, slots=True)
class PartitionLoss:
    """A partition before and after the loss of a broker.

    is_unclean: the new leader was not in sync, so that records are lost. may_be_unclean: it is offline only
    if unclean.leader.election.enable is off in the controllers' files, which no log shows.
    """

    partition: Partition
    before: PartitionState
    after: PartitionState
    is_unclean: bool = False
    may_be_unclean: bool = False

    @property
    def goes_offline(self) -> bool:
        return self.after.is_offline and not self.before.is_offline

    @property
    def goes_under_min_isr(self) -> bool | None:
        """None where it is not known. One that is known to be under it before does not go under it."""
        now = self.after.is_under_min_isr
        return now if now is not True else self.before.is_under_min_isr is not True


def lose_broker(
    image: Image, broker_id: int, controller_id: int, *, unregister: bool = False
) -> list[PartitionLoss]:
    """Every partition, sorted by topic name and id; controller_id: of the active controller.

    unregister: its registration is removed; else it is fenced or shuts down.
    """
    partitions = (partition for _, partition in image.tables.items(PARTITIONS))
    in_order = sorted(partitions, key=lambda each: (each.topic_name, each.partition_id))
    return [_lose(image, each, broker_id, controller_id, unregister=unregister) for each in in_order]


def _lose(
    image: Image, partition: Partition, broker_id: int, controller_id: int, *, unregister: bool
) -> PartitionLoss:
    before = _state(image, partition, partition.leader, partition.isr)
    # Kafka looks at the partitions of its ELR, too, when it unregisters a broker.
    touched = (*partition.isr, *(partition.eligible_leader_replicas if unregister else ()))
    if broker_id not in touched:
        return PartitionLoss(partition, before, before)
    left = tuple(replica for replica in partition.isr if replica != broker_id)
    candidates = [
        replica for replica in partition.replicas if _may_lead(image, partition, replica, broker_id)
    ]
    elr = () if left or not elr_enabled(image) else (*partition.eligible_leader_replicas, *partition.isr)
    clean = [replica for replica in candidates if replica in left or replica in elr]
    if clean:
        leader = partition.leader if partition.leader in clean else clean[0]
        return PartitionLoss(partition, before, _state(image, partition, leader, left or (leader,)))
    unclean = unclean_election(image, partition.topic_name, controller_id)
    if unclean and candidates:
        leader = candidates[0]
        after = _state(image, partition, leader, (leader,))
        return PartitionLoss(partition, before, after, is_unclean=True)
    # Without ELR, the last member stays in the ISR of a partition that has no leader.
    isr = left if left or elr_enabled(image) else partition.isr
    after = _state(image, partition, NO_LEADER, isr)
    return PartitionLoss(partition, before, after, may_be_unclean=unclean is None and bool(candidates))


def _state(image: Image, partition: Partition, leader: int, isr: tuple[int, ...]) -> PartitionState:
    least = min_isr(image, partition.topic_name, leader)
    # One replica in sync is as little as Kafka accepts, all replicas are as much as it demands.
    most = len(partition.replicas)
    if least is None and len(isr) >= most:
        least = 1
    return PartitionState(leader, isr, None if least is None else min(least, most))


def _may_lead(image: Image, partition: Partition, replica: int, lost: int) -> bool:
    """An active broker whose log directory is online (LeaderAcceptor, DirectoryId.isOnline)."""
    broker: Broker | None = image.tables.get(BROKERS, (replica,))
    if broker is None or replica == lost or not broker.is_active:
        return False
    return is_online(broker, partition.directory_of(replica))
