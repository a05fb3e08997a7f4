"""Which of the scanned batches the lake lacks: those to record of a replica, and those to decode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraft_core.format.record import BATCH_REASONS, OF_NEWER_KAFKA
from transforms.ingest.checkpoints import IS_LOST
from transforms.ingest.epoch_ranges import of_distinct_files, overlap
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.pieces import owned_batches, places
from transforms.ingest.spark_frames import ChosenBatches, good_batches, one_copy
from transforms.lake import delta_rs
from transforms.lake.arrow_rows import Row
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.tables import BATCHES, LOADED, RECORDS, Table

BATCH = ("cluster_id", "base_offset", "leader_epoch", "crc")
# The columns of RECORDS that are those of BATCH.
OF_RECORDS: dict[str, str] = {
    "cluster_id": "cluster_id",
    "batch_base_offset": "base_offset",
    "leader_epoch": "leader_epoch",
    "batch_crc": "crc",
}
# Rows whose keys the driver holds: some 20 MB.
MOST_AT_HAND = 100_000
KRAFT_VERSION = ("cluster_id", "offset", "leader_epoch", "kraft_version")
OF_KRAFT_VERSION = ("kraft_version", "kraft_version")
OWNER = pa.schema(
    [
        ("file_number", pa.int32()),
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory_id", pa.string()),
    ]
)


def batches_to_record(
    lake: Lake, pieces: DataFrame, ranges: Sequence[Row], files: IngestFiles
) -> ChosenBatches:
    """Rows of BATCHES (but LOADED) that their replicas had not shown before.

    pieces: of what was scanned. ranges: rows of file_ranges.RANGES.
    """
    key = list(BATCHES.key)
    known = _known_from(lake, BATCHES, "base_offset", _first_offset(ranges), files, key)
    has_copies = overlap(ranges, files.replica_of)
    if known is None and not has_copies:
        owners = _owners(files).drop_columns(["file_number"])
        return ChosenBatches(pieces.select("rows"), partial(owned_batches, owners=owners))
    run_columns = {column.name for column in LOADED}
    fresh = _with_owners(lake, good_batches(pieces), files).select(
        [n for n in BATCHES.names if n not in run_columns]
    )
    if has_copies:
        fresh = fresh.dropDuplicates(key)
    return ChosenBatches(fresh if known is None else fresh.join(known, key, "left_anti"), iter)


def batches_to_decode(
    lake: Lake, pieces: DataFrame, ranges: Sequence[Row], files: IngestFiles
) -> ChosenBatches:
    """One copy of each batch that no replica of the cluster had shown before: (address, size_bytes).

    Parameters as in batches_to_record. The frame has `address`, of the first batch of a row.
    """
    distinct = of_distinct_files(ranges, files.cluster_of)
    numbers = {row["file_number"] for row in distinct} if len(distinct) < len(ranges) else None
    known = _known_from(lake, RECORDS, "offset", _first_offset(ranges), files, list(OF_RECORDS))
    has_copies = overlap(distinct, files.cluster_of)
    if known is None and not has_copies:
        return ChosenBatches(pieces.select("address", "places"), partial(places, numbers=numbers))
    chosen = good_batches(pieces)
    if numbers is not None:
        chosen = chosen.where(F.col("file_number").isin(sorted(numbers)))
    chosen = one_copy(_with_owners(lake, chosen, files))
    if known is not None:
        chosen = chosen.join(known.withColumnsRenamed(OF_RECORDS), list(BATCH), "left_anti")
    return ChosenBatches(chosen.select("address", "size_bytes"), iter)


def lost_values(lake: Lake, pieces: DataFrame, files: IngestFiles) -> DataFrame:
    """Values of records that could not be decoded, as damage of every scanned file that holds their batch."""
    lost = F.col("unread_reason").isNotNull() & ~F.col("unread_reason").isin(*OF_NEWER_KAFKA)
    of_clusters = lake.read(RECORDS).where(in_clusters(files.clusters))
    unread = of_clusters.where(lost).withColumnsRenamed(OF_RECORDS)
    held = _with_owners(lake, good_batches(pieces), files).select(
        *BATCH, "file_number", "position", "last_offset"
    )
    # Of a batch whose records cannot be separated all are lost from there on; there may be none.
    is_rest = F.col("unread_reason").isin(sorted(BATCH_REASONS))
    end = F.when(is_rest, F.col("last_offset") + 1).otherwise(F.col("offset") + 1)
    some_lost = F.col("offset") < end
    return unread.join(held, list(BATCH)).select(
        "file_number",
        (F.col("position") + F.col("unread_position")).alias("position"),
        F.col("unread_size_bytes").alias("size_bytes"),
        F.col("value_sha256").alias("sha256"),
        F.col("unread_reason").alias("reason"),
        F.when(some_lost, F.col("offset")).alias("lost_from_offset"),
        F.when(some_lost, end).alias("lost_to_offset"),
    )


def has_lost_values(lake: Lake, files: IngestFiles) -> bool:
    """Whether any value of the clusters could not be decoded."""
    return delta_rs.count_rows(lake.path, RECORDS, where=IS_LOST, cluster_id=files.clusters) > 0


def kraft_versions(lake: Lake, files: IngestFiles) -> dict[str, list[Row]]:
    """The KRaftVersion records of each cluster, as few as upgrades."""
    found: dict[str, list[Row]] = {}
    rows = delta_rs.rows_with_value(lake.path, RECORDS, KRAFT_VERSION, OF_KRAFT_VERSION, files.clusters)
    for row in rows:
        found.setdefault(row["cluster_id"], []).append(row | row["kraft_version"])
    return found


def _with_owners(lake: Lake, batches: DataFrame, files: IngestFiles) -> DataFrame:
    """The batches with the cluster and the replica that they belong to."""
    owners = lake.spark.createDataFrame(pa.Table.from_batches([_owners(files)]))
    return batches.join(F.broadcast(owners), "file_number")


def _owners(files: IngestFiles) -> pa.RecordBatch:
    """Rows of OWNER, in the order of the files' numbers."""
    replicas = [segment.capture.who for segment in files.opened]
    owners = [(n, r.cluster_id, r.node_id, r.directory_id) for n, r in enumerate(replicas)]
    rows = [dict(zip(OWNER.names, owner, strict=True)) for owner in owners]
    return pa.RecordBatch.from_pylist(rows, schema=OWNER)


def _known_from(
    lake: Lake, table: Table, offset: str, start: int, files: IngestFiles, key: Sequence[str]
) -> DataFrame | None:
    """The keys of what a table holds of the clusters from an offset on; None if it holds nothing there.

    Logs that just grew have nothing there, and nightly captures little. Few keys are read without Spark,
    which needs a second to plan the query, and shuffle neither side of a join.
    """
    later, clusters = ds.field(offset) >= start, files.clusters
    held = delta_rs.count_rows(lake.path, table, where=later, cluster_id=clusters)
    if held == 0:
        return None
    if held > MOST_AT_HAND:
        known = lake.read(table).where(in_clusters(clusters)).where(F.col(offset) >= start)
        return known.select(*key)
    rows = delta_rs.arrow_with(lake.path, table, key, later, cluster_id=clusters)
    return F.broadcast(lake.spark.createDataFrame(rows.group_by(key).aggregate([])))


def _first_offset(ranges: Sequence[Row]) -> int:
    return min(row["first_offset"] for row in ranges)
