"""The pages of a thousand clusters, one of them with ten thousand epochs: seconds and bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from tests.bench.frame import Bench, Row, cpu_seconds
from tests.dashboards import small_lakes
from tests.dashboards.worlds import DIRECTORIES
from transforms.lake.tables import CONFIGS, PARTITIONS, TOPICS

Rows = list[dict[str, Any]]
LISTS = {"isr": [2, 3], "adding_replicas": [], "removing_replicas": [], "eligible_leader_replicas": []}
IN_TOPIC = {
    "topic_id": "topic-0",
    "topic_name": "topic-0",
    "leader": 2,
    "leader_recovery_state": "RECOVERED",
    "record_type": "PARTITION_CHANGE_RECORD",
}
# A partition before, in and after its reassignment: first offset, end, state.
MOVE = (
    (1, 5, IN_TOPIC | LISTS | {"replicas": [1, 2, 3], "record_type": "PARTITION_RECORD"}),
    (5, 9, IN_TOPIC | LISTS | {"replicas": [2, 3, 4, 1], "adding_replicas": [4], "removing_replicas": [1]}),
    (9, None, IN_TOPIC | LISTS | {"replicas": [2, 3, 4], "isr": [2, 3, 4]}),
)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NIGHTS = 90
NOW_MS = round((BEGAN + timedelta(days=NIGHTS)).timestamp() * 1000)


def rows(bench: Bench) -> Iterator[Row]:
    """A fleet captured nightly for three months, elections now and then; and one cluster in a storm."""
    clusters = bench.size(1_000, 50)
    storm = bench.size(10_000, 2_000)
    versions = bench.size(1_000_000, 20_000)
    reassigned = bench.size(10_000, 200)
    lake = fleet(
        bench.folder / f"page-{clusters}-{versions}-{reassigned}", clusters, storm, versions, reassigned
    )
    out = bench.folder / "page.html"
    made: list[int] = []
    taken = cpu_seconds(lambda: made.append(len(small_lakes.written_report(lake, out, NOW_MS).data)))
    detail = (
        f"{clusters:,} clusters, {clusters * 3 * NIGHTS:,} captures, "
        f"{storm:,} epochs, {versions:,} partitions and {reassigned:,} reassignments in one"
    )
    yield Row("page of a fleet and of each cluster at first, CPU", taken, "s", at_most=60, detail=detail)
    again = cpu_seconds(lambda: small_lakes.written_report(lake, out, NOW_MS + 1))
    yield Row("page of a fleet, no cluster changed, CPU", again, "s", at_most=5, detail=detail)
    yield Row("page of a fleet, size", made[0] / 1e6, "MB", at_most=2, detail=detail)
    one = f"{storm:,} epochs, {versions:,} partitions, {reassigned:,} reassignments"
    taken = cpu_seconds(
        lambda: made.append(len(small_lakes.written_report(lake, out, NOW_MS, ["cluster-0000"]).data))
    )
    yield Row("page of one cluster, CPU", taken, "s", at_most=2, detail=one)
    yield Row("page of one cluster, size", made[1] / 1e6, "MB", at_most=0.5, detail=one)


def fleet(path: Path, clusters: int, storm: int, versions: int, reassigned: int) -> Path:
    """A lake of the tables that the page reads, written without a session; kept between runs."""
    if (path / "lake.json").is_file():
        return path
    shutil.rmtree(path, ignore_errors=True)
    names = [f"cluster-{n:04}" for n in range(clusters)]
    tables = {
        "captures": [row for name in names for row in captures(name)],
        "epochs": [row for n, name in enumerate(names) for row in epochs(name, 30 if n else storm)],
        "voter_sets": [row for name in names for row in voter_sets(name)],
        "voter_changes": [row for name in names for row in voter_changes(name)],
        "high_watermarks": [row for name in names for row in high_watermarks(name)],
        "log_ranges": [row for name in names for row in log_ranges(name)],
    }
    small_lakes.write_for(path, "admin_events", {})
    small_lakes.write(path, PARTITIONS, partitions(names[0], versions, reassigned))
    small_lakes.write(path, CONFIGS, [min_isr(name) for name in names])
    small_lakes.write(path, TOPICS, [topic(names[0], n) for n in range(0, versions, 100)])
    for table, made in tables.items():
        write_deltalake(path / table, pa.Table.from_pylist(made, schema=declared(table)))
    (path / "lake.json").write_text('{"format_version": 1}\n')
    return path


def declared(table: str) -> pa.Schema:
    """The table's columns; those that the rows lack are null."""
    return pa.schema([f.with_nullable(True) for f in small_lakes.BY_NAME[table].arrow_schema])


def night(n: int) -> datetime:
    return BEGAN + timedelta(days=n, hours=3)


def captures(cluster: str) -> Rows:
    return [
        {
            "cluster_id": cluster,
            "capture_id": f"{cluster}-{node}-{n}",
            "node_id": node,
            "directory_id": DIRECTORIES[node],
            "captured_at": night(n),
            "last_captured_at": night(n),
            "log_start_offset": 0,
            "log_end_offset": (n + 1) * 170_000 + node,
            "last_leader_epoch": n,
            "kraft_version": 1,
            "size_bytes": 12_000_000,
            "snapshots": [{"end_offset": n * 170_000, "leader_epoch": n, "content_digest": f"{cluster}-{n}"}],
        }
        for n in range(NIGHTS)
        for node in (1, 2, 3)
    ]


