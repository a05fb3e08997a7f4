"""Choose the checkpoints of the touched clusters to compare with the log, and keep the outcomes (rule 22)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jobs.runtime.progress import Progress
from jobs.runtime.task_counts import task_count
from kraft_core.evidence.facts import Capture, ClusterFacts, distinct
from kraft_core.evidence.lineage import lineage_of
from kraft_core.findings.facts import Holder, LogOrderFault
from kraft_core.findings.snapshot_replays import (
    CheckpointKey,
    Comparison,
    SnapshotReplay,
    comparisons,
    goes_on_from,
    replays,
)
from kraft_core.wording import count
from transforms.evidence.batch_facts import batch_conflicts
from transforms.evidence.fact_values import OF_CAPTURES, capture
from transforms.ingest.id_groups import id_groups
from transforms.lake.arrow_rows import python_rows
from transforms.lake.delta_rs import by_cluster, exists, opened, rows_with
from transforms.lake.isolation import described
from transforms.lake.lake import Lake
from transforms.lake.tables import BATCHES, CAPTURES, SNAPSHOT_CHECKS, SNAPSHOTS
from transforms.quality.replay_pieces import KEY
from transforms.quality.snapshot_checks import EQUAL, UNREAD_LOG, checked_snapshots

Row = dict[str, Any]
NOT_COMPARED = "its checkpoints could not be compared"


@dataclass(slots=True)
class Checks:
    """The outcomes of the comparisons of some clusters' checkpoints.

    rows: of table snapshot_checks, changed: whether they differ from what the table holds. failed: clusters
    of which a replay failed, with the reason.
    """

    rows: list[Row] = field(default_factory=list[Row])
    changed: bool = False
    failed: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def deviations(self) -> list[Row]:
        """A row for each deviation, as kraft_core.findings.facts names its fields."""
        columns = ("cluster_id", *KEY)
        return [{name: row[name] for name in columns} | d for row in self.rows for d in row["deviations"]]


def check_snapshots(lake: Lake, clusters: Sequence[str], fresh: Iterable[Row], progress: Progress) -> Checks:
    """Compare the clusters' checkpoints that were never compared, or with another log; keep other outcomes.

    `fresh`: rows of captures that are not committed yet. Where nothing is to be compared Spark is not used.
    """
    checks = Checks()
    wanted = wanted_comparisons(lake, clusters, fresh, checks.failed)
    known = {place(row): row for row in rows_with(lake.path, SNAPSHOT_CHECKS, cluster_id=clusters)}
    todo: list[tuple[str, SnapshotReplay]] = []
    for cluster, some in wanted.items():
        rows = {c: known.get(place(row_of(cluster, c))) for c in some}
        unread = [c for c, row in rows.items() if row and row["outcome"] == UNREAD_LOG]
        for comparison in some:
            if rows[comparison] is None and any(goes_on_from(comparison, u) for u in unread):
                rows[comparison] = row_of(cluster, comparison) | {"outcome": UNREAD_LOG, "deviations": []}
        equal = [c for c, row in rows.items() if row and row["outcome"] == EQUAL]
        todo += [(cluster, replay) for replay in replays([c for c in some if rows[c] is None], equal)]
        checks.rows += [row for row in rows.values() if row]
    if todo:
        compare(lake, todo, checks, progress)
    checks.changed = {place(row) for row in checks.rows} != set(known)
    return checks


def wanted_comparisons(
    lake: Lake, clusters: Sequence[str], fresh: Iterable[Row], failed: dict[str, str]
) -> dict[str, list[Comparison]]:
    """The comparisons of each cluster that its captures allow. Adds clusters to `failed`, with the reason."""
    whole: defaultdict[str, set[CheckpointKey]] = defaultdict(set)
    columns = ["cluster_id", *KEY, "complete"]
    for row in rows_with(lake.path, SNAPSHOTS, columns, cluster_id=clusters, kind=["snapshot"]):
        if row["complete"]:
            whole[row["cluster_id"]].add(key_of(row))
    read: defaultdict[str, list[Row]] = defaultdict(list)
    for row in fresh:
        read[row["cluster_id"]].append(row)
    replaced = {row["capture_id"] for rows in read.values() for row in rows}
    contested = contested_epochs(lake, sorted(whole))
    found: dict[str, list[Comparison]] = {}
    for some in id_groups(lake.path, CAPTURES, {cluster: [cluster] for cluster in whole}):
        stored = by_cluster(lake.path, CAPTURES, OF_CAPTURES, some)
        for cluster in some:
            try:
                kept = [row for row in python_rows(stored[cluster]) if row["capture_id"] not in replaced]
                found[cluster] = cluster_comparisons(
                    cluster, [*kept, *read[cluster]], whole[cluster], contested[cluster]
                )
            except Exception as error:  # what is wrong with one cluster must not fail the others
                failed[cluster] = f"{NOT_COMPARED}: {described(error)}"
    return dict(sorted(found.items()))


def contested_epochs(lake: Lake, clusters: Sequence[str]) -> dict[str, set[int]]:
    """By cluster the epochs in which captures hold different batches at one offset."""
    found: dict[str, set[int]] = {cluster: set() for cluster in clusters}
    if clusters and exists(lake.path, BATCHES):
        for row in batch_conflicts(opened(lake.path, BATCHES), clusters).to_pylist():
            found[row["cluster_id"]].add(row["leader_epoch"])
    return found


def cluster_comparisons(
    cluster: str, captures: Iterable[Row], whole: Container[CheckpointKey], contested: Iterable[int]
) -> list[Comparison]:
    """The comparisons of one cluster. contested: epochs in which no log is known."""
    held: defaultdict[Holder, set[CheckpointKey]] = defaultdict(set)
    logs: list[Capture] = []
    held_twice: set[tuple[int, int]] = set()
    for row in captures:
        # Where a log goes on without a gap epochs begin: their LEADER_CHANGEs are not read for that.
        following = pairwise(row["epoch_ranges"])
        elections = {
            (after["leader_epoch"], after["first_offset"])
            for before, after in following
            if before["end_offset"] == after["first_offset"]
        }
        logs.append(capture(row, elections))
        faults = [LogOrderFault(row["capture_id"], **fault) for fault in row["order_faults"] or ()]
        held_twice.update(fault.held_twice for fault in faults if fault.held_twice)
        keys = map(key_of, row["snapshots"])
        held[row["node_id"], row["directory_id"]].update(key for key in keys if key in whole)
    facts = ClusterFacts(cluster, tuple(logs), contested_epochs=tuple(sorted(contested)))
    lineage = lineage_of(distinct(facts))
    return comparisons(lineage, held, held_twice)


def compare(
    lake: Lake, todo: Sequence[tuple[str, SnapshotReplay]], checks: Checks, progress: Progress
) -> None:
    """Make the comparisons and add their outcomes."""
    whole = sum(part.end_offset - part.first_offset for _, replay in todo for part in replay.log)
    with task_count() as replayed:
        stage = progress.stage(
            "compare checkpoints", count(len(todo), "replay"), lambda: (replayed.total, whole), "records"
        )
        with stage:
            rows = checked_snapshots(lake.spark, lake.path, todo, replayed.add)
    for row in rows:
        cluster, replay = todo[row["replay"]]
        if row["failure"] is not None:
            checks.failed[cluster] = f"{NOT_COMPARED}: {row['failure']}"
            continue
        (made,) = (c for c in replay.comparisons if c.checkpoint == key_of(row))
        outcome = {name: row[name] for name in ("outcome", "deviations")}
        checks.rows.append(row_of(cluster, made) | outcome)


def key_of(row: Row) -> CheckpointKey:
    return CheckpointKey(*(row[name] for name in KEY))


def row_of(cluster: str, comparison: Comparison) -> Row:
    """The columns that identify a comparison in table snapshot_checks."""
    base = comparison.base
    return {
        "cluster_id": cluster,
        **{name: getattr(comparison.checkpoint, name) for name in KEY},
        "base_end_offset": base.end_offset if base else 0,
        "base_content_digest": base.content_digest if base else "",
        "log_digest": comparison.log_digest,
    }


def place(row: Row) -> tuple[Any, ...]:
    """What must be the same for an outcome to be kept."""
    return tuple(row[name] for name in (*SNAPSHOT_CHECKS.key, "log_digest"))
