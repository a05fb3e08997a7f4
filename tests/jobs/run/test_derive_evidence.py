"""Evidence derived in the driver and by Spark is the same, of the same facts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from jobs.captures.ingest import PendingCommit
from jobs.derivation.compare_snapshots import Checks
from jobs.derivation.derive_evidence import fresh_rows
from transforms.evidence import cluster_facts
from transforms.evidence.cluster_facts import ClusterGroup, FreshRows, cluster_groups
from transforms.evidence.pinned_tables import PinnedTables
from transforms.lake.delta_rs import cluster_ids, rows_with
from transforms.lake.tables import CAPTURES, OBSERVATIONS, SNAPSHOT_CHECKS
from transforms.quality.derived import DERIVED, derive_by_spark, derive_in_driver, table_frame, table_rows


@pytest.fixture(scope="module")
def fresh(lake: Any) -> dict[str, FreshRows]:
    """A capture and an observation that the golden lake does not hold yet, and its snapshots' deviations."""
    later = timedelta(hours=1)
    known = max(rows_with(lake.path, CAPTURES), key=lambda row: row["captured_at"])
    observed = max(rows_with(lake.path, OBSERVATIONS), key=lambda row: row["observed_to"])
    ingested = PendingCommit(
        captures={known["capture_id"]: known | {"captured_at": known["captured_at"] + later}}
    )
    ingested.observations = [
        observed
        | {
            "observation_id": "fresh",
            "observed_to": observed["observed_to"] + later,
            "log_end_offset": 10**6,
        }
    ]
    deviations = Checks(rows=rows_with(lake.path, SNAPSHOT_CHECKS)).deviations
    assert deviations
    return fresh_rows(cluster_ids(lake.path), ingested, deviations)


def in_driver(tables: PinnedTables, groups: list[ClusterGroup]) -> pa.Table:
    return pa.concat_tables([derive_in_driver(tables, group) for group in groups])


def equal_rows(one: pa.Table, other: pa.Table) -> bool:
    return sorted(map(repr, one.to_pylist())) == sorted(map(repr, other.to_pylist()))


def test_driver_and_spark_derive_the_same(
    lake: Any, fresh: dict[str, FreshRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the clusters are one group or several."""
    clusters = cluster_ids(lake.path)
    tables = PinnedTables.newest(lake.path)
    (whole,) = cluster_groups(tables, clusters, fresh)
    monkeypatch.setattr(cluster_facts, "GROUP_CLUSTERS", 2)
    groups = cluster_groups(tables, clusters, fresh)
    assert len(groups) == 4
    derived = derive_in_driver(tables, whole)
    assert set(derived["failure"].to_pylist()) == {None}
    by_spark = derive_by_spark(lake.spark, tables, groups)
    gathered = by_spark.toArrow()
    for table in DERIVED:
        rows = table_rows(derived, table)
        assert equal_rows(rows, table_rows(gathered.combine_chunks(), table)), table.name
        assert equal_rows(rows, table_rows(in_driver(tables, groups).combine_chunks(), table)), table.name
    frame = table_frame(by_spark, DERIVED[0]).toArrow()
    assert equal_rows(frame.select(DERIVED[0].names), table_rows(derived, DERIVED[0]))


def test_a_cluster_that_cannot_be_derived_fails_alone(
    lake: Any, fresh: dict[str, FreshRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the driver and in a task, whose other clusters are derived as if it were not there."""
    tables = PinnedTables.newest(lake.path)
    bad, *others = cluster_ids(lake.path)
    broken = fresh | {bad: FreshRows(captures=[{"capture_id": "without columns"}])}
    sound = derive_in_driver(tables, ClusterGroup(tuple(others), fresh))
    monkeypatch.setattr(cluster_facts, "GROUP_CLUSTERS", 3)
    groups = cluster_groups(tables, [bad, *others], broken)
    assert max(len(group.clusters) for group in groups) > 1
    for derived in (in_driver(tables, groups), derive_by_spark(lake.spark, tables, groups).toArrow()):
        failures = dict(zip(*derived.select(["cluster_id", "failure"]).to_pydict().values(), strict=True))
        assert failures.pop(bad).startswith("KeyError: ")
        assert failures == dict.fromkeys(others)
        for table in DERIVED:
            assert equal_rows(table_rows(derived.combine_chunks(), table), table_rows(sound, table))
