"""Partitions before and after the records of an answer, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.image.change import Change
from kraft_core.image.effective_configs import min_isr
from kraft_core.image.partitions import NO_LEADER, NO_LEADER_CHANGE, Partition, change
from kraft_core.image.tables import PARTITIONS, Tables
from kraft_core.plan.broker_words import partition_words
from kraft_core.plan.min_isr_risks import is_under
from kraft_core.plan.risks import Risk
from kraft_core.plan.topic_words import MOST_SHOWN
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.partition_change import ElectionType, Target, change_record
from kraft_core.topic_control.requests import TopicResult


@dataclass(frozen=True, slots=True)
class PartitionAfter:
    before: Partition
    after: Partition

    @property
    def is_unclean(self) -> bool:
        """Whether the new leader was neither in sync nor eligible, so that records may be lost."""
        leader = self.after.leader
        return leader not in (NO_LEADER, self.before.leader) and leader not in self.before.in_sync


def after_changes(controller: ActiveController, results: Sequence[TopicResult]) -> list[PartitionAfter]:
    """Each partition that a record changes."""
    found: list[PartitionAfter] = []
    for record in (record for result in results for record in result.records):
        before = controller.partition(record.value["topicId"], record.value["partitionId"])
        assert isinstance(before, Partition)
        found.append(PartitionAfter(before, _changed(controller.image.tables, record.value)))
    return found


def after_reassignments(
    controller: ActiveController, changes: Sequence[PartitionAfter]
) -> list[PartitionAfter]:
    """What becomes of the reassignments that go on, once each added replica is in sync: most end then.

    before: as the reassignment begins.
    """
    found: list[PartitionAfter] = []
    for begun in (each.after for each in changes):
        if not begun.is_reassigned:
            continue
        isr = (*begun.isr, *(each for each in begun.adding_replicas if each not in begun.isr))
        target = replace(Target.of(begun), isr=isr)
        record = change_record(controller, begun, target, ElectionType.ONLINE)
        if record is None:
            continue
        tables = Tables()
        tables.put(Change(PARTITIONS, (begun.topic_id, begun.partition_id), begun))
        found.append(PartitionAfter(begun, _changed(tables, record.value)))
    return found


def _changed(tables: Tables, value: Mapping[str, Any]) -> Partition:
    """A partition of the tables after a PartitionChangeRecord."""
    (made,) = change(tables, {"leader": NO_LEADER_CHANGE, **value})
    assert isinstance(made.value, Partition)
    return made.value


def change_words(changes: Sequence[PartitionAfter]) -> Iterator[str]:
    """What becomes of each; at most this many."""
    for each in changes[:MOST_SHOWN]:
        before, after = each.before, each.after
        name = f"{before.topic_name}-{before.partition_id}"
        yield f"{name}: {_words(before)}; then {_words(after)}"
    if len(changes) > MOST_SHOWN:
        yield f"and {len(changes) - MOST_SHOWN} more partitions; --format json lists all"


def _words(partition: Partition) -> str:
    leader = "none" if partition.leader == NO_LEADER else str(partition.leader)
    words = f"leader {leader}, ISR {_ids(partition.isr)} of {_ids(partition.replicas)}"
    if partition.adding_replicas:
        words += f", adding {_ids(partition.adding_replicas)}"
    if partition.removing_replicas:
        words += f", removing {_ids(partition.removing_replicas)}"
    return words


def _ids(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "none"


def unclean_then(changes: Sequence[PartitionAfter]) -> Iterator[Risk]:
    unclean = [each.before for each in changes if each.is_unclean]
    if unclean:
        words = f"a replica that is not in sync leads {partition_words(unclean)}: records are lost"
        yield Risk("unclean_election", words)


def offline_then(changes: Sequence[PartitionAfter]) -> Iterator[Risk]:
    offline = [
        each.before for each in changes if each.after.leader == NO_LEADER and each.before.leader != NO_LEADER
    ]
    if offline:
        yield Risk("partitions_offline", f"no leader any more for {partition_words(offline)}")


def under_min_isr_then(controller: ActiveController, changes: Sequence[PartitionAfter]) -> Iterator[Risk]:
    """Those that are not under it before."""
    under = [
        each.before
        for each in changes
        if is_under_min_isr(controller, each.after) and not is_under_min_isr(controller, each.before)
    ]
    if under:
        words = f"under min.insync.replicas then, so that acks=all fails: {partition_words(under)}"
        yield Risk("under_min_isr", words)


def is_under_min_isr(controller: ActiveController, partition: Partition) -> bool:
    """False where min.insync.replicas is in no log, or nobody leads."""
    least = min_isr(controller.image, partition.topic_name, partition.leader)
    if least is None or partition.leader == NO_LEADER:
        return False
    return is_under(len(partition.isr), len(partition.replicas), least)


def min_isr_not_known(controller: ActiveController, changes: Sequence[PartitionAfter]) -> Iterator[str]:
    """Of partitions that lose members of the ISR, or get another leader, whose file may demand more."""
    unknown = [
        each.before
        for each in changes
        if _may_demand_more(each)
        and min_isr(controller.image, each.before.topic_name, each.after.leader) is None
    ]
    if unknown:
        yield (
            f"min.insync.replicas of {partition_words(unknown)}: neither the topic nor the cluster has it as "
            "a dynamic config, and the brokers' files are not in the log"
        )


def _may_demand_more(each: PartitionAfter) -> bool:
    """A leader demands no more than there are replicas, so with those that are added perhaps more."""
    before, after = each.before, each.after
    is_whole = len(before.isr) >= len(before.replicas)
    if len(after.isr) < (len(after.replicas) if is_whole else min(len(before.isr), len(after.replicas))):
        return True
    is_led_by_another = NO_LEADER not in (before.leader, after.leader) and before.leader != after.leader
    return is_led_by_another and len(after.isr) < len(after.replicas)
