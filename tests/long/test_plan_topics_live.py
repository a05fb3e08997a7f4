"""Plans about topics from captures of a running cluster; then Kafka's own tool runs the command of the plan.

What was refused is refused with that text, what was accepted is done. Needs `make kafka`. KRAFTLAKE_SEED
repeats the cases of a seed.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kraft_core.format.side_files import read_properties
from kraft_core.image.image import Image
from kraft_core.image.partitions import NO_LEADER, Partition
from kraft_core.image.tables import PARTITIONS
from kraft_core.plan.topic_configuration import ConfigureTopics
from kraft_core.plan.topic_creation import CreateTopics
from kraft_core.plan.topic_deletion import DeleteTopics
from kraft_core.plan.topic_election import ElectLeaders
from kraft_core.plan.topic_partitions import AddPartitions
from kraft_core.plan.topic_plan import TopicChange, TopicQuestion, plan_topics
from kraft_core.plan.topic_reassignment import ReassignPartitions
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import ControllerFile
from kraft_core.topic_control.java import JavaRandom
from kraft_core.topic_control.partition_change import ElectionType
from kraft_core.topic_control.reassignments import PartitionMove
from kraft_core.topic_control.requests import NewPartitions, NewTopic
from kraft_core.topic_control.topic_names import CLUSTER_METADATA, colliding, invalid_name
from tests.long.live_quorum import Tool, kafka_tools
from tests.long.test_plan_broker import BROKERS, BrokerCluster, Drawn

pytestmark = pytest.mark.long

ROUNDS = 30
NAMES = ("orders", "a.b", "a_b", "clicks", "x_y", "x.y", "t1", "t2")
CONFIGS = (
    ("retention.ms", "5000"),
    ("retention.ms", "-2"),
    ("min.insync.replicas", "1"),
    ("min.insync.replicas", "2"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "shred"),
    ("segment.bytes", "100"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("remote.storage.enable", "true"),
    ("unclean.leader.election.enable", "maybe"),
)
TOOLS = {
    "kafka-topics.sh": "topics",
    "kafka-configs.sh": "configs",
    "kafka-reassign-partitions.sh": "reassign",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
}
Check = Callable[[Image], bool]


@pytest.fixture
def drawn(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Drawn]:
    """One controller and three brokers; param: ELR's level."""
    elr = request.param
    number = os.environ.get("KRAFTLAKE_SEED") or str(random.randrange(1 << 32))
    print(f"seed {number}")
    seed = random.Random(f"{number} {elr}")
    live = BrokerCluster(kafka_tools(), tmp_path / "live", 29760 + 20 * elr, brokers=set(BROKERS))
    try:
        live.begin("--feature", f"eligible.leader.replicas.version={elr}")
        words = ("--alter", "--entity-type", "brokers", "--entity-default", "--add-config")
        live.tool("configs", *words, "min.insync.replicas=1", by=11)
        for name, factor in (("orders", "2"), ("a.b", "3"), ("clicks", "1")):
            words = ("--create", "--topic", name, "--partitions", "2", "--replication-factor", factor)
            live.tool("topics", *words, by=11)
        yield Drawn(live, seed)
    finally:
        live.close()


def _topics(image: Image) -> dict[str, dict[int, Partition]]:
    ids = image.tables.topic_ids
    return {name: dict(image.tables.group(PARTITIONS, ids[name])) for name in sorted(ids)}


def _create(rng: random.Random, image: Image) -> tuple[TopicChange, Check]:
    name = rng.choice((*NAMES, *NAMES, "sp ace", "x" * 250, CLUSTER_METADATA))
    existing = image.tables.topic_ids
    # kafka-topics validates configs before it asks for anything.
    is_new = (
        name not in (*existing, CLUSTER_METADATA)
        and not colliding(name, existing)
        and invalid_name(name) is None
    )
    configs = (rng.choice(CONFIGS),) if is_new and rng.random() < 0.5 else ()
    topic = NewTopic(name, rng.choice((1, 2, 4)), rng.choice((1, 2, 3, 3, 4)), configs=configs)
    if rng.random() < 0.3:
        factor, ids = rng.choice((1, 2)), (*BROKERS, 99) if rng.random() < 0.2 else BROKERS
        lists = tuple((nth, tuple(rng.sample(ids, factor))) for nth in range(rng.choice((1, 2))))
        topic = NewTopic(name, assignments=lists, configs=configs)

    def check(after: Image) -> bool:
        made = _topics(after).get(name, {})
        replicas = {nth: each.replicas for nth, each in made.items()}
        return replicas == dict(topic.assignments) if topic.assignments else len(made) == topic.partitions

    return CreateTopics((topic,)), check


def _add(rng: random.Random, image: Image) -> tuple[TopicChange, Check]:
    name, held = rng.choice(list(_topics(image).items()))
    count = max(1, len(held) + rng.choice((-1, 0, 1, 1, 2)))
    lists = None
    factor = len(held[0].replicas)
    # kafka-topics takes no lists of different lengths: such a plan has no command.
    are_alike = all(len(each.replicas) == factor for each in held.values())
    if rng.random() < 0.4 and count > len(held) and are_alike:
        lists = tuple(tuple(rng.sample(BROKERS, factor)) for _ in range(count - len(held)))
    change = AddPartitions((NewPartitions(name, count, lists),))
    return change, lambda after: len(_topics(after)[name]) == count


