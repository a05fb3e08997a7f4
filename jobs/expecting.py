"""The expectations of the data in a job that judges: which fail, which are news, how they are told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from jobs.job import Job
from jobs.outcome import Failure
from jobs.sql import show_json
from jobs.telling import as_json, wrapped
from jobs.verdict import ERROR
from transforms.delta_rs import rows_with
from transforms.tables import EXPECTATION_RESULTS

Row = dict[str, Any]
Allowed = Mapping[str, Any]


def check_expectations(
    job: Job, clusters: Sequence[str] | None, now: datetime, form: str, allowed: Allowed
) -> list[str]:
    """Run the suites, note in the job's record which failures make it fail, and return the lines to print.

    `allowed` changes thresholds, as [expectations] of the settings does. Raises Failure where it names none.
    """
    from transforms.expectations import UnknownExpectationError, expect

    with job.progress.stage("expectations"):
        try:
            results = expect(job.lake, job.run.run_id, job.run.started_at, now, clusters, overrides=allowed)
        except UnknownExpectationError as error:
            raise Failure(str(error)) from None
    unmet = [row for row in results if not row["success"]]
    errors = [row for row in unmet if row["severity"] == ERROR]
    if job.record.fail_on == "new":
        errors = list(news(job.lake.path, job.run.run_id, errors))
    job.record.unmet = 0 if job.record.fail_on == "never" else len(errors)
    if form == "jsonl":
        return [json.dumps(as_json(row), ensure_ascii=False) for row in unmet]
    return [line for row in unmet for line in lines(row)]


def show_failing(
    job: Job, name: str, clusters: Sequence[str] | None, now: datetime, allowed: Allowed
) -> None:
    """Print all rows that fail an expectation, as JSON lines. Raises Failure where there is no such."""
    from transforms.expectations import UnknownExpectationError, failing_rows

    try:
        rows = failing_rows(job.lake, name, now, clusters, allowed)
    except UnknownExpectationError as error:
        raise Failure(str(error)) from None
    show_json(rows.columns, (tuple(row) for row in rows.toLocalIterator()), sys.stdout)


def news(lake: Path, run_id: str, failed: Iterable[Row]) -> Iterator[Row]:
    """The failures of which the run before that asked had none."""
    failed = list(failed)
    before: dict[tuple[str, ...], Row] = {}
    clusters = {row["cluster_id"] for row in failed}
    for row in rows_with(lake, EXPECTATION_RESULTS, cluster_id=clusters) if failed else ():
        known = before.get(named(row))
        if row["run_id"] != run_id and (known is None or row["loaded_at"] > known["loaded_at"]):
            before[named(row)] = row
    return (row for row in failed if named(row) not in before or before[named(row)]["success"])


def named(row: Row) -> tuple[str, ...]:
    return row["cluster_id"], row["suite"], row["expectation"]


def lines(row: Row) -> Iterator[str]:
    """An expectation that is not met, for people."""
    yield f"{row['severity'].upper()}  {row['suite']}.{row['expectation']}  cluster {row['cluster_id']}"
    yield from wrapped(row["sentence"])
    seen = "nothing to measure" if row["observed"] is None else f"{row['observed']:g}"
    yield from wrapped(f"observed: {seen}, allowed: {row['allowed']:g}")
