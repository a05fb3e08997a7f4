"""What the leaders of a quorum answered to kraftlake follow, as a lake keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from kraft_core.format.capture import is_live
from kraft_core.kafka_tools.quorum import LeaderAnswer, ReplicaAnswer
from transforms.lake.arrow_rows import milliseconds
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import exists
from transforms.lake.tables import OBSERVATIONS

Row = dict[str, Any]
_OF_STATUS = ("source", "observed_to", "leader_epoch", "high_watermark", "voters", "observers")
_OF_REPLICA = (
    *("source", "status", "node_id", "directory_id", "log_end_offset", "lag_records"),
    *("last_fetch_at", "last_caught_up_at"),
)


def newest_answer(
    lake: Location,
    cluster_id: str,
    leader_epoch: int,
    high_watermark: int | None = None,
    voter_ids: Collection[int] | None = None,
) -> LeaderAnswer | None:
    """The newest answer of the leader of an epoch, with that high watermark (exclusive) and those voters, if
    they are given: it counts by the voters that it has appended, committed or not.
    """
    if not exists(lake, OBSERVATIONS):
        return None
    asked: dict[str, Any] = {"cluster_id": [cluster_id], "kind": ["status"], "leader_epoch": [leader_epoch]}
    if high_watermark is not None:
        asked["high_watermark"] = [high_watermark]
    found = [
        row
        for row in rows_with(lake, OBSERVATIONS, _OF_STATUS, **asked)
        if is_live(row["source"]) and row["high_watermark"] is not None
        if voter_ids is None or {each["node_id"] for each in row["voters"] or ()} == set(voter_ids)
    ]
    newest = max(found, key=lambda row: row["observed_to"], default=None)
    if newest is None:
        return None
    asked = {"cluster_id": [cluster_id], "kind": ["replication"], "observed_to": [newest["observed_to"]]}
    replicas = rows_with(lake, OBSERVATIONS, _OF_REPLICA, **asked)
    return _answer(newest, (row for row in replicas if is_live(row["source"])))


def _answer(status: Row, replicas: Iterable[Row]) -> LeaderAnswer:
    return LeaderAnswer(
        at=milliseconds(status["observed_to"]) or 0,
        high_watermark=status["high_watermark"],
        observers=tuple((each["node_id"], each["directory_id"]) for each in status["observers"] or ()),
        replicas=tuple(
            ReplicaAnswer(
                node_id=row["node_id"],
                directory_id=row["directory_id"],
                is_observer=row["status"] == "Observer",
                log_end_offset=row["log_end_offset"],
                lag=row["lag_records"],
                last_fetch_at=milliseconds(row["last_fetch_at"]),
                last_caught_up_at=milliseconds(row["last_caught_up_at"]),
            )
            for row in replicas
        ),
    )
