"""The samples that kraftlake follow took of a running quorum: lag by replica and commit rate over time.

A sample is an answer to DescribeQuorum. With more samples than MOST_BINS, those of a bin of time are one row.
Times in ms since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dashboards.report.lanes import LaneReplica
from dashboards.report.queries import LakeTables, Row, Rows
from kraft_core.format.capture import LIVE
from transforms.lake.storage.location import Location
from transforms.lake.tables import OBSERVATIONS

MOST_BINS = 120
COLUMNS = (
    "observed_to",
    "kind",
    "node_id",
    "directory_id",
    "status",
    "high_watermark",
    "lag_records",
    "source",
)
OBSERVER = "Observer"


@dataclass(frozen=True, slots=True)
class Lag:
    """A replica was `most` records behind its leader, in one of the samples of [start, end]."""

    start: int
    end: int
    most: int


@dataclass(frozen=True, slots=True)
class Rate:
    """From `start` to `end`, the times of two samples, the high watermark rose by `records` to `reached`."""

    start: int
    end: int
    records: int
    reached: int

    @property
    def a_second(self) -> float:
        return self.records * 1000 / (self.end - self.start)


@dataclass(frozen=True, slots=True)
class SampledReplica:
    """A replica by its samples. status: by the newest: Leader, Follower or Observer; `now`: its lag then."""

    replica: LaneReplica
    status: str
    samples: int
    now: int | None
    lags: tuple[Lag, ...]

    @property
    def worst(self) -> Lag | None:
        return max(self.lags, key=lambda lag: lag.most, default=None)


@dataclass(frozen=True, slots=True)
class Samples:
    """times: of the first sample of each bin, and of the newest one. Voters first, then observers."""

    times: tuple[int, ...]
    replicas: tuple[SampledReplica, ...]
    rates: tuple[Rate, ...]


def ask_samples(lake: Location, clusters: Sequence[str]) -> dict[str, dict[str, Rows]]:
    """By cluster the rows of kinds sampled_lags and sampled_watermarks, one a bin."""
    found = LakeTables(lake, clusters).columns(OBSERVATIONS, *COLUMNS) if clusters else None
    if found is None:
        return {cluster: {} for cluster in clusters}
    found = found.filter(pc.ends_with(found["source"], LIVE))
    at = found["observed_to"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
    timed = found.drop_columns(["observed_to", "source"]).append_column("at", at)
    return {cluster: binned(timed.filter(pc.equal(timed["cluster_id"], cluster))) for cluster in clusters}


def binned(rows: pa.Table) -> dict[str, Rows]:
    """The rows of one cluster's samples by bin: the worst lag of each replica, and the high watermark."""
    if not len(rows):
        return {}
    times = rows["at"].to_numpy()
    moments = np.unique(times)
    if len(moments) > MOST_BINS:
        bins = (times - moments[0]) * MOST_BINS // (moments[-1] - moments[0] + 1)
    else:
        bins = np.searchsorted(moments, times)
    ordered = rows.append_column("bin", pa.array(bins)).sort_by("at")
    lags = ordered.filter(pc.equal(ordered["kind"], "replication"))
    watermarks = ordered.filter(pc.is_valid(ordered["high_watermark"]))
    replica = ["bin", "node_id", "directory_id"]
    wanted = [("at", "min"), ("at", "max"), ("at", "count"), ("lag_records", "max"), ("lag_records", "last")]
    by_replica = lags.group_by(replica, use_threads=False).aggregate([*wanted, ("status", "last")])
    by_bin = watermarks.group_by(["bin"], use_threads=False).aggregate(
        [("at", "min"), ("at", "max"), ("high_watermark", "max")]
    )
    return {"sampled_lags": by_replica.to_pylist(), "sampled_watermarks": by_bin.to_pylist()}


def samples_of(lags: Iterable[Row], watermarks: Iterable[Row]) -> Samples | None:
    """The samples by the rows of binned(); None without any."""
    by_replica: dict[LaneReplica, list[Row]] = {}
    times: dict[int, int] = {}
    newest = 0
    for row in sorted(lags, key=lambda row: row["at_min"]):
        by_replica.setdefault(LaneReplica(row["node_id"], row["directory_id"]), []).append(row)
        times[row["bin"]] = min(row["at_min"], times.get(row["bin"], row["at_min"]))
        newest = max(newest, row["at_max"])
    if not by_replica:
        return None
    replicas = [_sampled(replica, rows) for replica, rows in by_replica.items()]
    replicas.sort(key=lambda each: (each.status == OBSERVER, each.replica))
    return Samples(tuple(sorted({*times.values(), newest})), tuple(replicas), tuple(_rates(watermarks)))


def _sampled(replica: LaneReplica, rows: Sequence[Row]) -> SampledReplica:
    last = rows[-1]
    lags = [
        Lag(row["at_min"], row["at_max"], row["lag_records_max"])
        for row in rows
        if row["lag_records_max"] is not None
    ]
    samples = sum(row["at_count"] for row in rows)
    return SampledReplica(replica, last["status_last"], samples, last["lag_records_last"], tuple(lags))


def _rates(watermarks: Iterable[Row]) -> Iterable[Rate]:
    """Between the newest samples of two bins. What a new leader names at first may be less (KIP-595)."""
    reached: list[tuple[int, int]] = []
    for row in sorted(watermarks, key=lambda row: row["at_max"]):
        before = reached[-1][1] if reached else 0
        reached.append((row["at_max"], max(before, row["high_watermark_max"])))
    for (start, before), (end, after) in pairwise(reached):
        if end > start:
            yield Rate(start, end, after - before, after)
