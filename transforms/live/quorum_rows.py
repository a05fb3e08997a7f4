"""Rows of format("kraft_quorum") as a stream: one for each replica, as the leader reports it."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from transforms.lake.arrow_rows import Row, moment
from transforms.live.quorum_asker import QuorumSample
from transforms.source.columns import declared_schema

# Column: its type, its meaning.
SAMPLES: dict[str, tuple[str, str]] = {
    "cluster_id": (
        "STRING",
        "Option clusterId, or the id that the node reported; null if it did not",
    ),
    "sampled_at": ("TIMESTAMP", "When the answer arrived, by the clock of Spark's driver"),
    "answered_by": ("STRING", "The address that answered; null if none did"),
    "leader_id": ("INT", "Node id of the leader, which reported all values"),
    "leader_epoch": ("INT", "Its epoch"),
    "high_watermark": ("BIGINT", "Its high watermark; null if not known yet"),
    "node_id": ("INT", "Node id of the replica"),
    "directory_id": ("STRING", "Its directory id; the zero uuid if the leader does not know it"),
    "is_voter": ("BOOLEAN", "Whether it is a voter; false: an observer"),
    "log_end_offset": ("BIGINT", "Its log end; null if it has not fetched from this leader"),
    "lag_records": ("BIGINT", "Records by which it is behind the leader's log"),
    "last_fetch_at": ("TIMESTAMP", "Time of its last fetch, by the leader's clock"),
    "last_caught_up_at": (
        "TIMESTAMP",
        "Time when it was last caught up with the leader, by the leader's clock",
    ),
    "listeners": ("ARRAY<STRUCT<name: STRING, host: STRING, port: INT>>", "Listeners of a voter"),
    "error": ("STRING", "Why the quorum did not answer; its other columns are then null"),
}


def samples_schema() -> StructType:
    return declared_schema(SAMPLES)


def sample_rows(sample: QuorumSample) -> list[dict[str, Any]]:
    """The rows of an answer as JSON values: times in ms since the epoch."""
    quorum = sample.quorum
    shared = {
        "cluster_id": sample.cluster_id,
        "sampled_at": sample.answered_at,
        "answered_by": str(sample.answered_by),
        "leader_id": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
    }
    rows: list[dict[str, Any]] = []
    for replica in quorum.replicas:
        listeners = quorum.endpoints.get(replica.node_id) if replica.is_voter else None
        rows.append(
            shared
            | {
                "node_id": replica.node_id,
                "directory_id": replica.directory_id,
                "is_voter": replica.is_voter,
                "log_end_offset": replica.log_end_offset,
                "lag_records": quorum.lag_of(replica),
                "last_fetch_at": replica.last_fetch_at,
                "last_caught_up_at": replica.last_caught_up_at,
                "listeners": None
                if listeners is None
                else [{"name": each.name, "host": each.host, "port": each.port} for each in listeners],
            }
        )
    return rows


def error_rows(cluster_id: str | None, at_ms: int, why: str) -> list[dict[str, Any]]:
    """The row of a quorum that did not answer."""
    return [{"cluster_id": cluster_id, "sampled_at": at_ms, "error": why}]


def spark_row(row: dict[str, Any]) -> Row:
    """A row of sample_rows or error_rows with its times as Spark has them."""
    times = {name: moment(row.get(name)) for name, (type_, _) in SAMPLES.items() if type_ == "TIMESTAMP"}
    return row | times
