"""Scan the files of an ingest: headers of batches, damage and checkpoints."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from transforms.ingest import checkpoints
from transforms.ingest.failing_files import check_range_counts
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.spark_frames import damages, file_ranges, files_frame, good_batches, scan_segments
from transforms.ingest.unchanged import check_scan
from transforms.lake.arrow_rows import Row
from transforms.lake.spark_rows import to_rows

DAMAGE = ("file_number", "position", "size_bytes", "sha256", "reason", "lost_from_offset", "lost_to_offset")


@dataclass(frozen=True, slots=True)
class Scan:
    """What the files hold. scanned: rows of scanning.SCANNED, persisted until `release`.

    ranges: rows of spark_frames.file_ranges. damage: rows with copy and file. checkpoints: rows of
    checkpoints.CHECKPOINTS with the columns of their files.
    """

    scanned: DataFrame
    ranges: list[Row]
    damage: list[Row]
    checkpoints: list[Row]

    @property
    def batches(self) -> DataFrame:
        """The batches whose checksum held."""
        return good_batches(self.scanned)

    def release(self) -> None:
        self.scanned.unpersist()


def scan_files(spark: SparkSession, files: IngestFiles) -> Scan:
    """Scan the segments and, at the same time, read the checkpoints.

    Raises CapturesChangedError, and FilesRefusedError for a log of too many epoch ranges.
    """
    scanned = scan_segments(files_frame(spark, files.opened)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        return _scan(spark, files, scanned)
    except BaseException:
        scanned.unpersist()
        raise


def _scan(spark: SparkSession, files: IngestFiles, scanned: DataFrame) -> Scan:
    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(_read_checkpoints, spark, files)
        found = _ranges(files, scanned) if files.opened else []
        checkpoint_rows = reading.result()
    ranges = [row for row in found if row["leader_epoch"] is not None]
    damage: list[Row] = []
    if len(ranges) < len(found):
        damage = to_rows(damages(scanned).select(*DAMAGE))
    check_scan(files, ranges, damage, checkpoint_rows)
    return Scan(scanned, ranges, files.located(damage), checkpoint_rows)


def _ranges(files: IngestFiles, scanned: DataFrame) -> list[Row]:
    found = file_ranges(scanned).toArrow()
    ranges = found.filter(found["leader_epoch"].is_valid())  # the rest is damage
    counts = ranges["file_number"].value_counts().to_pylist()
    check_range_counts(files, {count["values"]: count["counts"] for count in counts})
    return found.to_pylist()


def _read_checkpoints(spark: SparkSession, files: IngestFiles) -> list[Row]:
    if not files.checkpoints:
        return []
    rows = to_rows(checkpoints.read_checkpoints(files_frame(spark, files.checkpoints)))
    return [row | files.checkpoints[row["file_number"]].columns for row in rows]
