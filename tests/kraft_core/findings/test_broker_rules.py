"""Rule 52: one finding for the partitions of one fault in one directory of a broker."""

from __future__ import annotations

import random

import pytest

from kraft_core.findings.broker_rules import EFFECTS
from kraft_core.findings.facts import RuleFacts, UnassignedReplica, distinct
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from tests.kraft_core.findings.broken import golden_facts

DIRECTORY, TOPIC = "d" * 21 + "A", "t" * 21 + "A"


def held(partition_id: int, state: str = "stray_replica", at: int = 7_000) -> UnassignedReplica:
    return UnassignedReplica(11, DIRECTORY, at, "orders", partition_id, TOPIC, state)


def found(*replicas: UnassignedReplica) -> list[Finding]:
    known, _ = golden_facts("dynamic-membership")
    return [each for each in judge(known, RuleFacts(unassigned_replicas=replicas)) if each.rule == 52]


def test_partitions_of_one_fault_are_one_finding() -> None:
    (finding,) = found(held(1), held(0))
    assert (finding.severity, finding.first_seen_at, finding.last_seen_at) == ("warning", 7_000, 7_000)
    assert finding.sentence == (
        "Broker 11 holds 2 partitions that the metadata does not place there: the broker is not a replica; "
        "Kafka renames such folders to -stray when the broker starts, and does not serve them."
    )
    assert finding.evidence == (
        f"log directory {DIRECTORY}: orders-0 of topic id {TOPIC}, orders-1 of topic id {TOPIC}"
    )
    assert found() == []


@pytest.mark.parametrize("state", sorted(EFFECTS))
def test_each_fault_has_a_sentence_and_keeps_its_id(state: str) -> None:
    (finding,), (later,) = found(held(0, state)), found(held(0, state, at=9_000), held(1, state, at=9_000))
    assert EFFECTS[state] in finding.sentence
    assert (later.finding_id, later.resolved) == (finding.finding_id, False)


def test_order_and_copies_change_nothing() -> None:
    replicas = [held(n, state) for n in range(3) for state in EFFECTS]
    mixed = random.Random(1).sample([*replicas, *replicas[:4]], len(replicas) + 4)
    assert found(*mixed) == found(*replicas)
    facts = distinct(RuleFacts(unassigned_replicas=tuple(mixed)))
    assert facts == distinct(RuleFacts(unassigned_replicas=tuple(replicas)))
