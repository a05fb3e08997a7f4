"""Derive all tables of the touched clusters: checks of snapshots, evidence and findings, histories."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jobs.captures.ingest import PendingCommit
from jobs.derivation.compare_snapshots import check_snapshots
from jobs.derivation.derive_broker_partitions import derive_broker_partitions
from jobs.derivation.derive_evidence import derive_evidence
from jobs.derivation.derive_histories import derive_histories
from jobs.runtime.run_record import RunRecord
from transforms.lake.arrow_rows import Row, to_arrow
from transforms.lake.lake import Lake
from transforms.lake.tables import ACKNOWLEDGEMENTS, DERIVATIONS, SNAPSHOT_CHECKS
from transforms.quality.derived_counts import begin_change, derived_counts


def derive(
    lake: Lake,
    clusters: Sequence[str],
    fresh: PendingCommit,
    record: RunRecord,
    half_done: Collection[str] = (),
) -> dict[str, str]:
    """Replace the derived rows of the clusters. Returns the clusters that failed, with the reason.

    `fresh`: captures and observations that this run has read and will commit after this. `half_done`:
    clusters whose rows an interrupted run has changed: they are derived as if there were none. A cluster that
    fails keeps its earlier derived rows. The derivation is complete with `end_derivation`.
    """
    progress = record.progress
    begin_change(lake.writer, clusters, record.columns)
    checks = check_snapshots(lake, clusters, fresh.captures.values(), progress)
    lake.create(ACKNOWLEDGEMENTS)
    failed = derive_evidence(lake, clusters, fresh, checks.deviations, progress)
    if checks.changed:
        lake.replace_few(SNAPSHOT_CHECKS, to_arrow(checks.rows, SNAPSHOT_CHECKS.arrow_schema), clusters)
    done = [c for c in clusters if c not in failed]
    if done:
        histories = derive_histories(lake, done, progress, whole=half_done if fresh.captures else done)
        replayed = [c for c in done if c not in histories.failed]
        brokers = derive_broker_partitions(lake, replayed, fresh.broker_directories, progress)
        # The rules read what the replay refused and brokers hold, the replay the log that the evidence found.
        again = sorted({*histories.refusing, *brokers.changed})
        if again:
            failed |= derive_evidence(lake, again, fresh, checks.deviations, progress)
        failed |= histories.failed | brokers.failed
    return checks.failed | failed


def end_derivation(lake: Lake, clusters: Sequence[str], failed: dict[str, str], record: RunRecord) -> None:
    """Record the outcome in table derivations, once the captures that it is based on are committed."""
    states = derivation_rows(lake, clusters, failed, record)
    lake.replace_few(DERIVATIONS, to_arrow(states, DERIVATIONS.arrow_schema), clusters)


def derivation_rows(
    lake: Lake, clusters: Sequence[str], failed: dict[str, str], record: RunRecord
) -> list[Row]:
    """Rows of derivations: later runs find from the counts that rows were lost since."""
    counts = derived_counts(lake.path, clusters)
    return [
        {
            "cluster_id": cluster,
            "failure": failed.get(cluster),
            "derived_rows": [{"table_name": t, "rows": n} for t, n in sorted(counts[cluster].items())],
            **record.columns,
        }
        for cluster in clusters
    ]
