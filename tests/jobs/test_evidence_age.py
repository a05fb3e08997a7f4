"""How old evidence is: the words, and from when on an answer holds only as of the captures."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.arguments import positive_hours
from jobs.runtime.evidence_age import EvidenceAge
from jobs.runtime.finding_text import recovery_headline, recovery_lines

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ADVICE: dict[str, Any] = {
    "cluster_id": "c",
    "as_of": NOW - timedelta(hours=25),
    "best": [{"node_id": 2, "last_leader_epoch": 3, "log_end_offset": 50}],
    "is_safe": True,
}


@pytest.mark.parametrize(
    ("age", "words", "is_old"),
    [
        (timedelta(seconds=40), "40 s ago", False),
        (timedelta(minutes=20, seconds=5), "20 min ago", False),
        (timedelta(hours=24), "1 d ago", False),
        (timedelta(hours=24, seconds=1), "1 d ago, more than 24 h", True),
        (timedelta(days=3, hours=2, minutes=59), "3 d 2 h ago, more than 24 h", True),
    ],
)
def test_the_age_of_evidence(age: timedelta, words: str, is_old: bool) -> None:
    evidence = EvidenceAge(NOW - age, NOW, 24)
    assert f"{words}{':' if is_old else '.'}" in evidence.sentence
    assert "since then are not covered" in evidence.sentence
    assert evidence.is_old is is_old


def test_evidence_may_be_of_any_age() -> None:
    """Of more hours than Python's timedelta has."""
    assert not EvidenceAge(NOW - timedelta(days=9999), NOW, 1e300).is_old


def test_evidence_of_no_known_time_and_of_the_future_is_old() -> None:
    unknown, future = EvidenceAge(None, NOW, 24), EvidenceAge(NOW + timedelta(seconds=1), NOW, 24)
    assert unknown.is_old
    assert unknown.sentence.startswith("It is not known when the captures were taken: state it ")
    assert future.is_old
    assert "check the clocks" in future.sentence


def test_evidence_that_states_no_time_is_old_at_any_age() -> None:
    """It was copied at any time between the newest timestamp in it and when it was read."""
    evidence = EvidenceAge(NOW - timedelta(seconds=40), NOW, 24, "newest timestamp in the log")
    assert evidence.is_old
    assert evidence.sentence.startswith(
        "The evidence ends at 2026-11-22 11:59:20Z (newest timestamp in the log) or later: state when each "
        "capture was taken (capture.json or --captured-at). "
    )
    assert "ago" not in evidence.sentence


@pytest.mark.parametrize(
    ("captured_at", "captured_from", "words"),
    [
        (NOW, NOW, "captured 2026-11-22 12:00:00Z"),
        (None, NOW, "captured 2026-11-22 12:00:00Z (newest timestamp in the log) or later"),
        (None, None, "captured at an unknown time"),
    ],
)
def test_a_candidate_names_no_file_time(
    captured_at: datetime | None, captured_from: datetime | None, words: str
) -> None:
    source = "capture.json" if captured_at else "newest timestamp in the log"
    times = {"captured_at": captured_at, "captured_from": captured_from, "time_source": source}
    (first, *_) = ADVICE["best"]
    log = {"directory_id": "d", "is_observer": False, "voters_in_force": None, "loses": "", "keeps": ""}
    advice = {**ADVICE, "why": "", "best": [first | log | times], "others": [], "highest_epoch": None}
    lines = list(recovery_lines(advice, is_old=True))
    assert lines[-1] == f"  2@d: best claim, last epoch 3, log end 50, {words}"


def test_the_setting_decides() -> None:
    taken = NOW - timedelta(hours=5)
    assert EvidenceAge(taken, NOW, 4).is_old
    assert not EvidenceAge(taken, NOW, 6).is_old


def test_old_evidence_is_safe_as_of_its_time_only() -> None:
    assert recovery_headline(ADVICE, is_old=False).endswith(", safe")
    assert recovery_headline(ADVICE, is_old=True).endswith(", safe as of 2026-11-21 11:00:00Z")
    assert recovery_headline(ADVICE | {"is_safe": False}, is_old=False).endswith(", NOT SAFE")


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan"])
def test_an_age_is_above_0(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        positive_hours(text)
