"""The views of brokers' lifecycles and of replicas that no broker serves, over rows made for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.catalog import define
from dashboards.definitions import needed
from dashboards.published import current_kept
from tests.dashboards.histories import gone_by, known_since, partition, version
from tests.dashboards.small_lakes import BY_NAME, write
from transforms.lake.lake import existing_lake

pytestmark = pytest.mark.usefixtures("interpreted")

LOST, UNASSIGNED = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAQ"


def broker(start: int, end: int | None, broker_id: int, **more: Any) -> dict[str, Any]:
    """A version of a broker with two log directories; active."""
    row = version(start, end, broker_id=broker_id, broker_epoch=1, incarnation_id=f"i{broker_id}")
    state = {"fenced": False, "in_controlled_shutdown": False, "log_dirs": [f"a{broker_id}", f"b{broker_id}"]}
    return row | state | more


BROKERS = [
    # A snapshot shows it first; it is fenced, and a snapshot no longer has it.
    known_since(broker(5, 9, 1), 2),
    gone_by(broker(9, 20, 1, fenced=True), 12),
    broker(25, 30, 1, broker_epoch=25, incarnation_id="j1", fenced=True),
    broker(30, None, 1, broker_epoch=25, incarnation_id="j1"),
    # One process registers again and keeps its state; then it loses a directory.
    broker(1, 4, 2),
    broker(4, 8, 2, broker_epoch=1, log_dirs=["a2"]),
    broker(8, None, 2, log_dirs=["a2"], in_controlled_shutdown=True),
]


def placed(partition_id: int, replicas: list[int], directories: list[str], **more: Any) -> dict[str, Any]:
    row = partition(3, None, 0) | {"partition_id": partition_id, "isr": replicas, "leader": replicas[0]}
    return row | {"replicas": replicas, "directories": directories} | more


PARTITIONS = [
    placed(0, [1, 2], ["a1", "a2"]),
    placed(1, [2, 1], ["b2", UNASSIGNED], isr=[1], leader=1),
    placed(2, [2], ["never"], leader=-1),
    placed(3, [1, 2], [LOST, "a2"], isr=[2], eligible_leader_replicas=[1]),
    placed(4, [3], ["a3"], isr=[], eligible_leader_replicas=[3], leader=-1),
]


@pytest.fixture(scope="module")
def ask(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Answers of SQL over a lake of these rows."""
    path = tmp_path_factory.mktemp("brokers")
    for name, rows in {"brokers": BROKERS, "partitions": PARTITIONS}.items():
        write(path, BY_NAME[name], rows)
    (path / "lake.json").write_text('{"format_version": 1}')
    with current_kept(spark):
        spark.sql("CREATE DATABASE broker_views")
        spark.sql("USE broker_views")
        define(
            existing_lake(spark, path), needed("SELECT offline_directories, stranded_replicas, why_fenced")
        )
        yield lambda query: [tuple(row) for row in spark.sql(query).collect()]
        spark.sql("DROP DATABASE broker_views CASCADE")


def test_what_only_a_snapshot_shows_has_no_cause(ask: Any) -> None:
    life = ask(
        "SELECT state, began_as, ended_as, from_offset, to_offset, from_exact, incarnation_before "
        "FROM broker_lifecycles WHERE broker_id = 1 ORDER BY from_offset"
    )
    assert life == [
        ("active", None, "fenced", 5, 9, False, None),
        ("fenced", "fenced", None, 9, 20, True, None),
        ("unregistered", None, "registered", 20, 25, False, "i1"),
        ("fenced", "registered", "unfenced", 25, 30, True, "i1"),
        ("active", "unfenced", None, 30, None, True, None),
    ]
    fenced = "SELECT from_offset, cause, state_before, fenced_ms FROM why_fenced ORDER BY from_offset"
    assert ask(fenced) == [(9, "no heartbeat", "active", 110), (25, "new process", "unregistered", 50)]


def test_what_is_no_state_of_a_broker_begins_none(ask: Any) -> None:
    life = ask(
        "SELECT state, began_as, from_offset, to_offset, state_ms FROM broker_lifecycles "
        "WHERE broker_id = 2 ORDER BY from_offset"
    )
    assert life == [
        ("active", "registered", 1, 8, 70),
        ("controlled shutdown", "controlled shutdown", 8, None, None),
    ]


def test_replicas_that_no_broker_serves(ask: Any) -> None:
    stranded = ask(
        "SELECT partition_id, broker_id, directory_id, directory_state, registered_until IS NULL, is_in_isr, "
        "is_only_copy FROM stranded_replicas ORDER BY partition_id"
    )
    assert stranded == [
        (1, 2, "b2", "offline", False, False, False),
        (2, 2, "never", "unknown", True, True, True),
        (3, 1, LOST, "lost", True, False, False),
        (4, 3, "a3", "unregistered", True, False, True),
    ]
    counted = ask(
        "SELECT broker_id, directory_id, partitions, leaderless, only_copies FROM offline_directories "
        "ORDER BY broker_id, directory_id"
    )
    assert counted == [
        (1, LOST, 1, 0, 0),
        (2, "b2", 1, 0, 0),
        (2, "never", 1, 1, 1),
        (3, "a3", 1, 1, 1),
    ]
