"""Results of earlier validations, and what is new since the last one; by delta-rs, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from transforms.lake.delta_rs import arrow_with, distinct_rows, exists, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import CAPTURES, DERIVATIONS, EXPECTATION_RESULTS, OBSERVATIONS, RUNS
from transforms.quality.expectation_suites import suites

Row = dict[str, Any]
# One row of the hundred that each validation of a cluster writes.
MARK = {"suite": [CAPTURES.name], "expectation": ["key_is_unique"]}
# A row of each validation, whatever it covers.
OF_LAKE = {"suite": [RUNS.name], "expectation": ["key_is_unique"]}
RESULT_KEY = ("cluster_id", "suite", "expectation")
NEVER, NOW = (t.replace(tzinfo=UTC) for t in (datetime.min, datetime.max))


@dataclass(frozen=True, slots=True)
class Unvalidated:
    """Clusters with captures or observations newer than their last validation, and the runs that wrote them.

    underived: clusters with captures or observations that are not all derived: only ingested, or the
    derivation failed.
    """

    clusters: list[str]
    run_ids: frozenset[str]
    underived: list[str]


def unvalidated(lake: Location, run_id: str) -> Unvalidated:
    """What has not been validated yet, as of the run `run_id`. The lake's lease orders runs by their end."""
    runs = rows_with(lake, RUNS, ["run_id", "started_at", "finished_at"])
    ended = {row["run_id"]: row["finished_at"] or row["started_at"] for row in runs} | {run_id: NOW}
    added = {
        (cluster, run): ended.get(run, NOW)
        for table in (CAPTURES, OBSERVATIONS)
        for cluster, run in distinct_rows(lake, table, ["cluster_id", "run_id"])
    }
    validated = _last_ends(ended, rows_with(lake, EXPECTATION_RESULTS, ["cluster_id", "run_id"], **MARK))
    why_not = ("failure", "begun_by", "ingested_by")
    derivations = rows_with(lake, DERIVATIONS, ["cluster_id", "run_id", *why_not])
    derived = _last_ends(ended, (row for row in derivations if all(row[why] is None for why in why_not)))
    fresh = {key for key, at in added.items() if at > validated.get(key[0], NEVER)}
    return Unvalidated(
        sorted({cluster for cluster, _ in fresh}),
        frozenset(run for _, run in fresh),
        sorted({cluster for (cluster, _), at in added.items() if at > derived.get(cluster, NEVER)}),
    )


def _last_ends(ended: dict[str, datetime], rows: Iterable[Row]) -> dict[str, datetime]:
    """By cluster the end of the last run that its rows name."""
    found: dict[str, datetime] = {}
    for row in rows:
        at = ended.get(row["run_id"], NEVER)
        found[row["cluster_id"]] = max(at, found.get(row["cluster_id"], NEVER))
    return found


def open_failures(lake: Location, **wanted: Iterable[str]) -> list[Row]:
    """The newest result of each expectation that is a failure, of any age; `wanted` as in rows_with.

    Expectations that are no longer declared have none: no later result could end their failure. A user's own
    ones, which the settings declare, are all evaluated by each validation: they count as of the newest one.
    """
    if not exists(lake, EXPECTATION_RESULTS):
        return []
    is_failed = ~ds.field("success")
    found = arrow_with(lake, EXPECTATION_RESULTS, EXPECTATION_RESULTS.names, is_failed, **wanted)
    declared = {(suite.table.name, e.name) for suite in suites() for e in suite.expectations}
    newest = _newest_validation(lake)
    failed = [
        row
        for row in found.to_pylist()
        if (row["suite"], row["expectation"]) in declared or row["run_id"] == newest
    ]
    last = {result_key(row): row for row in sorted(failed, key=_evaluated_at)}
    keys = {column: {row[column] for row in failed} for column in RESULT_KEY}
    for row in rows_with(lake, EXPECTATION_RESULTS, [*RESULT_KEY, "loaded_at", "success"], **keys):
        failure = last.get(result_key(row))
        if row["success"] and failure is not None and _evaluated_at(row) > _evaluated_at(failure):
            del last[result_key(row)]
    return list(last.values())


def newest_results(lake: Location, columns: Sequence[str], **wanted: Iterable[str]) -> pa.Table | None:
    """The newest result of each expectation, by RESULT_KEY; None where nothing was ever evaluated.

    Without a user's own that the newest validation lacks: the settings have them no longer.
    """
    if not exists(lake, EXPECTATION_RESULTS):
        return None
    read = dict.fromkeys((*RESULT_KEY, *columns, "is_own", "run_id", "loaded_at"))
    found = arrow_with(lake, EXPECTATION_RESULTS, list(read), **wanted)
    of_others = pc.invert(found["is_own"])
    of_newest = pc.equal(found["run_id"], pa.scalar(_newest_validation(lake), pa.string()))
    found = found.filter(pc.or_kleene(of_others, of_newest)).sort_by(_by("loaded_at", "run_id"))
    last = (
        found.select(RESULT_KEY)
        .append_column("place", pa.array(range(len(found)), pa.int64()))
        .group_by(list(RESULT_KEY))
        .aggregate([("place", "max")])
    )
    return found.take(last["place_max"]).sort_by(_by(*RESULT_KEY)).select(columns)


def _by(*columns: str) -> list[tuple[str, str]]:
    return [(column, "ascending") for column in columns]


def _newest_validation(lake: Location) -> str | None:
    """The run that evaluated expectations last: each evaluates those of the whole lake."""
    rows = rows_with(lake, EXPECTATION_RESULTS, ["run_id", "loaded_at"], **OF_LAKE)
    return max(rows, key=_evaluated_at)["run_id"] if rows else None


def result_key(row: Row) -> tuple[str, ...]:
    """What identifies the expectation of a result."""
    return tuple(row[column] for column in RESULT_KEY)


def _evaluated_at(row: Row) -> datetime:
    return row["loaded_at"]
