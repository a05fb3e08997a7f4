"""Lives of brokers (KIP-631) against the controller's classes of the released jars: answers and records.

Needs the releases of tests/kafka and a JDK. KRAFTLAKE_SEED draws other lives.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kraft_core.broker_control.controller import CHANGE, REGISTER, BrokerControl
from kraft_core.broker_control.requests import (
    BrokerHeartbeatRequest,
    BrokerRecord,
    BrokerRefusedError,
    BrokerRegistrationRequest,
)
from tests.kafka.java_programs import ask

pytestmark = pytest.mark.long

LIVES, OPERATIONS = 200, 60
IDS = (11, 12, 13)
TIMEOUT_MS = 9_000
CLUSTER = "vYzeq4KzRUuZ5RQ2sVWlMg"
FINALIZED = {"group.version": 1, "metadata.version": 30, "transaction.version": 2}
SUPPORTED = {name: (1, level) for name, level in FINALIZED.items()}
RESERVED = "AAAAAAAAAAAAAAAAAAAAAg"


@dataclass(slots=True)
class Life:
    """Brokers as drawn so far. asked: the lines for Kafka; answers: the engine's.

    holding: brokers with a partition of their own. leading: those that lead it.
    """

    rng: random.Random
    control: BrokerControl = field(default_factory=lambda: BrokerControl(CLUSTER, FINALIZED, TIMEOUT_MS))
    now: int = 1_000
    offset: int = 100
    holding: set[int] = field(default_factory=set)
    leading: set[int] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def step(self) -> None:
        self.now += self.rng.choice([0, 100, 1_000, 3_000, 8_900, 9_100])
        self.offset += 10
        broker_id = self.rng.choice(IDS)
        operation = self.rng.choice(
            ["register"] * 3 + ["heartbeat"] * 9 + ["stale"] * 2 + ["unregister", "lead"]
        )
        if operation == "lead":
            self._lead(broker_id)
            return
        try:
            answer = getattr(self, f"_{operation}")(broker_id)
        except BrokerRefusedError as refused:
            answer = f"{refused.error.name} {refused.text}"
        self.answers.append(answer.rstrip())

    def _ask(self, operation: str, *words: object) -> None:
        self.asked.append(" ".join(map(str, (operation, self.offset, self.now, *words))))

    def _lead(self, broker_id: int) -> None:
        broker = self.control.broker(broker_id)
        if broker is not None and not broker.fenced and not broker.in_controlled_shutdown:
            self._ask("lead", broker_id)
            self.holding.add(broker_id)
            self.leading.add(broker_id)
            self.answers.append("")

    def _register(self, broker_id: int) -> str:
        rng = self.rng
        known = self.control.broker(broker_id)
        again = known is not None and rng.random() < 0.3
        incarnation = known.incarnation_id if known and again else f"{rng.choice('BCDEFGHIJ')}{'A' * 21}"
        dirs = [f"{broker_id}{letter}{'A' * 19}" for letter in "ab"][: rng.choice([1, 2, 2])]
        if rng.random() < 0.12:
            dirs = rng.choice([[], [*dirs, dirs[0]], [RESERVED], [f"{rng.choice(IDS)}a{'A' * 19}"]])
        features = dict(SUPPORTED)
        if rng.random() < 0.12:
            name = rng.choice(list(features))
            features[name] = rng.choice([(0, 0), (2, 40), (1, 1)])
            if rng.random() < 0.4:
                del features[name]
        elsewhere = rng.random() < 0.04
        request = BrokerRegistrationRequest(
            broker_id,
            "another" if elsewhere else CLUSTER,
            incarnation,
            features,
            tuple(dirs),
            is_migrating_zk_broker=rng.random() < 0.03,
        )
        ranges = [f"{name}:{low}:{high}" for name, (low, high) in features.items()]
        zk = int(request.is_migrating_zk_broker)
        self._ask("register", broker_id, request.cluster_id, incarnation, listed(ranges), listed(dirs), zk)
        answer = self.control.register(request, self.offset, self.now)
        return f"epoch {answer.broker_epoch} {self._replayed(answer.records)}"

    def _heartbeat(self, broker_id: int) -> str:
        rng = self.rng
        known = self.control.broker(broker_id)
        epoch = known.broker_epoch if known is not None and rng.random() < 0.95 else 7
        metadata = rng.choice([-1, 50, self.offset - 30, self.offset, self.offset + 10])
        fence, shut_down = rng.random() < 0.1, rng.random() < 0.3
        offline = [each for each in (known.log_dirs if known else ()) if rng.random() < 0.05]
        offline += [RESERVED] if rng.random() < 0.05 else []
        request = BrokerHeartbeatRequest(broker_id, epoch, metadata, fence, shut_down, tuple(offline))
        self._ask("heartbeat", broker_id, epoch, metadata, int(fence), int(shut_down), listed(offline))
        answer = self.control.heartbeat(request, self.now, lambda: broker_id in self.leading)
        reply = answer.reply
        assert reply is not None
        records = self._replayed(answer.records)
        if reply.in_controlled_shutdown:
            self.control.shutting_down(broker_id, self.offset)
            self.leading.discard(broker_id)
        bits = (reply.is_caught_up, reply.is_fenced, reply.in_controlled_shutdown, reply.should_shut_down)
        return f"reply {''.join(str(int(bit)) for bit in bits)} {records}"

    def _unregister(self, broker_id: int) -> str:
        self._ask("unregister", broker_id)
        return self._replayed(self.control.unregister(broker_id).records)

    def _stale(self, _: int) -> str:
        self._ask("stale")
        written: list[BrokerRecord] = []
        while (answer := self.control.fence_stale(self.now)) is not None:
            self._replayed(answer.records)
            written += answer.records
        return text(written)

    def _replayed(self, records: Sequence[BrokerRecord]) -> str:
        for record in records:
            self.control.replay(record, self.offset)
            self._lead_on(record.value["brokerId"], record)
        return text(records)

    def _lead_on(self, broker_id: int, record: BrokerRecord) -> None:
        """A partition without another replica: whoever is unfenced leads it, even in controlled shutdown."""
        if record.type == CHANGE and record.value.get("fenced", 0) == -1:
            self.leading |= self.holding & {broker_id}
        is_amended = record.type == REGISTER and record.value["brokerEpoch"] < self.offset
        if not is_amended and (record.type != CHANGE or record.value.get("fenced", 0) == 1):
            self.leading.discard(broker_id)


def listed(words: Sequence[str]) -> str:
    return ",".join(words) or "-"


def text(records: Iterable[BrokerRecord]) -> str:
    return " ".join(sorted(map(record_text, records)))


def record_text(record: BrokerRecord) -> str:
    value = record.value
    who = f"{value['brokerId']},{value['brokerEpoch']}"
    dirs = "+".join(sorted(value.get("logDirs", ())))
    if record.type == REGISTER:
        state = f"{value['fenced']:d},{value['inControlledShutdown']:d}"
        return f"R,{who},{value['incarnationId']},{state},{dirs}"
    if record.type == CHANGE:
        return f"C,{who},{value.get('fenced', 0)},{value.get('inControlledShutdown', 0)},{dirs}"
    return f"U,{who}"


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_the_controller_answers_the_same(version: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    rng = random.Random(seed)
    lives = [Life(rng) for _ in range(LIVES)]
    levels = listed([f"{name}:{level}" for name, level in FINALIZED.items()])
    asked: list[str] = []
    for life in lives:
        for _ in range(OPERATIONS):
            life.step()
        asked += [f"new {CLUSTER} {TIMEOUT_MS} {levels}", *life.asked]
    source = Path(__file__).with_name("BrokerLives.java")
    done = ask(source, "org.apache.kafka.controller.BrokerLives", version, asked, tmp_path)
    answers = iter([line[2:].rstrip() for line in done.stdout.splitlines() if line.startswith("= ")])
    seen = Counter[str]()
    wrong: list[str] = []
    for life in lives:
        pairs = [(line, ours, next(answers)) for line, ours in zip(life.asked, life.answers, strict=True)]
        seen.update(answer[:10] for _, _, answer in pairs)
        nth = next((n for n, (_, ours, theirs) in enumerate(pairs) if ours != theirs), None)
        if nth is not None:
            before = "\n  ".join(f"{line} => {theirs}" for line, _, theirs in pairs[max(0, nth - 6) : nth])
            line, ours, theirs = pairs[nth]
            wrong.append(f"  {before}\n  {line}\n  Kafka: {theirs}\n  here:  {ours}")
    assert not wrong, f"seed {seed}, {len(wrong)} of {LIVES} lives:\n" + "\n\n".join(wrong[:4])
    for kind in ("DUPLICATE_", "STALE_BROK", "BROKER_ID_", "INCONSISTE", "INVALID_RE", "UNSUPPORTE"):
        assert seen[kind] > 5, seen
    assert seen["reply 1010"] > 5, seen  # in controlled shutdown
