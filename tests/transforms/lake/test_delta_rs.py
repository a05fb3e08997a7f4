"""Small tables written by delta-rs, without Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from chispa import assert_df_equality
from pyspark.sql.types import DataType, StructField, StructType

from tests.transforms.quality.sound_cluster import a_row
from transforms.lake import clustering, row_groups
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, each_row, greatest, rows_by_cluster, rows_with
from transforms.lake.lake import Lake
from transforms.lake.spark_rows import parse_type
from transforms.lake.storage import footers, prepare_lake
from transforms.lake.tables import (
    BROKERS,
    EXPECTATION_RESULTS,
    EXPIRED_CAPTURES,
    RUNS,
    SEGMENTS,
    SNAPSHOTS,
    TABLES,
    VOTER_SETS,
    Table,
)

NAMES = ["cluster_id", "capture_id", "node_id"]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def expired(cluster_id: str, capture_id: str, node_id: int) -> dict[str, Any]:
    names = {"cluster_id": cluster_id, "capture_id": capture_id, "node_id": node_id}
    return names | {"directory_id": "d", "captured_at": NOON}


def test_a_table_is_made_once(tmp_path: Path) -> None:
    """By whichever of those that make it at once."""
    with ThreadPoolExecutor(4) as threads:
        for attempt in range(30):
            writer = TableWriter(tmp_path / str(attempt), attempt or None)
            list(threads.map(lambda _, writer=writer: writer.create(RUNS), range(4)))
            assert len(list((tmp_path / str(attempt) / RUNS.name / "_delta_log").glob("*.json"))) == 1


def test_rows_are_put_by_key(tmp_path: Path) -> None:
    """New ones are added, known ones take the place of those with their key, all others stay."""
    writer = TableWriter(tmp_path, None)
    writer.create(EXPIRED_CAPTURES)
    for rows in (
        [expired("a", "x", 1), expired("o'b", "y", 2)],
        [expired("a", "z", 3)],
        [expired("o'b", "y", 4), expired("a", "y", 5)],
    ):
        writer.put(EXPIRED_CAPTURES, rows, by="capture_id")
    held = [tuple(row.values()) for row in rows_with(tmp_path, EXPIRED_CAPTURES, NAMES)]
    assert sorted(held) == [("a", "x", 1), ("a", "y", 5), ("a", "z", 3), ("o'b", "y", 4)]
    assert len(rows_with(tmp_path, EXPIRED_CAPTURES, NAMES, cluster_id=["a"])) == 3


@pytest.mark.parametrize("clusters", [None, ["a", "a/1", "b"]])
def test_rows_whose_key_has_no_cluster_are_put_among_those_of_the_clusters(
    tmp_path: Path, clusters: list[str] | None
) -> None:
    """A capture may have moved to another life of its cluster id."""
    writer = TableWriter(tmp_path, None)
    writer.create(SEGMENTS)
    for cluster, size in (("a", 1), ("a/1", 2), ("b", 3)):
        row = a_row(SEGMENTS, cluster_id=cluster, capture_id="x", base_offset=0, size_bytes=size)
        writer.put(SEGMENTS, [row], by="capture_id", clusters=clusters)
        (held,) = rows_with(tmp_path, SEGMENTS, ["cluster_id", "size_bytes"])
        assert held == {"cluster_id": cluster, "size_bytes": size}


@pytest.mark.parametrize("shared", [0, 3], ids=["a file a cluster", "shared files"])
def test_rows_of_clusters_are_counted(tmp_path: Path, shared: int) -> None:
    """By statistics where a file is of one cluster; they hold only the first 32 characters of a name."""
    writer, long = TableWriter(tmp_path, None), "x" * 32
    assert rows_by_cluster(tmp_path, EXPIRED_CAPTURES, ["a"]) == {}
    writer.create(EXPIRED_CAPTURES)
    assert rows_by_cluster(tmp_path, EXPIRED_CAPTURES, ["a"]) == {}
    for cluster, count in (("a", 2), ("a", 1), ("b", 4)):
        rows = [expired(cluster, f"{count}-{n}", n) for n in range(count)]
        writer.append(EXPIRED_CAPTURES, rows + [expired("c", f"c{count}-{n}", n) for n in range(shared)])
    found = rows_by_cluster(tmp_path, EXPIRED_CAPTURES, ["a", "c", "d"])
    assert found == {"a": 3} | ({"c": 3 * shared} if shared else {})
    writer.append(EXPIRED_CAPTURES, [expired(long + "y", "y", 1)])
    for cluster, rows in ((long + "y", 1), (long, 0), ("a", 3), ("b", 4)):
        assert rows_by_cluster(tmp_path, EXPIRED_CAPTURES, [cluster])[cluster] == rows


@pytest.mark.parametrize("wanted", [[False], [True], [False, True], []])
def test_rows_with_a_boolean(tmp_path: Path, wanted: list[bool]) -> None:
    writer = TableWriter(tmp_path, None)
    writer.create(EXPECTATION_RESULTS)
    for number, success in enumerate([True, False, True]):
        row = a_row(EXPECTATION_RESULTS, run_id=str(number), success=success)
        writer.append(EXPECTATION_RESULTS, [row])
    found = rows_with(tmp_path, EXPECTATION_RESULTS, ["success"], success=wanted)
    assert sorted(row["success"] for row in found) == sorted(wanted + [True] * (True in wanted))


def test_equal_rows_are_not_written(spark: Any, lake: Any, tmp_path: Path) -> None:
    """Compared as values, in any order: structs, lists and times included."""
    prepare_lake(tmp_path / "lake")
    other = Lake(spark, tmp_path / "lake")
    clusters = sorted({row["cluster_id"] for row in rows_with(lake.path, VOTER_SETS, ["cluster_id"])})
    rows = lake.read(VOTER_SETS).toArrow().select(VOTER_SETS.names).cast(VOTER_SETS.arrow_schema)
    backwards = rows.take(list(range(len(rows)))[::-1])
    log = other.path / VOTER_SETS.name / "_delta_log"
    for given, versions in ((rows, 2), (backwards, 2), (rows.slice(1), 3), (rows.slice(1), 3), (rows, 4)):
        other.replace_few(VOTER_SETS, given, clusters)
        assert len(list(log.glob("*.json"))) == versions
    assert other.holds(VOTER_SETS, backwards, clusters)
    one = clusters[:1]
    assert not other.holds(VOTER_SETS, rows.slice(0, 0), one)
    other.replace_few(VOTER_SETS, rows.slice(0, 0), one)
    assert {row["cluster_id"] for row in rows_with(other.path, VOTER_SETS, ["cluster_id"])} == {*clusters[1:]}


@pytest.mark.parametrize("table", [VOTER_SETS, SNAPSHOTS, BROKERS, RUNS], ids=lambda t: t.name)
def test_a_table_is_read_by_spark_in_three_ways(lake: Any, table: Table) -> None:
    """By Delta's reader, from its files, and at hand; where it is not by Delta's, every column may be null.

    An expectation that a column is filled has to see that it is not.
    """
    by_delta = lake.spark.read.format("delta").load(lake.location(table))
    assert lake.plain_files(table)
    stored = [StructField(f.name, f.dataType, metadata=f.metadata) for f in by_delta.schema]
    assert lake.read(table).schema == StructType(stored)
    theirs = by_delta.select(table.names).orderBy(*table.key)
    for frame in (lake.read(table).select(table.names), lake.read_at_hand(table)):
        ours = frame.orderBy(*table.key)
        assert_df_equality(ours, theirs, ignore_nullable=True, ignore_metadata=True)
        assert not ours.isEmpty()
        assert all(field.nullable for field in ours.schema.fields)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_table_without_rows_is_read_at_hand(spark: Any, tmp_path: Path, table: Table) -> None:
    TableWriter(tmp_path, None).create(table)
    assert Lake(spark, tmp_path).read_at_hand(table).collect() == []


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_types_are_those_that_spark_parses(table: Table) -> None:
    for column in table.columns:
        assert parse_type(column.type) == DataType.fromDDL(column.type), column.name


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Twenty clusters, ten rows of each, joined into row groups of eight rows."""
    writer = TableWriter(tmp_path, None)
    writer.create(EXPIRED_CAPTURES)
    for night in range(10):
        rows = [expired(f"c{c:02}", f"{c}-{night}", c % 3) for c in range(20)]
        at = NOON + timedelta(days=night)
        writer.append(EXPIRED_CAPTURES, [row | {"captured_at": at} for row in rows])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(clustering, "SORTED_GROUP_ROWS", 8)
        writer.compact(EXPIRED_CAPTURES)
    return tmp_path


