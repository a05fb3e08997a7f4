"""The metrics of a lake: of its runs, findings, expectations and quarantine, and of each cluster's quorum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import datetime

from jobs.quorum.quorum_samples import cluster_samples
from jobs.quorum.rehearsal_samples import rehearsal_samples
from jobs.quorum.reported_samples import reported_samples
from jobs.quorum.sample import Sample
from jobs.runtime.fail_on import OPEN
from jobs.runtime.outcome import ExitCode
from transforms.lake.delta_rs import distinct, rows_with
from transforms.lake.lives import named_clusters
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    CAPTURES,
    EXPECTATION_RESULTS,
    FINDINGS,
    QUARANTINE,
    RUNS,
    Table,
)
from transforms.quality.derived_counts import derived, ingested
from transforms.quality.expectation_history import MARK, open_failures
from transforms.quality.expectation_suites import WHOLE_LAKE
from transforms.quality.rehearsals import newest_rehearsals

# The verbs that load captures: only they show how old the lake is.
READING = ("run", "ingest", "follow")
# Exit codes of a successful run, with or without findings.
GOOD = (ExitCode.FINE, ExitCode.FOUND)
STATES = ("open", "acknowledged", "resolved")
SEVERITIES = ("error", "warning")
# The most frequent reason of table quarantine: a live copy's incomplete last batch.
TORN_TAIL = "torn_tail"


def samples(lake: Location, now: datetime) -> Iterator[Sample]:
    """Every sample of a lake."""
    yield from _run_samples(lake, now)
    yield from failure_samples(lake)
    yield from _finding_samples(lake)
    yield from _expectation_samples(lake)
    yield from _quarantine_samples(lake)
    yield from cluster_samples(lake)
    yield from reported_samples(lake)
    for cluster_id, rehearsal in newest_rehearsals(lake).items():
        yield from rehearsal_samples(cluster_id, rehearsal)


def cluster_names(lake: Location) -> dict[str, str]:
    """The names of table cluster_names by cluster id."""
    return {row["cluster_id"]: row["name"] for row in named_clusters(lake)}


def _run_samples(lake: Location, now: datetime) -> Iterator[Sample]:
    columns = ["finished_at", "exit_code", "failed_clusters"]
    reading = rows_with(lake, RUNS, columns, job=READING)
    ended = [row for row in reading if row["finished_at"] is not None]
    last = max(ended, key=lambda row: row["finished_at"], default=None)
    if last is None:
        return
    # A run that could not even record how it ended.
    code = ExitCode.TRY_AGAIN if last["exit_code"] is None else last["exit_code"]
    yield Sample("kraftlake_last_run_exit_code", code)
    yield Sample("kraftlake_failed_clusters", len(last["failed_clusters"] or ()))
    good = max((row["finished_at"] for row in ended if row["exit_code"] in GOOD), default=None)
    if good is not None:
        yield Sample("kraftlake_last_good_run_timestamp_seconds", good.timestamp())
        # The clock of the run's machine may be ahead.
        yield Sample("kraftlake_last_good_run_age_seconds", max(0.0, (now - good).total_seconds()))


def failure_samples(lake: Location) -> Iterator[Sample]:
    """Whether the derivation of each cluster failed, or is still to come."""
    failures, behind = derived(lake), ingested(lake)
    for cluster_id, failure in failures.items():
        yield Sample("kraftlake_derivation_failed", int(failure is not None), {"cluster_id": cluster_id})
    for cluster_id in sorted({*failures, *behind}):
        yield Sample("kraftlake_not_derived", int(cluster_id in behind), {"cluster_id": cluster_id})


def _finding_samples(lake: Location) -> Iterator[Sample]:
    """Of every derived cluster; a rule that was found once stays, with 0 in the states without a finding."""
    columns = ["cluster_id", "rule", "name", "severity"]
    rows = rows_with(lake, FINDINGS, [*columns, "state"])
    found = Counter((*(str(row[c]) for c in columns), row["state"]) for row in rows)
    for values in sorted({values[:-1] for values in found}):
        labels = dict(zip(columns, values, strict=True))
        for state in STATES:
            yield Sample("kraftlake_findings", found[*values, state], labels | {"state": state})
    is_open = Counter((row["cluster_id"], row["severity"]) for row in rows if row["state"] == OPEN)
    yield from _by_severity("kraftlake_open_findings", is_open, derived(lake).keys())


def _expectation_samples(lake: Location) -> Iterator[Sample]:
    """Of every cluster that was validated, and of the lake as a whole."""
    unmet = Counter((row["cluster_id"], row["severity"]) for row in open_failures(lake))
    validated = _clusters(lake, EXPECTATION_RESULTS, **MARK)
    whole = {WHOLE_LAKE} if validated else set[str]()
    yield from _by_severity("kraftlake_expectations_not_met", unmet, validated | whole)


def _quarantine_samples(lake: Location) -> Iterator[Sample]:
    """Of every captured cluster, by each reason that the lake has."""
    sizes: Counter[tuple[str, str]] = Counter()
    for row in rows_with(lake, QUARANTINE, ["cluster_id", "reason", "size_bytes"]):
        sizes[row["cluster_id"], row["reason"]] += row["size_bytes"]
    reasons = {TORN_TAIL, *(reason for _, reason in sizes)}
    for cluster_id in sorted(_clusters(lake, CAPTURES) | {cluster for cluster, _ in sizes}):
        for reason in sorted(reasons):
            labels = {"cluster_id": cluster_id, "reason": reason}
            yield Sample("kraftlake_quarantined_bytes", sizes[cluster_id, reason], labels)


def _by_severity(name: str, counts: Mapping[tuple[str, str], int], clusters: Set[str]) -> Iterator[Sample]:
    """A sample for each severity of each cluster: 0 where nothing is counted."""
    for cluster_id in sorted(clusters | {cluster for cluster, _ in counts}):
        for severity in SEVERITIES:
            labels = {"cluster_id": cluster_id, "severity": severity}
            yield Sample(name, counts.get((cluster_id, severity), 0), labels)


def _clusters(lake: Location, table: Table, **wanted: Iterable[str]) -> set[str]:
    return distinct(lake, table, "cluster_id", **wanted)
