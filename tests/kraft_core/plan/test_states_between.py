"""What is SAFE at both ends of the records that are not proven committed must be SAFE between them, too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kraft_core.image.change import Change
from kraft_core.image.configs import TOPIC_RESOURCE
from kraft_core.image.effective_configs import BROKER_RESOURCE, MIN_ISR, UNCLEAN_ELECTION
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, CONFIGS, CONTROLLERS, FEATURES, PARTITIONS, TOPICS, ZK_MIGRATION
from kraft_core.image.topics import Topic
from kraft_core.image.zk_migration import ZkMigration
from kraft_core.messages.releases import SHARE_VERSION
from kraft_core.plan import states_between
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_loss import lose_broker
from kraft_core.plan.broker_plan import BrokerChange, impact_of, plan_broker
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.migration import plan_migration
from kraft_core.plan.states_between import MOST_STATES, of_broker, unproven_gap
from kraft_core.plan.topic_configuration import ConfigureTopics
from kraft_core.plan.topic_plan import TopicQuestion, plan_topics
from kraft_core.plan.upgrade import FeatureUpgrade, plan_upgrade
from tests.kraft_core.plan.captured import metadata
from tests.kraft_core.plan.test_broker_plan import (
    ELR,
    MIN_ISR_1,
    MIN_ISR_2,
    NO_ELR,
    broker,
    cluster,
    config,
    partition,
)

Batch = tuple[Change, ...]
NOT_PROVEN = "it depends on records at the log's end that are not proven committed"
SHRUNKEN = partition(0, (11, 12, 13), isr=(11, 12))
WHOLE = partition(0, (11, 12, 13))


def tail(found: CapturedMetadata, *batches: Batch) -> CapturedMetadata:
    """The metadata with these batches above what is proven committed."""
    assert found.image is not None
    for batch in batches:
        for change in batch:
            found.image.tables.put(change)
    return replace(found, unproven=(*found.unproven, *batches))


def asked(found: CapturedMetadata, *, is_removal: bool = False) -> Answer:
    return plan_broker(found, BrokerChange(11, is_removal))


def of_topic(name: str, change: Change) -> Change:
    """The same of another topic."""
    return replace(
        change, key=(name, change.key[1]), value=replace(change.value, topic_id=name, topic_name=name)
    )


CREATED = (Change(TOPICS, ("new",), Topic("new", "new")), of_topic("new", partition(0, (11,))))
REMOVED = (Change(TOPICS, ("new",), None), Change(PARTITIONS, ("new", 0), None))
MOVED = (of_topic("new", partition(0, (12,))),)


@pytest.mark.parametrize(
    ("before", "batches", "is_removal"),
    [
        # An ISR that shrinks and grows again.
        (WHOLE, ((MIN_ISR_1,), (partition(0, (11, 12, 13), isr=(11,)),), (WHOLE,)), False),
        # min.insync.replicas that rises before the ISR does.
        (SHRUNKEN, ((MIN_ISR_2,), (WHOLE,)), False),
        # A broker that is fenced and comes back: only it could lead.
        (
            partition(0, (11, 12), isr=(11,), eligible_leader_replicas=(12,)),
            ((broker(12, fenced=True),), (broker(12),)),
            False,
        ),
        # A partition that is new, and is moved off at once; a topic that is removed at once.
        (WHOLE, (CREATED, MOVED), False),
        (WHOLE, (CREATED, REMOVED), False),
        # A replica that a reassignment adds, and that is given up.
        (
            partition(0, (12, 13)),
            ((partition(0, (11, 12, 13), isr=(12, 13)),), (partition(0, (12, 13)),)),
            True,
        ),
    ],
)
def test_what_both_ends_do_not_show(before: Change, batches: tuple[Batch, ...], is_removal: bool) -> None:
    """Each was SAFE, but the first, where a partition's epoch showed that it had changed twice."""
    found = tail(cluster(ELR, MIN_ISR_1, before), *batches)
    made = asked(found, is_removal=is_removal)
    assert (made.verdict, made.missing) == ("not_known", (NOT_PROVEN,))
    assert asked(replace(found, unproven=()), is_removal=is_removal).verdict == "safe"


@pytest.mark.parametrize(
    "batches",
    [
        ((WHOLE,),),
        ((partition(0, (11, 12, 13), partition_epoch=1),), (partition(0, (11, 12, 13), partition_epoch=2),)),
        ((broker(13, rack="b"),), (broker(13, rack="c"),)),
        # Of a partition that is not on the broker.
        ((partition(1, (12,), leader=-1),), (partition(1, (12,)),)),
        # Of another config.
        (
            (config(TOPIC_RESOURCE, "t", "retention.ms", "1"),),
            (config(TOPIC_RESOURCE, "t", "retention.ms", "2"),),
        ),
    ],
)
def test_what_does_not_matter_between_leaves_it_safe(batches: tuple[Batch, ...]) -> None:
    """A partition that changed twice was NOT KNOWN, whatever it became between."""
    before = cluster(MIN_ISR_1, WHOLE, partition(1, (12,)))
    assert asked(tail(before, *batches)).verdict == "safe"