def _configure(rng: random.Random, image: Image) -> tuple[TopicChange, Check]:
    name = rng.choice(list(_topics(image)))
    config, value = rng.choice(CONFIGS)
    change = ConfigureTopics((name,), {config: value})
    return change, lambda after: _controller(after).topic_configs(name).get(config) == value


def _delete(rng: random.Random, image: Image) -> tuple[TopicChange, Check]:
    name = rng.choice(list(_topics(image)))
    return DeleteTopics((name,)), lambda after: name not in _topics(after)


def _elect(rng: random.Random, image: Image) -> tuple[TopicChange, Check]:
    name, held = rng.choice(list(_topics(image).items()))
    nth = rng.choice(sorted(held))
    election = rng.choice((ElectionType.PREFERRED, ElectionType.PREFERRED, ElectionType.UNCLEAN))
    change = ElectLeaders(election, {name: (nth,)})
    (result,) = change.results(_controller(image))
    leader = result.records[0].value["leader"] if result.records else held[nth].leader
    return change, lambda after: _topics(after)[name][nth].leader == leader


def _reassign(rng: random.Random, image: Image) -> tuple[TopicChange, Check]:
    """kafka-reassign-partitions itself refuses brokers that are not up."""
    name, held = rng.choice(list(_topics(image).items()))
    nth = rng.choice(sorted(held))
    up = [each for each in BROKERS if _controller(image).is_active(each)]
    replicas = tuple(rng.sample(up, min(len(up), rng.choice((1, 2, 3)))))
    change = ReassignPartitions((PartitionMove(name, nth, replicas),))
    return change, lambda after: _topics(after)[name][nth].replicas[: len(replicas)] == replicas


DRAWS = (
    _create,
    _create,
    _create,
    _create,
    _add,
    _add,
    _configure,
    _configure,
    _delete,
    _elect,
    _elect,
    _reassign,
)


def _controller(image: Image) -> ActiveController:
    return ActiveController(image, 1, ControllerFile({}), JavaRandom(0))


@pytest.mark.parametrize("drawn", [0, 1], indirect=True, ids=lambda elr: f"elr-{elr}")
def test_kafkas_tool_does_what_was_said(drawn: Drawn, capsys: pytest.CaptureFixture[str]) -> None:
    properties = read_properties(Path(drawn.live.configure(1)).read_text(encoding="latin-1"))
    seen = Counter[str]()
    for nth in range(ROUNDS):
        if nth % 6 == 5:
            _other_brokers(drawn)
        _wait_until(drawn, _is_settled)
        metadata = drawn.metadata()
        assert metadata.image is not None
        draw = drawn.seed.choice(DRAWS) if len(_topics(metadata.image)) > 2 else _create
        change, check = draw(drawn.seed, metadata.image)
        made = plan_topics(metadata, TopicQuestion(change, properties))
        done = _run(drawn, change, metadata.image)
        with capsys.disabled():
            print(f"{made.verdict}: {change.words}: {made.error_text or made.reason}"[:180])
        assert made.verdict != "not_known", made.missing
        seen[made.verdict] += 1
        if made.verdict == "refused":
            assert (made.error_text or made.exception or "?") in done.printed, (made, done)
        else:
            assert done.code == 0, (made, done)
            _wait_until(drawn, check)
    assert seen["refused"] > ROUNDS // 10
    assert seen["safe"] + seen["risky"] > ROUNDS // 4


def _other_brokers(drawn: Drawn) -> None:
    """Stop one of them, or start the one that is down."""
    down = [broker for broker in BROKERS if broker not in drawn.live.running]
    if down:
        drawn.live.start(down[0])
    else:
        drawn.live.stop(drawn.seed.choice(BROKERS))
    wanted = {broker: broker in drawn.live.running for broker in BROKERS}

    def is_seen(image: Image) -> bool:
        controller = _controller(image)
        brokers = {broker: controller.broker(broker) for broker in BROKERS}
        return all(
            made is not None and made.fenced is not wanted[broker] and (made.fenced or made.is_active)
            for broker, made in brokers.items()
        )

    _wait_until(drawn, is_seen)


def _is_settled(image: Image) -> bool:
    """Every replica of a broker that is up is in sync, and no reassignment could end any more."""
    controller = _controller(image)
    every = [each for topic in _topics(image).values() for each in topic.values()]
    for each in every:
        candidates = (*each.isr, *each.eligible_leader_replicas)
        if each.leader == NO_LEADER and not any(map(controller.is_active, candidates)):
            # Until one is back, or if its ELR was cleared, only an unclean election gives it a leader.
            continue
        up = {replica for replica in each.replicas if controller.is_active(replica)}
        if not up <= set(each.isr) or (up == set(each.replicas) and each.removing_replicas):
            return False
    return True


def _wait_until(drawn: Drawn, check: Check) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        image = drawn.metadata().image
        if image is not None and check(image):
            return
        time.sleep(0.5)
    raise AssertionError("not done within 60 s")


def _run(drawn: Drawn, change: TopicChange, image: Image) -> Tool:
    """The commands of the plan's steps, up to the first that is Kafka's."""
    servers = f"--bootstrap-server {drawn.live.broker_address(drawn.by())}"
    for step in change.steps(_controller(image), servers):
        command = (step.command or "").replace("reassignment.json", str(drawn.live.path / "moves.json"))
        if command.startswith("echo "):
            subprocess.run(command, shell=True, check=True)
            continue
        program, *words = shlex.split(command)
        return drawn.live.k(TOOLS[program.removeprefix("bin/")], *words)
    raise AssertionError("no command")
