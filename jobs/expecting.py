"""The expectations of the data in a job that judges: what is looked at, what fails, what of it is news."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from jobs.job import Job
from jobs.outcome import Failure
from jobs.sql import show_json
from jobs.telling import as_json, wrapped
from jobs.verdict import ERROR
from transforms.delta_rs import arrow_with, exists, rows_with
from transforms.tables import CAPTURES, EXPECTATION_RESULTS, OBSERVATIONS, RUNS

Row = dict[str, Any]
Allowed = Mapping[str, Any]
# One row for each validation of a cluster, of the hundred that it writes.
MARK = {"suite": [CAPTURES.name], "expectation": ["key_is_unique"]}
NAME = ("cluster_id", "suite", "expectation")
NEVER, NOW = (t.replace(tzinfo=UTC) for t in (datetime.min, datetime.max))


@dataclass(frozen=True, slots=True)
class Unseen:
    """Clusters of which anything came since they were validated last, and the runs that brought it.

    unjudged: those of them that were read by ingest alone, so that no run held them against the rules.
    """

    clusters: list[str]
    run_ids: frozenset[str]
    unjudged: list[str]


def unseen(lake: Path, run_id: str) -> Unseen:
    """What no validation has looked at yet, as the run `run_id` finds it.

    Runs follow each other (jobs.lease), in the order in which they ended: a run may have waited for another
    that began after it.
    """
    columns = ["run_id", "job", "started_at", "finished_at"]
    runs = {row["run_id"]: row for row in rows_with(lake, RUNS, columns) if row["run_id"] != run_id}
    ended = {known: row["finished_at"] or row["started_at"] for known, row in runs.items()}
    validated: dict[str, datetime] = {}
    for row in rows_with(lake, EXPECTATION_RESULTS, ["cluster_id", "run_id"], **MARK):
        at = ended.get(row["run_id"], NEVER)
        validated[row["cluster_id"]] = max(at, validated.get(row["cluster_id"], NEVER))
    brought = {
        (row["cluster_id"], row["run_id"])
        for table in (CAPTURES, OBSERVATIONS)
        for row in rows_with(lake, table, ["cluster_id", "run_id"])
        if ended.get(row["run_id"], NOW) > validated.get(row["cluster_id"], NEVER)
    }
    ingested = {known for known, row in runs.items() if row["job"] == "ingest"}
    return Unseen(
        sorted({cluster for cluster, _ in brought}),
        frozenset(run for _, run in brought),
        sorted({cluster for cluster, run in brought if run in ingested}),
    )


def check_expectations(
    job: Job, what: Unseen | Sequence[str], now: datetime, form: str, allowed: Allowed
) -> list[str]:
    """Run the suites, note in the job's record which failures make it fail, and return the lines to print.

    `what`: what is unseen, or clusters with all their rows. `allowed` changes thresholds, as [expectations]
    of the settings does. Raises Failure where it names none.
    """
    from transforms.expectations import Scope, UnknownExpectationError, expect

    scope = Scope(what.clusters, what.run_ids) if isinstance(what, Unseen) else Scope(what)
    with job.progress.stage("expectations"):
        try:
            results = expect(job.lake, job.run.run_id, job.run.started_at, now, scope, allowed)
        except UnknownExpectationError as error:
            raise Failure(str(error)) from None
    failing = [row for row in results if not row["success"]]
    if isinstance(what, Unseen):
        asked = {named(row) for row in results}
        failing += [row for row in standing(job.lake.path) if named(row) not in asked]
    errors = [row for row in failing if row["severity"] == ERROR]
    if job.record.fail_on == "new":
        errors = list(news(job.lake.path, job.run.run_id, errors))
    job.record.unmet = 0 if job.record.fail_on == "never" else len(errors)
    if form == "jsonl":
        return [json.dumps(as_json(row), ensure_ascii=False) for row in failing]
    return [line for row in failing for line in lines(row)]


def standing(lake: Path) -> list[Row]:
    """The newest answers that are failures, as far back as they may lie."""
    if not exists(lake, EXPECTATION_RESULTS):
        return []
    is_failed = ~ds.field("success")
    failed = arrow_with(lake, EXPECTATION_RESULTS, EXPECTATION_RESULTS.names, is_failed).to_pylist()
    last = {named(row): row for row in sorted(failed, key=asked_at)}
    names = {column: {row[column] for row in failed} for column in NAME}
    for row in rows_with(lake, EXPECTATION_RESULTS, [*NAME, "loaded_at", "success"], **names):
        known = last.get(named(row))
        if row["success"] and known is not None and asked_at(row) > asked_at(known):
            del last[named(row)]
    return list(last.values())


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
    names = {column: {row[column] for row in failed} for column in NAME}
    rows = rows_with(lake, EXPECTATION_RESULTS, [*NAME, "run_id", "loaded_at", "success"], **names)
    before = {named(row): row for row in sorted(rows, key=asked_at) if row["run_id"] != run_id}
    return (row for row in failed if named(row) not in before or before[named(row)]["success"])


def named(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in NAME)


def asked_at(row: Row) -> datetime:
    return row["loaded_at"]


def lines(row: Row) -> Iterator[str]:
    """An expectation that is not met, for people."""
    yield f"{row['severity'].upper()}  {row['suite']}.{row['expectation']}  cluster {row['cluster_id']}"
    yield from wrapped(row["sentence"])
    seen = "nothing to measure" if row["observed"] is None else f"{row['observed']:g}"
    yield from wrapped(f"observed: {seen}, allowed: {row['allowed']:g}")
