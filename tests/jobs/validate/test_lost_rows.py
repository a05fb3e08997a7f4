"""kraftlake validate on lakes of which rows are gone: the expectation about them fails, and no other."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from jobs.cli import main
from tests.jobs.lakes import opened
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import arrow_with, exists, rows_with, size_bytes
from transforms.lake.tables import DERIVATIONS, EXPECTATION_RESULTS, RECORDS, TABLES, Table
from transforms.quality import expectation_scope
from transforms.quality.expectation_scope import read_by_spark
from transforms.quality.expectations import LISTED_ROWS, expect

MINI = "roWi3HLRRCuDirielH5nnw"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LOST_RANGE = {"batches.range_is_complete"}
LOST_RECORDS = {"records.batch_is_complete"}
LOST_SNAPSHOT_RECORDS = {"snapshot_records.positions_are_gapless"}
LOST_DERIVED = {"derivations.derived_rows_are_kept"}
# By cluster, a copy of MINI: a table (or all derived ones), which rows are deleted, and the errors found.
LOST: Mapping[str, tuple[str, str, set[str]]] = {
    "one batch": ("batches", "node_id = 1 AND base_offset <= 100 AND last_offset >= 100", LOST_RANGE),
    "the first batch": ("batches", "node_id = 1 AND base_offset = 0", LOST_RANGE),
    "the last batches": ("batches", "node_id = 1 AND base_offset >= 300", LOST_RANGE),
    "all of a replica": ("batches", "node_id = 2", LOST_RANGE),
    "all batches": ("batches", "true", LOST_RANGE | {"records.batch_is_known"}),
    "a record": ("records", "offset = 100", LOST_RECORDS),
    "all metadata records": ("records", "NOT is_control", LOST_RECORDS),
    "snapshots": ("snapshots", "kind = 'snapshot'", {"snapshots.captured_snapshot_is_known"}),
    "all records of snapshots": ("snapshot_records", "true", LOST_SNAPSHOT_RECORDS),
    "headers": ("snapshot_records", "position = 0", LOST_SNAPSHOT_RECORDS),
    "footers": ("snapshot_records", "type = 'SnapshotFooter'", LOST_SNAPSHOT_RECORDS),
    "segments": ("segments", "true", set()),
    "captures": (
        "captures",
        "node_id = 2",
        {f"{table}.capture_is_known" for table in ("batches", "replica_ranges", "segments", "snapshots")},
    ),
    "a derived row": ("epochs", "leader_epoch = 1", LOST_DERIVED),
    "derived by an earlier version": ("topics", "true", set()),
    "all derived rows": ("", "true", LOST_DERIVED),
    "nothing": ("batches", "false", set()),
}


@pytest.fixture(scope="module")
def damaged(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden lake with copies of one of its clusters, of each of which something is deleted."""
    path = tmp_path_factory.mktemp("lost") / "lake"
    shutil.copytree(lake.path, path)
    shutil.rmtree(path / EXPECTATION_RESULTS.name, ignore_errors=True)
    stored = [table for table in TABLES if "cluster_id" in table.names and exists(path, table)]
    for table in stored:
        rows = arrow_with(path, table, table.names, cluster_id=[MINI])
        write_deltalake(path / table.name, pa.concat_tables(copies(rows)), mode="append")
    for cluster, (name, condition, _) in LOST.items():
        for table in stored:
            if table.name == name or (table.recomputed and not name):
                delete(path, table, f"cluster_id = '{cluster}' AND {condition}")
    (row,) = rows_with(path, DERIVATIONS, cluster_id=["derived by an earlier version"])
    TableWriter(path, None).put(DERIVATIONS, [row | {"derived_rows": None}], by="cluster_id")
    return path


def delete(lake: Path, table: Table, condition: str) -> None:
    """Delete rows. DeltaTable.delete would write files whose strings Arrow cannot compare with others."""
    none = table.arrow_schema.empty_table()
    write_deltalake(lake / table.name, none, mode="overwrite", predicate=condition)


def copies(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows once for each cluster of LOST."""
    column = rows.schema.get_field_index("cluster_id")
    for cluster in LOST:
        ids = pa.array([cluster] * len(rows), pa.string())
        yield rows.set_column(column, rows.schema.field(column), ids)


def errors(results: list[dict[str, Any]]) -> dict[str, set[str]]:
    """By cluster the expectations of severity error that it fails."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in results:
        if not row["success"] and row["severity"] == "error":
            found[row["cluster_id"]].add(f"{row['suite']}.{row['expectation']}")
    return found


def lost_by_cluster() -> dict[str, set[str]]:
    return {cluster: names for cluster, (_, _, names) in LOST.items() if names}


def test_a_validation_finds_what_each_cluster_lost(
    spark: Any, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what captures, headers and derivations say must be there; the golden clusters have lost nothing.

    The records are read by Spark, which compiles the queries, as those of a large lake.
    """
    monkeypatch.setattr(expectation_scope, "SMALL_TABLE_BYTES", size_bytes(damaged, RECORDS))
    assert RECORDS in read_by_spark(opened(spark, damaged))
    assert main(["validate", "--lake", str(damaged), "--now", f"{NOW:%Y-%m-%dT%H:%M:%SZ}"]) == 1
    results = rows_with(damaged, EXPECTATION_RESULTS)
    assert errors(results) == lost_by_cluster()
    rows = {(r["cluster_id"], r["expectation"]): [json.loads(n) for n in r["failing_rows"]] for r in results}
    (lost,) = rows["one batch", "range_is_complete"]
    assert (lost["node_id"], lost["held_to"]) == (1, 100)
    assert {row["node_id"] for row in rows["all of a replica", "range_is_complete"]} == {2}
    (lost,) = rows["a derived row", "derived_rows_are_kept"]
    assert (lost["table"], lost["expected"] - lost["rows"]) == ("epochs", 1)
    had = {table: rows for table, rows in derived_rows(damaged).items() if rows}
    found = {row["table"]: row["expected"] for row in rows["all derived rows", "derived_rows_are_kept"]}
    assert len(found) == min(len(had), LISTED_ROWS)
    assert found.items() <= had.items()


@pytest.mark.long
def test_a_full_validation_finds_the_same(spark: Any, damaged: Path) -> None:
    wanted = lost_by_cluster()
    # Which records of snapshots are new is known from the snapshots that are there.
    wanted["snapshots"] = wanted["snapshots"] | {"snapshot_records.snapshot_is_known"}
    assert errors(expect(opened(spark, damaged), "full", NOW, NOW)) == wanted


def derived_rows(lake: Path) -> dict[str, int]:
    """The rows of MINI in each derived table."""
    tables = (table for table in TABLES if table.recomputed)
    return {table.name: len(rows_with(lake, table, ["cluster_id"], cluster_id=[MINI])) for table in tables}
