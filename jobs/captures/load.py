"""Append what a scan found new to the big tables: batches, records, checkpoints and their records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from jobs.captures.scan import Scan
from transforms.ingest.captured_files import sources_of
from transforms.ingest.checkpoints import SNAPSHOT_KEY, decode_checkpoints, snapshot_key, unknown_checkpoints
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.new_batches import batches_to_decode, batches_to_record
from transforms.ingest.spark_frames import decode_batches
from transforms.lake.arrow_rows import Row
from transforms.lake.lake import Lake
from transforms.lake.spark_rows import to_frame
from transforms.lake.spark_tasks import map_in_arrow
from transforms.lake.storage import shown_configs
from transforms.lake.table_files import FILES
from transforms.lake.tables import BATCHES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, Table


def load(
    lake: Lake, files: IngestFiles, scan: Scan, run_columns: Row, check: Callable[[], None]
) -> dict[str, int]:
    """Append what the lake lacks. Returns the rows written by table.

    run_columns: values of the columns LOADED. check: called when the files have been read, before anything is
    committed; it raises if they are not what was planned.
    """
    return _Load(lake, files, scan, run_columns).run(check)


@dataclass(frozen=True, slots=True)
class _Written:
    """Files of a table that tasks have written, to be committed."""

    table: Table
    files: Sequence[Row] = ()


class _Load:
    def __init__(self, lake: Lake, files: IngestFiles, scan: Scan, run_columns: Row) -> None:
        self._lake = lake
        self._files = files
        self._scan = scan
        self._run_columns = run_columns
        self._snapshots = unknown_checkpoints(lake.path, SNAPSHOTS, scan.checkpoints)
        self._id = _load_id(files, scan.ranges, self._snapshots)
        self._allowed = shown_configs(lake.path)
        self._cores = lake.spark.sparkContext.defaultParallelism

    def run(self, check: Callable[[], None]) -> dict[str, int]:
        """Write each table from a thread, then commit."""
        writes: list[Callable[[], _Written]] = []
        if self._scan.ranges:
            writes += [self._records, self._batches]
        if self._snapshots:
            writes.append(self._snapshot_records)
        with ThreadPoolExecutor(3) as threads:
            written = list(threads.map(lambda write: write(), writes))
        check()
        counts = {t.name: 0 for t in (RECORDS, BATCHES, SNAPSHOT_RECORDS, SNAPSHOTS)}
        for each in written:
            counts[each.table.name] = self._lake.append_files(each.table, each.files, self._id)
        if self._snapshots:
            # After their records: a checkpoint whose row is there is not read again.
            rows = [row | self._run_columns for row in self._snapshots]
            self._lake.put(SNAPSHOTS, rows, by="content_digest")
            counts[SNAPSHOTS.name] = len(rows)
        return counts

    def _records(self) -> _Written:
        chosen = batches_to_decode(self._lake, self._scan.pieces, self._scan.ranges, self._files)
        write = self._lake.task_writer(RECORDS, self._run_columns)
        return self._written(
            RECORDS,
            decode_batches(chosen, *sources_of(self._files.opened), self._cores, write, self._allowed),
        )

    def _batches(self) -> _Written:
        fresh = batches_to_record(self._lake, self._scan.pieces, self._scan.ranges, self._files)
        write = self._lake.task_writer(BATCHES, self._run_columns)
        return self._written(BATCHES, map_in_arrow(fresh.frame, write(fresh.rows_of), FILES))

    def _snapshot_records(self) -> _Written:
        # A load that was killed before it wrote SNAPSHOTS has left some.
        unread = unknown_checkpoints(self._lake.path, SNAPSHOT_RECORDS, self._snapshots)
        if not unread:
            return _Written(SNAPSHOT_RECORDS)
        key = [f for f in SNAPSHOTS.schema.fields if f.name in SNAPSHOT_KEY]
        rows = to_frame(self._lake.spark, unread, StructType([*key, StructField("path", StringType())]))
        tasks = rows.repartition(min(self._cores, len(unread)), "path")
        write = self._lake.task_writer(SNAPSHOT_RECORDS, self._run_columns)
        return self._written(SNAPSHOT_RECORDS, decode_checkpoints(tasks, write, self._allowed))

    def _written(self, table: Table, files: DataFrame) -> _Written:
        return _Written(table, self._lake.written_files(table, files, self._id))


def _load_id(files: IngestFiles, ranges: Sequence[Row], snapshots: Sequence[Row]) -> str:
    """A digest of what was read: the same captures read again with more in them are another load."""
    of_log = [
        (
            files.cluster_of(r["file_number"]),
            files.opened[r["file_number"]].capture.capture_id,
            r["first_offset"],
            r["end_offset"],
            r["digest"],
        )
        for r in ranges
    ]
    return hashlib.sha256(repr((sorted(of_log), sorted(map(snapshot_key, snapshots)))).encode()).hexdigest()
