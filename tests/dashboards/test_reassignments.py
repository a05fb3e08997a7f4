"""Reassignments of partitions (KIP-455), each state by the records that Kafka's controller writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboards import embedded_sql
from dashboards.report import history_queries
from tests.dashboards.histories import gone_by, known_since, partition, topic, version
from tests.dashboards.small_lakes import write_for

Row = dict[str, Any]

BEFORE = {"replicas": [1, 2, 3]}
# To [2, 3, 4]: the target, then what is to be removed.
MOVING = {"replicas": [2, 3, 4, 1], "adding_replicas": [4], "removing_replicas": [1]}
# Meanwhile, to [3, 5].
MOVING_ON = {"replicas": [3, 5, 4, 2, 1], "adding_replicas": [5], "removing_replicas": [4, 2, 1]}


def reassigned(lake: Path, *states: Row, last_end: int | None = None) -> list[Row]:
    """What the view says of a partition with these states, at 1, 5, 9 and so on."""
    starts = [1 + 4 * n for n in range(len(states))]
    rows = [
        partition(start, end, 3) | {"ended_by": "PARTITION_CHANGE_RECORD"} | state
        for start, end, state in zip(starts, [*starts[1:], last_end], states, strict=True)
    ]
    return ask(lake, rows)


def ask(lake: Path, rows: list[Row]) -> list[Row]:
    write_for(lake, "reassignments", {"partitions": rows})
    sql = "SELECT * FROM reassignments ORDER BY begun_offset"
    found = embedded_sql.query(lake, "reassignments", sql, [rows[0]["cluster_id"]])  # as the page asks
    assert found is not None
    return found.to_pylist()


def chosen(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([BEFORE, MOVING], [("requested", 5, None, [2, 3, 4], None)]),
        ([BEFORE, MOVING, {"replicas": [2, 3, 4]}], [("completed", 5, 9, [2, 3, 4], [2, 3, 4])]),
        ([BEFORE, MOVING, MOVING, {"replicas": [2, 3, 4]}], [("completed", 5, 13, [2, 3, 4], [2, 3, 4])]),
        ([BEFORE, MOVING, {"replicas": [2, 3, 1]}], [("cancelled", 5, 9, [2, 3, 4], [2, 3, 1])]),
        ([BEFORE, {"replicas": [1, 2]}], [("immediate", 5, 5, [1, 2], [1, 2])]),
        ([BEFORE, {"replicas": [3, 2, 1]}], [("immediate", 5, 5, [3, 2, 1], [3, 2, 1])]),
        (
            [BEFORE, MOVING, MOVING_ON],
            [("superseded", 5, 9, [2, 3, 4], [3, 5, 4, 2, 1]), ("requested", 9, None, [3, 5], None)],
        ),
        (
            [BEFORE, MOVING, {"replicas": [2]}],
            [("superseded", 5, 9, [2, 3, 4], [2]), ("immediate", 9, 9, [2], [2])],
        ),
    ],
)  # fmt: skip
def test_states(tmp_path: Path, states: list[Row], expected: list[tuple[Any, ...]]) -> None:
    found = reassigned(tmp_path, *states)
    names = ("state", "begun_offset", "done_offset", "target_replicas", "replicas_after")
    assert chosen(found, *names) == expected
    assert found[0]["replicas_before"] == [1, 2, 3]


def test_what_is_added_and_removed(tmp_path: Path) -> None:
    names = ("added_replicas", "removed_replicas")
    assert chosen(reassigned(tmp_path / "a", BEFORE, MOVING), *names) == [([4], [1])]
    assert chosen(reassigned(tmp_path / "b", BEFORE, {"replicas": [2]}), *names) == [([], [1, 3])]


def test_a_change_of_the_isr_or_of_the_leader_is_none(tmp_path: Path) -> None:
    assert reassigned(tmp_path, BEFORE, BEFORE | {"isr": [1]}, BEFORE | {"leader": 2}) == []


def test_it_ends_with_its_topic(tmp_path: Path) -> None:
    found = reassigned(tmp_path, BEFORE, MOVING | {"ended_by": "REMOVE_TOPIC_RECORD"}, last_end=9)
    assert chosen(found, "state", "done_offset", "replicas_after") == [("deleted", 9, None)]


def over_a_gap(first: Row, second: Row) -> list[Row]:
    """Two states, the second of which only a snapshot after a gap shows."""
    rows = (partition(1, 9, 3) | first, partition(9, None, 3) | second)
    return [gone_by(rows[0], 4), known_since(rows[1], 4)]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (MOVING, {"replicas": [2, 3, 4]}, ("completed", True, False)),
        (MOVING, {"replicas": [2, 3, 1]}, ("cancelled", True, False)),
        (MOVING, {"replicas": [5]}, (None, True, False)),
        (BEFORE, {"replicas": [5]}, ("completed", False, False)),
        (BEFORE, MOVING, ("requested", False, None)),
    ],
)
def test_over_a_gap(tmp_path: Path, first: Row, second: Row, expected: tuple[Any, ...]) -> None:
    """What only a snapshot shows happened at or before it; several requests may lie in the gap."""
    found = ask(tmp_path, over_a_gap(first, second))
    assert chosen(found, "state", "begun_exact", "done_exact") == [expected]


def operations(lake: Path, **tables: list[Row]) -> list[tuple[Any, ...]]:
    write_for(lake, "admin_events", tables)
    found = history_queries.admin_events(lake)
    return chosen(found, "offset", "operation", "before", "after")


def test_no_election_is_named_where_a_reassignment_moves_the_leader(tmp_path: Path) -> None:
    rows = [
        partition(1, 5, 3) | BEFORE | {"leader": 1},
        partition(5, 9, 3) | MOVING | {"leader": 1},
        partition(9, 13, 3) | {"replicas": [2, 3, 4], "isr": [2, 3, 4], "leader": 2},
        partition(13, None, 3) | {"replicas": [3], "leader": 3},
    ]
    brokers = [version(0, None, broker_id=n, broker_epoch=0, fenced=False) for n in (1, 2, 3, 4)]
    found = operations(tmp_path, topics=[topic("t", "orders", 1)], partitions=rows, brokers=brokers)
    assert [row for row in found if "leader" in row[1]] == []
    assert [row for row in found if "reassign" in row[1]] == [(13, "reassign partition", "[2,3,4]", "[3]")]


def test_a_cancelled_reassignment_is_an_operation(tmp_path: Path) -> None:
    rows = [
        partition(1, 5, 3) | BEFORE,
        partition(5, 9, 3) | MOVING,
        partition(9, None, 3) | {"replicas": [2, 3, 1]},
    ]
    assert operations(tmp_path, topics=[topic("t", "orders", 1)], partitions=rows)[:2] == [
        (9, "cancel reassignment", "[2,3,4]", "[2,3,1]"),
        (5, "reassign partition", "[1,2,3]", "[2,3,4]"),
    ]


def test_what_befalls_a_broker(tmp_path: Path) -> None:
    quiet: Row = {"broker_id": 7, "broker_epoch": 1, "fenced": False, "in_controlled_shutdown": False}
    states = [
        quiet | {"fenced": True}, quiet, quiet | {"in_controlled_shutdown": True},
        quiet | {"in_controlled_shutdown": True, "fenced": True},
        quiet | {"broker_epoch": 20, "fenced": True},
        quiet | {"broker_epoch": 20, "ended_by": "UNREGISTER_BROKER_RECORD"},
    ]  # fmt: skip
    rows = [version(n, n + 1, **state) for n, state in enumerate(states)]
    assert operations(tmp_path, brokers=rows) == [
        (6, "unregister broker", "epoch 20", None),
        (5, "unfence broker", "fenced", "unfenced"),
        (4, "register broker", "epoch 1", "epoch 20"),
        (3, "fence broker", "unfenced", "fenced"),
        (2, "controlled shutdown", None, "in controlled shutdown"),
        (1, "unfence broker", "fenced", "unfenced"),
        (0, "register broker", None, "epoch 1"),
    ]


ASK_IN_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from dashboards import embedded_sql
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
rows = embedded_sql.query(Path(sys.argv[1]), "reassignments", "SELECT * FROM reassignments")
print(len(rows))
"""


def test_thousands_take_little_memory(tmp_path: Path) -> None:
    """A cluster that is balanced every day has tens of thousands; once 5,000 took more than 13 GB."""
    rows = [
        partition(start, end, 3) | {"partition_id": number, "ended_by": "PARTITION_CHANGE_RECORD"} | state
        for number in range(5_000)
        for start, end, state in ((1, 5, BEFORE), (5, 9, MOVING), (9, None, {"replicas": [2, 3, 4]}))
    ]
    write_for(tmp_path, "reassignments", {"partitions": rows})
    child = [sys.executable, "-c", ASK_IN_LITTLE_MEMORY, str(tmp_path)]
    asked = subprocess.run(child, capture_output=True, text=True, check=False)
    assert (asked.stdout, asked.returncode) == ("5000\n", 0), asked.stderr
