"""Plans about brokers from captures of a running cluster; then the broker is stopped, killed or unregistered.

Who was named is who went offline or under min ISR, by kafka-topics. Needs `make kafka`. KRAFTLAKE_SEED draws
other cases.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.image.effective_configs import min_isr
from kraft_core.image.image import Image
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_loss import PartitionLoss, lose_broker
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from kraft_core.plan.captured_metadata import CapturedMetadata, metadata_of
from kraft_core.plan.captured_quorum import quorum_of
from kraft_core.plan.registrations import registered
from tests.long.live_cluster import LiveCluster
from tests.long.live_quorum import Tool, kafka_tools

pytestmark = pytest.mark.long

BROKERS = (11, 12, 13)
SESSION_MS = 6000
ROUNDS = 10
PARTITIONS = 4
# Replication factor and min.insync.replicas, None where the topic has none of its own.
TOPICS = ((1, None), (1, 1), (2, None), (2, 1), (2, 2), (3, None), (3, 2), (3, 3))
# No broker has the only replica of these: one may go, if their min.insync.replicas is known. With eligible
# leader replicas it is: Kafka then writes a record of the cluster's.
SPARE = ((3, None), (2, 1), (3, 2))
Topics = Sequence[tuple[int, int | None]]


# ELR's level and the cluster's min.insync.replicas.
CLUSTERS = ((1, None), (1, 2), (0, None), (0, 2), (1, None), (0, 1))


@dataclass(slots=True)
class BrokerCluster(LiveCluster):
    """One controller, whose sessions of brokers are short, and which gives no leadership back.

    It would every 5 minutes, also between a capture and the loss of a broker (maybeBalancePartitionLeaders).
    """

    def configure(self, node: int) -> str:
        file = LiveCluster.configure(self, node)
        more = "process.roles=controller\nauto.leader.rebalance.enable=false"
        if node in self.brokers:
            more = "broker.heartbeat.interval.ms=1000"
        text = Path(file).read_text().replace("process.roles=controller\n", "")
        Path(file).write_text(f"{text}\n{more}\nbroker.session.timeout.ms={SESSION_MS}\n")
        return file


@dataclass(slots=True)
class Drawn:
    """A cluster with topics drawn for it; min_isr: the cluster's min.insync.replicas, if it has one."""

    live: BrokerCluster
    seed: random.Random
    min_isr: int | None = None
    topics: Topics = ()
    nth: int = 0

    def by(self, *without: int) -> int:
        return next(b for b in BROKERS if b in self.live.running and b not in without)

    def create_topics(self, topics: Topics) -> None:
        self.topics = topics
        for rf, least in topics:
            assignment = ",".join(
                ":".join(map(str, self.seed.sample(BROKERS, rf))) for _ in range(PARTITIONS)
            )
            words = ["--create", "--topic", f"t{rf}-{least}", "--replica-assignment", assignment]
            if least is not None:
                words += ["--config", f"min.insync.replicas={least}"]
            self.live.tool("topics", *words, by=11)

    def metadata(self) -> CapturedMetadata:
        self.nth += 1
        folder = self.live.capture(f"before-{self.nth}", 1)
        directories = find_controller_dirs([folder]).directories
        (found,) = collect_lives(directories)
        quorum = quorum_of(conclude(found.facts), registered(directories))
        assert quorum is not None
        ids = (capture.capture_id for capture in found.facts.captures)
        return metadata_of(quorum, dict(zip(ids, found.directories, strict=True)))

    def described(self, by: int) -> dict[str, tuple[int, set[int]]]:
        """Leader (-1: none) and ISR of every partition, but of internal topics."""
        printed = self.live.tool("topics", "--describe", "--exclude-internal", by=by)
        found = re.findall(r"Topic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\t.*?Isr: ([\d,]*)", printed)
        return {
            f"{topic}-{partition}": (
                -1 if leader == "none" else int(leader),
                {int(each) for each in isr.split(",") if each},
            )
            for topic, partition, leader, isr in found
        }

    def listed(self, which: str, by: int) -> set[str]:
        printed = self.live.tool("topics", "--describe", "--exclude-internal", which, by=by)
        return {f"{topic}-{n}" for topic, n in re.findall(r"Topic: (\S+)\s+Partition: (\d+)", printed)}

    def wait_until(self, wanted: dict[str, tuple[int, set[int]]], by: int) -> None:
        """Until kafka-topics describes this, at most for 30 s; what then differs, the caller finds."""
        until = time.monotonic() + 30
        while self.described(by) != wanted and time.monotonic() < until:
            time.sleep(0.5)

    def heal(self) -> None:
        """Start whoever is down, until every replica is in sync again."""
        for broker in BROKERS:
            if broker not in self.live.running:
                self.live.start(broker)
        for _ in range(90):
            if not self.listed("--under-replicated-partitions", self.by()):
                return
            time.sleep(1)
        raise AssertionError("partitions stay under-replicated")

    def take_down(self, broker: int, how: str) -> None:
        if how == "stop":
            self.live.stop(broker)
        elif how == "kill":
            self.live.kill(broker)
        else:
            done = self.unregister(broker)
            assert done.code == 0, done.printed

    def unregister(self, broker: int) -> Tool:
        servers = ("--bootstrap-server", self.live.broker_address(self.by(broker)))
        return self.live.k("cluster", "unregister", *servers, "--id", str(broker))


