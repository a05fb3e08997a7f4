"""The views log_growth and log_space without Spark, and the page's section on them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards.report.growth import MOST_BATCHES, ask_growth
from dashboards.report.history_queries import view_rows
from dashboards.report.sections_growth import growth
from dashboards.report.view import View
from tests.dashboards.histories import topic
from tests.dashboards.small_lakes import BY_NAME, write, write_for

AT = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
MIB = 1024 * 1024
Row = dict[str, Any]


def record(offset: int, type_: str, base: int, size: int, **more: Any) -> Row:
    row = {"cluster_id": "c", "offset": offset, "leader_epoch": 1, "batch_crc": base + 7, "type": type_}
    row |= {"batch_base_offset": base, "key_size_bytes": -1, "value_size_bytes": size, "is_control": False}
    return row | {"appended_at": AT + timedelta(minutes=10 * offset)} | more


def batch(base: int, size: int, last: int, node_id: int = 1) -> Row:
    row = {"cluster_id": "c", "node_id": node_id, "directory_id": "d", "base_offset": base, "leader_epoch": 1}
    row |= {"crc": base + 7, "size_bytes": size, "last_offset": last}
    return row | {"appended_at": AT + timedelta(minutes=10 * base)}


RECORDS = [
    record(0, "LEADER_CHANGE", 0, 20, is_control=True, key_size_bytes=4),
    record(1, "PARTITION_CHANGE_RECORD", 1, 30, partition_change={"topic_id": "t", "leader": 2, "isr": [2]}),
    record(
        2, "PARTITION_CHANGE_RECORD", 1, 30, partition_change={"topic_id": "t", "leader": -2, "isr": [1, 2]}
    ),
    record(3, "NO_OP_RECORD", 3, 4),
    record(4, "CONFIG_RECORD", 4, 40, config={"resource_type": 2, "resource_name": "gone"}),
    record(5, "BROKER_REGISTRATION_CHANGE_RECORD", 5, 20, broker_registration_change={"fenced": 1}),
]
BATCHES = [
    batch(base, size, last, node)
    for base, size, last in ((0, 100, 0), (1, 150, 2), (3, 75, 3), (4, 111, 4), (5, 91, 5))
    for node in (1, 2)
]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write_for(
        tmp_path, "log_growth", {"records": RECORDS, "batches": BATCHES, "topics": [topic("t", "orders", 0)]}
    )
    return tmp_path


def test_every_byte_of_the_log_has_a_cause(lake: Path) -> None:
    write(lake, BY_NAME["topics"], [topic("t", "orders", 0) | {"cluster_id": "c"}])
    rows = view_rows(lake, "log_growth", "SELECT * FROM log_growth ORDER BY first_offset", ["c"])
    found = [(r["cause"], r["topic_name"], r["day"].day, r["size_bytes"]) for r in rows]
    assert found == [
        ("quorum", None, 21, 100),
        ("leader change", "orders", 21, 75),
        ("ISR change", "orders", 21, 75),
        ("idle leader", None, 22, 75),
        ("configs", "gone", 22, 111),
        ("broker fenced", None, 22, 91),
    ]
    assert sum(r["size_bytes"] for r in rows) == sum(b["size_bytes"] for b in BATCHES) // 2


def capture(hours: float = 0.0, **more: Any) -> Row:
    row = {"cluster_id": "c", "capture_id": "k", "node_id": 1, "directory_id": "d", "log_end_offset": 6}
    held = [{"end_offset": end, "leader_epoch": 1, "content_digest": f"s{end}"} for end in (2, 4)]
    captured_at = AT + timedelta(minutes=50, hours=hours)
    return row | {"captured_at": captured_at, "snapshots": held, "batches": 5, "log_start_offset": 0} | more


def space(lake: Path, captured: Row, size: int = 1000) -> Row:
    snapshots = [
        {"cluster_id": "c", "end_offset": end, "leader_epoch": 1, "content_digest": f"s{end}"}
        | {"kind": "snapshot", "size_bytes": size, "header_at": AT + timedelta(minutes=end)}
        for end in (2, 4)
    ]
    segments = [{"cluster_id": "c", "capture_id": "k", "base_offset": 0, "size_bytes": 527}]
    tables = {"captures": [captured], "snapshots": snapshots, "segments": segments, "batches": BATCHES}
    write_for(lake, "log_space", tables)
    (row,) = view_rows(lake, "log_space", "SELECT * FROM log_space", ["c"])
    return row


def test_what_no_snapshot_holds(tmp_path: Path) -> None:
    row = space(tmp_path, capture())
    assert (row["snapshot_end_offset"], row["snapshots"], row["snapshot_bytes"]) == (4, 2, 2000)
    assert (row["log_bytes"], row["new_bytes"], row["new_ms"]) == (527, 202, 10 * 60_000)
    assert (row["snapshot_is_late"], row["deletion_is_late"]) == (False, False)


@pytest.mark.parametrize(
    ("hours", "size", "late"),
    [
        (0.8, 1000, (False, False)),
        (0.9, 1000, (True, False)),
        (0, 60 * MIB, (False, True)),
        (168, 1, (True, True)),
    ],
)
def test_what_is_late_by_kafkas_defaults(
    tmp_path: Path, hours: float, size: int, late: tuple[bool, bool]
) -> None:
    row = space(tmp_path, capture(hours), size)
    assert (row["snapshot_is_late"], row["deletion_is_late"]) == late


def test_without_snapshots_everything_is_new(tmp_path: Path) -> None:
    row = space(tmp_path, capture(snapshots=[]))
    assert (row["snapshots"], row["new_bytes"], row["snapshot_end_offset"]) == (0, 527, None)
    assert not row["deletion_is_late"]


def test_the_section(lake: Path) -> None:
    write(lake, BY_NAME["captures"], [capture()])
    for name in ("snapshots", "segments"):
        write(lake, BY_NAME[name], [])
    rows = ask_growth(lake, ["c"])["c"]
    assert rows["log_growth"][0]["cause"] == "configs"
    shown = growth(View(None, rows, None, 0, "c1"))  # pyright: ignore[reportArgumentType]
    assert shown is not None
    assert "What the log is made of" in shown
    assert "21.1 %" in shown
    assert "in time" in shown


def test_a_large_log_is_not_taken_apart(lake: Path) -> None:
    write(lake, BY_NAME["captures"], [capture(batches=MOST_BATCHES + 1)])
    for name in ("snapshots", "segments"):
        write(lake, BY_NAME[name], [])
    rows = ask_growth(lake, ["c"])["c"]
    assert rows["log_growth"] == []
    assert len(rows["log_space"]) == 1
