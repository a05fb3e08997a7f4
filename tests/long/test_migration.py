"""plan finish-migration against the classes of Kafka 3.9.2, the last release that knows ZooKeeper."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kraft_core.plan.migration import MigrationState, answer_in
from tests.kafka.java_programs import ask

pytestmark = pytest.mark.long

CASES = 120


def test_controllers_finish_a_migration_as_it_is_said(tmp_path: Path) -> None:
    """A controller without the setting finishes a MIGRATION, whatever brokers are registered, and accepts
    none in ZooKeeper mode any more; in PRE_MIGRATION none in KRaft mode.
    """
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    cases = [
        (
            rng.randrange(4),
            rng.choice([8, 11, 14, 19, 21]),
            sorted(rng.sample(range(9), rng.choice([0, 0, 1, 3]))),
        )
        for _ in range(CASES)
    ]
    lines = [" ".join(map(str, (state, level, *brokers))) for state, level, brokers in cases]
    source = Path(__file__).with_name("MigrationAnswers.java")
    done = ask(source, "org.apache.kafka.controller.MigrationAnswers", "3.9.2", lines, tmp_path)
    answers = [line[2:].split() for line in done.stdout.splitlines() if line.startswith("= ")]
    assert len(answers) == CASES
    for (state, level, brokers), (written, in_zk_mode, in_kraft_mode) in zip(cases, answers, strict=True):
        answer = answer_in(MigrationState(state, tuple(brokers), ()))
        names = {risk.name for risk in answer.risks}
        case = (seed, state, level, brokers, written, in_zk_mode, in_kraft_mode, names)
        assert ("irreversible" in names) == (written == "3"), case
        assert written in ("3", "-"), case
        # What is said of brokers in ZooKeeper mode: none of them registers.
        assert in_zk_mode == "BrokerIdNotRegisteredException", case
        assert (state == 2) == (in_kraft_mode == "BrokerIdNotRegisteredException"), case
        assert (names & {"brokers_in_zookeeper_mode"} != set()) == (bool(brokers) and state == 1), case
        assert ("finished_early" in names) == (bool(brokers) and state == 3), case
    print(f"seed {seed}: {CASES} states")
