"""The facts of a group of clusters, read by Arrow: one scan of a table for the whole group.

The driver reads the only group itself; of several, Spark's tasks read one each by the same functions, at the
Delta versions that the driver pinned. Facts stay Arrow tables until a cluster's row is read, so that only one
cluster at a time is held as Python values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.columnar.schema import message_columns
from kraft_core.findings.broker_rules import EFFECTS
from kraft_core.findings.facts import UnassignedReplica
from transforms.evidence.batch_facts import batch_conflicts, batch_counts, batch_ends
from transforms.evidence.fact_values import OF_CAPTURES
from transforms.evidence.other_lives import elsewhere, other_lives, siblings
from transforms.evidence.pinned_tables import NO_ROWS, PinnedTables
from transforms.ingest.followed import is_superseded
from transforms.lake.arrow_rows import python_rows
from transforms.lake.tables import (
    ACKNOWLEDGEMENTS,
    BATCHES,
    BROKER_PARTITIONS,
    CAPTURES,
    OBSERVATIONS,
    RECORDS,
    REFUSED_RECORDS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
)

Row = dict[str, Any]
# Rows of several clusters by kind of fact; each has a cluster_id, and they are sorted by it.
GroupFacts = Mapping[str, pa.Table]
CONTROL_TYPES = ("LeaderChange", "KRaftVersion", "KRaftVoters")
CONTROL_COLUMNS = tuple(m.column for m in message_columns() if m.type_name in CONTROL_TYPES)
ENVELOPE = ("offset", "leader_epoch", "batch_base_offset", "batch_crc", "appended_at", "type")
SNAPSHOT_KEY = ("end_offset", "leader_epoch", "content_digest")
FEATURE_LEVEL = "FEATURE_LEVEL_RECORD"
METADATA_VERSION = "metadata.version"
UNASSIGNED = ("cluster_id", *UnassignedReplica.__slots__)
# Columns of captures that faults of quarantine looks at, too.
FAULTS = ("file_faults", "superseded_faults")
# Limits of a group: clusters, whose facts are held at once, and rows of table batches, read in pieces.
# A cluster above the limit is a group of its own.
GROUP_CLUSTERS, GROUP_BATCHES = 32, 1_000_000


@dataclass(frozen=True, slots=True)
class FreshRows:
    """Rows of one cluster that the lake does not hold yet: the run commits them after it has derived.

    captures take the place of stored ones with their capture_id. snapshot_deviations (rule 22): one row a
    deviation of a checkpoint from the log, with the fields of kraft_core.findings.facts.SnapshotDeviation.
    """

    captures: Sequence[Row] = ()
    observations: Sequence[Row] = ()
    snapshot_deviations: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class ClusterGroup:
    """Clusters whose facts are read together, and what this run adds to them and to their other lives."""

    clusters: tuple[str, ...]
    fresh: Mapping[str, FreshRows] = field(default_factory=dict[str, FreshRows])


def cluster_groups(
    tables: PinnedTables, clusters: Sequence[str], fresh: Mapping[str, FreshRows]
) -> list[ClusterGroup]:
    """The clusters in groups, the largest first."""
    batches = tables.open(BATCHES)
    counts = batch_counts(batches, clusters) if batches is not None else {}
    groups: list[list[str]] = []
    held = 0
    for cluster in sorted(clusters, key=lambda c: (-counts.get(c, 0), c)):
        count = counts.get(cluster, 0)
        if not groups or len(groups[-1]) == GROUP_CLUSTERS or held + count > GROUP_BATCHES:
            groups.append([])
            held = 0
        groups[-1].append(cluster)
        held += count
    lives = siblings(tables, clusters)
    return [
        ClusterGroup(tuple(g), {c: fresh[c] for one in g for c in lives.get(one, [one]) if c in fresh})
        for g in groups
    ]


def evidence_facts(
    tables: PinnedTables, clusters: Sequence[str], fresh: Mapping[str, FreshRows]
) -> GroupFacts:
    """What kraft_core.evidence needs of the clusters (see fact_values). fresh: also of their other lives."""
    return _sorted(_evidence_facts(tables, clusters, fresh))


def _sorted(facts: GroupFacts) -> GroupFacts:
    """So that a cluster's rows are a slice: a filter would look at all rows for each cluster."""
    return {kind: rows.sort_by("cluster_id") if rows.num_rows else rows for kind, rows in facts.items()}


