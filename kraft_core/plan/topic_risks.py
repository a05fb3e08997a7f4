"""What new topics and partitions cost, as far as the captures show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil

from kraft_core.image.effective_configs import min_isr
from kraft_core.plan.min_isr_risks import has_no_spare, is_under, no_spare_replica
from kraft_core.plan.risks import Risk
from kraft_core.plan.topic_defaults import defaults, in_file, is_assumed
from kraft_core.topic_control.config_types import parsed
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import CLEANUP_POLICY, MIN_ISR
from kraft_core.topic_control.requests import TopicResult
from kraft_core.topic_control.topic_names import is_internal, unified


def colliding_names(names: Sequence[str]) -> Iterator[Risk]:
    """Kafka compares the names of a request with the existing ones only."""
    times = Counter(unified(name) for name in names)
    for name in names:
        if times[unified(name)] > 1:
            twins = ", ".join(each for each in names if unified(each) == unified(name))
            yield Risk(
                "colliding_names",
                f"{twins} share the names of their metrics: Kafka accepts them in one request, but in "
                "separate requests only the first",
            )
            times[unified(name)] = 0


def keys_move(controller: ActiveController, name: str) -> Iterator[Risk]:
    """Where keys matter: more partitions put a key elsewhere."""
    policy = controller.topic_configs(name).get("cleanup.policy")
    policies = defaults(controller, CLEANUP_POLICY) if policy is None else [policy]
    if any("compact" in each for each in policies) or is_internal(name):
        yield Risk("keys_move", f"{name} is compacted by key, and keys will map to other partitions")


def keys_may_move(controller: ActiveController, name: str) -> Iterator[str]:
    """Whether they do depends on a file that is not known."""
    if "cleanup.policy" in controller.topic_configs(name) or any(keys_move(controller, name)):
        return
    if is_assumed(controller, CLEANUP_POLICY):
        yield in_file(CLEANUP_POLICY)


def in_sync_at_first(controller: ActiveController, result: TopicResult, *, is_placed: bool) -> Iterator[Risk]:
    """Whether each new partition has all replicas and its min ISR. is_placed: Kafka chooses the brokers."""
    replicas, in_sync = _fewest(controller, result, is_placed=is_placed)
    if in_sync < replicas:
        may = "may begin" if is_placed else "begin"
        yield Risk(
            "replicas_down",
            f"partitions of {result.name} {may} with {in_sync} of {replicas} replicas in sync",
        )
    least = _min_isr(controller, result, is_placed=is_placed)
    if least is None:
        least = controller.file.integer(MIN_ISR) if controller.file.is_given else 1
        # Brokers are taken to have the file, but it proves nothing of them: it is a risk, and no more.
        if in_sync == replicas and has_no_spare(replicas, least):
            yield no_spare_replica(result.name, least)
        return
    if is_under(in_sync, replicas, least):
        needed = min(least, replicas)
        words = f"{result.name} needs {needed} in sync for acks=all (min.insync.replicas {least})"
        yield Risk("under_min_isr", words)
    elif has_no_spare(replicas, least):
        yield no_spare_replica(result.name, least)


def not_in_sync_at_first(
    controller: ActiveController, result: TopicResult, *, is_placed: bool
) -> Iterator[str]:
    """Where a replica is down, min ISR decides whether acks=all works; where all are, Kafka refuses."""
    replicas, in_sync = _fewest(controller, result, is_placed=is_placed)
    if in_sync < 1:
        yield (
            f"Kafka places replicas at random, and refuses a placement of {result.name} in which all "
            "replicas of a partition are shutting down"
        )
    elif in_sync < replicas and _min_isr(controller, result, is_placed=is_placed) is None:
        yield (
            f"min.insync.replicas of {result.name}: neither the topic nor the cluster has it as a dynamic "
            "config, and the brokers' files are not in the log"
        )


def _min_isr(controller: ActiveController, result: TopicResult, *, is_placed: bool) -> int | None:
    """As the new topic has it, else as a broker that may lead knows it; None where only its file says it."""
    for record in result.records:
        if record.type == "CONFIG_RECORD" and record.value["name"] == MIN_ISR:
            return parsed(MIN_ISR, record.value["value"])
    leaders = {r.value["leader"] for r in result.records if r.type == "PARTITION_RECORD"}
    if is_placed:
        leaders = {b.broker_id for b in controller.usable_brokers() if controller.is_active(b.broker_id)}
    found = {min_isr(controller.image, result.name, leader) for leader in leaders}
    return None if None in found or not found else max(each for each in found if each is not None)


def _fewest(controller: ActiveController, result: TopicResult, *, is_placed: bool) -> tuple[int, int]:
    """The replicas of each partition, and how many of one are in sync at least."""
    partitions = [record.value for record in result.records if record.type == "PARTITION_RECORD"]
    replicas = max(len(each["replicas"]) for each in partitions)
    in_sync = min(len(each["isr"]) for each in partitions)
    if not is_placed:
        return replicas, in_sync
    return replicas, min(in_sync, fewest_in_sync(controller, replicas, len(partitions)))


def fewest_in_sync(controller: ActiveController, replicas: int, partitions: int) -> int:
    """The active replicas that any placement has at least; below 1 it may have none, which Kafka refuses.

    A rack gives as many brokers as its share is, those that are not fenced first; where a rack has fewer, the
    others give more. After as many partitions as there are unfenced brokers Kafka shuffles, and may then pass
    over the unfenced brokers of a rack that it did not use since it began.
    """
    usable = controller.usable_brokers()
    racks = {broker.rack for broker in usable}
    share = ceil(replicas / max(len(racks), 1))
    up = Counter(broker.rack for broker in usable if not broker.fenced)
    stopping = sum(not b.fenced and not controller.is_active(b.broker_id) for b in usable)
    fenced = sum(broker.fenced for broker in usable)
    uses_every_rack = replicas >= len(racks)
    if all(up[rack] >= share for rack in racks) and (uses_every_rack or partitions <= sum(up.values())):
        fenced = 0
    # The first replica is not fenced.
    return replicas - min(fenced, replicas - 1) - stopping
