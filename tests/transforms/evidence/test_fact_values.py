"""Rows of captures and observations as facts: where a log ended, what a leader answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kraft_core.evidence.facts import AnsweredWatermark
from kraft_core.messages.uuid_text import ZERO_UUID
from transforms.evidence.fact_values import answered, tail_damage


def row(end: int, *damage: tuple[str, int | None, int | None]) -> dict[str, Any]:
    """A log that was read up to an offset, with damage as (reason, first, end of the lost offsets)."""
    return {
        "epoch_ranges": [{"end_offset": end}] if end else [],
        "damage": [
            {"reason": reason, "lost_from_offset": first, "lost_to_offset": last}
            for reason, first, last in damage
        ],
    }


@pytest.mark.parametrize("reason", ["bad_crc", "torn_tail"])
def test_only_what_follows_the_last_batch_hides_where_the_log_ended(reason: str) -> None:
    assert list(tail_damage(row(50, (reason, 50, None)))) == [reason]
    assert list(tail_damage(row(50, (reason, 40, None)))) == []
    assert list(tail_damage(row(50, (reason, 50, 60)))) == []
    assert list(tail_damage(row(50, (reason, None, None)))) == []  # of a checkpoint


@pytest.mark.parametrize("reason", ["bad_crc", "torn_tail"])
def test_a_log_of_which_nothing_could_be_read_did_not_end_at_0(reason: str) -> None:
    assert list(tail_damage(row(0, (reason, 0, None)))) == [reason]


def test_what_a_leader_answered_to_follow_names_the_voters() -> None:
    told = {
        "source": "1700000000000-1700000000009-status-live.txt",
        "leader_epoch": 3,
        "node_id": 2,
        "high_watermark": 150,
        "observed_to": datetime(2026, 11, 21, tzinfo=UTC),
        "voters": [{"node_id": 2, "directory_id": ZERO_UUID}],
    }
    of_a_replica = told | {"leader_epoch": None, "high_watermark": None, "voters": None}
    of_describe = told | {"source": "1700000000000-status.txt"}
    at = int(told["observed_to"].timestamp()) * 1000
    assert list(answered([told, told | {"voters": None}, of_a_replica, of_describe])) == [
        AnsweredWatermark(3, 2, 150, at, ((2, ZERO_UUID),)),
        AnsweredWatermark(3, 2, 150, at),
    ]
