"""Rows of `runs` of the passes of follow: after a day those stay that something refers to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.maintenance.passes import forget_passes
from jobs.maintenance.samples import ALL_KEPT
from tests.dashboards.small_lakes import write
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.leases import lease_state
from transforms.lake.tables import CAPTURES, DERIVATIONS, EXPECTATION_RESULTS, OBSERVATIONS, RUNS
from transforms.quality.expectation_history import MARK, unvalidated

Row = dict[str, Any]
BEGAN = datetime(2026, 11, 21, 9, tzinfo=UTC)
A_DAY_LATER = BEGAN + ALL_KEPT + timedelta(hours=1)
MARKED = {name: values[0] for name, values in MARK.items()}
REPORTED = [{"cluster_id": "a", "finding_id": "f"}]


def ended(run_id: str, minutes: int = 0, job: str = "follow", **others: Any) -> Row:
    at = BEGAN + timedelta(minutes=minutes)
    return {"run_id": run_id, "started_at": at, "finished_at": at, "job": job, "exit_code": 0} | others


def left(lake: Path, now: datetime, *rows: Row) -> set[str]:
    """The runs that remain of these."""
    writer = TableWriter(lake, 7)
    writer.create(RUNS)
    writer.append(RUNS, rows)
    gone = forget_passes(writer, now)
    found = {row["run_id"] for row in rows_with(lake, RUNS)}
    assert gone == len(rows) - len(found)
    return found


def test_passes_of_more_than_a_day_ago_go(tmp_path: Path) -> None:
    rows = [ended("a"), ended("b", 59), ended("c", 61), ended("d", job="run"), ended("e", exit_code=1)]
    assert left(tmp_path, A_DAY_LATER, *rows) == {"c", "d"}
    assert lease_state(tmp_path).number == 7


def test_what_has_not_ended_stays(tmp_path: Path) -> None:
    assert left(tmp_path, A_DAY_LATER, ended("a", finished_at=None)) == {"a"}


def test_what_reported_findings_stays(tmp_path: Path) -> None:
    rows = [ended("a", reported_findings=REPORTED), ended("b", reported_findings=[])]
    assert left(tmp_path, A_DAY_LATER, *rows) == {"a"}


def test_what_is_named_stays_so_that_what_was_validated_is_known(tmp_path: Path) -> None:
    """A run without a row would count as one that has just ended."""
    named = {"capture": CAPTURES, "sample": OBSERVATIONS, "derivation": DERIVATIONS}
    for run_id, table in named.items():
        write(tmp_path, table, [{"cluster_id": "a", "run_id": run_id}])
    rows = [*map(ended, named), ended("none"), ended("validation", 1, "validate")]
    assert left(tmp_path, A_DAY_LATER, *rows) == {*named, "validation"}
    assert unvalidated(tmp_path, "own").run_ids == {"capture", "sample"}
    write(tmp_path, EXPECTATION_RESULTS, [{"cluster_id": "a", "run_id": "validation", **MARKED}])
    assert unvalidated(tmp_path, "own").run_ids == set()