def test_too_many_states_to_examine() -> None:
    racks = tuple((broker(13, rack=str(nth)),) for nth in range(MOST_STATES + 2))
    made = asked(tail(cluster(MIN_ISR_1, WHOLE), *racks))
    assert (made.verdict, made.reason.split(" in records")[0]) == ("not_known", "too much changed")
    assert asked(tail(cluster(MIN_ISR_1, WHOLE), *racks[:MOST_STATES])).verdict == "safe"


def test_too_many_changes_to_examine(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tail(
        cluster(MIN_ISR_1, WHOLE, partition(1, (12,))), (partition(1, (12,)),), (partition(1, (12,)),)
    )
    monkeypatch.setattr(states_between, "MOST_CHANGES", 1)
    assert asked(found).reason.startswith("too much changed in records")
    monkeypatch.setattr(states_between, "MOST_CHANGES", 2)
    assert asked(found).verdict == "safe"


def test_topics_between() -> None:
    topic = (Change(TOPICS, ("id",), Topic("id", "t")),)
    question = TopicQuestion(ConfigureTopics(("t",), {"min.insync.replicas": "1"}), {})
    found = cluster(MIN_ISR_2, partition(0, (11, 12, 13)), *topic)
    assert plan_topics(found, question).verdict == "safe"
    shrunken = partition(0, (11, 12, 13), isr=(11,), eligible_leader_replicas=(12,))
    between = tail(found, (shrunken,), (partition(0, (11, 12, 13)),))
    assert plan_topics(between, question).missing == (NOT_PROVEN,)


def test_registrations_between() -> None:
    found, upgrade = metadata("disk-failure/before-wipe"), FeatureUpgrade({SHARE_VERSION: 1})
    assert plan_upgrade(found, upgrade).verdict == "safe"
    assert found.image is not None
    held = found.image.tables.get(CONTROLLERS, (1,))
    older = replace(held, features=tuple(each for each in held.features if each.name != SHARE_VERSION))
    found = tail(found, (Change(CONTROLLERS, (1,), older),), (Change(CONTROLLERS, (1,), held),))
    assert plan_upgrade(found, upgrade).missing == (NOT_PROVEN,)


def test_a_migration_between() -> None:
    found, key = metadata("disk-failure/before-wipe"), ("zkMigrationState",)
    assert plan_migration(found).verdict == "safe"
    begun = Change(ZK_MIGRATION, key, ZkMigration(1))
    assert plan_migration(tail(found, (begun,), (replace(begun, value=None),))).missing == (NOT_PROVEN,)


def drawn_batch(rng: random.Random) -> Batch:
    """A batch that changes one to three things."""
    return tuple(drawn(rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))


def drawn(rng: random.Random) -> Change:
    kind = rng.choice((PARTITIONS, PARTITIONS, PARTITIONS, BROKERS, CONFIGS, FEATURES, TOPICS))
    match kind:
        case "partitions":
            replicas = tuple(rng.sample((11, 12, 13), rng.randint(1, 3)))
            isr = replicas[: rng.randint(1, len(replicas))]
            made = partition(rng.randint(0, 2), replicas, isr=isr, partition_epoch=rng.randint(0, 99))
            return made if rng.random() < 0.8 else replace(made, value=None)
        case "brokers":
            return broker(rng.choice((12, 13)), fenced=rng.random() < 0.5)
        case "configs":
            name = rng.choice((MIN_ISR, UNCLEAN_ELECTION, "retention.ms"))
            value = rng.choice(("true", "false")) if name == UNCLEAN_ELECTION else rng.choice("123")
            return config(*rng.choice(((TOPIC_RESOURCE, "t"), (BROKER_RESOURCE, ""))), name, value)
        case "topics":
            return Change(TOPICS, ("id",), rng.choice((Topic("id", "t"), None)))
        case _:
            return rng.choice((ELR, NO_ELR))


def test_the_states_that_are_examined_decide_for_all() -> None:
    """Against every state, one after each batch: where these agree, the others do."""
    rng = random.Random(20261129)
    seen = {True: 0, False: 0}
    read = cluster(MIN_ISR_1)
    assert read.committed is not None
    while min(seen.values()) < 150:
        start = read.committed.copy()
        for change in [drawn(rng) for _ in range(rng.randint(2, 8))]:
            start.tables.put(change)
        batches = [drawn_batch(rng) for _ in range(rng.randint(2, 5))]
        first, *others = [ruling(state) for state in states(start, batches)]
        if others[-1] != first:
            continue
        agree = all(each == first for each in others)
        found = replace(read, committed=start, unproven=tuple(batches))
        concerns = of_broker(11, (MIN_ISR, UNCLEAN_ELECTION))
        gap = unproven_gap(found, concerns, lambda state, first=first: ruling(state) == first)
        assert (gap is None) == agree, batches
        seen[agree] += 1


def states(start: Image, batches: Sequence[Batch]) -> list[Image]:
    found = [start]
    for batch in batches:
        found.append(found[-1].copy())
        for change in batch:
            found[-1].tables.put(change)
    return found


def ruling(state: Image) -> object:
    return impact_of(lose_broker(state, 11, 1), 11).partitions
