"""What caused a change of leader at a peak of the clock: all later records share its effective time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboards import embedded_sql
from tests.dashboards.histories import partition, time_at, version
from tests.dashboards.small_lakes import write_for

Row = dict[str, Any]
CHANGE = 20
PEAK = time_at(CHANGE)
IN_ITS_BATCH = {"record_leader_epoch": 1, "appended_at": PEAK}


def broker(start: int, end: int, **more: Any) -> Row:
    """A version of broker 0, the former leader, until another follows or it is unregistered."""
    row = version(start, end, broker_id=0, fenced=False, in_controlled_shutdown=False)
    before = {"record_leader_epoch": 1, "appended_at": time_at(start)}
    return row | before | {"valid_to_at": min(time_at(end), PEAK)} | more


def cause(lake: Path, brokers: list[Row], **after: Any) -> tuple[str, int | None, int | None]:
    """Of the change from broker 0, by the view: the cause, the broker and its offset."""
    former = partition(10, CHANGE, 3) | {"record_leader_epoch": 1, "appended_at": time_at(10)}
    changed = partition(CHANGE, None, 3) | {"leader": 1, "isr": [1, 2]} | IN_ITS_BATCH | after
    write_for(lake, "leader_changes", {"partitions": [former, changed], "brokers": brokers})
    found = embedded_sql.query(
        lake, "leader_changes", "SELECT cause, caused_by_broker, caused_by_offset FROM leader_changes"
    )
    assert found is not None
    (row,) = found.to_pylist()
    return row["cause"], row["caused_by_broker"], row["caused_by_offset"]


def test_an_unregistration_moves_the_lead(tmp_path: Path) -> None:
    assert cause(tmp_path, [broker(1, CHANGE + 1)]) == ("unregistered", 0, None)
    shutting = [broker(1, CHANGE + 1, in_controlled_shutdown=True)]
    assert cause(tmp_path, shutting, leader=-1, isr=[]) == ("unregistered", 0, None)


@pytest.mark.parametrize("offset", [CHANGE - 1, CHANGE + 1])
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"fenced": True}, "fenced"),
        ({"in_controlled_shutdown": True}, "controlled shutdown"),
        ({"log_dirs": ["left"]}, "elected"),
    ],
)
def test_a_later_unregistration_is_no_cause(tmp_path: Path, offset: int, state: Row, expected: str) -> None:
    """The batch of the change fenced the broker, or shut it down, or took a log directory from it."""
    brokers = [broker(1, offset), broker(offset, 90, **IN_ITS_BATCH, **state)]
    by = (None, None) if expected == "elected" else (0, offset)
    assert cause(tmp_path, brokers) == (expected, *by)


def test_a_broker_that_stays_in_sync_was_not_unregistered(tmp_path: Path) -> None:
    assert cause(tmp_path, [broker(1, 90)], isr=[1, 0, 2]) == ("elected", None, None)
