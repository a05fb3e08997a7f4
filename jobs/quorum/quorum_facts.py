"""A cluster's facts and registrations from a lake's tables, without Spark: for explain and plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.runtime.lakes import must_be_lake
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.plan.registrations import TYPE, Registration, Registrations, registration
from transforms.evidence.cluster_facts import PinnedTables, cluster_row, evidence_facts
from transforms.evidence.fact_values import cluster_facts
from transforms.lake.delta_rs import cluster_ids, rows_with
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS, Table

Row = dict[str, Any]


def clusters_of(lake: Path) -> list[str]:
    """The clusters of a lake. Raises Failure where there is none."""
    must_be_lake(lake)
    return cluster_ids(lake)


def facts_of(lake: Path, cluster: str) -> ClusterFacts:
    """What the lake's captures of one cluster hold."""
    facts = evidence_facts(PinnedTables.newest(lake), [cluster])
    return cluster_facts(cluster_row(facts, cluster))


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
