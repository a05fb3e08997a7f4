"""May this broker be removed or restarted now? What happens to its partitions, and to the quorum?

Computed from the leader's whole log, from its committed part and, where it is SAFE, from what lies between:
the answer is known only if all agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kraft_core.image.brokers import Broker
from kraft_core.image.effective_configs import MIN_ISR, UNCLEAN_ELECTION
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS
from kraft_core.plan.actions import Lose
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_loss import PartitionLoss, lose_broker
from kraft_core.plan.broker_steps import removal_steps, restart_steps
from kraft_core.plan.broker_words import evidence, partition_words
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.migration import migration_of
from kraft_core.plan.risks import Risk
from kraft_core.plan.states_between import not_proven, of_broker
from kraft_core.plan.steps import CAPTURE_MORE, PlanStep
from kraft_core.plan.verdicts import Judged, judge
from kraft_core.protocol.errors import ErrorCode
from kraft_core.wording import count


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """is_removal: it stops for good and is unregistered; else it stops and comes back."""

    broker_id: int
    is_removal: bool

    @property
    def words(self) -> str:
        return f"{'remove' if self.is_removal else 'restart'} broker {self.broker_id}"


@dataclass(frozen=True, slots=True)
class BrokerImpact:
    """What the loss of a broker does to partitions, sorted by topic and partition.

    offline: they lose their leader. unclean: a replica that is not in sync leads, so that records are lost.
    under_min_isr: acks=all fails, though they have a leader. not_known: no log shows whether they go under.
    held: all that name the broker as a replica. only_copy: those of which no other is in the ISR or ELR.
    """

    offline: tuple[PartitionLoss, ...]
    unclean: tuple[PartitionLoss, ...]
    under_min_isr: tuple[PartitionLoss, ...]
    not_known: tuple[PartitionLoss, ...]
    held: tuple[Partition, ...]
    only_copy: tuple[Partition, ...]

    @property
    def partitions(self) -> dict[str, tuple[str, ...]]:
        """Every partition (TOPIC-N) by what becomes of it."""
        found = {
            "offline": _partitions(self.offline),
            "unclean_election": _partitions(self.unclean),
            "under_min_isr": _partitions(self.under_min_isr),
            "min_isr_not_known": _partitions(self.not_known),
            "replicas": self.held,
            "only_copy": self.only_copy,
        }
        return {
            name: tuple(f"{each.topic_name}-{each.partition_id}" for each in partitions)
            for name, partitions in found.items()
        }


def impact_of(losses: Iterable[PartitionLoss], broker_id: int) -> BrokerImpact:
    """Sorts out what lose_broker says."""
    found = list(losses)
    hit = [loss for loss in found if loss.after != loss.before]
    held = tuple(loss.partition for loss in found if broker_id in loss.partition.replicas)
    return BrokerImpact(
        offline=tuple(loss for loss in hit if loss.goes_offline),
        unclean=tuple(loss for loss in hit if loss.is_unclean),
        under_min_isr=tuple(loss for loss in hit if loss.goes_under_min_isr),
        not_known=tuple(loss for loss in hit if loss.goes_under_min_isr is None),
        held=held,
        only_copy=tuple(each for each in held if _is_only_copy(each, broker_id)),
    )


def _is_only_copy(partition: Partition, broker_id: int) -> bool:
    return (partition.in_sync or set(partition.last_known_elr)) == {broker_id}


def _partitions(losses: Iterable[PartitionLoss]) -> tuple[Partition, ...]:
    return tuple(loss.partition for loss in losses)


def plan_broker(metadata: CapturedMetadata, change: BrokerChange) -> Answer:
    """The verdict on the removal or restart."""
    image, leader = metadata.image, metadata.quorum.leader
    if image is None or leader is None:
        missing = metadata.gaps or (f"no leader of epoch {metadata.quorum.epoch} is known",)
        return Answer(change.words, "not_known", missing[0], missing=missing, steps=(CAPTURE_MORE,))
    made = _answer(metadata, image, change, leader.id)
    unseen = tuple(dict.fromkeys(_unseen(metadata, image, change, made, leader.id)))
    if not unseen:
        return made
    missing = tuple(dict.fromkeys((*unseen, *made.missing)))
    reason = missing[0]
    if made.verdict != "not_known":
        reason = f"{reason}; otherwise, by the captures: {made.verdict}, {made.reason}"
    return replace(made, verdict="not_known", reason=reason, missing=missing, steps=(CAPTURE_MORE,))


def _unseen(
    metadata: CapturedMetadata, image: Image, change: BrokerChange, made: Answer, controller_id: int
) -> Iterator[str]:
    """What the captures do not show: a refusal needs the leader's log, anything else that it leads, too."""
    leader = metadata.quorum.leader_log_gap if made.verdict == "refused" else metadata.quorum.leader_gap
    yield from (words for words in (leader, metadata.gap) if words is not None)
    now = _ruling(image, change, controller_id)
    concerns = of_broker(change.broker_id, (MIN_ISR, UNCLEAN_ELECTION))
    yield from not_proven(
        metadata, made.verdict, concerns, lambda state: _ruling(state, change, controller_id) == now
    )


def _ruling(image: Image, change: BrokerChange, controller_id: int) -> object:
    """All that the answer depends on."""
    broker_id = change.broker_id
    losses = lose_broker(image, broker_id, controller_id, unregister=change.is_removal)
    broker = _broker(image, broker_id)
    partitions = impact_of(losses, broker_id).partitions
    return broker is not None, partitions, tuple(_stays_away(image, change, broker))


def _broker(image: Image, broker_id: int) -> Broker | None:
    return image.tables.get(BROKERS, (broker_id,))


