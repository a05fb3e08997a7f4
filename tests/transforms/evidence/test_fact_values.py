"""Rows of captures as facts: what their damage says of where a log ended."""

from __future__ import annotations

from typing import Any

import pytest

from transforms.evidence.fact_values import tail_damage


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
