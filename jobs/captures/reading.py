"""One pass over the files of captures: their batches, records and checkpoints into the append-only tables."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from jobs.captures.captured import captured_rows, segment_rows
from jobs.captures.input_files import (
    CopiedCheckpoint,
    CopiedSegment,
    checkpoints_of,
    files_table,
    segments_of,
    sources_of,
)
from jobs.captures.known_files import known_checkpoints, with_known
from jobs.captures.planning import PlannedCapture
from jobs.runtime.progress import Progress
from kraft_core.format.capture import Identity
from transforms.ingest import checkpoints, decoding, scanning
from transforms.ingest.epoch_ranges import FileEpochRange, of_distinct_files, overlap, run_pieces
from transforms.lake import delta_rs
from transforms.lake.arrow_rows import arrow_schema, to_frame, to_rows
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.table_files import FILES, Task, writing
from transforms.lake.tables import BATCHES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, Table

Row = dict[str, Any]
# A value of a newer Kafka is kept by name and digest; every other value that could not be decoded is lost.
NAMED_UNKNOWN = ("unknown_type", "unknown_version", "unknown_frame", "unknown_control_type")
DAMAGE = ("position", "size_bytes", "sha256", "reason", "lost_from_offset", "lost_to_offset")
BATCH = ("cluster_id", "base_offset", "leader_epoch", "crc")
VERSION = ("cluster_id", "offset", "leader_epoch", "kraft_version")
# Conditions on records for which the row groups' statistics are enough to leave out nearly all of them.
HAS_VERSION = ds.field("kraft_version", "kraft_version").is_valid()
LOST = ds.field("unread_reason").is_valid() & ~ds.field("unread_reason").isin(NAMED_UNKNOWN)
OWNER = pa.schema(
    [
        ("file_number", pa.int32()),
        ("cluster_id", pa.string()),
        ("node_id", pa.int32()),
        ("directory_id", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class WritingRun:
    """The run that writes: its id and when it began go into the rows it writes."""

    run_id: str
    started_at: datetime

    @property
    def columns(self) -> Row:
        return {"run_id": self.run_id, "loaded_at": self.started_at}


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading found: rows of captures and segments, and counts of what it wrote."""

    captures: list[Row]
    segments: list[Row]
    counts: dict[str, int]


