"""What a change of a topic's configs costs: acks=all that fails, ELRs that go, records that are deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraft_core.image.effective_configs import min_isr_default, unclean_election_default
from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.plan.broker_words import partition_words
from kraft_core.plan.min_isr_risks import has_no_spare, is_under, no_spare_replica
from kraft_core.plan.risks import Risk
from kraft_core.plan.topic_defaults import defaults, in_file, is_assumed
from kraft_core.topic_control.config_types import TOPIC_CONFIGS, ConfigRefusedError, parsed
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import (
    CLEANUP_POLICY,
    DELETE_RETENTION,
    MIN_COMPACTION_LAG,
    MIN_ISR,
    RETENTION_BYTES,
    RETENTION_MS,
    UNCLEAN_ELECTION,
)
from kraft_core.topic_control.requests import TopicResult

_LIMITS = {"retention.ms": RETENTION_MS, "retention.bytes": RETENTION_BYTES}
# For how long compaction keeps what it would remove: values that a later one replaces, and tombstones.
_LIMITS_OF_COMPACTION = {"min.compaction.lag.ms": MIN_COMPACTION_LAG, "delete.retention.ms": DELETE_RETENTION}
_POLICY = "cleanup.policy"


def config_risks(controller: ActiveController, result: TopicResult) -> Iterator[Risk]:
    """Of an accepted change, by its records."""
    changed, partitions = _changed(result), _partitions(controller, result.name)
    if MIN_ISR in changed:
        yield from _of_min_isr(controller, partitions, changed[MIN_ISR])
    if UNCLEAN_ELECTION in changed:
        yield from _of_unclean(controller, partitions, changed[UNCLEAN_ELECTION])
    yield from _of_retention(controller, result.name, changed)


def config_missing(controller: ActiveController, result: TopicResult) -> Iterator[str]:
    """What the price of an accepted change depends on, and no log shows: the files of nodes."""
    changed, partitions = _changed(result), _partitions(controller, result.name)
    if MIN_ISR in changed:
        unknown = [
            each
            for each in partitions
            if each.leader != NO_LEADER and len(each.isr) < len(each.replicas)
            if _least(controller, each, changed[MIN_ISR]) is None
        ]
        if unknown:
            yield (
                f"min.insync.replicas of {partition_words(unknown)}: the cluster has it not as a dynamic "
                "config, and the brokers' files are not in the log"
            )
    if UNCLEAN_ELECTION in changed and changed[UNCLEAN_ELECTION] is None:
        is_known = unclean_election_default(controller.image, controller.node_id) is not None
        if not is_known and not controller.file.is_given and _waiting(controller, partitions):
            yield in_file(UNCLEAN_ELECTION)
    held = controller.topic_configs(result.name)
    if not _LIMITS_OF_COMPACTION.keys().isdisjoint(changed) and not {_POLICY} & {*held, *changed}:
        yield from (in_file(CLEANUP_POLICY),) if is_assumed(controller, CLEANUP_POLICY) else ()
    for name, default in (*_limits(controller, result.name, changed), (_POLICY, CLEANUP_POLICY)):
        # Where the topic has its own before and after, the default decides nothing.
        is_default = name in changed and (name not in held or changed[name] is None)
        if is_default and is_assumed(controller, default):
            yield in_file(default)
        elif is_default and any(_parsed(name, each) is None for each in defaults(controller, default)):
            yield f"{default}: it has a value that Kafka does not accept"


def _changed(result: TopicResult) -> dict[str, str | None]:
    """The new values, by config; None: removed."""
    return {r.value["name"]: r.value["value"] for r in result.records if r.type == "CONFIG_RECORD"}


def _partitions(controller: ActiveController, name: str) -> list[Partition]:
    found = controller.partitions(controller.topic_id(name) or "").values()
    return sorted(found, key=lambda each: each.partition_id)


def _of_min_isr(
    controller: ActiveController, partitions: list[Partition], value: str | None
) -> Iterator[Risk]:
    under: list[Partition] = []
    no_spare: dict[int, list[Partition]] = {}
    for each in partitions:
        least = _least(controller, each, value)
        if each.leader != NO_LEADER and least is not None:
            if is_under(len(each.isr), len(each.replicas), least):
                under.append(each)
            elif has_no_spare(len(each.replicas), least):
                no_spare.setdefault(least, []).append(each)
    if under:
        words = f"under min.insync.replicas then, so that acks=all fails: {partition_words(under)}"
        yield Risk("under_min_isr", words)
    for least, concerned in no_spare.items():
        yield no_spare_replica(partition_words(concerned), least)
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
    return min_isr_default(controller.image, partition.leader) if value is None else parsed(MIN_ISR, value)


def _of_unclean(
    controller: ActiveController, partitions: list[Partition], value: str | None
) -> Iterator[Risk]:
    if not _is_unclean(controller, value):
        return
    waiting = _waiting(controller, partitions)
    if waiting:
        words = f"a replica that is not in sync will lead {partition_words(waiting)}: records are lost"
        yield Risk("unclean_election", words)


def _is_unclean(controller: ActiveController, value: str | None) -> bool:
    """Whether the controller elects any replica then; without a value by its own config or the cluster's."""
    if value is not None:
        return bool(parsed(UNCLEAN_ELECTION, value))
    default = unclean_election_default(controller.image, controller.node_id)
    return controller.file.is_on(UNCLEAN_ELECTION) if default is None else default


