"""Small files and old captures, as far as that needs no Spark."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.maintenance.compaction import MOST_SMALL_FILES, SMALL_BYTES, compact_runs
from jobs.retention import expired
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from kraft_core.format.capture import FOLLOWED_NODE_ID
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import count_rows, rows_with, small_files, unneeded_files
from transforms.lake.tables import CAPTURES, RUNS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_runs_without_news_do_not_pile_up_files(lake: Any, tmp_path: Path) -> None:
    """Each appends a file to `runs`; when there are more than fifty they become one, with all rows."""
    shutil.copytree(lake.path / "runs", tmp_path / "runs")
    begun = count_rows(tmp_path, RUNS, job=["run"])
    for night in range(MOST_SMALL_FILES + 5):
        TableWriter(tmp_path, None).append(RUNS, [RunRecord("run", Progress()).row(0)])
        compact_runs(tmp_path)
        assert count_rows(tmp_path, RUNS, job=["run"]) == begun + night + 1
        assert small_files(tmp_path, RUNS, SMALL_BYTES) <= MOST_SMALL_FILES
    assert small_files(tmp_path, RUNS, SMALL_BYTES) < 10
    assert unneeded_files(tmp_path, RUNS, 1) == []
    assert len(unneeded_files(tmp_path, RUNS, 0)) > MOST_SMALL_FILES
    ids = [row["run_id"] for row in rows_with(tmp_path, RUNS, ["run_id"])]
    assert len(set(ids)) == len(ids)


def test_rows_are_counted(lake: Any) -> None:
    cluster = "rPoTXydvQsK3Nv6AA77Cqg"
    rows = lake.read(CAPTURES).where(f"cluster_id = '{cluster}'").count()
    assert count_rows(lake.path, CAPTURES, cluster_id=[cluster]) == rows > 0
    assert count_rows(lake.path, CAPTURES, cluster_id=["nobody"]) == 0


def capture(capture_id: str, node_id: int, hours: int, cluster_id: str = "c") -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "capture_id": capture_id,
        "node_id": node_id,
        "directory_id": "d",
        "captured_at": NOON + timedelta(hours=hours),
    }


@pytest.mark.parametrize(
    ("before_hours", "gone"), [(-9, set()), (0, {"a"}), (2, {"a", "b"}), (99, {"a", "b", "y"})]
)
def test_the_newest_capture_of_a_replica_stays(before_hours: int, gone: set[str]) -> None:
    held = [
        capture("b", 1, 1),
        capture("a", 1, -1),
        capture("c", 1, 3),
        capture("x", 2, -9),
        capture("y", 1, 9, "other"),
        capture("z", 1, 10, "other"),
    ]
    for rows in (held, held[::-1]):
        assert {c["capture_id"] for c in expired(rows, NOON + timedelta(hours=before_hours))} == gone


def test_what_was_followed_stays() -> None:
    held = [capture("a", FOLLOWED_NODE_ID, -9), capture("b", FOLLOWED_NODE_ID, 9)]
    assert expired(held, NOON + timedelta(hours=99)) == []