@pytest.fixture
def drawn(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Drawn]:
    """One controller, three brokers, the topics; param: ELR's level, the cluster's min ISR, a number and
    the topics.
    """
    elr, least, nth, topics = request.param
    seed = random.Random(f"{os.environ.get('KRAFTLAKE_SEED', '1')} {elr} {least} {nth}")
    live = BrokerCluster(kafka_tools(), tmp_path / "live", 29460 + 20 * nth, brokers=set(BROKERS))
    try:
        live.begin("--feature", f"eligible.leader.replicas.version={elr}")
        if least is not None:
            words = ("--alter", "--entity-type", "brokers", "--entity-default", "--add-config")
            live.tool("configs", *words, f"min.insync.replicas={least}", by=11)
        found = Drawn(live, seed, least)
        found.create_topics(topics)
        # Also where the cluster's min.insync.replicas is 2: of one replica brokers demand one.
        live.produce("t{}-{}".format(*topics[0]), ["message-1"], by=11)
        yield found
    finally:
        live.close()


def after(losses: list[PartitionLoss]) -> dict[str, tuple[int, set[int]]]:
    return {_name(loss): (loss.after.leader, set(loss.after.isr)) for loss in losses}


@pytest.mark.parametrize(
    "drawn",
    [
        *[(elr, least, nth, TOPICS) for nth, (elr, least) in enumerate(CLUSTERS)],
        (0, None, 7, SPARE),
        (0, 1, 8, SPARE),
    ],
    indirect=True,
    ids=lambda drawn: f"elr-{drawn[0]}-min-isr-{drawn[1]}-{drawn[2]}",
)
def test_who_was_named_is_who_went(drawn: Drawn, capsys: pytest.CaptureFixture[str]) -> None:
    verdicts: set[str] = set()
    for _ in range(ROUNDS):
        one, other = drawn.seed.sample(BROKERS, 2)
        before = drawn.seed.choice((None, None, "stop", "kill"))
        if before is not None:
            drawn.take_down(other, before)
            down = after(lose_broker(_image(drawn.metadata()), other, 1))
            drawn.wait_until(down, drawn.by())
        how = drawn.seed.choice(("stop", "kill", "unregister"))
        metadata = drawn.metadata()
        losses = lose_broker(_image(metadata), one, 1)
        made = plan_broker(metadata, BrokerChange(one, is_removal=False))
        removed = plan_broker(metadata, BrokerChange(one, is_removal=True))
        drawn.take_down(one, how)
        by = drawn.by(one)
        drawn.wait_until(after(losses), by)

        with capsys.disabled():
            print(f"{before} {other}, then {how} {one}: {made.verdict}, {made.reason[:150]}")
        assert drawn.described(by) == after(losses)
        unavailable = drawn.listed("--unavailable-partitions", by)
        under = drawn.listed("--under-min-isr-partitions", by)
        _check(made, losses, unavailable, under - _capped(metadata, losses))
        assert removed.verdict == "risky"
        assert removed.partitions == made.partitions
        verdicts.add(made.verdict)

        if how == "unregister":
            # Its heartbeats are refused, so that it waits for its controlled shutdown without end.
            drawn.live.kill(one)
        drawn.heal()
    if drawn.topics is SPARE:
        assert ("not_known" if drawn.min_isr is None else "safe") in verdicts
        assert "risky" in verdicts