def _waiting(controller: ActiveController, partitions: list[Partition]) -> list[Partition]:
    """Those without a leader that an unclean election would give one."""
    return [
        each
        for each in partitions
        if each.leader == NO_LEADER and any(controller.accepts_leader(each, r) for r in each.replicas)
    ]


def _of_retention(controller: ActiveController, name: str, changed: dict[str, str | None]) -> Iterator[Risk]:
    """What is kept for less long, or by another policy, is deleted, and does not come back."""
    held = controller.topic_configs(name)
    for limit, default in _limits(controller, name, changed):
        if limit not in changed:
            continue
        before = _values(controller, limit, default, held.get(limit))
        if any(_is_less(b, a) for b in before for a in _values(controller, limit, default, changed[limit])):
            after = "the cluster's" if changed[limit] is None else changed[limit]
            yield Risk("records_deleted", f"{name} keeps less: {limit} becomes {after}")
    if _POLICY in changed:
        before = _values(controller, _POLICY, CLEANUP_POLICY, held.get(_POLICY))
        after = _values(controller, _POLICY, CLEANUP_POLICY, changed[_POLICY])
        added = {each for a in after for b in before for each in set(a) - set(b)}
        if added:
            words = f"{name} is also cleaned by {' and '.join(sorted(added))}, which removes records"
            yield Risk("records_deleted", words)
    tiered = "remote.storage.enable"
    if tiered in changed and _value(tiered, held.get(tiered)) and not _value(tiered, changed[tiered]):
        yield Risk("records_deleted", f"what {name} has in remote storage is deleted")


def _limits(
    controller: ActiveController, name: str, changed: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """What limits how long records are kept, with the name of its default; of a compacted topic more."""
    policy = changed[_POLICY] if _POLICY in changed else controller.topic_configs(name).get(_POLICY)
    yield from _LIMITS.items()
    if any("compact" in each for each in _values(controller, _POLICY, CLEANUP_POLICY, policy)):
        yield from _LIMITS_OF_COMPACTION.items()


def _value(name: str, text: str | None) -> object:
    """With Kafka's default where the topic has none."""
    return TOPIC_CONFIGS[name].default if text is None else parsed(name, text)


def _values(controller: ActiveController, name: str, default: str, text: str | None) -> list[Any]:
    """The topic's own, else every valid default that one of its brokers may have."""
    texts = [text] if text is not None else defaults(controller, default)
    return [value for each in texts if (value := _parsed(name, each)) is not None]


def _parsed(name: str, text: str) -> Any | None:
    try:
        return parsed(name, text)
    except ConfigRefusedError:
        return None


def _is_less(before: object, after: object) -> bool:
    """-1 is no limit."""
    if not isinstance(before, int) or not isinstance(after, int) or after == -1:
        return False
    return before == -1 or after < before
