"""The rows that a validation covers: all of a lake, or the clusters and rows that certain runs wrote."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from transforms.lake import delta_rs
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.spark_rows import to_frame, to_rows
from transforms.lake.tables import BATCHES, HISTORIES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, TABLES, Table
from transforms.quality.derived_counts import counted_rows

# By table name.
Frames = Mapping[str, DataFrame]
# Besides the histories, too large for every run to read whole.
LARGE_TABLES = (BATCHES, RECORDS, SNAPSHOT_RECORDS)
# derived_counts.DerivedRows as rows.
DERIVED_ROWS = StructType(
    [StructField(name, StringType()) for name in ("cluster_id", "table")]
    + [StructField(name, LongType()) for name in ("rows", "expected")]
)
# Tables smaller than this are read by delta-rs, not by Spark.
SMALL_TABLE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Scope:
    """What is validated: clusters (None: all) and, of large tables, the rows of runs (None: all rows)."""

    clusters: Sequence[str] | None = None
    new_rows_of: Collection[str] | None = None


WHOLE_SCOPE = Scope()


def read_by_spark(lake: Lake) -> set[Table]:
    """The tables that are too large for delta-rs."""
    return {t for t in TABLES if delta_rs.size_bytes(lake.path, t) >= SMALL_TABLE_BYTES}


def lake_frames(lake: Lake, large: Collection[Table]) -> dict[str, DataFrame]:
    """Every table of the lake, and derived_rows: how many rows each derived table has of each cluster.

    large: see read_by_spark.
    """
    at_hand = {t for t in TABLES if t not in large and lake.exists(t)}
    frames = {t.name: lake.read_at_hand(t) if t in at_hand else lake.read(t) for t in TABLES}
    counted = map(asdict, counted_rows(lake.path))
    return frames | {"derived_rows": to_frame(lake.spark, counted, DERIVED_ROWS)}


def scoped(every: Frames, scope: Scope) -> dict[str, DataFrame]:
    """The tables limited to the scope, and new_... for the large ones.

    `scopes` has, by cluster, the offset scope_from where its new rows begin.
    """
    frames = dict(every)
    if scope.clusters is not None:
        limit = in_clusters(scope.clusters)
        frames = {name: f.where(limit) if "cluster_id" in f.columns else f for name, f in frames.items()}
    if scope.new_rows_of is not None:
        return frames | _rows_of_runs(frames, scope.new_rows_of)
    begin = F.lit(0).cast("bigint").alias("scope_from")
    scopes = frames["captures"].select("cluster_id", begin).distinct()
    new_rows = {f"new_{t.name}": frames[t.name].select("*", begin) for t in LARGE_TABLES}
    return frames | {"scopes": scopes, "new_snapshots": frames["snapshots"]} | new_rows


def _rows_of_runs(frames: Frames, run_ids: Collection[str]) -> dict[str, DataFrame]:
    """The rows of large tables that these runs wrote, and those at higher offsets of the same clusters.

    A record is written with its batch, so the batches show where the new records begin.
    """
    new = F.col("run_id").isin(sorted(run_ids))
    written = frames["batches"].where(new).select("cluster_id", "base_offset")
    begin = F.min("base_offset").alias("scope_from")
    first = written.union(_shown_since(frames["captures"], new)).groupBy("cluster_id").agg(begin)
    rows = to_rows(first)
    # As a literal too, so that files below it are skipped.
    lowest = min((row["scope_from"] for row in rows), default=0)
    since = F.broadcast(to_frame(first.sparkSession, rows, first.schema))
    new_snapshots = frames["snapshots"].where(new)
    fresh = F.broadcast(new_snapshots.select(*SNAPSHOTS.key))
    # The batch just below is included: the first new one must start at its end.
    batches = frames["batches"].where(F.col("last_offset") >= lowest - 1).join(since, "cluster_id")
    records = frames["records"].where(F.col("batch_base_offset") >= lowest).join(since, "cluster_id")
    snapshot_records = frames["snapshot_records"].join(fresh, list(SNAPSHOTS.key), "left_semi")
    return {
        "scopes": since,
        "new_batches": batches.where("last_offset >= scope_from - 1"),
        "new_records": records.where("batch_base_offset >= scope_from"),
        "new_snapshots": new_snapshots,
        "new_snapshot_records": snapshot_records,
        **{table.name: _versions_since(frames[table.name], since, lowest) for table in HISTORIES},
    }


def _shown_since(captures: DataFrame, new: Column) -> DataFrame:
    """Where new captures go on from what older ones show of an epoch of a replica.

    Such a place is known although the batches from there on were lost.
    """
    log = ("cluster_id", "node_id", "directory_id", "leader_epoch")
    runs = captures.select(*log[:3], new.alias("is_new"), F.explode("epoch_ranges").alias("run"))
    shown = (
        runs.groupBy(*log[:3], "run.leader_epoch", "run.first_offset")
        .agg(
            F.max(F.when(F.col("is_new"), F.col("run.end_offset"))).alias("new_end"),
            F.max(F.when(~F.col("is_new"), F.col("run.end_offset"))).alias("old_end"),
        )
        .withColumn("known_to", F.max("old_end").over(Window.partitionBy(*log).orderBy("first_offset")))
    )
    start = F.greatest("first_offset", "known_to")
    return shown.where(start < F.col("new_end")).select("cluster_id", start)


def _versions_since(history: DataFrame, since: DataFrame, lowest: int) -> DataFrame:
    """The versions that are valid from an offset of new records: only they can repeat a key."""
    begun = history.where(F.col("valid_from_offset") >= lowest).join(since, "cluster_id")
    return begun.where("valid_from_offset >= scope_from").select(history.columns)
