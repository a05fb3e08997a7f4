"""The record that changes a partition: who leads, its ISR, ELR and replicas (Kafka's PartitionChangeBuilder).

The rules are those of elections and reassignments; what the loss of a broker does to partitions is
kraft_core.plan.broker_loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, cast

from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.java import hash_map_order
from kraft_core.topic_control.requests import TopicRecord

_RECOVERING = 1
_ISR_SHRINK_KEEPS_EPOCH = 12
"""metadata.version 3.6-IV0: from here on the leader epoch stays where the ISR shrinks."""


class ElectionType(Enum):
    """Whom to elect: the preferred replica, any in sync, or any at all."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Target:
    """What a partition should have."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    elr: tuple[int, ...]

    @classmethod
    def of(cls, partition: Partition) -> Target:
        """What it has."""
        return cls(
            partition.replicas,
            partition.isr,
            partition.removing_replicas,
            partition.adding_replicas,
            partition.eligible_leader_replicas,
        )


def change_record(
    controller: ActiveController, partition: Partition, target: Target, election: ElectionType
) -> TopicRecord | None:
    """The PARTITION_CHANGE_RECORD; None where nothing changes."""
    return _Change(controller, partition, _completed(target), election).record()


def _completed(target: Target) -> Target:
    """A reassignment ends as soon as the added replicas are in sync (PartitionReassignmentReplicas)."""
    if not target.removing and not target.adding:
        return target
    isr = _without(target.isr, target.removing)
    replicas = _without(target.replicas, target.removing)
    if target.removing and not (isr and replicas):
        return target
    is_shrinking = len(target.adding) < len(target.removing)
    if not set(target.adding) <= set(isr) or (is_shrinking and not set(replicas) <= set(isr)):
        return target
    return replace(target, isr=isr, replicas=replicas, removing=(), adding=())


def _without(ids: Iterable[int], gone: Iterable[int]) -> tuple[int, ...]:
    left = set(gone)
    return tuple(each for each in ids if each not in left)


def _listed(value: Any) -> Any:
    return list(cast(tuple[Any, ...], value)) if isinstance(value, tuple) else value


class _Change:
    """One record in the making; elr and isr change with the election."""

    def __init__(
        self, controller: ActiveController, partition: Partition, target: Target, election: ElectionType
    ) -> None:
        self.controller = controller
        self.partition = partition
        self.target = target
        self.election = election
        self.fields: dict[str, Any] = {}
        self.isr = target.isr
        self.elr = target.elr

    def record(self) -> TopicRecord | None:
        self._populate_elr()
        self._elect()
        if "leader" not in self.fields and Counter(self.partition.replicas) - Counter(self.target.replicas):
            self.fields["leader"] = self.partition.leader
        self._change_elr()
        has_elrs = self.controller.elr_enabled
        if "isr" not in self.fields and (self.isr or has_elrs) and self.isr != self.partition.isr:
            self.fields["isr"] = self.isr
        self._bump_for_shrunken_isr()
        self._change_last_known()
        self._change_assignment()
        if not self.fields:
            return None
        partition = self.partition
        ids: dict[str, Any] = {"partitionId": partition.partition_id, "topicId": partition.topic_id}
        value = ids | {name: _listed(value) for name, value in self.fields.items()}
        return TopicRecord("PARTITION_CHANGE_RECORD", self.controller.partition_version, value)

    def _populate_elr(self) -> None:
        """Below min ISR, what was in sync stays eligible (KIP-966)."""
        if not self.controller.elr_enabled:
            return
        if len(self.isr) >= self.controller.effective_min_isr(self.partition):
            self.elr = ()
            return
        candidates = hash_map_order((*hash_map_order(self.elr, int), *self.partition.isr), int)
        self.elr = tuple(each for each in candidates if each not in self.isr)

    def _elect(self) -> None:
        leader, is_unclean = self._leader()
        if leader == self.partition.leader:
            return
        if leader in self.elr:
            self.isr = (leader,)
            self.elr = _without(self.elr, (leader,))
        self.fields["leader"] = leader
        if is_unclean:
            self.fields["isr"] = (leader,)
            if self.partition.leader_recovery_state != _RECOVERING:
                self.fields["leaderRecoveryState"] = _RECOVERING

    def _leader(self) -> tuple[int, bool]:
        """Who leads then, and whether it was not in sync; NO_LEADER: nobody."""
        replicas, current = self.target.replicas, self.partition.leader
        order = [current, *replicas]
        if self.election is ElectionType.PREFERRED:
            order = [replicas[0], current, *replicas[1:]]
        in_sync = next((each for each in order if self._may_lead(each)), None)
        if in_sync is not None:
            return in_sync, False
        last = self.partition.last_known_elr
        knows_last = self.controller.elr_enabled and not self.elr and not self.isr and len(last) == 1
        if knows_last and self.controller.accepts_leader(self.partition, last[0]):
            return last[0], True
        if self.election is ElectionType.UNCLEAN:
            for each in replicas:
                if self.controller.accepts_leader(self.partition, each):
                    return each, True
        return NO_LEADER, False

    def _may_lead(self, replica: int) -> bool:
        is_eligible = replica in self.isr or (not self.isr and replica in self.elr)
        return is_eligible and self.controller.accepts_leader(self.partition, replica)

    def _change_elr(self) -> None:
        if "isr" in self.fields or not self.controller.elr_enabled:
            self.elr = ()
        if self.elr != self.partition.eligible_leader_replicas:
            self.fields["eligibleLeaderReplicas"] = self.elr

    def _bump_for_shrunken_isr(self) -> None:
        isr = self.fields.get("isr")
        if self.controller.metadata_version >= _ISR_SHRINK_KEEPS_EPOCH or "leader" in self.fields:
            return
        if isr is not None and Counter(self.partition.isr) - Counter(isr):
            self.fields["leader"] = self.partition.leader

    def _change_last_known(self) -> None:
        leader = self.fields.get("leader")
        if not self.controller.elr_enabled or leader is None:
            return
        if leader == NO_LEADER and not self.partition.last_known_elr:
            self.fields["lastKnownElr"] = (self.partition.leader,)
        elif leader != NO_LEADER and self.partition.last_known_elr:
            self.fields["lastKnownElr"] = ()

    def _change_assignment(self) -> None:
        partition, target = self.partition, self.target
        if target.replicas and self.controller.assigns_directories:
            directories = self._directories(target.replicas)
            if directories != partition.directories:
                self.fields["directories"] = directories
        for field, after, before in (
            ("replicas", target.replicas or partition.replicas, partition.replicas),
            ("removingReplicas", target.removing, partition.removing_replicas),
            ("addingReplicas", target.adding, partition.adding_replicas),
        ):
            if after != before:
                self.fields[field] = after

    def _directories(self, replicas: Sequence[int]) -> tuple[str, ...]:
        held = dict(zip(self.partition.replicas, self.partition.directories, strict=True))
        return tuple(
            held[each] if each in held else self.controller.default_directory(each) for each in replicas
        )
