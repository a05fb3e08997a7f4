"""Views that Spark and delta-rs' engine run: they give the same rows of real and of random captures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from dashboards import embedded_sql
from dashboards.catalog import AskedLake
from dashboards.definitions import defined, of_files
from dashboards.evaluated_views import evaluated
from dashboards.report.plain_rows import plain
from tests.dashboards.histories import partition, random_histories, time_at, version
from tests.dashboards.small_lakes import write, write_for
from transforms.lake.spark_rows import to_rows
from transforms.lake.tables import (
    BROKERS,
    CAPTURES,
    CONTROLLERS,
    EPOCHS,
    FEATURES,
    HIGH_WATERMARKS,
    LOG_RANGES,
    PARTITIONS,
    RECORDS,
    VOTER_CHANGES,
    VOTER_SETS,
    Table,
)

EVALUATED = [*map(defined, of_files())]
# Of the golden captures.
WITHOUT_ROWS = {
    "broker_directory_states",
    "expectations_now",
    "lost_records",
    "recreated_topics",
    "stray_replicas",
    "zk_migrations",
}
# The columns by which views are ordered.
ORDERS = {
    "clusters": ("name", "cluster_id"),
    "expectations_now": ("success", "severity", "cluster_id", "suite", "expectation"),
    "flapping_controllers": ("cluster_id", "turns_in_an_hour"),
    "leader_timeline": ("cluster_id", "leader_epoch"),
    "replica_lag": ("cluster_id", "lag_records", "node_id"),
    "high_watermark_timeline": ("cluster_id", "from_at"),
    "upgrade_blockers": ("cluster_id", "feature", "kind", "node_id"),
    "voter_history": ("cluster_id", "offset", "leader_epoch"),
    "zk_migrations": ("cluster_id", "offset"),
    "voter_sets_in_force": ("cluster_id", "in_force_from", "offset"),
}
# Views of what random histories have.
OF_HISTORIES = (
    "admin_events",
    "broker_lifecycles",
    "config_changes",
    "feature_changes",
    "fenced_times",
    "leader_changes",
    "min_isr_periods",
    "partition_batches",
    "partition_changes",
    "reassignments",
    "unclean_elections",
    "under_min_isr",
    "why_fenced",
)
# Views of random_nodes.
OF_NODES = (
    "high_watermark_timeline",
    "offline_directories",
    "stranded_replicas",
    "upgrade_blockers",
    "watermark_bounds",
    "zk_migrations",
)


def same(embedded: pa.Table | None, spark: list[dict[str, Any]]) -> bool:
    """Whether both engines gave the same rows of the same columns; times in ms."""
    assert embedded is not None
    return texts(embedded.to_pylist()) == texts(spark)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(plain(row)) for row in rows)


def in_order(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[list[Any]]:
    return [[row[name] for name in names] for row in rows]


def before_1970(row: dict[str, Any]) -> dict[str, Any]:
    """A version at other times, the first of which are earlier, and all of which have microseconds."""
    moved = timedelta(microseconds=100_001)
    return {k: v - moved if isinstance(v, datetime) else v for k, v in row.items()}


def register(spark: Any, lake: Path, views: Iterable[str]) -> None:
    """Register views as Spark's own."""
    AskedLake(spark, lake).register("SELECT * FROM " + ", ".join(f"kraft.{view}" for view in views))


def of_spark(spark: Any, view: str) -> DataFrame:
    """A view as Spark evaluates it: one named with its database is never evaluated by the other engine."""
    return spark.sql(f"SELECT * FROM kraft.{view}")


