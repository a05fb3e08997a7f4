"""Stretches of a log: whether two of them may hold the same batch, and which files hold the same."""

from __future__ import annotations

from typing import Any

import pytest

from transforms.ingest.epoch_ranges import of_distinct_files, overlap


def epoch_range(file_number: int, first: int, end: int, digest: int = 0) -> dict[str, Any]:
    return {
        "file_number": file_number,
        "first_offset": first,
        "end_offset": end,
        "leader_epoch": 1,
        "digest": digest,
        "batches": 1,
        "size_bytes": 100,
    }


@pytest.mark.parametrize(
    ("ranges", "shared"),
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
def test_ranges_that_share_an_offset(ranges: list[tuple[int, int]], shared: bool) -> None:
    rows = [epoch_range(number, first, end) for number, (first, end) in enumerate(ranges)]
    assert overlap(rows, lambda _: "log") is shared
    assert overlap(reversed(rows), lambda _: "log") is shared
    assert overlap(rows, lambda number: number) is False


def test_of_files_that_hold_the_same_one_is_left() -> None:
    same = [epoch_range(n, *piece) for n in (2, 0, 5) for piece in ((10, 20, 7), (0, 10, 3))]
    others = [
        epoch_range(1, 0, 10, 3),  # not all that the first one holds
        epoch_range(3, 0, 10, 3),
        epoch_range(3, 10, 20, 8),  # another batch
        epoch_range(9, 0, 10, 3),
        epoch_range(9, 10, 20, 7),  # of another log
    ]
    left = of_distinct_files([*same, *others], lambda number: number == 9)
    assert [(piece["file_number"], piece["first_offset"]) for piece in left] == [
        (0, 10),
        (0, 0),
        (1, 0),
        (3, 0),
        (3, 10),
        (9, 0),
        (9, 10),
    ]
