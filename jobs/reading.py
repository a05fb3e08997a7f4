"""One pass over the files of captures: their batches, records and checkpoints into the append-only tables."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.planning import PlannedCapture
from jobs.progress import Progress
from kraft_core.logdir import CheckpointFile, SegmentFile
from transforms import capture_rows, checkpoints, decoding, scanning
from transforms.capture_runs import Piece, run_pieces
from transforms.frames import moment, to_frame, to_rows
from transforms.lake import Lake, in_clusters
from transforms.tables import BATCHES, PARSER_VERSION, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, Table

Row = dict[str, Any]
# A value of a newer Kafka is kept by name and digest; every other value that could not be decoded is lost.
NAMED_UNKNOWN = ("unknown_type", "unknown_version", "unknown_frame", "unknown_control_type")
DAMAGE = ("file", "position", "size_bytes", "sha256", "reason", "lost_from_offset", "lost_to_offset")
BATCH = ("cluster_id", "base_offset", "leader_epoch", "crc")
FILES_PER_TASK = 64
BYTES_PER_TASK = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """The run that writes: its id and when it began go into the rows it writes."""

    run_id: str
    started_at: datetime

    def stamp(self, frame: DataFrame) -> DataFrame:
        return frame.withColumns({"run_id": F.lit(self.run_id), "loaded_at": F.lit(self.started_at)})


@dataclass(frozen=True, slots=True)
class Read:
    """What a reading found: rows of captures and segments, and counts of what it wrote."""

    captures: list[Row]
    segments: list[Row]
    counts: dict[str, int]


class Reading:
    """Reads `copies` of captures into the lake; equal batches and checkpoints are decoded once."""

    def __init__(self, lake: Lake, run: Run, progress: Progress, copies: Sequence[PlannedCapture]) -> None:
        self.lake = lake
        self.run = run
        self.progress = progress
        self.copies = copies
        self.clusters = {c.who.cluster_id for c in copies}
        ids = "".join(sorted(c.capture_id for c in copies))
        self.load_id = hashlib.sha256(ids.encode()).hexdigest()

    def read(self) -> Read:
        """Scan every file, write the big tables, and say what each capture held."""
        segments = [segment(n, c, f) for n, c in enumerate(self.copies) for f in c.directory.segments]
        snapshots = [checkpoint(n, c, f) for n, c in enumerate(self.copies) for f in checkpoint_files(c)]
        size = sum(f["size_bytes"] for f in (*segments, *snapshots))
        with self.progress.stage("scan", f"{len(segments) + len(snapshots):,} files, {size:,} bytes"):
            scanned = scanning.scan_segments(self.frame(segments)).persist(StorageLevel.MEMORY_AND_DISK)
            held = to_rows(checkpoints.read_checkpoints(self.frame(snapshots))) if snapshots else []
            pieces = to_rows(run_pieces(scanning.good_batches(scanned)))
            damage = to_rows(scanning.damages(scanned).select("copy", *DAMAGE))
        with self.progress.stage("write records"):
            batches = sum(p["batches"] for p in pieces)
            counts = self.write(scanning.good_batches(scanned), held, batches)
            if batches:
                damage += to_rows(self.lost_values(scanning.good_batches(scanned)))
        scanned.unpersist()
        counts |= {"files": len(segments) + len(snapshots), "bytes": size}
        return Read(self.capture_rows(pieces, held, damage), self.segment_rows(pieces), counts)

    def frame(self, files: list[Row]) -> DataFrame:
        """Files as a DataFrame of few tasks, each with a like share of files and bytes."""
        size = sum(f["size_bytes"] for f in files)
        wanted = max(len(files) // FILES_PER_TASK, size // BYTES_PER_TASK, self.cores)
        tasks = max(1, min(len(files), wanted))
        dealt = sorted(files, key=lambda f: f["size_bytes"], reverse=True)
        table = pa.Table.from_pylist([f for i in range(tasks) for f in dealt[i::tasks]], scanning.FILES)
        return self.lake.spark.createDataFrame(table).repartition(tasks, "path")

    @property
    def cores(self) -> int:
        return self.lake.spark.sparkContext.defaultParallelism

    # --- big tables ---

    def write(self, good: DataFrame, held: list[Row], batches: int) -> dict[str, int]:
        """Append what is new to the big tables, each from a thread. Returns the rows written by table."""
        fresh = self.new_checkpoints(held)
        writes = {
            RECORDS: lambda: self.new_records(good),
            BATCHES: lambda: self.new_batches(good),
            SNAPSHOT_RECORDS: lambda: self.new_snapshot_records(fresh),
            SNAPSHOTS: lambda: to_frame(self.lake.spark, fresh, checkpoints.spark_schema()),
        }
        of_log, of_checkpoints = bool(batches), bool(fresh)
        wanted = {
            RECORDS: of_log,
            BATCHES: of_log,
            SNAPSHOT_RECORDS: of_checkpoints,
            SNAPSHOTS: of_checkpoints,
        }
        with ThreadPoolExecutor(len(writes)) as threads:
            counts = threads.map(
                lambda table: self.append(table, writes[table]()) if wanted[table] else 0, writes
            )
            return {table.name: rows for table, rows in zip(writes, counts, strict=True)}

    def append(self, table: Table, rows: DataFrame | None) -> int:
        """Append rows unless there are none. Returns how many there were."""
        return 0 if rows is None else self.lake.append(table, self.run.stamp(rows), self.load_id)

    def new_batches(self, good: DataFrame) -> DataFrame | None:
        """Batches that the replica had not shown before; None if there are none."""
        distinct = good.dropDuplicates(list(BATCHES.key))
        if not self.lake.exists(BATCHES):
            return distinct
        return unless_empty(self.lake.without_known(BATCHES, distinct, self.clusters))

    def new_records(self, good: DataFrame) -> DataFrame | None:
        """Records of the batches that no replica had shown before; None if there are none."""
        chosen: DataFrame | None = decoding.one_copy(good)
        if self.lake.exists(RECORDS):
            names = {"batch_base_offset": "base_offset", "batch_crc": "crc"}
            known = self.lake.read(RECORDS).where(in_clusters(self.clusters)).withColumnsRenamed(names)
            chosen = unless_empty(chosen.join(known.select(*BATCH), list(BATCH), "left_anti"))
        return None if chosen is None else decoding.decode_batches(chosen, self.cores)

    def new_checkpoints(self, held: list[Row]) -> list[Row]:
        """Of the checkpoints read, one row each of those whose content no capture had shown before."""
        rows = distinct_snapshots(held)
        if not rows or not self.lake.exists(SNAPSHOTS):
            return rows
        key = list(checkpoints.SNAPSHOT_KEY)
        asked = to_frame(self.lake.spark, rows, checkpoints.spark_schema()).select(*key)
        stored = self.lake.read(SNAPSHOTS).where(in_clusters(self.clusters))
        known = {tuple(r.values()) for r in to_rows(stored.select(*key).join(asked, key, "left_semi"))}
        return [r for r in rows if tuple(r[k] for k in key) not in known]

    def new_snapshot_records(self, fresh: list[Row]) -> DataFrame:
        """Records of checkpoints; a load that was killed before it wrote SNAPSHOTS left some already."""
        key = list(checkpoints.SNAPSHOT_KEY)
        files = to_frame(self.lake.spark, fresh, checkpoints.spark_schema()).select(*key, "path")
        if self.lake.exists(SNAPSHOT_RECORDS):
            known = self.lake.read(SNAPSHOT_RECORDS).where(in_clusters(self.clusters))
            files = files.join(known.select(*key), key, "left_anti")
        return checkpoints.decode_checkpoints(files.repartition(min(self.cores, len(fresh)), "path"))

    def lost_values(self, good: DataFrame) -> DataFrame:
        """Values that could not be decoded, as damage of every copy that holds their batch."""
        unread = (
            self.lake.read(RECORDS)
            .where(in_clusters(self.clusters) & F.col("unread_reason").isNotNull())
            .where(~F.col("unread_reason").isin(*NAMED_UNKNOWN))
            .withColumnsRenamed({"batch_base_offset": "base_offset", "batch_crc": "crc"})
        )
        held = good.select(*BATCH, "copy", "file", "position")
        return unread.join(held, list(BATCH)).select(
            "copy",
            "file",
            (F.col("position") + F.col("unread_position")).alias("position"),
            F.col("unread_size_bytes").alias("size_bytes"),
            F.col("value_sha256").alias("sha256"),
            F.col("unread_reason").alias("reason"),
            F.col("offset").alias("lost_from_offset"),
            (F.col("offset") + 1).alias("lost_to_offset"),
        )

    # --- rows of captures and segments ---

    def capture_rows(self, pieces: list[Row], held: list[Row], damage: list[Row]) -> list[Row]:
        """A row a copy; copies of one capture are merged by whoever commits them."""
        pieces_of, held_of, damage_of = map(capture_rows.by_copy, (pieces, held, damage))
        versions = self.kraft_versions()
        rows = []
        for number, copy in enumerate(self.copies):
            runs = [Piece(**{n: p[n] for n in Piece.__slots__}) for p in pieces_of[number]]
            lost = [{n: d[n] for n in DAMAGE} for d in damage_of[number]]
            lost += checkpoint_damage(held_of[number])
            row = capture_rows.capture_row(described(copy), runs, lost, held_of[number])
            known = versions.get(copy.who.cluster_id, [])
            row["kraft_version"] = capture_rows.known_kraft_version(row, known, held_of[number])
            rows.append(row | {"run_id": self.run.run_id, "loaded_at": self.run.started_at})
        return rows

    def kraft_versions(self) -> dict[str, list[Row]]:
        """The KRaftVersion records of each cluster: they are as few as upgrades."""
        rows = to_rows(
            self.lake.read(RECORDS)
            .where(in_clusters(self.clusters) & (F.col("type") == "KRaftVersion"))
            .select("cluster_id", "offset", "leader_epoch", F.col("kraft_version.kraft_version"))
        )
        by_cluster: dict[str, list[Row]] = {}
        for row in rows:
            by_cluster.setdefault(row["cluster_id"], []).append(row)
        return by_cluster

    def segment_rows(self, pieces: list[Row]) -> list[Row]:
        """A row a segment of each copy."""
        read: dict[tuple[int, str], int] = {}
        for part in pieces:
            key = (part["copy"], part["file"])
            read[key] = read.get(key, 0) + part["size_bytes"]
        return [
            {
                "cluster_id": copy.who.cluster_id,
                "capture_id": copy.capture_id,
                "base_offset": file.base_offset,
                "size_bytes": file.size_bytes,
                "bytes_read": read.get((number, copy.directory.relative(file.path)), 0),
                "head_digest": digests.head_digest,
                "tail_digest": digests.tail_digest,
                "parser_version": PARSER_VERSION,
                "run_id": self.run.run_id,
                "loaded_at": self.run.started_at,
            }
            for number, copy in enumerate(self.copies)
            for file, digests in with_digests(copy)
        ]


def unless_empty(frame: DataFrame) -> DataFrame | None:
    """The frame, or None where it has no rows."""
    return None if frame.isEmpty() else frame


def owner(number: int, copy: PlannedCapture) -> Row:
    """The columns of scanning.FILES that say whose a file is."""
    return {
        "cluster_id": copy.who.cluster_id,
        "copy": number,
        "node_id": copy.who.node_id,
        "directory_id": copy.who.directory_id,
    }


def segment(number: int, copy: PlannedCapture, file: SegmentFile) -> Row:
    return owner(number, copy) | {
        "path": str(file.path.absolute()),
        "file": copy.directory.relative(file.path),
        "first_offset": file.base_offset,
        "size_bytes": file.size_bytes,
    }


def checkpoint(number: int, copy: PlannedCapture, file: CheckpointFile) -> Row:
    return owner(number, copy) | {
        "path": str(file.path.absolute()),
        "file": copy.directory.relative(file.path),
        "first_offset": None,
        "size_bytes": file.size_bytes,
    }


def checkpoint_files(copy: PlannedCapture) -> list[CheckpointFile]:
    bootstrap = copy.directory.bootstrap
    return [*copy.directory.checkpoints, *([bootstrap] if bootstrap else [])]


def with_digests(copy: PlannedCapture) -> list[tuple[SegmentFile, Any]]:
    """The segments of a copy with the identities of their files."""
    by_name = {f.name: f for f in copy.files}
    return [(f, by_name[f.path.name]) for f in copy.directory.segments if f.path.name in by_name]


def distinct_snapshots(held: list[Row]) -> list[Row]:
    """One row a distinct checkpoint; those that could not be opened are left out."""
    ordered = sorted((r for r in held if r["content_digest"]), key=lambda r: r["path"], reverse=True)
    return list({tuple(r[k] for k in checkpoints.SNAPSHOT_KEY): r for r in ordered}.values())


def checkpoint_damage(held: list[Row]) -> list[Row]:
    """What was lost of a copy's checkpoints: no offsets of the log."""
    return [
        {**damage, "file": row["file"], "lost_from_offset": None, "lost_to_offset": None}
        for row in held
        for damage in row["damage"]
    ]


def described(copy: PlannedCapture) -> Row:
    """The columns of captures that need no reading of the log, and the segments' offsets."""
    directory, state = copy.directory, copy.directory.quorum_state
    epochs = directory.leader_epoch_checkpoint
    return {
        "cluster_id": copy.who.cluster_id,
        "capture_id": copy.capture_id,
        "node_id": copy.who.node_id,
        "directory_id": copy.who.directory_id,
        "captured_at": moment(copy.captured_at),
        "captured_at_source": copy.captured_at_source,
        "consistent": True,
        "quorum_state": None
        if state is None
        else {
            "data_version": state.data_version,
            "leader_id": state.leader_id,
            "leader_epoch": state.leader_epoch,
            "voted_id": state.voted_id,
            "voted_directory_id": state.voted_directory_id,
            "applied_offset": state.applied_offset,
            "current_voters": state.current_voters,
        },
        "leader_epoch_checkpoint": None
        if epochs is None
        else [{"leader_epoch": epoch, "start_offset": start} for epoch, start in epochs],
        "file_faults": [{"file": f.file, "reason": f.reason} for f in copy.faults],
        "size_bytes": sum(f.size_bytes for f in copy.files),
        "segment_offsets": [s.base_offset for s in directory.segments],
    }
