"""The expectations of the data in a job that judges: which failures count, and how they are told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobs.job import Job
from jobs.runtime.fail_on import ERROR
from jobs.runtime.finding_text import as_json, wrapped
from jobs.runtime.outcome import Failure
from jobs.sql import show_json
from transforms.quality.expectation_history import Unseen, named, news, standing

Row = dict[str, Any]
Allowed = Mapping[str, Any]


def check_expectations(
    job: Job, what: Unseen | Sequence[str], now: datetime, form: str, allowed: Allowed
) -> list[str]:
    """Run the suites, note in the job's record which failures make it fail, and return the lines to print.

    `what`: what is unseen, or clusters with all their rows. `allowed` changes thresholds, as [expectations]
    of the settings does. Raises Failure where it names none.
    """
    from transforms.quality.expectations import Scope, UnknownExpectationError, expect

    scope = Scope(what.clusters, what.run_ids) if isinstance(what, Unseen) else Scope(what)
    with job.progress.stage("expectations"):
        try:
            results = expect(job.lake, job.record.run_id, job.record.started_at, now, scope, allowed)
        except UnknownExpectationError as error:
            raise Failure(str(error)) from None
    failing = [row for row in results if not row["success"]]
    if isinstance(what, Unseen):
        asked = {named(row) for row in results}
        failing += [row for row in standing(job.lake.path) if named(row) not in asked]
    errors = [row for row in failing if row["severity"] == ERROR]
    if job.record.fail_on == "new":
        errors = list(news(job.lake.path, job.record.run_id, errors))
    job.record.unmet = 0 if job.record.fail_on == "never" else len(errors)
    if form == "jsonl":
        return [json.dumps(as_json(row), ensure_ascii=False) for row in failing]
    return [line for row in failing for line in lines(row)]


def show_failing(
    job: Job, name: str, clusters: Sequence[str] | None, now: datetime, allowed: Allowed
) -> None:
    """Print all rows that fail an expectation, as JSON lines. Raises Failure where there is no such."""
    from transforms.quality.expectations import UnknownExpectationError, failing_rows

    try:
        rows = failing_rows(job.lake, name, now, clusters, allowed)
    except UnknownExpectationError as error:
        raise Failure(str(error)) from None
    show_json(rows.columns, (tuple(row) for row in rows.toLocalIterator()), sys.stdout)


def lines(row: Row) -> Iterator[str]:
    """An expectation that is not met, for people."""
    yield f"{row['severity'].upper()}  {row['suite']}.{row['expectation']}  cluster {row['cluster_id']}"
    yield from wrapped(row["sentence"])
    seen = "nothing to measure" if row["observed"] is None else f"{row['observed']:g}"
    yield from wrapped(f"observed: {seen}, allowed: {row['allowed']:g}")
