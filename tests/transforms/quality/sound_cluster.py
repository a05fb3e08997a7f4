"""A small cluster that meets every expectation, as rows of the lake's tables; and faults to put into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from transforms.lake.tables import TABLES, Table

Row = dict[str, Any]
Rows = dict[str, list[Row]]
BEGAN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
DIRECTORY = "dirdirdirdirdirdirdird"
EMPTY = {
    "STRING": "",
    "INT": 0,
    "BIGINT": 0,
    "SMALLINT": 0,
    "BOOLEAN": False,
    "DOUBLE": 0.0,
    "TIMESTAMP": BEGAN,
}


def at(hours: float) -> datetime:
    return BEGAN + timedelta(hours=hours)


def empty(column_type: str) -> Any:
    return [] if column_type.startswith("ARRAY<") else EMPTY[column_type]


def a_row(table: Table, **values: Any) -> Row:
    """A row with these values; other required columns have an empty value of their type, the rest null."""
    required = {c.name: empty(c.type.upper()) for c in table.columns if not c.nullable}
    assert set(values) <= set(table.names)
    return dict.fromkeys(table.names) | required | values


def epoch_range(leader_epoch: int, first_offset: int, end_offset: int) -> Row:
    """A struct of captures.epoch_ranges."""
    return {"leader_epoch": leader_epoch, "first_offset": first_offset, "end_offset": end_offset}


def sound_cluster(cluster_id: str) -> Rows:
    """Two batches of two records, captured once from node 1; node 1 is the only voter.

    derived_rows is no table but a frame beside them (expectation_scope.lake_frames).
    """
    snapshot = {"end_offset": 2, "leader_epoch": 1, "content_digest": "s"}
    replica = {"node_id": 1, "directory_id": DIRECTORY}
    batch = {**replica, "size_bytes": 80, "record_count": 2}
    voters = {
        "voters": [{"voter_id": 1, "directory_id": DIRECTORY}],
        "voter_ids": [1],
        "majority": 1,
    }
    held = {"capture_id": f"capture of {cluster_id}"}
    given: dict[str, list[Row]] = {
        "captures": [
            {
                **held,
                **replica,
                "captured_at": at(2),
                "last_captured_at": at(2),
                "captured_at_source": "capture.json",
                "log_start_offset": 0,
                "log_end_offset": 4,
                "epoch_ranges": [epoch_range(1, 0, 2), epoch_range(2, 2, 4)],
                "snapshots": [snapshot],
                "damage": [],
                "file_faults": [],
            }
        ],
        "segments": [{**held, "size_bytes": 160, "bytes_read": 160}],
        "batches": [
            {**batch, "base_offset": 0, "last_offset": 1, "leader_epoch": 1, "crc": 7},
            {**batch, "base_offset": 2, "last_offset": 3, "leader_epoch": 2, "crc": 8},
        ],
        "records": [
            {"offset": 0, "leader_epoch": 1, "batch_crc": 7, "type": "KRaftVoters", "is_control": True},
            {"offset": 1, "leader_epoch": 1, "batch_crc": 7},
            {"offset": 2, "leader_epoch": 2, "batch_crc": 8, "batch_base_offset": 2},
            {"offset": 3, "leader_epoch": 2, "batch_crc": 8, "batch_base_offset": 2},
        ],
        "snapshots": [{**snapshot, "complete": True}],
        "snapshot_records": [
            {**snapshot, "position": 0, "type": "SnapshotHeader"},
            {**snapshot, "position": 1, "type": "SnapshotFooter"},
        ],
        "quarantine": [{**held, "reason": "torn_tail", "size_bytes": 9}],
        "log_ranges": [
            {"leader_epoch": 1, "first_offset": 0, "end_offset": 2, "commit_status": "committed"},
            {"leader_epoch": 2, "first_offset": 2, "end_offset": 4, "commit_status": "committed"},
            {
                "leader_epoch": 1,
                "first_offset": 2,
                "end_offset": 3,
                "commit_status": "truncated",
                "truncated_by_epoch": 2,
            },
        ],
        "replica_ranges": [
            {**replica, **epoch_range(1, 0, 2), "first_captured_at": at(1), "last_captured_at": at(2)},
            {**replica, **epoch_range(2, 2, 4), "first_captured_at": at(1), "last_captured_at": at(2)},
        ],
        "epochs": [
            {"leader_epoch": 1, "leader_id": 1, "start_offset": 0, "voter_ids": [1], "granting_voters": [1]},
            {"leader_epoch": 2, "leader_id": 1, "start_offset": 2, "leaderless_ms": 5},
        ],
        "voter_sets": [
            {
                "offset": -1,
                "source": "bootstrap",
                **voters,
                "in_force_from_offset": -1,
                "in_force_to_offset": 0,
            },
            {
                "offset": 0,
                "leader_epoch": 1,
                "source": "record",
                "commit_status": "committed",
                **voters,
                "in_force_from_offset": 0,
            },
            {"offset": 9, "leader_epoch": 1, "source": "describe", "commit_status": "undecided", **voters},
        ],
        "voter_changes": [{"offset": 0, "leader_epoch": 1, "kind": "added", "voter_id": 1}],
        "high_watermarks": [
            {"evidence": "snapshot", "as_of": at(1), "lower_bound": 2},
            {"evidence": "log_ends", "as_of": at(2), "upper_bound": 4},
        ],
    }
    owned = [t for t in TABLES if "cluster_id" in t.names]
    counted = {"cluster_id": cluster_id, "table": "epochs", "rows": 2, "expected": 2}
    return {
        **{t.name: [a_row(t, cluster_id=cluster_id, **v) for v in given.get(t.name, [{}])] for t in owned},
        "derived_rows": [counted],
    }


def changed(table: str, index: int = 0, **values: Any) -> Callable[[Rows], None]:
    """A fault: other values in one row."""

    def change(rows: Rows) -> None:
        assert set(values) <= set(rows[table][index])
        rows[table][index] |= values

    return change


def doubled(table: str) -> Callable[[Rows], None]:
    """A fault: a duplicate row."""

    def double(rows: Rows) -> None:
        rows[table].append(dict(rows[table][-1]))

    return double