def held_or_not(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tables that are read from their files are planned in another way than those held in memory."""
    for most_bytes in (embedded_sql.MOST_BYTES, 0):
        monkeypatch.setattr(embedded_sql, "MOST_BYTES", most_bytes)
        yield


@pytest.mark.parametrize("how", ["interpreted", pytest.param("compiled", marks=pytest.mark.long)])
def test_both_engines_agree_on_real_captures(
    lake: Any, how: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, types and names of columns of every view, however Spark runs its queries."""
    if how == "interpreted":
        request.getfixturevalue("interpreted")
    register(lake.spark, lake.path, EVALUATED)
    frames = {view: of_spark(lake.spark, view) for view in EVALUATED}
    wanted = {view: to_rows(frame) for view, frame in frames.items()}
    for _ in held_or_not(monkeypatch):
        for view, rows in wanted.items():
            found = evaluated(lake.path, view)
            assert found is not None
            types = from_arrow_schema(found.schema).simpleString()
            assert types == frames[view].schema.simpleString(), view
            assert same(found, rows), view
            names = ORDERS.get(view, ())
            assert in_order(found.to_pylist(), names) == in_order(rows, names), view
    assert {view for view, rows in wanted.items() if not rows} == WITHOUT_ROWS


@pytest.mark.long
def test_both_engines_agree_on_random_histories(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(20)
    tables: dict[str, list[dict[str, Any]]] = {}
    for n in range(150):
        for name, rows in random_histories(random, f"c{n}").items():
            tables.setdefault(name, []).extend(map(before_1970, rows) if n % 2 else rows)
    write_for(tmp_path, "admin_events", tables)
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    register(spark, tmp_path, OF_HISTORIES)
    wanted = {view: to_rows(of_spark(spark, view)) for view in OF_HISTORIES}
    clusters = sorted({row["cluster_id"] for row in tables["partitions"]})
    for _ in held_or_not(monkeypatch):
        # A condition on clusters is planned in another way, too.
        for some, (view, rows) in product(((), clusters), wanted.items()):
            assert rows, view
            assert same(embedded_sql.query(tmp_path, view, f"SELECT * FROM {view}", some), rows), view
    operations = {row["operation"] for row in wanted["admin_events"]}
    assert {"add partitions", "elect leader", "elect unclean leader", "reassign partition"} <= operations
    assert {"cancel reassignment", "fence broker", "register broker", "controlled shutdown"} <= operations
    states = {"requested", "immediate", "completed", "cancelled", "superseded"}
    assert states <= {row["state"] for row in wanted["reassignments"]}


@pytest.mark.usefixtures("interpreted")
def test_both_engines_agree_on_random_nodes_and_watermarks(spark: Any, tmp_path: Path) -> None:
    random = Random(21)
    tables: dict[Table, list[dict[str, Any]]] = {}
    for n in range(100):
        for table, rows in random_nodes(random, f"c{n}").items():
            tables.setdefault(table, []).extend(rows)
    for table, some in tables.items():
        write(tmp_path, table, some)
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    register(spark, tmp_path, OF_NODES)
    for view in OF_NODES:
        rows = to_rows(of_spark(spark, view))
        assert len(rows) > 50, view
        assert same(evaluated(tmp_path, view), rows), view


@pytest.mark.usefixtures("interpreted")
def test_ties_and_nulls_are_in_one_order(spark: Any, tmp_path: Path) -> None:
    """Spark has nulls first, if not descending. The last of equally many elections within an hour counts."""
    elections = [(n, time_at(360_000 * hour)) for n, hour in enumerate((50, 50, 50, 90, 90, 90, 10, 10, 10))]
    rows = {
        CAPTURES: [capture(n, end) for n, end in enumerate((None, 5, None, 7, 5))],
        EPOCHS: [
            {"cluster_id": "a", "leader_epoch": n, "leader_id": 1, "elected_at": at} for n, at in elections
        ],
        VOTER_SETS: [],
        VOTER_CHANGES: [],
    }
    for table, some in rows.items():
        write(tmp_path, table, some)
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    register(spark, tmp_path, ("replica_lag", "flapping_controllers"))
    for view, wanted in (
        ("replica_lag", [(1, 2), (4, 2), (3, 0), (0, None), (2, None)]),
        ("flapping_controllers", [(3, time_at(90 * 360_000))]),
    ):
        found = evaluated(tmp_path, view)
        assert found is not None
        names = {"replica_lag": ("node_id", "lag_records")}.get(view, ("turns_in_an_hour", "until"))
        for answer in (found.to_pylist(), to_rows(of_spark(spark, view))):
            assert list(map(tuple, in_order(answer, names))) == wanted


def random_nodes(random: Random, cluster: str) -> dict[Table, list[dict[str, Any]]]:
    """Registrations with features and directories, replicas in these, and proofs of the high watermark."""
    member = random.choice

    def supported() -> list[dict[str, Any]]:
        return [
            {"name": name, "min_supported_version": 0, "max_supported_version": random.randrange(3)}
            for name in ("metadata.version", "group.version")
            if random.random() < 0.7
        ]

    def held(n: int, **more: Any) -> dict[str, Any]:
        return version(n, member((None, n + 5)), commit_status="committed", **more) | {"cluster_id": cluster}

    def of_nodes(kind: str, **more: Any) -> list[dict[str, Any]]:
        return [held(n, **{kind: n}, features=supported(), **{k: member(v) for k, v in more.items()})
                for n in range(4) if random.random() < 0.8]  # fmt: skip

    proofs = [(at, bound, random.randrange(6)) for at in range(8) for bound in ("lower_bound", "upper_bound")]
    replicas = [member(([0, 1], [2], [1, 2, 3], [])) for _ in range(4)]
    logs, flags = ([], ["a"], ["a", "b"], None), (True, False)
    return {
        BROKERS: of_nodes("broker_id", log_dirs=logs, fenced=flags, is_migrating_zk_broker=flags),
        CONTROLLERS: of_nodes("controller_id"),
        FEATURES: [held(0, name="metadata.version", level=1)],
        PARTITIONS: [
            partition(0, member((None, None, 5)), 2) | {
                "cluster_id": cluster, "partition_id": n, "replicas": to, "isr": to[:1],
                "directories": member(([member("abc") for _ in to], [], None)),
            } for n, to in enumerate(replicas)
        ],
        HIGH_WATERMARKS: [
            {"cluster_id": cluster, "as_of": time_at(at), bound: value, "evidence": member("xy"),
             "source": "s"} for at, bound, value in proofs if random.random() < 0.5
        ],
        LOG_RANGES: [{"cluster_id": cluster, "leader_epoch": 1, "first_offset": 0, "end_offset": 6,
                      "commit_status": "committed"}],
        RECORDS: [
            {"cluster_id": cluster, "offset": n, "leader_epoch": 1, "type": "ZK_MIGRATION_STATE_RECORD",
             "appended_at": time_at(n), "zk_migration_state": {"zk_migration_state": random.randrange(5)}}
            for n in range(8)
        ],
    }  # fmt: skip


def capture(node: int, end: int | None) -> dict[str, Any]:
    return {"cluster_id": "a", "capture_id": str(node), "node_id": node, "directory_id": "d",
            "captured_at": time_at(1), "last_captured_at": time_at(1), "log_end_offset": end}  # fmt: skip
