"""A cluster's facts from a lake's tables, without Spark: what plan and metrics stand on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from jobs.lakes import must_be_lake
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.plan.registrations import TYPE, Registration, Registrations, registration
from transforms.cluster_facts import CONTROL_COLUMNS, CONTROL_TYPES, SNAPSHOT_KEY
from transforms.delta_rs import arrow_with, cluster_ids, exists, rows_with
from transforms.derived import cluster_facts
from transforms.tables import BATCHES, CAPTURES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, Table

Row = dict[str, Any]
_CAPTURE = (
    "capture_id",
    "node_id",
    "directory_id",
    "captured_at",
    "consistent",
    "log_start_offset",
    "log_end_offset",
    "quorum_state",
    "leader_epoch_checkpoint",
    "runs",
    "snapshots",
    "damage",
)
_SNAPSHOT = (*SNAPSHOT_KEY, "complete", "header_at", "last_contained_log_at", "kraft_version", "voters")
# Snapshot ends looked for in one scan of the batches.
_ASKED_AT_ONCE = 100
_FEATURE = "FEATURE_LEVEL_RECORD"
_METADATA_VERSION = "metadata.version"


def clusters_of(lake: Path) -> list[str]:
    """The clusters of a lake. Raises Failure where there is none."""
    must_be_lake(lake)
    return cluster_ids(lake)


def facts_of(lake: Path, cluster: str) -> ClusterFacts:
    """As transforms.cluster_facts gathers them."""
    envelope = ["offset", "leader_epoch", "batch_base_offset", "batch_crc", "appended_at", "type"]
    snapshots = rows_with(lake, SNAPSHOTS, _SNAPSHOT, cluster_id=[cluster])
    return cluster_facts(
        {
            "cluster_id": cluster,
            "captures": rows_with(lake, CAPTURES, _CAPTURE, cluster_id=[cluster]),
            "control_records": _records(
                lake, RECORDS, cluster, CONTROL_TYPES, [*envelope, *CONTROL_COLUMNS.values()]
            ),
            "snapshots": snapshots,
            "snapshot_levels": _levels(lake, SNAPSHOT_RECORDS, cluster, list(SNAPSHOT_KEY)),
            "feature_levels": _levels(lake, RECORDS, cluster, ["offset", "leader_epoch"]),
            "batch_ends": list(_batch_ends(lake, cluster, snapshots)),
        }
    )


def _batch_ends(lake: Path, cluster: str, snapshots: list[Row]) -> Iterator[Row]:
    """For each snapshot's end the end of the batch of its epoch that holds the record below it."""
    ends = sorted({(row["leader_epoch"], row["end_offset"]) for row in snapshots if row["end_offset"] > 0})
    if not exists(lake, BATCHES):
        return
    columns = ["leader_epoch", "base_offset", "last_offset"]
    for some in _batched(ends, _ASKED_AT_ONCE):
        holding = reduce(or_, (_holds(epoch, end - 1) for epoch, end in some))
        found = arrow_with(lake, BATCHES, columns, where=holding, cluster_id=[cluster])
        for row in found.to_pylist():
            for epoch, end in some:
                if epoch == row["leader_epoch"] and row["base_offset"] < end <= row["last_offset"] + 1:
                    yield {"leader_epoch": epoch, "end_offset": end, "batch_end": row["last_offset"] + 1}


def _holds(leader_epoch: int, offset: int) -> ds.Expression:
    of_epoch = ds.field("leader_epoch") == leader_epoch
    return of_epoch & (ds.field("base_offset") <= offset) & (ds.field("last_offset") >= offset)


def _batched(items: list[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    return (items[first : first + size] for first in range(0, len(items), size))


def _levels(lake: Path, table: Table, cluster: str, columns: list[str]) -> list[Row]:
    """Where metadata.version was set, and to what."""
    return [
        {name: row[name] for name in columns} | {"level": row["feature_level"]["feature_level"]}
        for row in _records(lake, table, cluster, [_FEATURE], [*columns, "feature_level"])
        if row["feature_level"] is not None and row["feature_level"]["name"] == _METADATA_VERSION
    ]


def registrations_of(lake: Path, cluster: str) -> Registrations:
    """What controllers registered, by logs and checkpoints."""
    column = "register_controller"
    logged = _records(lake, RECORDS, cluster, [TYPE], ["offset", column])
    kept = _records(lake, SNAPSHOT_RECORDS, cluster, [TYPE], ["end_offset", column])
    found = [_registration(row[column], row["offset"]) for row in logged if row[column]]
    found += [_registration(row[column], row["end_offset"] - 1) for row in kept if row[column]]
    return Registrations.of(found)


def _registration(value: Row, offset: int) -> Registration:
    """The column's struct in the codec's names."""
    features = [
        {
            "name": feature["name"],
            "minSupportedVersion": feature["min_supported_version"],
            "maxSupportedVersion": feature["max_supported_version"],
        }
        for feature in value["features"]
    ]
    message = {"controllerId": value["controller_id"], "endPoints": value["end_points"], "features": features}
    return registration(message, offset)


def _records(lake: Path, table: Table, cluster: str, types: Any, columns: list[str]) -> list[Row]:
    return rows_with(lake, table, columns, cluster_id=[cluster], type=types)
