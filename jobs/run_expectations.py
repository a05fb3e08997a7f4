"""Evaluate expectations within a job: which failures count for its exit code, and how they are reported."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobs.job import Job
from jobs.maintenance.publishing import registering
from jobs.questions.row_text import show_json
from jobs.runtime.fail_on import ERROR
from jobs.runtime.finding_text import as_json, wrapped
from jobs.runtime.long_lists import first_of
from jobs.runtime.outcome import Failure
from transforms.quality.expectation_history import Unvalidated, open_failures, result_key

Row = dict[str, Any]
Overrides = Mapping[str, Any]


def evaluate_expectations(
    job: Job, covered: Unvalidated | Sequence[str], now: datetime, form: str, overrides: Overrides
) -> list[str]:
    """Evaluate the suites and record how many failures make the job fail. Returns the lines to print.

    An unmet expectation of severity error fails every validation, not only the first: what is wrong stays
    wrong until it is mended, or its severity is changed.

    `covered`: what is new, or clusters with all their rows. `overrides`: section [expectations] of the
    settings. Raises Failure if it is invalid.
    """
    from transforms.quality.expectation_scope import Scope
    from transforms.quality.expectations import UnknownExpectationError, expect

    is_new = isinstance(covered, Unvalidated)
    scope = Scope(covered.clusters, covered.run_ids) if is_new else Scope(covered)
    with job.progress.stage("expectations"):
        try:
            _open_what_own_ones_ask(job, overrides)
            results = expect(job.lake, job.record.run_id, job.record.started_at, now, scope, overrides)
        except UnknownExpectationError as error:
            raise Failure(str(error)) from None
    failing = [row for row in results if not row["success"]]
    if is_new:
        evaluated = {result_key(row) for row in results}
        failing += [row for row in open_failures(job.lake.path) if result_key(row) not in evaluated]
    errors = [row for row in failing if row["severity"] == ERROR]
    job.record.unmet = 0 if job.record.fail_on == "never" else len(errors)
    if form == "jsonl":
        return [json.dumps(as_json(row), ensure_ascii=False) for row in failing]
    return [line for row in failing for line in lines(row)]


def print_failing_rows(
    job: Job, name: str, clusters: Sequence[str] | None, now: datetime, overrides: Overrides, limit: int
) -> None:
    """Print rows that fail an expectation, as JSON lines. Raises Failure for an unknown expectation.

    limit: how many; 0: all.
    """
    from transforms.quality.expectations import UnknownExpectationError, failing_rows

    try:
        _open_what_own_ones_ask(job, overrides)
        rows = failing_rows(job.lake, name, now, clusters, overrides)
    except UnknownExpectationError as error:
        raise Failure(str(error)) from None
    failing = (tuple(row) for row in rows.toLocalIterator())
    with first_of(failing, limit, "rows", rows.count) as shown:
        show_json(rows.columns, shown, sys.stdout)


def _open_what_own_ones_ask(job: Job, overrides: Overrides) -> None:
    """Make the tables and views that a user's own expectations name available by these names.

    Raises UnknownExpectationError for invalid settings.
    """
    from transforms.quality.expectation_settings import configured
    from transforms.quality.expectation_suites import suites

    own = [check for suite in configured(suites(), overrides) for check in suite.checks if check.own]
    if own:
        # Together: what one of them needs is not to replace what another does.
        asked = ";\n".join(filter(None, (check.rows for check in own)))
        registering(job.lake.spark, job.lake.path, job.database)(asked, job.lake.spark)


def lines(row: Row) -> Iterator[str]:
    """A failed expectation as text."""
    yield f"{row['severity'].upper()}  {row['suite']}.{row['expectation']}  cluster {row['cluster_id']}"
    yield from wrapped(row["sentence"])
    if why := _not_evaluated(row):
        yield from wrapped(f"could not be evaluated: {why}")
        return
    observed = "no value" if row["observed"] is None else f"{row['observed']:g}"
    yield from wrapped(f"observed: {observed}, allowed: {row['allowed']:g}")


def _not_evaluated(row: Row) -> str | None:
    """Why one of the user's own could not be evaluated, as Spark said; None if it was."""
    if not row["is_own"] or row["observed"] is not None:
        return None
    return next((json.loads(text).get("error") for text in row["failing_rows"]), None)
