"""What a change of a topic's configs costs: acks=all that fails, ELRs that go, records that are deleted."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.image.configs import Config
from kraft_core.image.effective_configs import BROKER_RESOURCE
from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.image.tables import CONFIGS
from kraft_core.plan.broker_words import partition_words
from kraft_core.plan.risks import Risk
from kraft_core.topic_control.config_types import TOPIC_CONFIGS, parsed
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import MIN_ISR, UNCLEAN_ELECTION
from kraft_core.topic_control.requests import TopicResult

_LIMITS = ("retention.ms", "retention.bytes")


def config_risks(controller: ActiveController, result: TopicResult) -> Iterator[Risk]:
    """Of an accepted change, by its records."""
    changed = {
        record.value["name"]: record.value["value"]
        for record in result.records
        if record.type == "CONFIG_RECORD"
    }
    found = controller.partitions(controller.topic_id(result.name) or "").values()
    partitions = sorted(found, key=lambda each: each.partition_id)
    if MIN_ISR in changed:
        yield from _of_min_isr(controller, partitions, changed[MIN_ISR])
    if UNCLEAN_ELECTION in changed:
        yield from _of_unclean(controller, partitions, changed[UNCLEAN_ELECTION])
    yield from _of_retention(controller, result.name, changed)


def _of_min_isr(
    controller: ActiveController, partitions: list[Partition], value: str | None
) -> Iterator[Risk]:
    under = [
        each
        for each in partitions
        if each.leader != NO_LEADER
        if (least := _least(controller, each, value)) is not None
        if len(each.isr) < min(least, len(each.replicas))
    ]
    if under:
        words = f"under min.insync.replicas then, so that acks=all fails: {partition_words(under)}"
        yield Risk("under_min_isr", words)
    cleared = [each for each in partitions if each.eligible_leader_replicas or each.last_known_elr]
    if cleared and controller.elr_enabled:
        words = f"Kafka clears the eligible leader replicas of the topic: {partition_words(cleared)}"
        yield Risk("elr_cleared", words)
        stuck = [each for each in cleared if each.leader == NO_LEADER and not each.isr]
        if stuck:
            words = f"then only an unclean election can elect a leader of {partition_words(stuck)}"
            yield Risk("partitions_offline", words)


def _least(controller: ActiveController, partition: Partition, value: str | None) -> int | None:
    """min.insync.replicas as the leader knows it then; None where only its file says it."""
    if value is not None:
        return int(value)
    for resource in (str(partition.leader), ""):
        config: Config | None = controller.image.tables.get(CONFIGS, (BROKER_RESOURCE, resource, MIN_ISR))
        if config is not None:
            return int(config.value)
    return None


def _of_unclean(
    controller: ActiveController, partitions: list[Partition], value: str | None
) -> Iterator[Risk]:
    if value is None or not parsed(UNCLEAN_ELECTION, value):
        return
    waiting = [
        each
        for each in partitions
        if each.leader == NO_LEADER and any(controller.accepts_leader(each, r) for r in each.replicas)
    ]
    if waiting:
        words = f"a replica that is not in sync will lead {partition_words(waiting)}: records are lost"
        yield Risk("unclean_election", words)


def _of_retention(controller: ActiveController, name: str, changed: dict[str, str | None]) -> Iterator[Risk]:
    """What is kept for less long, or by another policy, is deleted, and does not come back."""
    held = controller.topic_configs(name)
    for limit in _LIMITS:
        if limit in changed and _is_less(_value(limit, held.get(limit)), _value(limit, changed[limit])):
            after = "the cluster's" if changed[limit] is None else changed[limit]
            yield Risk("records_deleted", f"{name} keeps less: {limit} becomes {after}")
    policy = "cleanup.policy"
    if policy in changed:
        added = _policies(changed[policy]) - _policies(held.get(policy))
        if added:
            words = f"{name} is also cleaned by {' and '.join(sorted(added))}, which removes records"
            yield Risk("records_deleted", words)
    tiered = "remote.storage.enable"
    if tiered in changed and _value(tiered, held.get(tiered)) and not _value(tiered, changed[tiered]):
        yield Risk("records_deleted", f"what {name} has in remote storage is deleted")


def _value(name: str, text: str | None) -> object:
    """With Kafka's default where the topic has none."""
    return TOPIC_CONFIGS[name].default if text is None else parsed(name, text)


def _policies(text: str | None) -> set[str]:
    return {each.strip() for each in ("delete" if text is None else text).split(",")} - {""}


def _is_less(before: object, after: object) -> bool:
    """-1 is no limit."""
    if not isinstance(before, int) or not isinstance(after, int) or after == -1:
        return False
    return before == -1 or after < before
