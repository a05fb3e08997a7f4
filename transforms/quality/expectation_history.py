"""What validations have answered so far, and what none has looked at yet; by delta-rs, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.tables import CAPTURES, DERIVATIONS, EXPECTATION_RESULTS, OBSERVATIONS, RUNS

Row = dict[str, Any]
# One row for each validation of a cluster, of the hundred that it writes.
MARK = {"suite": [CAPTURES.name], "expectation": ["key_is_unique"]}
NAME = ("cluster_id", "suite", "expectation")
NEVER, NOW = (t.replace(tzinfo=UTC) for t in (datetime.min, datetime.max))


@dataclass(frozen=True, slots=True)
class Unseen:
    """Clusters of which anything came since they were validated last, and the runs that brought it.

    unjudged: clusters whose captures were not held against the rules: read by ingest alone, or it failed.
    """

    clusters: list[str]
    run_ids: frozenset[str]
    unjudged: list[str]


def unseen(lake: Path, run_id: str) -> Unseen:
    """What no validation has looked at yet, as the run `run_id` finds it.

    Runs follow each other by the lake's lease, in the order in which they ended: a run may have waited for
    another that began after it.
    """
    runs = rows_with(lake, RUNS, ["run_id", "started_at", "finished_at"])
    ended = {row["run_id"]: row["finished_at"] or row["started_at"] for row in runs} | {run_id: NOW}
    brought = {
        (row["cluster_id"], row["run_id"]): ended.get(row["run_id"], NOW)
        for table in (CAPTURES, OBSERVATIONS)
        for row in rows_with(lake, table, ["cluster_id", "run_id"])
    }
    validated = newest(ended, rows_with(lake, EXPECTATION_RESULTS, ["cluster_id", "run_id"], **MARK))
    derivations = rows_with(lake, DERIVATIONS, ["cluster_id", "run_id", "failure"])
    derived = newest(ended, (row for row in derivations if row["failure"] is None))
    fresh = {known for known, at in brought.items() if at > validated.get(known[0], NEVER)}
    return Unseen(
        sorted({cluster for cluster, _ in fresh}),
        frozenset(run for _, run in fresh),
        sorted({cluster for (cluster, _), at in brought.items() if at > derived.get(cluster, NEVER)}),
    )


def newest(ended: dict[str, datetime], rows: Iterable[Row]) -> dict[str, datetime]:
    """By cluster when the last of the runs that its rows name ended."""
    found: dict[str, datetime] = {}
    for row in rows:
        at = ended.get(row["run_id"], NEVER)
        found[row["cluster_id"]] = max(at, found.get(row["cluster_id"], NEVER))
    return found


def standing(lake: Path, **wanted: Iterable[str]) -> list[Row]:
    """The newest answers that are failures, as far back as they may lie; `wanted` as in rows_with."""
    if not exists(lake, EXPECTATION_RESULTS):
        return []
    is_failed = ~ds.field("success")
    found = arrow_with(lake, EXPECTATION_RESULTS, EXPECTATION_RESULTS.names, is_failed, **wanted)
    failed = found.to_pylist()
    last = {named(row): row for row in sorted(failed, key=asked_at)}
    names = {column: {row[column] for row in failed} for column in NAME}
    for row in rows_with(lake, EXPECTATION_RESULTS, [*NAME, "loaded_at", "success"], **names):
        known = last.get(named(row))
        if row["success"] and known is not None and asked_at(row) > asked_at(known):
            del last[named(row)]
    return list(last.values())


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
