"""Scan the files of an ingest: headers of batches, damage and checkpoints."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from transforms.ingest import checkpoints
from transforms.ingest.failing_files import check_range_counts
from transforms.ingest.file_ranges import RANGES, whole_ranges
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.pieces import deserialized
from transforms.ingest.spark_frames import damages, files_frame, scan_segments
from transforms.ingest.unchanged import check_scan
from transforms.lake.arrow_rows import Row
from transforms.lake.spark_rows import to_rows

DAMAGE = ("file_number", "position", "size_bytes", "sha256", "reason", "lost_from_offset", "lost_to_offset")


@dataclass(frozen=True, slots=True)
class Scan:
    """What the files hold. pieces: rows of pieces.PIECES, persisted until `release`.

    ranges: rows of file_ranges.RANGES. damage: rows with copy and file. checkpoints: rows of
    checkpoints.CHECKPOINTS with the columns of their files.
    """

    pieces: DataFrame
    ranges: list[Row]
    damage: list[Row]
    checkpoints: list[Row]

    def release(self) -> None:
        self.pieces.unpersist()


def scan_files(spark: SparkSession, files: IngestFiles) -> Scan:
    """Scan the segments and, at the same time, read the checkpoints.

    Raises CapturesChangedError, and FilesRefusedError for a log of too many epoch ranges.
    """
    pieces = scan_segments(files_frame(spark, files.opened)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return _scan(spark, files, pieces)
    except BaseException:
        pieces.unpersist()
        raise


def _scan(spark: SparkSession, files: IngestFiles, pieces: DataFrame) -> Scan:
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(_read_checkpoints, spark, files)
        ranges, is_damaged = _ranges(files, pieces) if files.opened else ([], False)
        checkpoint_rows = reading.result()
    damage = to_rows(damages(pieces).select(*DAMAGE)) if is_damaged else []
    check_scan(files, ranges, damage, checkpoint_rows)
    return Scan(pieces, ranges, files.located(damage), checkpoint_rows)


def _ranges(files: IngestFiles, pieces: DataFrame) -> tuple[list[Row], bool]:
    """The ranges of the files, and whether any of their bytes could not be read."""
    found = pieces.select("is_damaged", "ranges").where("is_damaged OR ranges IS NOT NULL").toArrow()
    ranges = whole_ranges(rows for c in found["ranges"].chunks for rows in deserialized(c, RANGES))
    check_range_counts(files, Counter(row["file_number"] for row in ranges))
    return ranges, any(found["is_damaged"].to_pylist())


def _read_checkpoints(spark: SparkSession, files: IngestFiles) -> list[Row]:
    if not files.checkpoints:
        return []
    rows = to_rows(checkpoints.read_checkpoints(files_frame(spark, files.checkpoints)))
    return [row | files.checkpoints[row["file_number"]].columns for row in rows]