def _evidence_facts(
    tables: PinnedTables, clusters: Sequence[str], fresh: Mapping[str, FreshRows]
) -> GroupFacts:
    snapshots = tables.read(SNAPSHOTS, SNAPSHOTS.names, cluster_id=clusters)
    columns = ("cluster_id", *ENVELOPE, *CONTROL_COLUMNS, "feature_level")
    records = tables.read(RECORDS, columns, cluster_id=clusters, type=(*CONTROL_TYPES, FEATURE_LEVEL))
    columns = ("cluster_id", *SNAPSHOT_KEY, "feature_level")
    snapshot_records = tables.read(SNAPSHOT_RECORDS, columns, cluster_id=clusters, type=[FEATURE_LEVEL])
    batches = tables.open(BATCHES)
    return {
        "captures": tables.read(CAPTURES, (*OF_CAPTURES, *FAULTS), cluster_id=clusters),
        "control_records": records.filter(pc.field("type") != FEATURE_LEVEL).drop_columns(["feature_level"]),
        "snapshots": snapshots,
        "snapshot_levels": _metadata_versions(snapshot_records, SNAPSHOT_KEY),
        "batch_ends": batch_ends(batches, snapshots) if batches is not None else NO_ROWS,
        "feature_levels": _metadata_versions(records, ("offset", "leader_epoch")),
        "batch_conflicts": batch_conflicts(batches, clusters) if batches is not None else NO_ROWS,
        "elsewhere": elsewhere(tables, clusters, {c: rows.captures for c, rows in fresh.items()}),
        "observations": tables.read(OBSERVATIONS, OBSERVATIONS.names, cluster_id=clusters),
    }


def group_facts(tables: PinnedTables, clusters: Sequence[str], fresh: Mapping[str, FreshRows]) -> GroupFacts:
    """These facts and what the rules of kraft_core.findings need (see transforms.quality.findings)."""
    facts = {
        **_evidence_facts(tables, clusters, fresh),
        "acknowledgements": tables.read(ACKNOWLEDGEMENTS, ACKNOWLEDGEMENTS.names, cluster_id=clusters),
        "refused_records": tables.read(REFUSED_RECORDS, REFUSED_RECORDS.names, cluster_id=clusters),
        "unassigned_replicas": tables.read(
            BROKER_PARTITIONS, UNASSIGNED, cluster_id=clusters, state=sorted(EFFECTS)
        ),
        "other_lives": other_lives(tables, clusters),
    }
    return _sorted(facts)


def cluster_row(facts: GroupFacts, cluster: str, fresh: FreshRows = FreshRows()) -> Row:
    """One cluster's facts: cluster_id and, by kind, a list of rows without it."""
    row: Row = {"cluster_id": cluster}
    for kind, rows in facts.items():
        row[kind] = python_rows(_rows_of(rows, cluster).drop_columns(["cluster_id"]))
    replaced = {capture["capture_id"] for capture in fresh.captures}
    kept = [
        capture
        for capture in row["captures"]
        if capture["capture_id"] not in replaced and not is_superseded(capture, fresh.captures)
    ]
    row["captures"] = [*kept, *fresh.captures]
    row["observations"] = [*row["observations"], *fresh.observations]
    row["snapshot_deviations"] = list(fresh.snapshot_deviations)
    return row


def _rows_of(rows: pa.Table, cluster: str) -> pa.Table:
    """A cluster's rows of those that are sorted by cluster."""
    if not rows.num_rows:
        return rows
    begins = max(0, pc.index(rows["cluster_id"], cluster).as_py())
    return rows.slice(begins, pc.sum(pc.equal(rows["cluster_id"], cluster)).as_py() or 0)


def _metadata_versions(records: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Where metadata.version was set, and its `level`, from records of feature levels and others."""
    names = ("cluster_id", *columns)
    if not len(records):
        return NO_ROWS
    feature = records["feature_level"]
    levels = records.select(names).append_column("level", pc.struct_field(feature, "feature_level"))
    return levels.filter(pc.equal(pc.struct_field(feature, "name"), METADATA_VERSION))
