"""What the facts of one life of a cluster id need from the others (transforms.lake.lives)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.evidence.elsewhere import captured_elsewhere
from kraft_core.evidence.facts import Capture
from transforms.evidence.fact_values import captures_of, header_timestamps, snapshots
from transforms.evidence.pinned_tables import NO_ROWS, PinnedTables
from transforms.lake.tables import CAPTURES, LIVES, SNAPSHOTS

Row = dict[str, Any]
ELSEWHERE = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("life_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory_id", pa.string()),
        ("until", pa.int64()),
    ]
)


def other_lives(tables: PinnedTables, clusters: Sequence[str]) -> pa.Table:
    """For each of the clusters that is the newest life of its id the rows of the others, named by life_id."""
    rows = tables.read(LIVES, LIVES.names)
    if not len(rows):
        return NO_ROWS
    named = rows.rename_columns({"cluster_id": "life_id"})
    newest = rows.filter(pc.field("is_newest") & pc.field("cluster_id").isin(clusters))
    found = newest.select(["cluster_id", "kafka_cluster_id"])
    pairs = [
        {"cluster_id": one["cluster_id"]} | other
        for one in found.to_pylist()
        for other in named.to_pylist()
        if one["kafka_cluster_id"] == other["kafka_cluster_id"] and one["cluster_id"] != other["life_id"]
    ]
    schema = pa.schema([("cluster_id", pa.string()), *named.schema])
    return pa.Table.from_pylist(pairs, schema=schema)


def elsewhere(tables: PinnedTables, clusters: Sequence[str], fresh: Mapping[str, Sequence[Row]]) -> pa.Table:
    """For each of the clusters that is one life of several rows of CapturedElsewhere, its id as life_id.

    fresh: rows of captures by cluster id, of all lives, that take the place of those of the lake.
    """
    of_ids = _lives_of_ids(tables, clusters)
    every = sorted({life for lives in of_ids for life in lives})
    if not every:
        return NO_ROWS
    captures = _captures(tables, every, fresh)
    rows: list[Row] = []
    for lives in of_ids:
        found = captured_elsewhere({life: captures[life] for life in lives})
        rows += [
            asdict(one) | {"cluster_id": life, "life_id": one.cluster_id}
            for life in lives
            if life in clusters
            for one in found[life]
        ]
    return pa.Table.from_pylist(rows, schema=ELSEWHERE)


def _lives_of_ids(tables: PinnedTables, clusters: Sequence[str]) -> list[list[str]]:
    """The lives of each cluster id of which one is among the clusters."""
    by_id: defaultdict[str, list[str]] = defaultdict(list)
    for row in tables.read(LIVES, ("cluster_id", "kafka_cluster_id")).to_pylist():
        by_id[row["kafka_cluster_id"]].append(row["cluster_id"])
    return [lives for lives in by_id.values() if not set(lives).isdisjoint(clusters)]


def _captures(
    tables: PinnedTables, lives: Sequence[str], fresh: Mapping[str, Sequence[Row]]
) -> dict[str, list[Capture]]:
    rows = _by_cluster(tables.read(CAPTURES, CAPTURES.names, cluster_id=lives))
    checkpoints = _by_cluster(tables.read(SNAPSHOTS, SNAPSHOTS.names, cluster_id=lives))
    found: dict[str, list[Capture]] = {}
    for life in lives:
        of_life = {row["capture_id"]: row for row in (*rows[life], *fresh.get(life, ()))}
        held = {"captures": of_life.values(), "snapshots": checkpoints[life]}
        headers = header_timestamps(snapshots(held | {"snapshot_levels": (), "batch_ends": ()}))
        found[life] = list(captures_of(of_life.values(), set(), headers))
    return found


def _by_cluster(rows: pa.Table) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows.to_pylist() if len(rows) else ():
        found[row["cluster_id"]].append(row)
    return found


def siblings(tables: PinnedTables, clusters: Sequence[str]) -> dict[str, list[str]]:
    """For each of the clusters that is one life of several all lives of its id."""
    return {life: lives for lives in _lives_of_ids(tables, clusters) for life in lives}
