"""SAFE answers about brokers and topics, against a plain model of harm on clusters that are drawn.

Harm: a partition loses its leader, is led by a replica that was not in sync, or refuses acks=all, by whatever
the brokers' files demand where no log shows it; a reassignment that does not end, or leaves fewer replicas.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kraft_core.image.change import Change
from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.effective_configs import BROKER_RESOURCE, MIN_ISR, UNCLEAN_ELECTION, elr_enabled
from kraft_core.image.image import Image
from kraft_core.image.names import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_core.image.partitions import NO_LEADER, NO_LEADER_CHANGE, Partition, change
from kraft_core.image.tables import BROKERS, CONFIGS, PARTITIONS
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.topic_configuration import ConfigureTopics
from kraft_core.plan.topic_election import ElectLeaders
from kraft_core.plan.topic_plan import TopicChange, TopicQuestion, plan_topics
from kraft_core.plan.topic_reassignment import ReassignPartitions
from kraft_core.topic_control.partition_change import ElectionType
from kraft_core.topic_control.reassignments import PartitionMove
from tests.kraft_core.plan.test_broker_plan import ELR, NO_ELR
from tests.kraft_core.plan.test_topic_changes import TOPIC
from tests.kraft_core.plan.test_topic_plan import broker, cluster

CASES = 1200
IDS = (11, 12, 13, 14, 15)
Files = Mapping[int, int]
# min.insync.replicas in the files of the brokers: 1 where none is here.
FILES: tuple[Files, ...] = (
    {},
    *(dict.fromkeys(IDS, least) for least in (2, 3, 4)),
    *({each: 3 for each in IDS if each != other} for other in IDS),
    *({each: least} for each in IDS for least in (2, 3)),
)
ACTIONS = ("restart", "remove", "elect", "reassign", "reassign", "cancel", "configure")


def drawn(rng: random.Random) -> Iterator[Change]:
    """Topic orders of one or two partitions, in states that a controller may have left them in."""
    has_elr, trouble = rng.random() < 0.5, rng.choice((0.05, 0.25))
    yield ELR if has_elr else NO_ELR
    active: list[int] = []
    for broker_id in IDS:
        fenced, stopping = rng.random() < trouble, rng.random() < trouble / 3
        active += [] if fenced or stopping else [broker_id]
        yield broker(broker_id, fenced=fenced, in_controlled_shutdown=stopping and not fenced)
    yield Change(CONFIGS, (BROKER_RESOURCE, "", MIN_ISR), None)
    resources = ((BROKER_RESOURCE, ""), (TOPIC_RESOURCE, "orders"), (BROKER_RESOURCE, "12"))
    for name, values in ((MIN_ISR, "123"), (UNCLEAN_ELECTION, ("true", "false"))):
        for resource in resources:
            if rng.random() < 0.35:
                key = (*resource, name)
                yield Change(CONFIGS, key, Config(*key, rng.choice(values)))
    yield TOPIC
    for nth in range(rng.choice((1, 1, 2))):
        yield drawn_partition(rng, nth, active, has_elr=has_elr)


def drawn_partition(rng: random.Random, nth: int, active: Sequence[int], *, has_elr: bool) -> Change:
    replicas = tuple(rng.sample(IDS, rng.randint(1, 4)))
    isr = tuple(each for each in replicas if each in active and rng.random() < 0.85)
    out = [each for each in replicas if each not in isr]
    eligible: tuple[int, ...] = ()
    if has_elr and out and rng.random() < 0.5:
        # A broker of the ELR that runs would lead where nobody else does.
        eligible = tuple(each for each in out if (isr or each not in active) and rng.random() < 0.6)
    leader = rng.choice(isr) if isr else NO_LEADER
    if not isr and not has_elr:
        isr = (rng.choice([each for each in replicas if each not in active] or replicas),)
        leader = isr[0] if isr[0] in active else NO_LEADER
    adding, removing = (), ()
    if len(replicas) > 1 and rng.random() < 0.4:
        adding = tuple(each for each in out[:1] if rng.random() < 0.8)
        removing = tuple(each for each in replicas if each not in adding and rng.random() < 0.3)
    lost = (LOST_DIRECTORY, UNASSIGNED_DIRECTORY)
    directories = tuple(
        rng.choice((f"dir-{each}", *(lost[1:] if each in isr else lost), f"dir-{each}")) for each in replicas
    )
    made = Partition(
        "id", "orders", nth, replicas, directories, isr, removing, adding, eligible, (), leader, 0, 0, 0
    )
    return Change(PARTITIONS, ("id", nth), made)


def answered(rng: random.Random, found: CapturedMetadata) -> tuple[str, Answer, BrokerChange | PartitionMove]:
    """An action, the answer to it, and what it is about."""
    assert found.image is not None
    kind, broker_id = rng.choice(ACTIONS), rng.choice(IDS)
    about = rng.choice(partitions(found.image))
    move = PartitionMove("orders", about.partition_id, None)
    if kind == "reassign":
        size = rng.choice((len(about.replicas), rng.randint(1, 5)))
        move = replace(move, replicas=tuple(rng.sample(IDS, size)))
    asked: TopicChange = ReassignPartitions((move,))
    if kind in ("restart", "remove"):
        change = BrokerChange(broker_id, kind == "remove")
        return kind, plan_broker(found, change), change
    if kind == "elect":
        election = rng.choice((ElectionType.PREFERRED, ElectionType.UNCLEAN))
        asked = ElectLeaders(election, {"orders": ()})
    elif kind == "configure":
        asked = ConfigureTopics(("orders",), {MIN_ISR: rng.choice((None, "1", "2", "3"))})
    return kind, plan_topics(found, TopicQuestion(asked, {})), move


def partitions(image: Image) -> list[Partition]:
    return [each for key, each in image.tables.items(PARTITIONS) if key[0] == "id"]


def is_active(image: Image, broker_id: int) -> bool:
    return image.tables.get(BROKERS, (broker_id,)).is_active


def demanded(image: Image, leader: int, files: Files) -> int:
    resources = ((TOPIC_RESOURCE, "orders"), (BROKER_RESOURCE, str(leader)), (BROKER_RESOURCE, ""))
    for resource in resources:
        config = image.tables.get(CONFIGS, (*resource, MIN_ISR))
        if config is not None:
            return int(config.value)
    return files.get(leader, 1)


def takes_acks_all(image: Image, each: Partition, files: Files) -> bool:
    return len(each.isr) >= min(demanded(image, each.leader, files), len(each.replicas))


def harms(before: Image, after: Image, caught_up: bool = False) -> Iterator[str]:
    """What a change from one image to another costs. caught_up: what is added is in sync before it."""
    for old in partitions(before):
        new: Partition = after.tables.get(PARTITIONS, ("id", old.partition_id))
        if old.leader != NO_LEADER and new.leader == NO_LEADER:
            yield "no leader"
        in_sync = {*old.isr, *old.eligible_leader_replicas, *(old.adding_replicas if caught_up else ())}
        if new.leader not in (NO_LEADER, old.leader) and new.leader not in in_sync:
            yield "records are lost"
        if NO_LEADER not in (old.leader, new.leader):
            worked = [files for files in FILES if takes_acks_all(before, old, files)]
            if not all(takes_acks_all(after, new, files) for files in worked):
                yield "acks=all fails"


def without(image: Image, broker_id: int) -> Image:
    """What becomes of the partitions of a broker that stops; no replica that is not in sync leads."""
    after = image.copy()
    for each in partitions(image):
        isr = tuple(other for other in each.isr if other != broker_id)
        may = isr or (each.eligible_leader_replicas if elr_enabled(image) else ())
        leads = [
            other
            for other, directory in zip(each.replicas, each.directories, strict=True)
            if other in may and other != broker_id and is_active(image, other) and directory != LOST_DIRECTORY
        ]
        if broker_id in each.isr:
            leader = each.leader if each.leader in leads else next(iter(leads), NO_LEADER)
            made = replace(each, isr=isr or tuple(leads[:1]), leader=leader)
            after.tables.put(Change(PARTITIONS, ("id", each.partition_id), made))
    return after


def written(image: Image, answer: Answer) -> Image:
    """The image after the records of an answer."""
    after = image.copy()
    for record in (record for result in answer.results for record in result["records"]):
        value = {"leader": NO_LEADER_CHANGE, **record["value"]}
        if record["type"] == "PARTITION_CHANGE_RECORD":
            for each in change(after.tables, value):
                after.tables.put(each)
        elif record["type"] == "CONFIG_RECORD":
            key = (value["resourceType"], value["resourceName"], value["name"])
            config = None if value["value"] is None else Config(*key, value["value"])
            after.tables.put(Change(CONFIGS, key, config))
    return after


def ended(image: Image, partition_id: int) -> Image | None:
    """Once each added replica whose broker runs is in sync; None if the reassignment has not ended then."""
    each: Partition = image.tables.get(PARTITIONS, ("id", partition_id))
    adding, removing = set(each.adding_replicas), set(each.removing_replicas)
    if not adding and not removing:
        return image
    has_caught_up = {other for other in adding if each.leader != NO_LEADER and is_active(image, other)}
    left = tuple(other for other in each.replicas if other not in removing)
    isr = tuple(other for other in left if other in has_caught_up or other in each.isr)
    wanted = set(left) if len(adding) < len(removing) else adding
    if not isr or not wanted <= set(isr):
        return None
    leads = [each.leader, *(other for other in left if is_active(image, other))]
    leader = next((other for other in leads if other in isr), NO_LEADER)
    # Directories do not matter any more.
    made = replace(
        each, replicas=left, isr=isr, leader=leader, adding_replicas=(), removing_replicas=(), directories=()
    )
    after = image.copy()
    after.tables.put(Change(PARTITIONS, ("id", partition_id), made))
    return after


def costs(found: CapturedMetadata, answer: Answer, about: BrokerChange | PartitionMove) -> Iterator[str]:
    assert found.image is not None
    before = found.image
    if isinstance(about, BrokerChange):
        yield from harms(before, without(before, about.broker_id))
        if about.is_removal and any(about.broker_id in each.replicas for each in partitions(before)):
            yield "replicas are left"
        return
    after = written(before, answer)
    yield from harms(before, after)
    if about.replicas is None or after.tables == before.tables:
        return
    last = ended(after, about.partition_id)
    if last is None:
        yield "it does not end"
        return
    yield from harms(after, last, caught_up=True)
    had, has = (image.tables.get(PARTITIONS, ("id", about.partition_id)) for image in (before, last))
    if len(has.replicas) < len(set(had.replicas) - set(had.adding_replicas)):
        yield "fewer replicas"


def test_what_is_safe_does_no_harm() -> None:
    """KRAFTLAKE_SEED draws other clusters."""
    rng = random.Random(int(os.environ.get("KRAFTLAKE_SEED", "20261129")))
    safe: Counter[str] = Counter()
    for _ in range(CASES):
        found = cluster(*drawn(rng))
        kind, answer, about = answered(rng, found)
        if answer.verdict == "safe":
            safe[kind] += 1
            assert not list(costs(found, answer, about)), (kind, about, answer, partitions(found.image))
    assert min(safe[kind] for kind in ACTIONS) >= CASES // 60, safe
