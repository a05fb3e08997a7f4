"""Spark's part of reading captured files: frames of files, of what a scan finds, and of decoded batches.

What tasks do with one file is in scanning, decoding and checkpoints, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from math import ceil

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kraft_core.format.secrets import NONE_ALLOWED
from transforms.ingest import scanning
from transforms.ingest.captured_files import (
    FILES_PER_TASK,
    CapturedCheckpoint,
    CapturedSegment,
    addresses_of,
)
from transforms.ingest.decoding import (
    LEAST_RANGE_BYTES,
    RANGE_BYTES,
    SourceFile,
    decoder,
)
from transforms.ingest.scanning import SCANNED, scan_file, together
from transforms.lake.arrow_rows import Row
from transforms.lake.spark_rows import spark_types
from transforms.lake.spark_tasks import map_in_arrow
from transforms.lake.table_files import FILES, Task

IDENTITY = ("cluster_id", "base_offset", "leader_epoch", "crc", "size_bytes")
BYTES_PER_TASK = 64 * 1024 * 1024
RANGES_PER_CORE = 4


def files_frame(
    spark: SparkSession, files: Sequence[CapturedSegment] | Sequence[CapturedCheckpoint]
) -> DataFrame:
    """Rows of scanning.FILES, one partition a task, each with a like share of files and bytes.

    A file's number is its place in the sequence.
    """
    cores = spark.sparkContext.defaultParallelism
    addresses, size = addresses_of(files)
    tasks = max(1, min(len(files), max(len(files) // FILES_PER_TASK, size // BYTES_PER_TASK, cores)))
    by_size = sorted(range(len(files)), key=lambda n: files[n].size_bytes, reverse=True)
    rows = [
        {"file_number": n, "task": place % tasks, "address": addresses[n]} | files[n].row()
        for place, n in enumerate(by_size)
    ]
    table = pa.Table.from_pylist(rows, schema=scanning.FILES)
    return spark.createDataFrame(table).repartitionById(tasks, "task")


def scan_segments(files: DataFrame) -> DataFrame:
    """Batches and damage of segments (rows of scanning.FILES): SCANNED. An unreadable file is damage."""
    return map_in_arrow(files, per_file(scan_file, SCANNED), SCANNED)


def per_file(
    read: Callable[[Row], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow that reads each file of the rows in turn."""

    declared = spark_types(schema)

    def read_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = (file for batch in batches for file in batch.to_pylist())
        for rows in together(part for file in files for part in read(file)):
            yield rows.cast(declared)

    return read_files


def good_batches(scanned: DataFrame) -> DataFrame:
    """The batches whose checksum held."""
    return scanned.where(F.col("reason").isNull())


def damages(scanned: DataFrame) -> DataFrame:
    """The bytes that could not be read."""
    return scanned.where(F.col("reason").isNotNull())


def file_ranges(scanned: DataFrame) -> DataFrame:
    """Rows of scanning.SCANNED to one row a file and range: file_number, run_index, fields of FileEpochRange.

    All damage of a file is one row without an epoch. The digest is the XOR of one hash a batch, so that
    ranges can be joined without their batches.
    """
    end = F.col("last_offset") + 1
    data = ~F.col("is_control")
    identity = F.xxhash64("base_offset", "leader_epoch", "crc", "size_bytes")
    return scanned.groupBy("file_number", "run_index", "leader_epoch").agg(
        F.min("base_offset").alias("first_offset"),
        F.max(end).alias("end_offset"),
        F.bit_xor(identity).alias("digest"),
        F.min_by("appended_at", "base_offset").alias("first_appended_at"),
        F.max("appended_at").alias("last_appended_at"),
        F.min_by(end, "base_offset").alias("first_batch_end_offset"),
        F.min_by(F.when(data, end), F.when(data, F.col("base_offset"))).alias("first_data_end_offset"),
        F.min_by(F.when(data, F.col("appended_at")), F.when(data, F.col("base_offset"))).alias(
            "first_data_appended_at"
        ),
        F.count("*").alias("batches"),
        F.sum("size_bytes").alias("size_bytes"),
        F.min_by("crc", "base_offset").alias("first_batch_crc"),
        F.min_by(identity, "base_offset").alias("first_batch"),
        F.max_by(identity, "base_offset").alias("last_batch"),
    )


def one_copy(batches: DataFrame) -> DataFrame:
    """The address of one copy of each distinct batch.

    Copies are equal byte for byte, so the choice makes no difference to the tables; the first file is chosen,
    so that long sections of few files are read.
    """
    return batches.groupBy(*IDENTITY).agg(F.min("address").alias("address"))


def range_size(size_bytes: int, cores: int) -> int:
    """The bytes of a task of decode_batches: as many like ones on each core, so that all end together."""
    share = size_bytes // (RANGES_PER_CORE * cores)
    tasks = max(1, ceil(size_bytes / max(LEAST_RANGE_BYTES, min(RANGE_BYTES, share))))
    rounds = ceil(tasks / cores)
    return max(1, ceil(size_bytes / (tasks if rounds == 1 else rounds * cores)))


def decode_batches(
    chosen: DataFrame,
    sources: Sequence[SourceFile],
    size_bytes: int,
    cores: int,
    write: Callable[[Task], Task],
    allowed: Set[str] = NONE_ALLOWED,
) -> DataFrame:
    """Decode the chosen batches and write their records; `write` makes rows of FILES from rows of DECODED.

    sources: in the order of their addresses, which end at size_bytes. A task is a range of addresses, which
    splits large files where batches end and packs small ones. allowed: as in secrets.is_secret_config.
    """
    range_bytes = range_size(size_bytes, cores)
    task = F.floor(F.col("address") / range_bytes).cast("int")
    ordered = (
        chosen.select("address", "size_bytes", task.alias("task"))
        .repartitionById(ceil(size_bytes / range_bytes), "task")
        .sortWithinPartitions("address")
    )
    return map_in_arrow(ordered.select("address", "size_bytes"), write(decoder(sources, allowed)), FILES)