def epochs(cluster: str, how_many: int) -> Rows:
    apart = timedelta(days=NIGHTS) / how_many
    return [
        {
            "cluster_id": cluster,
            "leader_epoch": n,
            "leader_id": n % 3 + 1,
            "start_offset": n * 500,
            "start_offset_exact": True,
            "elected_at": BEGAN + n * apart,
            "leader_source": "record",
            "known_from": BEGAN + n * apart,
            "known_to": BEGAN + n * apart + apart - timedelta(milliseconds=1_500),
            "voter_ids": [1, 2, 3],
            "granting_voters": [1, 2],
            "leaderless_ms": 1_500,
        }
        for n in range(how_many)
    ]


def voter_sets(cluster: str) -> Rows:
    return [
        {
            "cluster_id": cluster,
            "offset": 2 + n * 100_000,
            "leader_epoch": n + 1,
            "source": "record",
            "voters": [{"voter_id": i, "directory_id": DIRECTORIES[i]} for i in (1, 2, 3)],
            "voter_ids": [1, 2, 3],
            "majority": 2,
            "commit_status": "committed",
            "evidence": f"snapshot {n}",
            "in_force_from_offset": 2 + n * 100_000,
            "in_force_from": night(n * 10),
            "in_force_to": night(n * 10 + 10) if n < 8 else None,
            "in_force_to_offset": 2 + (n + 1) * 100_000 if n < 8 else None,
            "truncated_by_epoch": None,
        }
        for n in range(9)
    ]


def voter_changes(cluster: str) -> Rows:
    return [
        {
            "cluster_id": cluster,
            "offset": 2 + n * 100_000,
            "leader_epoch": n + 1,
            "kind": "updated",
            "voter_id": n % 3 + 1,
            "directory_id": DIRECTORIES[n % 3 + 1],
            "detail": None,
            "changed_at": night(n * 10),
            "commit_status": "committed",
        }
        for n in range(9)
    ]


def high_watermarks(cluster: str) -> Rows:
    return [
        {
            "cluster_id": cluster,
            "evidence": "snapshot" if is_lower else "log_ends",
            "source": f"night {n}",
            "as_of": night(n),
            "lower_bound": n * 170_000 if is_lower else None,
            "upper_bound": None if is_lower else (n + 1) * 170_000,
            "believed_bound": None,
        }
        for n in range(NIGHTS)
        for is_lower in (True, False)
    ]


def log_ranges(cluster: str) -> Rows:
    return [
        {
            "cluster_id": cluster,
            "leader_epoch": n,
            "first_offset": n * 500,
            "end_offset": (n + 1) * 500,
            "commit_status": "committed",
            "evidence": "a majority stored it",
            "as_of": night(n % NIGHTS),
            "truncated_by_epoch": None,
        }
        for n in range(30)
    ]


def min_isr(cluster: str) -> dict[str, Any]:
    return version(cluster, 0) | {
        "resource_type": "BROKER",
        "resource_name": "",
        "name": "min.insync.replicas",
        "value": "2",
        "redacted": False,
    }


def topic(cluster: str, first_version: int) -> dict[str, Any]:
    """The topic of a hundred versions of partitions."""
    name = f"topic-{first_version // 100}"
    return version(cluster, first_version) | {
        "topic_id": name,
        "topic_name": name,
        "record_type": "TOPIC_RECORD",
    }


def version(cluster: str, offset: int) -> dict[str, Any]:
    return {
        "cluster_id": cluster,
        "valid_from_offset": offset,
        "valid_to_offset": None,
        "valid_from_at": BEGAN,
        "valid_to_at": None,
        "valid_from_exact": True,
        "record_offset": offset,
        "ended_by": None,
        "commit_status": "committed",
        "end_commit_status": None,
    }


def partitions(cluster: str, count: int, reassigned: int) -> pa.Table:
    """Versions of partitions, 100 a topic: one in a hundred is under min ISR, the last have moved."""
    moves = [
        version(cluster, offset) | {"valid_to_offset": end, "partition_id": 100 + number} | state
        for number in range(reassigned)
        for offset, end, state in MOVE
    ]
    held = placed(cluster, count)
    columns = pa.schema([declared("partitions").field(name) for name in held.column_names])
    return pa.concat_tables([held.cast(columns), pa.Table.from_pylist(moves, schema=columns)])


def placed(cluster: str, versions: int) -> pa.Table:
    """As many partitions, none of which ever moved."""
    numbers = pa.array(range(versions), pa.int64())
    rows = pa.Table.from_pylist([version(cluster, 0)]).take(pa.array([0] * versions, pa.int64()))
    columns = {
        "topic_id": pa.array([f"topic-{n // 100}" for n in range(versions)]),
        "topic_name": pa.array([f"topic-{n // 100}" for n in range(versions)]),
        "partition_id": pa.array([n % 100 for n in range(versions)], pa.int32()),
        "replicas": pa.array([[1, 2, 3]] * versions, pa.list_(pa.int32())),
        "isr": pa.array([[1] if n % 100 == 0 else [1, 2, 3] for n in range(versions)], pa.list_(pa.int32())),
        "adding_replicas": pa.array([[]] * versions, pa.list_(pa.int32())),
        "removing_replicas": pa.array([[]] * versions, pa.list_(pa.int32())),
        "eligible_leader_replicas": pa.array([[]] * versions, pa.list_(pa.int32())),
        "leader": pa.array([1] * versions, pa.int32()),
        "leader_recovery_state": pa.array(["RECOVERED"] * versions),
        "record_type": pa.array(["PARTITION_RECORD"] * versions),
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows.set_column(rows.schema.get_field_index("valid_from_offset"), "valid_from_offset", numbers)
