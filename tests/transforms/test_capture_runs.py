"""Stretches of a log: whether any two of them may hold the same batch."""

from __future__ import annotations

import pytest

from transforms.capture_runs import overlap


@pytest.mark.parametrize(
    ("stretches", "shared"),
    [
        ([], False),
        ([(0, 10)], False),
        ([(10, 20), (0, 10), (25, 30)], False),
        ([(10, 20), (0, 11)], True),
        ([(0, 10), (0, 10)], True),
        ([(0, 100), (50, 60), (200, 300)], True),
        ([(5, 6), (0, 10), (10, 12)], True),
    ],
)
def test_stretches_that_share_an_offset(stretches: list[tuple[int, int]], shared: bool) -> None:
    rows = [
        {"first_offset": first, "end_offset": end, "leader_epoch": n}
        for n, (first, end) in enumerate(stretches)
    ]
    assert overlap(rows) is shared
    assert overlap(reversed(rows)) is shared
