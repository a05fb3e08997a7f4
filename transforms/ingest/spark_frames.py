"""Spark's part of reading captured files: frames of files, of what a scan finds, and of decoded batches.

What tasks do with one file is in scanning, decoding and checkpoints, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
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
from transforms.ingest.pieces import PIECES, scan_to_pieces, scanned_rows
from transforms.ingest.scanning import SCANNED, of_files
from transforms.lake.arrow_rows import Row
from transforms.lake.spark_rows import spark_types
from transforms.lake.spark_tasks import map_in_arrow
from transforms.lake.table_files import FILES, Task

IDENTITY = ("cluster_id", "base_offset", "leader_epoch", "crc", "size_bytes")
BYTES_PER_TASK = 64 * 1024 * 1024
RANGES_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class ChosenBatches:
    """Batches for tasks to read: `rows_of` makes them of the rows of the frame."""

    frame: DataFrame
    rows_of: Task


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
    """Batches and damage of segments (rows of scanning.FILES) in pieces: rows of PIECES."""
    return map_in_arrow(files, scan_to_pieces, PIECES)


def scanned(pieces: DataFrame) -> DataFrame:
    """The rows of scanning.SCANNED in the pieces."""
    return map_in_arrow(pieces, scanned_rows, SCANNED)


def per_file(
    read: Callable[[Row], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow that reads each file of the rows in turn."""

    declared = spark_types(schema)

    def read_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (rows.cast(declared) for rows in of_files(batches, read))

    return read_files


def good_batches(pieces: DataFrame) -> DataFrame:
    """The batches whose checksum held: rows of scanning.SCANNED."""
    return scanned(pieces).where(F.col("reason").isNull())


def damages(pieces: DataFrame) -> DataFrame:
    """The bytes that could not be read: rows of scanning.SCANNED."""
    return scanned(pieces.where("is_damaged")).where(F.col("reason").isNotNull())


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
    chosen: ChosenBatches,
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
    # What is sent to tasks cannot hold a frame.
    decode, rows_of = decoder(sources, allowed), chosen.rows_of
    range_bytes = range_size(size_bytes, cores)
    ordered = (
        chosen.frame.withColumn("task", F.floor(F.col("address") / range_bytes).cast("int"))
        .repartitionById(ceil(size_bytes / range_bytes), "task")
        .sortWithinPartitions("address")
        .drop("task")
    )
    return map_in_arrow(ordered, write(lambda rows: decode(rows_of(rows))), FILES)
