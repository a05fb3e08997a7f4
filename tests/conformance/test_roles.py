"""The roles, epochs, leaders and votes of Kafka's simulated quorums, held against the protocol's table.

A trace records states, not each timer and message, so it does not determine when a role changes; that every
change is a lawful one it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_core.protocol.roles import TRANSITIONS, Role
from tests.conformance.trace import Line, read_trace

TRACES = Path(__file__).parent.parent / "traces"


def recorded_states(path: Path) -> Iterator[tuple[str, Line | None, Line]]:
    """Node, its state before (None after a start), its state, for every recorded change of a state."""
    states: dict[str, Line] = {}
    aborted = False
    for line in read_trace(path):
        if "ev" not in line:
            states, aborted = {}, False
            continue
        aborted = aborted or line.get("ev") == "aborted"
        for node, change in ({} if aborted else line.get("nodes", {})).items():
            started = any(operation["op"] == "restart" for operation in change.get("ops", ()))
            if "state" in change:
                before = None if started else states.get(node)
                stopped = change["state"]["role"] == "down" or (before and before["role"] == "down")
                if not stopped:
                    yield f"case {line['case']} {node}", before, change["state"]
                states[node] = change["state"]


def reachable(role: Role, *, within_epoch: bool) -> set[Role]:
    """The roles that the table leads to, in one step or several."""
    found, rows = {role}, [row for row in TRANSITIONS if not (within_epoch and row.bumps_epoch)]
    while more := {row.after for row in rows if row.before in found} - found:
        found |= more
    return found


@pytest.mark.parametrize("name", ["cluster", "cluster-rewound"])
def test_every_recorded_change_of_role_is_in_the_table(name: str) -> None:
    compared = 0
    for place, before, after in recorded_states(TRACES / f"{name}.jsonl.gz"):
        if before is None:
            continue
        compared += 1
        same_epoch = before["epoch"] == after["epoch"]
        assert after["epoch"] >= before["epoch"], place
        assert Role(after["role"]) in reachable(Role(before["role"]), within_epoch=same_epoch), place
        if same_epoch and before["leader"] is not None:
            assert after["leader"] == before["leader"], place
        if same_epoch and "voted" in before and "voted" in after:
            assert after["voted"] == before["voted"], place
    assert compared > 8_000


def test_within_an_epoch_nobody_leads_twice() -> None:
    assert Role.LEADER not in reachable(Role.RESIGNED, within_epoch=True)
    assert Role.CANDIDATE not in reachable(Role.FOLLOWER, within_epoch=True)
