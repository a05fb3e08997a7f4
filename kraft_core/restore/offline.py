"""The metadata that a new quorum starts with: no broker is there yet, each partition waits for a sure one.

Registrations that are left unfenced time out one by one, and each leaves the ISRs: then only the last broker
could be elected, and partitions stay leaderless although a broker with all their data is back (seen with
Kafka 4.3.1). So all brokers are fenced, and each partition's ISR is one replica that has all acknowledged
records; the others join again by fetching. Brokers that kept running just continue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.image.producer_ids import ProducerIds
from kraft_core.image.tables import BROKERS, CONTROLLERS, FEATURES, PARTITIONS, PRODUCER_IDS
from kraft_core.restore.horizon import Horizon
from kraft_core.restore.replay import PartitionKey

_ELR_FEATURE = "eligible.leader.replicas.version"
_NO_BROKER = -1
_NO_EPOCHS: Mapping[tuple[int, PartitionKey], int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SureReplica:
    """A partition and the broker that has all its acknowledged records by the metadata.

    is_back: that broker is expected back; if it is not, the partition stays without a leader. broker_id None:
    the metadata names none. is_empty: it comes back, and its directory does not hold the partition.
    is_behind: its directory lacks a leader epoch that another broker in sync has.
    leader_is_lost: another broker led, and what it alone had acknowledged (acks=1) is lost.
    """

    topic_name: str
    partition_id: int
    broker_id: int | None
    is_back: bool
    is_empty: bool = False
    is_behind: bool = False
    leader_is_lost: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether that broker comes back with all acknowledged records, as far as its directories tell."""
        return self.is_back and not self.is_empty and not self.is_behind


def offline(
    image: Image,
    horizon: Horizon,
    lost_brokers: frozenset[int],
    lacking: frozenset[tuple[int, PartitionKey]] = frozenset(),
    epochs: Mapping[tuple[int, PartitionKey], int] = _NO_EPOCHS,
) -> tuple[Image, list[SureReplica]]:
    """The image to start from, and of each partition its sure replica, by topic and partition.

    lost_brokers: those that never come back. lacking: brokers that come back without a partition. epochs: the
    last leader epoch that a broker has of a partition, as far as its directories were given. Controllers are
    left out: the new ones register themselves. Each registration keeps its broker epoch, with which
    heartbeats are compared. Raises ExhaustedError.
    """
    made = image.copy()
    put = made.tables.put
    for key, _ in list(image.tables.items(CONTROLLERS)):
        put(Change(CONTROLLERS, key, None))
    brokers: list[Broker] = [broker for _, broker in image.tables.items(BROKERS)]
    for broker in brokers:
        fenced = replace(broker, fenced=True, in_controlled_shutdown=False)
        put(Change(BROKERS, (broker.broker_id,), fenced))
    elr: Feature | None = image.tables.get(FEATURES, (_ELR_FEATURE,))
    registered = frozenset(broker.broker_id for broker in brokers)
    back = registered - lost_brokers
    without: dict[PartitionKey, set[int]] = {}
    for broker, place in lacking:
        without.setdefault(place, set()).add(broker)
    sure: list[SureReplica] = []
    for key, partition in list(image.tables.items(PARTITIONS)):
        place = key[0], key[1]
        holding = back.difference(without.get(place, ()))
        behind = _behind(partition, {id_: epochs.get((id_, place)) for id_ in partition.replicas})
        waiting, broker_id = _waiting(partition, holding, behind, elr is not None and elr.level > 0)
        leader_epoch, partition_epoch = horizon.new_partition_epochs(place)
        waiting = replace(waiting, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        put(Change(PARTITIONS, key, waiting))
        sure.append(
            SureReplica(
                partition.topic_name,
                partition.partition_id,
                broker_id,
                is_back=broker_id in back,
                is_empty=broker_id in back - holding,
                is_behind=broker_id in behind,
                leader_is_lost=broker_id in holding and partition.leader not in (NO_LEADER, broker_id),
            )
        )
    ids = ProducerIds(horizon.new_producer_id, _NO_BROKER, -1)
    put(Change(PRODUCER_IDS, ("nextProducerId",), ids))
    return made, sorted(sure, key=lambda each: (each.topic_name, each.partition_id))


def _has_all(partition: Partition) -> tuple[int, ...]:
    """The brokers that have all acknowledged records by the metadata."""
    return partition.isr or partition.eligible_leader_replicas


def _behind(partition: Partition, epochs: Mapping[int, int | None]) -> frozenset[int]:
    """Of those brokers the ones that lack the last leader epoch that another has, and may lack its messages.

    So does a disk that was restored from a backup. epochs: the last of each replica, None where not known.
    One that is not in sync counts for the leader alone, from which the messages of its epoch came: of earlier
    epochs it may hold what nobody acknowledged.
    """
    known = {id_: epoch for id_ in _has_all(partition) if (epoch := epochs.get(id_)) is not None}
    last = max(known.values(), default=-1)
    behind = {id_ for id_, epoch in known.items() if epoch < last}
    fetched = max((epoch for epoch in epochs.values() if epoch is not None), default=-1)
    if known.get(partition.leader, fetched) < partition.leader_epoch <= fetched:
        behind.add(partition.leader)
    return frozenset(behind)


def _waiting(
    partition: Partition, holding: frozenset[int], behind: frozenset[int], has_elr: bool
) -> tuple[Partition, int | None]:
    """The partition without a leader, and its sure replica. holding: brokers that come back with it.

    The leader has even what was not yet replicated; then any member of the ISR, else of the ELR (KIP-966).
    Any other replica may lack acknowledged records: a partition without a sure one keeps its ISR.
    """
    has_all = _has_all(partition)
    ordered = sorted(has_all, key=lambda id_: (id_ not in holding, id_ in behind, id_ != partition.leader))
    if not ordered:
        return replace(partition, leader=NO_LEADER), None
    chosen = ordered[0]
    return (
        replace(
            partition,
            leader=NO_LEADER,
            isr=(chosen,),
            eligible_leader_replicas=(),
            last_known_elr=(chosen,) if has_elr else (),
        ),
        chosen,
    )
