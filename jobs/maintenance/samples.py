"""Samples of running quorums that grow old: one an hour stays, in which a replica was furthest behind.

Every derivation of a cluster reads all its samples, and kraftlake follow takes one a minute.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from jobs.runtime.run_record import RunRecord
from kraft_core.format.capture import LIVE
from transforms.lake.delta_rs import among, arrow_with, greatest
from transforms.lake.lake import Lake
from transforms.lake.storage.location import Location
from transforms.lake.tables import OBSERVATIONS
from transforms.quality.derived_counts import begin_change

# So long all samples stay.
ALL_KEPT = timedelta(days=1)
COLUMNS = (
    "cluster_id",
    "observation_id",
    "source",
    "observed_from",
    "observed_to",
    "leader_epoch",
    "lag_records",
)
SAMPLE = ["cluster_id", "observed_from", "observed_to"]


def thin_samples(lake: Lake, record: RunRecord, now: datetime, oldest: datetime | None = None) -> int:
    """Remove samples of more than a day ago but one an hour and epoch, and those before `oldest`.

    The newest one of a cluster stays. What is derived of the clusters is another step. Returns how many were
    removed.
    """
    if not lake.exists(OBSERVATIONS):
        return 0
    gone = superfluous(lake.path, now - ALL_KEPT, oldest)
    if len(gone):
        with record.progress.stage("thin samples"):
            clusters = pc.unique(gone["cluster_id"]).to_pylist()
            begin_change(lake.writer, clusters, record.columns)
            outputs = pc.unique(gone["observation_id"]).to_pylist()
            lake.writer.remove_where(OBSERVATIONS, among({"cluster_id": clusters, "observation_id": outputs}))
    return len(gone.group_by(SAMPLE).aggregate([]))


def superfluous(lake: Location, before: datetime, oldest: datetime | None) -> pa.Table:
    """The outputs of the samples before a time that go: their clusters, ids and times."""
    found = arrow_with(lake, OBSERVATIONS, COLUMNS, where=ds.field("observed_to") < before)
    found = found.filter(pc.ends_with(found["source"], LIVE))
    if not len(found):
        return found
    samples = found.group_by(SAMPLE).aggregate([("leader_epoch", "max"), ("lag_records", "max")])
    ordered = samples.sort_by([("lag_records_max", "descending"), ("observed_to", "descending")])
    hour = pc.floor_temporal(ordered["observed_to"], unit="hour")
    hourly = ordered.append_column("hour", hour).group_by(
        ["cluster_id", "hour", "leader_epoch_max"], use_threads=False
    )
    times = SAMPLE[1:]
    kept = hourly.aggregate([(name, "first") for name in times])
    kept = kept.rename_columns({f"{name}_first": name for name in times}).select(SAMPLE)
    if oldest is not None:
        kept = kept.filter(pc.greater_equal(kept["observed_to"], oldest))
    newest = [
        (cluster, at) for (cluster,), (_, at) in greatest(lake, OBSERVATIONS, SAMPLE[:1], times[1]).items()
    ]
    last = pa.table(dict(zip(("cluster_id", times[1]), zip(*newest, strict=True), strict=True)))
    names = ["observation_id", *SAMPLE]
    return (
        found.select(names)
        .join(kept, SAMPLE, join_type="left anti")
        .join(last, ["cluster_id", times[1]], join_type="left anti")
    )
