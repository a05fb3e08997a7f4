"""The view formatted_directories, without Spark: whether they were formatted as those of initial voters."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dashboards.report.history_queries import view_rows
from tests.dashboards.small_lakes import write_for

AT = datetime(2026, 11, 21, tzinfo=UTC)
Row = dict[str, Any]


def checkpoint(digest: str, *voters: tuple[int, str], end: int = 0, complete: bool = True) -> Row:
    named = [{"voter_id": voter_id, "directory_id": directory_id} for voter_id, directory_id in voters]
    row = {"cluster_id": "c", "end_offset": end, "leader_epoch": min(end, 1), "content_digest": digest}
    return row | {
        "kind": "snapshot" if end else "bootstrap",
        "complete": complete,
        "voters": named or None,
    }


# bootstrap.checkpoint, which has no voters, and 0-0 have the same end.
CHECKPOINTS = [
    checkpoint("bootstrap"),
    checkpoint("alone", (1, "d1")),
    checkpoint("three", (1, "d1"), (2, "d2"), (3, "d3")),
    checkpoint("torn", (1, "d1"), complete=False),
    checkpoint("later", (1, "d1"), (2, "d2"), end=400),
]


def capture(*digests: str, nth: int = 0, **more: Any) -> Row:
    ends = {row["content_digest"]: (row["end_offset"], row["leader_epoch"]) for row in CHECKPOINTS}
    held = [
        {"end_offset": end, "leader_epoch": epoch, "content_digest": digest}
        for digest, (end, epoch) in ((digest, ends.get(digest, (0, 0))) for digest in digests)
    ]
    row = {"cluster_id": "c", "capture_id": f"k{nth}", "node_id": 1, "directory_id": "d1", "captured_at": AT}
    return row | {"log_readable": True, "log_start_offset": 0, "snapshots": held or None} | more


def formatted(lake: Path, *captures: Row) -> tuple[str | None, int | None]:
    write_for(lake, "formatted_directories", {"captures": list(captures), "snapshots": CHECKPOINTS})
    (row,) = view_rows(lake, "formatted_directories", "SELECT * FROM formatted_directories", ["c"])
    return row["formatted_as"], row["initial_voters"]


@pytest.mark.parametrize(
    ("captured", "expected"),
    [
        (capture("bootstrap", "alone"), ("only voter", 1)),
        (capture("bootstrap", "three"), ("initial voter", 3)),
        (capture("three", directory_id="new"), ("no voter", 3)),
        (capture("three", "later"), ("initial voter", 3)),
        (capture("bootstrap"), ("no voter", None)),
        (capture(), ("no voter", None)),
    ],
    ids=["standalone", "initial controllers", "another directory", "with a later one", "joined", "no file"],
)
def test_the_first_checkpoint_names_the_directory_or_not(
    tmp_path: Path, captured: Row, expected: tuple[str, int | None]
) -> None:
    assert formatted(tmp_path, captured) == expected


@pytest.mark.parametrize(
    "captured",
    [
        capture("bootstrap", "later"),
        capture("bootstrap", log_start_offset=400),
        capture("bootstrap", log_readable=False),
        capture("torn"),
        capture("of no row"),
    ],
    ids=["replaced by a later one", "later log", "unreadable log", "torn", "unread"],
)
def test_what_may_have_been_there_is_not_known(tmp_path: Path, captured: Row) -> None:
    assert formatted(tmp_path, captured) == (None, None)


def test_one_capture_that_shows_it_is_enough(tmp_path: Path) -> None:
    captures = (capture("bootstrap", nth=1), capture("bootstrap", "later", nth=2, log_start_offset=400))
    assert formatted(tmp_path, *captures) == ("no voter", None)
