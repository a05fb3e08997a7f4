"""The engine's replicas go the way of Kafka's in whole quorums, operation by operation, role by role."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from tests.conformance.__main__ import compare_protocol
from tests.conformance.cluster_protocol import CHOSEN, compare
from tests.conformance.tally import Tally
from tests.conformance.trace import Line, read_trace

TRACES = Path(__file__).parent.parent / "traces"

# Compared states and operations of the whole file.
STATES = {"cluster": 8_843, "cluster-rewound": 8_749}
OPERATIONS = {"cluster": 15_836, "cluster-rewound": 15_922}
# What the record leaves to chance, or Kafka does and the engine does not: named, counted, nothing else.
LEFT_OUT = {
    f"{CHOSEN}DeleteBefore of the controller",
    f"{CHOSEN}CreateSnapshot of the controller",
    f"{CHOSEN}that an added voter was caught up",
    f"{CHOSEN}who stood in an election, and who granted",
    f"{CHOSEN}who sent an update that changes nothing",
    "a leader whose removal timed out and then committed: Kafka's goes on",
    "a new leader's first records, written in a later event",
    "a new leader's first records, lost with its process",
}


def first_cases(count: int) -> Iterator[Line]:
    return takewhile(lambda line: line["case"] < count, read_trace(TRACES / "cluster.jsonl.gz"))


def test_the_first_quorums() -> None:
    tally = compare(first_cases(6), Tally(), rewinds=False)
    assert [str(mismatch) for mismatch in tally.mismatches] == []
    assert tally.steps["role"] > 1_000
    assert set(tally.unsound) <= LEFT_OUT


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(STATES))
def test_every_quorum(name: str, show_counts) -> None:
    path = TRACES / f"{name}.jsonl.gz"
    tally = compare_protocol(path)
    assert tally is not None
    show_counts(tally.lines(f"{path.name}, replicas"))
    assert [str(mismatch) for mismatch in tally.mismatches] == []
    assert tally.steps["role"] == STATES[name]
    assert sum(n for kind, n in tally.steps.items() if kind.startswith("operation")) == OPERATIONS[name]
    assert set(tally.unsound) <= LEFT_OUT


def spoilt(field: str, wrong: object, role: str) -> Tally:
    """The first quorum, with one field of the third state of that role changed."""
    lines = [copy.deepcopy(line) for line in first_cases(1)]
    states = [
        change["state"]
        for line in lines[1:]
        for change in line.get("nodes", {}).values()
        if change.get("state", {}).get("role") == role
    ]
    states[2][field] = wrong
    return compare(iter(lines), Tally(), rewinds=False)


@pytest.mark.parametrize(
    ("field", "wrong", "role"),
    [
        ("hwm", 1 << 30, "leader"),
        ("leader", 77, "leader"),
        ("epoch", 77, "leader"),
        ("role", "observer", "follower"),
        ("voted", 77, "follower"),
    ],
)
def test_a_wrong_state_is_a_mismatch(field: str, wrong: object, role: str) -> None:
    tally = spoilt(field, wrong, role)
    assert field in {mismatch.field for mismatch in tally.mismatches}


def test_an_operation_that_the_engine_would_not_do_is_a_mismatch() -> None:
    """A high watermark that the voters' logs do not reach: nobody's fetches commit it."""
    lines = [copy.deepcopy(line) for line in first_cases(1)]
    operation = next(
        operation
        for line in lines[1:]
        for change in line.get("nodes", {}).values()
        if change.get("state", {}).get("role") == "leader"
        for operation in change.get("ops", ())
        if operation["op"] == "hwm"
    )
    operation["offset"] += 1
    tally = compare(iter(lines), Tally(), rewinds=False)
    assert "operation" in {mismatch.field for mismatch in tally.mismatches}