@pytest.mark.parametrize(
    "wanted",
    [
        {"cluster_id": ["c03", "c17"]},
        {"capture_id": ["3-4", "19-9", "none"]},
        {"capture_id": ["none"]},
        {"cluster_id": ["c03"], "node_id": [1]},
        {},
    ],
)
def test_a_large_table_gives_the_rows_of_a_small_one(
    nights: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, list[Any]]
) -> None:
    by_id = sorted(rows_with(nights, EXPIRED_CAPTURES, NAMES, **wanted), key=lambda row: row["capture_id"])
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    for found in (
        rows_with(nights, EXPIRED_CAPTURES, NAMES, **wanted),
        list(each_row(nights, EXPIRED_CAPTURES, NAMES, among(wanted))),
        list(each_row(nights, EXPIRED_CAPTURES, NAMES, **wanted)),
    ):
        assert sorted(found, key=lambda row: row["capture_id"]) == by_id


def test_rows_must_meet_what_row_groups_are_not_chosen_by(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    also = ds.field("captured_at") == NOON
    for wanted in ({"cluster_id": ["c03", "c17"]}, {"cluster_id": ["c03"], "capture_id": ["3-0", "3-1"]}):
        found = rows_with(nights, EXPIRED_CAPTURES, NAMES, also=also, **wanted)
        assert [row["capture_id"] for row in found] == ["3-0", "17-0"][: len(found)]
        assert len(found) == len(wanted["cluster_id"])
    everywhere = rows_with(nights, EXPIRED_CAPTURES, NAMES, also=also)
    assert {row["capture_id"] for row in everywhere} == {f"{c}-0" for c in range(20)}


def test_footers_of_a_large_table_are_read_once(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also once its version has moved: data files stay what they are."""
    monkeypatch.setattr(footers, "LARGE_BYTES", 0)
    monkeypatch.setattr(row_groups, "LARGE_ROWS", 1)
    wanted = {"cluster_id": ["c03"]}
    rows = rows_with(nights, EXPIRED_CAPTURES, NAMES, **wanted)
    assert len(rows) == 10
    files = list((nights / EXPIRED_CAPTURES.name).glob("*.parquet"))
    for file in files:  # no footer can be read any more
        content = file.read_bytes()
        file.write_bytes(content[:-8] + bytes(8))
    TableWriter(nights, None).append(EXPIRED_CAPTURES, [expired("c03", "3-10", 0)])
    again = rows_with(nights, EXPIRED_CAPTURES, NAMES, **wanted)
    assert [row for row in again if row["capture_id"] != "3-10"] == rows
    assert len(again) == 11
    TableWriter(nights, None).create(RUNS)
    rows_with(nights, RUNS, ["run_id"])  # of another large table: its footers are kept instead
    with pytest.raises((OSError, pa.ArrowException)):
        rows_with(nights, EXPIRED_CAPTURES, NAMES, **wanted)


def test_the_greatest_values_are_those_of_all_rows(nights: Path) -> None:
    found = greatest(nights, EXPIRED_CAPTURES, ["cluster_id", "node_id"], "captured_at")
    assert found == {(f"c{c:02}", c % 3): (10, NOON + timedelta(days=9)) for c in range(20)}
    assert greatest(nights / "nowhere", EXPIRED_CAPTURES, ["cluster_id"], "captured_at") == {}
