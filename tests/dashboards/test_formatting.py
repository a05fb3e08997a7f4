"""Numbers and times in words."""

from __future__ import annotations

import pytest

from dashboards.report import formatting
from dashboards.report.formatting import DAY, HOUR, MINUTE, SECOND
from dashboards.report.tables import offsets
from kraft_core.messages.uuid_text import ZERO_UUID


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (154, "154 ms"),
        (3_644, "3.6 s"),
        (9_999, "10.0 s"),
        (16_248, "16 s"),
        (2 * MINUTE + 5 * SECOND, "2 min 5 s"),
        (3 * HOUR, "3 h"),
        (3 * HOUR + 59 * SECOND, "3 h"),
        (26 * HOUR, "1 d 2 h"),
        (400 * DAY + HOUR, "400 d 1 h"),
    ],
)
def test_durations(ms: int, said: str) -> None:
    assert formatting.duration(ms) == said


def test_times_are_utc_and_to_the_second() -> None:
    assert formatting.utc(1_795_252_516_632) == "2026-11-21 09:15:16Z"
    assert formatting.time_of(1_795_252_516_632) == (
        '<time datetime="2026-11-21T09:15:16.632+00:00">2026-11-21 09:15:16Z</time>'
    )
    assert "–" in formatting.time_of(None)


def test_ages() -> None:
    assert formatting.ago(1_000, 1_000 + 2 * HOUR) == "2 h ago"
    assert formatting.ago(1_000 + 2 * HOUR, 1_000) == "in 2 h"


def test_offsets_are_inclusive_and_one_is_its_number() -> None:
    assert [offsets(20, end) for end in (None, 20, 21, 30, 2_001)] == [
        "20 to the end", "none", "20", "20 – 29", "20 – 2,000",
    ]  # fmt: skip


def test_sizes_and_lists() -> None:
    assert [formatting.size(n) for n in (None, 0, 999, 6_345, 1_200_000_000)] == [
        "–", "0 B", "999 B", "6.3 KB", "1.2 GB",
    ]  # fmt: skip
    assert formatting.number(None) == "–"
    assert [formatting.ranges(n) for n in ([], [3], [0, 1, 2, 5, 7, 8])] == ["", "3", "0–2, 5, 7–8"]
    assert [formatting.listed(range(1, n)) for n in (1, 2, 3, 4)] == ["", "1", "1 and 2", "1, 2 and 3"]


def test_a_directory_without_an_id_is_not_named() -> None:
    assert formatting.replica(1, "dlQnpRFNQLyzxMXecUSy_g") == "node 1 (dlQnpR)"
    assert formatting.replica(1, ZERO_UUID) == "node 1"
    assert "AAAAAA" not in formatting.directory(ZERO_UUID)