def _answer(metadata: CapturedMetadata, image: Image, change: BrokerChange, controller_id: int) -> Answer:
    """The answer if the captures show all."""
    broker = _broker(image, change.broker_id)
    losses = lose_broker(image, change.broker_id, controller_id, unregister=change.is_removal)
    impact = impact_of(losses, change.broker_id)
    seen = tuple(evidence(metadata, image, change.broker_id, losses))
    if broker is None:
        return _not_registered(change, seen, impact)
    lost = metadata.quorum.voter_of(change.broker_id)
    judged = judge(metadata.quorum, Lose((change.broker_id,) if lost is not None else ()))
    risks = (*_risks(metadata, change, impact, judged), *_stays_away(image, change, broker))
    reason = "; ".join(risk.sentence for risk in risks)
    missing = tuple(_missing(impact, judged))
    if not risks and missing:
        reason = missing[0]
    verdict = "risky" if risks else "not_known" if missing else "safe"
    return Answer(
        change.words,
        verdict,
        reason or _fine(change, broker),
        seen,
        missing,
        risks,
        _steps(metadata.quorum, image, broker, change, impact) if risks or not missing else (CAPTURE_MORE,),
        partitions=impact.partitions,
    )


def _steps(
    quorum: CapturedQuorum, image: Image, broker: Broker, change: BrokerChange, impact: BrokerImpact
) -> tuple[PlanStep, ...]:
    if change.is_removal:
        return tuple(removal_steps(quorum, image, broker, impact.held))
    return tuple(restart_steps(image, broker, impact.held))


def _not_registered(change: BrokerChange, seen: tuple[str, ...], impact: BrokerImpact) -> Answer:
    """Kafka refuses to unregister it; that it restarts, no log can say anything about."""
    broker_id = change.broker_id
    if not change.is_removal:
        words = f"broker {broker_id} is not registered at the end of the captured log"
        return Answer(change.words, "not_known", words, seen, (words,), partitions=impact.partitions)
    text = f"Broker ID {broker_id} is not currently registered"
    return Answer(
        change.words,
        "refused",
        f"Kafka refuses to unregister broker {broker_id}: BROKER_ID_NOT_REGISTERED: {text}",
        seen,
        error=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_text=text,
        partitions=impact.partitions,
    )


def _fine(change: BrokerChange, broker: Broker) -> str:
    if change.is_removal:
        return (
            f"no partition has a replica on broker {change.broker_id}, and the controllers commit without it"
        )
    if broker.fenced:
        return f"broker {change.broker_id} is already fenced: no partition depends on it"
    return "no partition loses its leader or its min.insync.replicas meanwhile, and the controllers commit"


def _missing(impact: BrokerImpact, judged: Judged) -> Iterator[str]:
    if judged.verdict.name not in ("safe", "unsafe"):
        yield from judged.missing or (judged.verdict.reason,)
    if impact.not_known:
        words = partition_words(_partitions(impact.not_known))
        yield (
            f"min.insync.replicas of {words}: neither the topic nor the cluster has it as a dynamic "
            f"config, and the brokers' files are not in the log"
        )


def _risks(
    metadata: CapturedMetadata, change: BrokerChange, impact: BrokerImpact, judged: Judged
) -> Iterator[Risk]:
    broker_id = change.broker_id
    if impact.offline:
        words = partition_words(_partitions(impact.offline))
        unclean = [loss for loss in impact.offline if loss.may_be_unclean]
        perhaps = ""
        if unclean:
            perhaps = (
                f"; if unclean.leader.election.enable is on in the controllers' files, "
                f"{partition_words(_partitions(unclean))} lose records instead"
            )
        yield Risk("partitions_offline", f"without broker {broker_id}, no leader for {words}{perhaps}")
    if impact.unclean:
        words = partition_words(_partitions(impact.unclean))
        yield Risk("unclean_election", f"a replica that is not in sync leads {words}: records are lost")
    if impact.under_min_isr:
        words = partition_words(_partitions(impact.under_min_isr))
        yield Risk("under_min_isr", f"under min.insync.replicas, so that acks=all fails: {words}")
    if judged.verdict.name == "unsafe":
        when = "without it" if metadata.quorum.voter_of(broker_id) is not None else "as captured,"
        words = f"{when} the controllers commit nothing, so that no partition gets another leader"
        yield Risk("nothing_commits", words)
    if change.is_removal:
        yield from _removal_risks(metadata, broker_id, impact)


def _stays_away(image: Image, change: BrokerChange, broker: Broker | None) -> Iterator[Risk]:
    """A broker in ZooKeeper mode does not return after the migration (ClusterControlManager of 3.9)."""
    is_migrating = broker is not None and broker.is_migrating_zk_broker
    if is_migrating and not change.is_removal and migration_of(image).is_finished:
        yield Risk(
            "finished_early",
            f"the migration from ZooKeeper is finished: broker {change.broker_id}, which runs in ZooKeeper "
            "mode, cannot register again",
        )


def _removal_risks(metadata: CapturedMetadata, broker_id: int, impact: BrokerImpact) -> Iterator[Risk]:
    if impact.only_copy:
        words = partition_words(impact.only_copy)
        yield Risk("only_copy", f"only its own replica is in sync: {words}")
    if impact.held:
        words = partition_words(impact.held)
        yield Risk(
            "replicas_left", f"{count(len(impact.held), 'partition')} must be reassigned first: {words}"
        )
    if metadata.quorum.voter_of(broker_id) is not None:
        yield Risk("voter", f"{broker_id} is also a voter: remove it from the voters first")
