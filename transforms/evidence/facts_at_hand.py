"""The facts of transforms.evidence.cluster_facts without Spark, of a cluster that one process reads at once.

The query that gathers them costs seconds to plan, over columns by the hundred; here a handful of columns are
read in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from transforms.evidence.cluster_facts import CONTROL_COLUMNS, CONTROL_TYPES, SNAPSHOT_KEY, TOLD_CONFLICTS
from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.tables import (
    ACKNOWLEDGEMENTS,
    BATCHES,
    CAPTURES,
    OBSERVATIONS,
    RECORDS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
    Table,
)

Row = dict[str, Any]
ENVELOPE = ("offset", "leader_epoch", "batch_base_offset", "batch_crc", "appended_at", "type")
PLACE = ("leader_epoch", "base_offset")
CONTENT = ("last_offset", "crc", "size_bytes")
FEATURE = "FEATURE_LEVEL_RECORD"
METADATA_VERSION = "metadata.version"
# Snapshot ends looked for in one scan of the batches.
ASKED_AT_ONCE = 100


def facts_row(
    lake: Path,
    cluster: str,
    captures: Sequence[Row] = (),
    observations: Sequence[Row] = (),
    deviations: Sequence[Row] = (),
) -> Row:
    """A row as cluster_facts gathers it. The rows given are of this cluster; the lake lacks them yet."""
    return evidence_row(lake, cluster, captures) | {
        "batch_conflicts": batch_conflicts(lake, cluster),
        "observations": [*rows_with(lake, OBSERVATIONS, cluster_id=[cluster]), *observations],
        "acknowledgements": rows_with(lake, ACKNOWLEDGEMENTS, cluster_id=[cluster]),
        "snapshot_deviations": [
            {name: value for name, value in row.items() if name != "cluster_id"} for row in deviations
        ],
    }


def evidence_row(lake: Path, cluster: str, captures: Sequence[Row] = ()) -> Row:
    """Of that row what kraft_core.evidence needs; the rules need the rest."""
    fresh = {row["capture_id"] for row in captures}
    stored = rows_with(lake, CAPTURES, cluster_id=[cluster])
    snapshots = rows_with(lake, SNAPSHOTS, cluster_id=[cluster])
    return {
        "cluster_id": cluster,
        "captures": [*(row for row in stored if row["capture_id"] not in fresh), *captures],
        "control_records": control_records(lake, cluster),
        "snapshots": snapshots,
        "snapshot_levels": levels(lake, SNAPSHOT_RECORDS, cluster, SNAPSHOT_KEY),
        "batch_ends": list(batch_ends(lake, cluster, snapshots)),
        "feature_levels": levels(lake, RECORDS, cluster, ("offset", "leader_epoch")),
    }


def control_records(lake: Path, cluster: str) -> list[Row]:
    """Control records; the value stays in the column of its type."""
    columns = [*ENVELOPE, *CONTROL_COLUMNS.values()]
    return rows_with(lake, RECORDS, columns, cluster_id=[cluster], type=CONTROL_TYPES)


def levels(lake: Path, table: Table, cluster: str, columns: Sequence[str]) -> list[Row]:
    """Where metadata.version was set, and to what."""
    found = rows_with(lake, table, [*columns, "feature_level"], cluster_id=[cluster], type=[FEATURE])
    return [
        {name: row[name] for name in columns} | {"level": row["feature_level"]["feature_level"]}
        for row in found
        if row["feature_level"] is not None and row["feature_level"]["name"] == METADATA_VERSION
    ]


def batch_ends(lake: Path, cluster: str, snapshots: Iterable[Row]) -> Iterator[Row]:
    """For each snapshot's end the end of the batch of its epoch that holds the record below it."""
    ends = sorted({(row["leader_epoch"], row["end_offset"]) for row in snapshots if row["end_offset"] > 0})
    if not exists(lake, BATCHES):
        return
    columns = ["leader_epoch", "base_offset", "last_offset"]
    for first in range(0, len(ends), ASKED_AT_ONCE):
        some = ends[first : first + ASKED_AT_ONCE]
        holding = reduce(or_, (holds(epoch, end - 1) for epoch, end in some))
        found = arrow_with(lake, BATCHES, columns, where=holding, cluster_id=[cluster])
        for row in found.to_pylist():
            for epoch, end in some:
                if epoch == row["leader_epoch"] and row["base_offset"] < end <= row["last_offset"] + 1:
                    yield {"leader_epoch": epoch, "end_offset": end, "batch_end": row["last_offset"] + 1}


def holds(leader_epoch: int, offset: int) -> ds.Expression:
    of_epoch = ds.field("leader_epoch") == leader_epoch
    return of_epoch & (ds.field("base_offset") <= offset) & (ds.field("last_offset") >= offset)


def batch_conflicts(lake: Path, cluster: str) -> list[Row]:
    """Batches of one base offset and epoch that differ: a row a distinct one, with the replicas that held it.

    Of each epoch those of the lowest base offsets.
    """
    if not exists(lake, BATCHES):
        return []
    columns = [*PLACE, *CONTENT, "node_id", "directory_id"]
    batches = arrow_with(lake, BATCHES, columns, cluster_id=[cluster])
    extremes = [(name, extreme) for name in CONTENT for extreme in ("min", "max")]
    places = batches.group_by([*PLACE]).aggregate(extremes)
    differ = reduce(pc.or_, (pc.not_equal(places[f"{name}_min"], places[f"{name}_max"]) for name in CONTENT))
    told = lowest(places.filter(differ).select(PLACE))
    found: dict[tuple[int, ...], Row] = {}
    for row in batches.join(told, list(PLACE), join_type="inner").to_pylist():
        holder = {name: row.pop(name) for name in ("node_id", "directory_id")}
        held_by = found.setdefault(tuple(row.values()), row | {"held_by": []})["held_by"]
        if holder not in held_by:
            held_by.append(holder)
    return list(found.values())


def lowest(places: pa.Table) -> pa.Table:
    """The first of the places of each epoch."""
    kept: dict[int, list[Row]] = {}
    for row in places.sort_by([(name, "ascending") for name in PLACE]).to_pylist():
        of_epoch = kept.setdefault(row["leader_epoch"], [])
        if len(of_epoch) < TOLD_CONFLICTS:
            of_epoch.append(row)
    return pa.Table.from_pylist([row for rows in kept.values() for row in rows], schema=places.schema)