def _image(metadata: CapturedMetadata) -> Image:
    assert metadata.image is not None
    return metadata.image


def _capped(metadata: CapturedMetadata, losses: list[PartitionLoss]) -> set[str]:
    """Partitions of fewer replicas than min.insync.replicas: kafka-topics lists them, brokers cap it."""
    found: set[str] = set()
    for loss in losses:
        least = min_isr(_image(metadata), loss.partition.topic_name, loss.after.leader)
        if least is not None and least > len(loss.partition.replicas) and not loss.after.is_offline:
            found.add(_name(loss))
    return found


def _check(made: Answer, losses: list[PartitionLoss], unavailable: set[str], under: set[str]) -> None:
    """Who is offline or under min ISR by kafka-topics is who was named, or was so before.

    The verdict is what happened: risky if a partition went, not known only where min ISR decides.
    """
    offline_before = {_name(loss) for loss in losses if loss.before.is_offline}
    under_before = {_name(loss) for loss in losses if loss.before.is_under_min_isr}
    perhaps = set(made.partitions["min_isr_not_known"])
    went_offline = unavailable - offline_before
    went_under = under - unavailable - under_before - perhaps
    assert set(made.partitions["offline"]) == went_offline
    assert set(made.partitions["under_min_isr"]) == went_under
    went = went_offline | went_under
    assert made.verdict == ("risky" if went else "not_known" if perhaps else "safe"), made.reason


def _name(loss: PartitionLoss) -> str:
    return f"{loss.partition.topic_name}-{loss.partition.partition_id}"


@pytest.mark.parametrize("drawn", [(1, None, 6, TOPICS)], indirect=True)
def test_the_steps_of_a_removal(drawn: Drawn) -> None:
    """Kafka refuses an unknown broker; the steps move the replicas off, and unregister the broker."""
    metadata = drawn.metadata()
    made = plan_broker(metadata, BrokerChange(99, is_removal=True))
    refused = drawn.unregister(99)
    assert made.verdict == "refused"
    assert (made.exception, refused.exception) == ("BrokerIdNotRegisteredException",) * 2
    assert f"BrokerIdNotRegisteredException: {made.error_text}" in refused.printed

    first = plan_broker(metadata, BrokerChange(13, is_removal=True))
    assert first.verdict == "risky"
    (written,) = (step.command for step in first.steps if (step.command or "").startswith("echo "))
    # Those of three replicas have nowhere to go.
    assert first.steps[0].what.startswith("start another broker, or lower the replication factor")
    for rf, least in TOPICS:
        if rf == 3:
            drawn.live.tool("topics", "--delete", "--topic", f"t{rf}-{least}", by=11)
    file = drawn.live.path / "remove-broker-13.json"
    subprocess.run(f"{written} ".replace("remove-broker-13.json", str(file)), shell=True, check=True)
    drawn.live.tool("reassign", "--reassignment-json-file", str(file), "--execute", by=11)
    for _ in range(60):
        printed = drawn.live.tool("reassign", "--reassignment-json-file", str(file), "--verify", by=11)
        if "still in progress" not in printed:
            break
        time.sleep(1)
    then = plan_broker(drawn.metadata(), BrokerChange(13, is_removal=True))
    assert (then.verdict, then.partitions["replicas"]) == ("safe", ()), then.reason
    drawn.live.stop(13)
    done = drawn.unregister(13)
    assert (done.code, done.printed.strip()) == (0, "Broker 13 is no longer registered.")
    gone = plan_broker(drawn.metadata(), BrokerChange(13, is_removal=True))
    assert gone.verdict == "refused"
    assert drawn.listed("--unavailable-partitions", 11) == set()
