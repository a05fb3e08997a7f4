"""What the loss of a broker does to partitions, against the ReplicationControlManager of the released jars.

Needs the releases of tests/kafka and a JDK. KRAFTLAKE_SEED draws other cases.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.effective_configs import BROKER_RESOURCE, MIN_ISR, UNCLEAN_ELECTION, min_isr
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.names import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, CONFIGS, FEATURES, PARTITIONS
from kraft_core.messages.releases import ELR_VERSION
from kraft_core.plan.broker_loss import lose_broker
from tests.kafka.java_programs import ask

pytestmark = pytest.mark.long

CASES = 3000
IDS = (11, 12, 13, 14, 15)
CONTROLLER = 1
# Two log directories of each broker.
DIRECTORIES = {
    n: tuple(f"AAAAAAAAAAAAAAAAAAA{letter}{n - 10}A" for letter in "ab") for n in (*IDS, CONTROLLER)
}


@dataclass(frozen=True, slots=True)
class Case:
    image: Image
    partitions: tuple[Partition, ...]
    how: str
    lost: int


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_the_controller_does_the_same(version: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    rng = random.Random(seed)
    cases = [drawn(rng) for _ in range(CASES)]
    source = Path(__file__).with_name("BrokerLosses.java")
    done = ask(source, "org.apache.kafka.controller.BrokerLosses", version, map(line_of, cases), tmp_path)
    answers = [line[2:] for line in done.stdout.splitlines() if line.startswith("= ")]
    assert len(answers) == len(cases), done.stderr[-2000:]
    wrong: list[str] = []
    seen = {"offline": 0, "unclean": 0, "elected": 0, "from the ELR": 0}
    for answer, case in zip(answers, cases, strict=True):
        ours = expected(case, seen)
        if answer != ours:
            wrong.append(f"{line_of(case)}\n  Kafka: {answer}\n  here:  {ours}")
    assert not wrong, f"seed {seed}, {len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:5])
    assert min(seen.values()) > CASES // 50, seen


def expected(case: Case, seen: dict[str, int]) -> str:
    """leader:isr:min ISR of each partition, with Kafka's defaults for what no config says."""
    found: list[str] = []
    for loss in lose_broker(case.image, case.lost, CONTROLLER, unregister=case.how == "unregister"):
        least = min_isr(case.image, loss.partition.topic_name, CONTROLLER) or 1
        isr = "+".join(map(str, loss.after.isr))
        found.append(f"{loss.after.leader}:{isr}:{min(least, len(loss.partition.replicas))}")
        seen["offline"] += loss.goes_offline
        seen["unclean"] += loss.is_unclean
        seen["elected"] += not loss.is_unclean and loss.after.leader not in (loss.before.leader, -1)
        seen["from the ELR"] += loss.after.leader in loss.partition.eligible_leader_replicas
    return " ".join(found)


def drawn(rng: random.Random) -> Case:
    image = Image()
    elr = rng.random() < 0.6
    if elr:
        image.tables.put(Change(FEATURES, (ELR_VERSION,), Feature(ELR_VERSION, 1)))
    for broker_id in IDS:
        dirs = DIRECTORIES[broker_id][: rng.choice([0, 1, 2, 2, 2])]
        broker = Broker(
            broker_id, 7, "i", (), (), None, rng.random() < 0.25, rng.random() < 0.15, False, dirs, None
        )
        if rng.random() < 0.95 or broker_id == 11:
            image.tables.put(Change(BROKERS, (broker_id,), broker))
    partitions = tuple(partition(rng, nth, elr=elr) for nth in range(rng.randint(1, 6)))
    for each in partitions:
        image.tables.put(Change(PARTITIONS, (each.topic_id, 0), each))
    topics = [each.topic_name for each in partitions]
    for name, values in ((MIN_ISR, "123"), (UNCLEAN_ELECTION, ("true", "false"))):
        for resource in ((BROKER_RESOURCE, ""), (BROKER_RESOURCE, str(CONTROLLER)), (BROKER_RESOURCE, "12")):
            put_config(image, rng, 0.15, (*resource, name), values)
        for topic in topics:
            put_config(image, rng, 0.4, (TOPIC_RESOURCE, topic, name), values)
    return Case(image, partitions, rng.choice(("fence", "shutdown", "unregister")), 11)


def put_config(
    image: Image, rng: random.Random, chance: float, key: tuple[int, str, str], values: Iterable[str]
) -> None:
    if rng.random() < chance:
        image.tables.put(Change(CONFIGS, key, Config(*key, rng.choice(list(values)))))


def partition(rng: random.Random, nth: int, *, elr: bool) -> Partition:
    """A state that a controller may have: the leader is in the ISR, the ELR is outside of it."""
    replicas = rng.sample(IDS, rng.randint(1, 4))
    isr = [each for each in replicas if rng.random() < 0.6]
    if not isr and not elr:
        isr = [rng.choice(replicas)]
    rng.shuffle(isr)
    outside = [each for each in replicas if each not in isr]
    eligible = [each for each in outside if elr and rng.random() < 0.5]
    last = [rng.choice(outside)] if elr and not isr and not eligible and rng.random() < 0.5 else []
    leader = rng.choice(isr) if isr and rng.random() < 0.9 else -1
    directories = tuple(
        rng.choice([*DIRECTORIES[each] * 3, LOST_DIRECTORY, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY])
        for each in replicas
    )
    ids = [tuple(each) for each in (replicas, isr, eligible, last)]
    return Partition(
        f"id{nth}", f"t{nth}", 0, ids[0], directories, ids[1], (), (), ids[2], ids[3], leader, 0, 3, 4
    )


def line_of(case: Case) -> str:
    tables = case.image.tables
    brokers = " ".join(
        f"{b.broker_id},{b.fenced:d},{b.in_controlled_shutdown:d},{'+'.join(b.log_dirs)}"
        for _, b in tables.items(BROKERS)
    )
    configs = " ".join(
        f"{c.resource_type},{c.resource_name},{c.name},{c.value}" for _, c in tables.items(CONFIGS)
    )
    partitions = " ".join(
        ",".join(
            [
                *(
                    "+".join(map(str, each))
                    for each in (
                        p.replicas,
                        p.directories,
                        p.isr,
                        p.eligible_leader_replicas,
                        p.last_known_elr,
                    )
                ),
                str(p.leader),
            ]
        )
        for p in case.partitions
    )
    elr = "1" if tables.get(FEATURES, (ELR_VERSION,)) is not None else "0"
    return ";".join(["30", elr, brokers, configs, partitions, case.how, str(case.lost)])
