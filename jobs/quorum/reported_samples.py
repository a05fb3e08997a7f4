"""What the leader of each quorum last reported to kraftlake follow: the newest answer to DescribeQuorum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow.compute as pc

from jobs.quorum.sample import Sample
from kraft_core.format.capture import LIVE, is_live
from transforms.lake.delta_rs import arrow_with, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import exists
from transforms.lake.tables import OBSERVATIONS

Row = dict[str, Any]
COLUMNS = (
    "cluster_id",
    "source",
    "kind",
    "observed_to",
    "node_id",
    "directory_id",
    "status",
    "leader_epoch",
    "high_watermark",
    "log_end_offset",
    "lag_records",
    "last_caught_up_at",
    "voters",
    "observers",
)


def reported_samples(lake: Location) -> Iterator[Sample]:
    """The samples of every cluster that was followed."""
    if not exists(lake, OBSERVATIONS):
        return
    times = arrow_with(lake, OBSERVATIONS, ["cluster_id", "observed_to", "source"])
    followed = times.filter(pc.ends_with(times["source"], LIVE))
    newest = followed.group_by("cluster_id").aggregate([("observed_to", "max")]).to_pylist()
    last = {row["cluster_id"]: row["observed_to_max"] for row in newest}
    by_cluster: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows_with(lake, OBSERVATIONS, COLUMNS, cluster_id=last, observed_to=set(last.values())):
        if row["observed_to"] == last[row["cluster_id"]] and is_live(row["source"]):
            by_cluster[row["cluster_id"]].append(row)
    for cluster_id, rows in sorted(by_cluster.items()):
        yield from samples_of(cluster_id, rows)


def samples_of(cluster_id: str, rows: Iterable[Row]) -> Iterator[Sample]:
    """The samples of one answer: the leader's rows of both describe outputs."""
    of_cluster = {"cluster_id": cluster_id}
    for row in rows:
        if row["kind"] == "replication":
            yield from _of_replica(row, of_cluster)
            continue
        yield Sample("kraftlake_reported_timestamp_seconds", row["observed_to"].timestamp(), of_cluster)
        yield Sample("kraftlake_reported_leader", row["node_id"], of_cluster)
        yield Sample("kraftlake_reported_leader_epoch", row["leader_epoch"], of_cluster)
        if row["high_watermark"] is not None:
            yield Sample("kraftlake_reported_high_watermark", row["high_watermark"], of_cluster)
        yield Sample("kraftlake_reported_number_of_voters", len(row["voters"]), of_cluster)
        yield Sample("kraftlake_reported_number_of_observers", len(row["observers"]), of_cluster)


def _of_replica(row: Row, of_cluster: dict[str, str]) -> Iterator[Sample]:
    labels = {**of_cluster, "node_id": str(row["node_id"]), "directory_id": row["directory_id"]}
    values = {
        "kraftlake_reported_log_end_offset": row["log_end_offset"],
        "kraftlake_reported_lag_records": row["lag_records"],
        "kraftlake_reported_is_observer": int(row["status"] == "Observer"),
    }
    if row["last_caught_up_at"] is not None:
        values["kraftlake_reported_last_caught_up_timestamp_seconds"] = row["last_caught_up_at"].timestamp()
    for name, value in values.items():
        if value is not None:
            yield Sample(name, value, labels)