class Reading:
    """Reads `copies` of captures into the lake; equal batches and checkpoints are decoded once.

    What the lake knows of their files is not read again, unless asked to `verify` it.
    """

    def __init__(
        self,
        lake: Lake,
        run: WritingRun,
        progress: Progress,
        copies: Sequence[PlannedCapture],
        verify: bool = False,
    ) -> None:
        self.lake = lake
        self.run = run
        self.progress = progress
        self.copies = copies
        self.clusters = {c.who.cluster_id for c in copies}
        segments, checkpoints = segments_of(copies), checkpoints_of(copies)
        known = {} if verify else known_checkpoints(lake.path, checkpoints)
        self.segments = segments if verify else with_known(lake.path, segments)
        self.known_checkpoints = [checkpoints[n].columns | row for n, row in known.items()]
        # What is opened; the places are the file numbers.
        self.opened = [s for s in self.segments if s.size_bytes]
        self.checkpoints = [c for n, c in enumerate(checkpoints) if n not in known]

    @property
    def files(self) -> list[Path]:
        """The files that will be opened."""
        return [f.path for f in (*self.opened, *self.checkpoints)]

    def read(self) -> Read:
        """Scan the files, write the big tables, and say what each capture held."""
        files = [*self.opened, *self.checkpoints]
        size = sum(f.size_bytes for f in files)
        with self.progress.stage("scan", f"{len(files):,} files, {size:,} bytes"):
            scanned = scanning.scan_segments(self.frame(self.opened)).persist(StorageLevel.MEMORY_AND_DISK)
            good = scanning.good_batches(scanned)
            with ThreadPoolExecutor(1) as thread:
                reading = thread.submit(self.read_checkpoints)
                found = to_rows(run_pieces(scanned)) if self.opened else []
                held = reading.result()
            pieces = [row for row in found if row["leader_epoch"] is not None]
            damage = self.damage_rows(scanning.damages(scanned)) if len(pieces) < len(found) else []
        with self.progress.stage("write records"):
            counts = self.write(good, pieces, held)
            versions, lost = self.versions_and_losses()
            if lost and pieces:
                damage += self.damage_rows(self.lost_values(good))
        scanned.unpersist()
        runs = self.runs(pieces)
        held += self.known_checkpoints
        captures = captured_rows(self.copies, runs, held, damage, versions)
        segments = segment_rows(runs, {(d["copy"], d["file"]) for d in damage})
        counts |= {"files": len(files), "bytes": size}
        return Read(self.stamped(captures), self.stamped(segments), counts)

    def frame(self, files: Sequence[CopiedSegment] | Sequence[CopiedCheckpoint]) -> DataFrame:
        """Files as rows of scanning.FILES, one partition a task."""
        table, tasks = files_table(files, self.cores)
        return self.lake.spark.createDataFrame(table).repartitionById(tasks, "task")

    @property
    def cores(self) -> int:
        return self.lake.spark.sparkContext.defaultParallelism

    def damage_rows(self, damages: DataFrame) -> list[Row]:
        """Damage by file number as rows with the copy and the file's name."""
        rows = []
        for row in to_rows(damages.select("file_number", *DAMAGE)):
            segment = self.opened[row.pop("file_number")]
            rows.append({"copy": segment.copy, "file": segment.name} | row)
        return rows

    def read_checkpoints(self) -> list[Row]:
        """What each opened checkpoint is: rows of checkpoints.CHECKPOINTS with whose they are."""
        if not self.checkpoints:
            return []
        read = to_rows(checkpoints.read_checkpoints(self.frame(self.checkpoints)))
        return [row | self.checkpoints[row["file_number"]].columns for row in read]

    def runs(self, pieces: list[Row]) -> list[tuple[CopiedSegment, list[FileEpochRange]]]:
        """Every segment with its stretches in their order, those that were known and those read now."""
        fresh: dict[int, list[FileEpochRange]] = {}
        for row in sorted(pieces, key=itemgetter("run_index")):
            piece = FileEpochRange(**{name: row[name] for name in FileEpochRange.__slots__})
            fresh.setdefault(row["file_number"], []).append(piece)
        numbers = {id(segment): number for number, segment in enumerate(self.opened)}
        return [(s, [*s.known.pieces, *fresh.get(numbers.get(id(s), -1), [])]) for s in self.segments]

    def stamped(self, rows: list[Row]) -> list[Row]:
        return [row | self.run.columns for row in rows]

    # --- big tables ---

    def write(self, good: DataFrame, pieces: list[Row], held: list[Row]) -> dict[str, int]:
        """Append what is new to the big tables, each from a thread. Returns the rows written by table."""
        fresh = self.new_checkpoints(held)
        load_id = self.load_id(pieces, fresh)
        writes: list[Callable[[], dict[str, int]]] = []
        if pieces:
            writes.append(lambda: self.append_files(RECORDS, self.new_records(good, pieces), load_id))
            writes.append(lambda: self.append_files(BATCHES, self.new_batches(good, pieces), load_id))
        if fresh:
            writes.append(lambda: self.write_snapshots(fresh, load_id))
        written = {t.name: 0 for t in (RECORDS, BATCHES, SNAPSHOT_RECORDS, SNAPSHOTS)}
        with ThreadPoolExecutor(3) as threads:
            for counts in threads.map(lambda write: write(), writes):
                written |= counts
        return written

    def write_snapshots(self, fresh: list[Row], load_id: str) -> dict[str, int]:
        """First the records of checkpoints: one whose row is there is known, and not read again."""
        counts = self.append_files(SNAPSHOT_RECORDS, self.new_snapshot_records(fresh), load_id)
        self.lake.put(SNAPSHOTS, self.stamped(fresh), by="content_digest")
        return counts | {SNAPSHOTS.name: len(fresh)}

    def append_files(self, table: Table, files: DataFrame | None, load_id: str) -> dict[str, int]:
        """Append what tasks write to the table's files, if anything. Returns its name and how many rows."""
        return {table.name: 0 if files is None else self.lake.append_files(table, files, load_id)}

    def written_to(self, table: Table) -> Callable[[Task], Task]:
        """How a task writes what it decodes to the table, which is made here."""
        self.lake.create(table)
        return partial(
            writing,
            folder=self.lake.location(table),
            schema=arrow_schema(table.schema),
            constants=self.run.columns,
        )

    def load_id(self, pieces: list[Row], fresh: list[Row]) -> str:
        """A digest of what was read: the same captures read again with more in them are another load."""
        of_log = [
            (
                self.opened[p["file_number"]].capture.capture_id,
                p["first_offset"],
                p["end_offset"],
                p["digest"],
            )
            for p in pieces
        ]
        return hashlib.sha256(repr((sorted(of_log), sorted(map(snapshot_key, fresh)))).encode()).hexdigest()

    def replica_of(self, file_number: int) -> Identity:
        return self.opened[file_number].capture.who

    def cluster_of(self, file_number: int) -> str:
        return self.replica_of(file_number).cluster_id

    def with_owners(self, good: DataFrame) -> DataFrame:
        """The batches with the cluster and the replica whose they are."""
        replicas = [s.capture.who for s in self.opened]
        owners = [(n, r.cluster_id, r.node_id, r.directory_id) for n, r in enumerate(replicas)]
        rows = [dict(zip(OWNER.names, owner, strict=True)) for owner in owners]
        table = pa.Table.from_pylist(rows, schema=OWNER)
        return good.join(F.broadcast(self.lake.spark.createDataFrame(table)), "file_number")

    def new_batches(self, good: DataFrame, pieces: list[Row]) -> DataFrame | None:
        """Batches that the replica had not shown before, in files; None if there are none."""
        key = list(BATCHES.key)
        named = [name for name in BATCHES.names if name not in self.run.columns]
        fresh: DataFrame | None = self.with_owners(good).select(named)
        if overlap(pieces, self.replica_of):
            fresh = fresh.dropDuplicates(key)
        start = first_offset(pieces)
        if self.holds_from(BATCHES, "base_offset", start):
            known = self.known(BATCHES).where(F.col("base_offset") >= start).select(*key)
            fresh = unless_empty(fresh.join(known, key, "left_anti"))
        if fresh is None:
            return None
        return fresh.mapInArrow(self.written_to(BATCHES)(iter), from_arrow_schema(FILES))

    def new_records(self, good: DataFrame, pieces: list[Row]) -> DataFrame | None:
        """Records of the batches that no replica had shown before, in files; None if there are none."""
        chosen: DataFrame | None = good
        distinct = of_distinct_files(pieces, self.cluster_of)
        if len(distinct) < len(pieces):
            numbers = sorted({piece["file_number"] for piece in distinct})
            chosen = good.where(f"file_number IN ({', '.join(map(str, numbers))})")
        start = first_offset(pieces)
        some_known = self.holds_from(RECORDS, "offset", start)
        if some_known or overlap(distinct, self.cluster_of):
            chosen = decoding.one_copy(self.with_owners(chosen))
        if some_known:
            known = by_batch(self.known(RECORDS).where(F.col("offset") >= start))
            chosen = unless_empty(chosen.join(known.select(*BATCH), list(BATCH), "left_anti"))
        if chosen is None:
            return None
        write = self.written_to(RECORDS)
        return decoding.decode_batches(chosen, *sources_of(self.opened), self.cores, write)

    def holds_from(self, table: Table, offset: str, start: int) -> bool:
        """Whether a table holds anything of the clusters from an offset on: not where logs just grew.

        Asked without Spark, which takes a second to plan to read the table.
        """
        later = ds.field(offset) >= start
        return delta_rs.count_rows(self.lake.path, table, where=later, cluster_id=self.clusters) > 0

    def known(self, table: Table) -> DataFrame:
        """What a table holds of the clusters that are read."""
        return self.lake.read(table).where(in_clusters(self.clusters))

    def new_checkpoints(self, held: list[Row]) -> list[Row]:
        """Of the checkpoints read, one row each of those whose content no capture had shown before."""
        rows = distinct_snapshots(held)
        known = self.known_snapshots(SNAPSHOTS, rows.values())
        return [row for key, row in rows.items() if key not in known]

    def new_snapshot_records(self, fresh: list[Row]) -> DataFrame | None:
        """Records of checkpoints, in files; a load killed before it wrote SNAPSHOTS left some already."""
        known = self.known_snapshots(SNAPSHOT_RECORDS, fresh)
        unread = [row for row in fresh if snapshot_key(row) not in known]
        if not unread:
            return None
        columns = [f for f in SNAPSHOTS.schema.fields if f.name in checkpoints.SNAPSHOT_KEY]
        schema = StructType([*columns, StructField("path", StringType())])
        files = to_frame(self.lake.spark, unread, schema).repartition(min(self.cores, len(unread)), "path")
        return checkpoints.decode_checkpoints(files, self.written_to(SNAPSHOT_RECORDS))

    def known_snapshots(self, table: Table, rows: Iterable[Row]) -> set[tuple[Any, ...]]:
        """The keys of those of the checkpoints of which a table holds anything."""
        key = list(checkpoints.SNAPSHOT_KEY)
        if not self.lake.exists(table):
            return set()
        digests = {row["content_digest"] for row in rows}
        held = delta_rs.arrow_with(self.lake.path, table, key, content_digest=digests)
        return {snapshot_key(row) for row in held.group_by(key).aggregate([]).to_pylist()}

    def lost_values(self, good: DataFrame) -> DataFrame:
        """Values that could not be decoded, as damage of every file that holds their batch."""
        unread = by_batch(self.known(RECORDS).where(is_lost()))
        held = self.with_owners(good).select(*BATCH, "file_number", "position")
        return unread.join(held, list(BATCH)).select(
            "file_number",
            (F.col("position") + F.col("unread_position")).alias("position"),
            F.col("unread_size_bytes").alias("size_bytes"),
            F.col("value_sha256").alias("sha256"),
            F.col("unread_reason").alias("reason"),
            F.col("offset").alias("lost_from_offset"),
            (F.col("offset") + 1).alias("lost_to_offset"),
        )

    def versions_and_losses(self) -> tuple[dict[str, list[Row]], bool]:
        """The KRaftVersion records of each cluster, as few as upgrades; whether any value is lost."""
        path, clusters = self.lake.path, self.clusters
        by_cluster: dict[str, list[Row]] = {}
        for row in delta_rs.rows_with(path, RECORDS, VERSION, where=HAS_VERSION, cluster_id=clusters):
            by_cluster.setdefault(row["cluster_id"], []).append(row | row["kraft_version"])
        return by_cluster, delta_rs.count_rows(path, RECORDS, where=LOST, cluster_id=clusters) > 0


def is_lost() -> Column:
    """The condition that a record's value could not be decoded, and is not one of a newer Kafka."""
    return F.col("unread_reason").isNotNull() & ~F.col("unread_reason").isin(*NAMED_UNKNOWN)


def first_offset(pieces: list[Row]) -> int:
    return min(piece["first_offset"] for piece in pieces)


def unless_empty(frame: DataFrame) -> DataFrame | None:
    """The frame, or None where it has no rows."""
    return None if frame.isEmpty() else frame


def by_batch(records: DataFrame) -> DataFrame:
    """Records with the columns that name their batch named as batches have them."""
    return records.withColumnsRenamed({"batch_base_offset": "base_offset", "batch_crc": "crc"})


def snapshot_key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in checkpoints.SNAPSHOT_KEY)


def distinct_snapshots(held: list[Row]) -> dict[tuple[Any, ...], Row]:
    """One row a distinct checkpoint; those that could not be opened are left out."""
    ordered = sorted((r for r in held if r["content_digest"]), key=lambda r: r["path"], reverse=True)
    return {snapshot_key(r): r for r in ordered}
