"""What may be lost by what is restored: partitions without their messages, and what was seen later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kraft_core.restore.choice import PossibleLoss
from kraft_core.restore.later import MEANING, Consequence
from kraft_core.restore.offline import SureReplica
from kraft_core.wording import count, first_named

NO_SURE_REPLICA, UNREPLICATED, FORGOTTEN = "no-sure-replica", "unreplicated-messages", "forgotten-by-kafka"
MOST_NAMED = 10


def content_losses(
    deviations: Iterable[str], later: Sequence[Consequence], sure: Sequence[SureReplica]
) -> Iterator[PossibleLoss]:
    """deviations: what checkpoints lack by a known fault of Kafka, in sentences. later, sure: as Restored has
    them.
    """
    for sentence in deviations:
        yield PossibleLoss(FORGOTTEN, sentence)
    for name, meaning in MEANING.items():
        things = [f"{each.thing}: {each.change}" for each in later if each.loss == name]
        if things:
            yield PossibleLoss(name, f"{meaning}: {first_named(things, MOST_NAMED, '; ')}.")
    yield from _of_partitions(sure)


def unregistered_loss(broker_id: int, directory_id: str) -> PossibleLoss:
    """Of a log directory that a broker has, and has not registered."""
    return PossibleLoss(
        NO_SURE_REPLICA,
        f"Broker {broker_id} has a log directory {directory_id} that it has not registered: the disk is "
        f"new and lacks its messages (--lost-brokers {broker_id}), or the metadata is older than it.",
    )


def _of_partitions(sure: Sequence[SureReplica]) -> Iterator[PossibleLoss]:
    waiting = [each for each in sure if not each.is_back]
    if waiting:
        yield PossibleLoss(
            NO_SURE_REPLICA,
            f"{count(len(waiting), 'partition')} without a leader: no returning broker is sure to have all "
            f"acknowledged messages of {_named(waiting)}.",
        )
    empty = [each for each in sure if each.is_empty]
    if empty:
        yield PossibleLoss(
            NO_SURE_REPLICA,
            f"{count(len(empty), 'partition')} without messages: the broker that would lead does not have "
            f"{_named(empty)}, and no other returning broker is sure to have all acknowledged messages.",
        )
    behind = [each for each in sure if each.is_back and each.is_behind]
    if behind:
        yield PossibleLoss(
            NO_SURE_REPLICA,
            f"{count(len(behind), 'partition')} that may lack the last messages: the broker that would lead "
            f"has no leader epoch of {_named(behind)} as high as another one, as on a disk restored from a "
            "backup.",
        )
    led_elsewhere = [each for each in sure if each.leader_is_lost]
    if led_elsewhere:
        yield PossibleLoss(
            UNREPLICATED,
            f"{count(len(led_elsewhere), 'partition')} whose leader is lost, or has less than "
            f"another broker: messages that it alone had acknowledged (acks=1) of {_named(led_elsewhere)}.",
        )


def _named(partitions: Sequence[SureReplica]) -> str:
    return first_named([f"{each.topic_name}-{each.partition_id}" for each in partitions], MOST_NAMED)
