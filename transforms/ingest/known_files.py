"""Which captured files the lake already has, so that nothing is read twice.

A segment is known if one of the same replica with the same name, size and edges was read. A grown segment
is read from its old end, if its bytes before that end still have the same edges: what two captures of a log
share there they also share before it, because an epoch and an offset identify one batch and its history.
Everything else is read whole, and its batches are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.format.capture import Identity, file_identity
from transforms.ingest.captured_files import (
    CaptureCopy,
    CapturedCheckpoint,
    CapturedSegment,
    KnownSegment,
    checkpoints_of,
    segments_of,
)
from transforms.ingest.checkpoints import snapshot_id
from transforms.ingest.epoch_ranges import FileEpochRange
from transforms.ingest.id_groups import id_groups
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.lives import cluster_ids_of
from transforms.lake.storage.location import Location
from transforms.lake.tables import PARSER_VERSION, SEGMENTS, SNAPSHOTS

REPLICA_SEGMENT = ("cluster_id", "node_id", "directory_id", "base_offset")
SAME_SEGMENT = ("size_bytes", "head_digest", "tail_digest")
SAME_CHECKPOINT = ("cluster_id", "end_offset", "leader_epoch", *SAME_SEGMENT)
OF_CHECKPOINT = ("content_digest", "kind", "complete", "kraft_version")


@dataclass(frozen=True, slots=True)
class IngestFiles:
    """The files of the copies that an ingest looks at.

    segments: all, with what is known of them. opened, checkpoints: those to be read; the place in each list
    is the file number of its scan. known_checkpoints: rows of the others.
    """

    copies: Sequence[CaptureCopy]
    segments: Sequence[CapturedSegment]
    opened: Sequence[CapturedSegment]
    checkpoints: Sequence[CapturedCheckpoint]
    known_checkpoints: Sequence[Row]

    @property
    def clusters(self) -> set[str]:
        return {c.who.cluster_id for c in self.copies}

    @property
    def paths(self) -> list[Path]:
        """The files to be read."""
        return [f.path for f in (*self.opened, *self.checkpoints)]

    @property
    def size_bytes(self) -> int:
        """Bytes to be read."""
        return sum(f.size_bytes for f in (*self.opened, *self.checkpoints))

    def replica_of(self, file_number: int) -> Identity:
        """The replica that a file to be scanned belongs to."""
        return self.opened[file_number].capture.who

    def cluster_of(self, file_number: int) -> str:
        return self.opened[file_number].cluster_id

    def located(self, damage: Iterable[Row]) -> list[Row]:
        """Rows of damage by file_number, with the copy's number and the file's name instead."""
        rows = []
        for row in damage:
            segment = self.opened[row["file_number"]]
            others = {name: value for name, value in row.items() if name != "file_number"}
            rows.append({"copy": segment.copy, "file": segment.name} | others)
        return rows

    def ranges(self, scanned: Iterable[Row]) -> list[tuple[CapturedSegment, list[FileEpochRange]]]:
        """Every segment with its ranges in their order: those known, then those scanned (rows of RANGES)."""
        fresh: dict[int, list[FileEpochRange]] = {}
        for row in sorted(scanned, key=itemgetter("run_index")):
            fresh.setdefault(row["file_number"], []).append(FileEpochRange.of_row(row))
        numbers = {id(segment): number for number, segment in enumerate(self.opened)}
        return [(s, [*s.known.ranges, *fresh.get(numbers.get(id(s), -1), [])]) for s in self.segments]


def select_files(lake: Location, copies: Sequence[CaptureCopy], verify: bool = False) -> IngestFiles:
    """The files of the copies, and which of them to read: all of them to `verify`, else what is not known."""
    segments, checkpoints = segments_of(copies), checkpoints_of(copies)
    known = {} if verify else known_checkpoints(lake, checkpoints)
    if not verify:
        segments = with_known(lake, segments)
    return IngestFiles(
        copies,
        segments,
        opened=[s for s in segments if s.size_bytes],
        checkpoints=[c for n, c in enumerate(checkpoints) if n not in known],
        known_checkpoints=[checkpoints[n].columns | row for n, row in known.items()],
    )


def with_known(lake: Location, segments: Sequence[CapturedSegment]) -> list[CapturedSegment]:
    """The segments, each with the part of it that is known."""
    candidates = _longest_known(lake, segments)
    with ThreadPoolExecutor(8) as threads:
        agree = list(threads.map(lambda number: _agrees(segments[number], candidates[number]), candidates))
    chosen = {number: row for (number, row), same in zip(candidates.items(), agree, strict=True) if same}
    ranges = _ranges_of(lake, list(chosen.values()))
    found = list(segments)
    for number, row in chosen.items():
        capture_id = row["capture_id"]
        known_ranges = ranges[capture_id, row["base_offset"]]
        known = KnownSegment(row["size_bytes"], known_ranges, row["stored_cluster_id"], capture_id)
        found[number] = replace(segments[number], known=known)
    return found


def _longest_known(lake: Location, segments: Sequence[CapturedSegment]) -> dict[int, Row]:
    """By place in the sequence: the longest known state of the segment, if no longer than the segment now."""
    if not exists(lake, SEGMENTS) or not segments:
        return {}
    wanted = _wanted_segments(segments)
    found: dict[int, Row] = {}
    for ids in id_groups(lake, SEGMENTS, cluster_ids_of(lake, {s.cluster_id for s in segments})):
        found |= _longest_of(lake, ids, wanted)
    return found


def _longest_of(lake: Location, ids: Mapping[str, Iterable[str]], wanted: pa.Table) -> dict[int, Row]:
    """The same of the segments of some cluster ids. wanted: of _wanted_segments."""
    stored = arrow_with(
        lake,
        SEGMENTS,
        ("capture_id", *REPLICA_SEGMENT, *SAME_SEGMENT),
        also=(pc.field("parser_version") == PARSER_VERSION) & pc.field("epoch_ranges").is_valid(),
        cluster_id=chain.from_iterable(ids.values()),
    )
    stored = _under_kafka_ids(stored, ids)
    joined = stored.join(wanted, list(REPLICA_SEGMENT), join_type="inner")
    fitting = joined.filter(pc.field("size_bytes") <= pc.field("size_now"))
    order = [("number", "ascending"), ("size_bytes", "descending"), ("capture_id", "ascending")]
    ordered = fitting.sort_by(order)
    _, first = np.unique(ordered["number"].to_numpy(), return_index=True)
    return {row["number"]: row for row in ordered.take(first).to_pylist()}


def _under_kafka_ids(stored: pa.Table, ids: Mapping[str, Iterable[str]]) -> pa.Table:
    """Stored rows with the cluster id of meta.properties; their own is stored_cluster_id."""
    kafka_id = {name: id_ for id_, names in ids.items() for name in names}
    own = stored["cluster_id"]
    found = pa.array([kafka_id[name] for name in own.to_pylist()], pa.string())
    return stored.set_column(stored.schema.get_field_index("cluster_id"), "cluster_id", found).append_column(
        "stored_cluster_id", own
    )


def _wanted_segments(segments: Sequence[CapturedSegment]) -> pa.Table:
    """The identity of each readable segment, and its size now."""
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("cluster_id", pa.string()),
            ("node_id", pa.int32()),
            ("directory_id", pa.string()),
            ("base_offset", pa.int64()),
            ("size_now", pa.int64()),
        ]
    )
    rows = [
        {
            "number": number,
            "cluster_id": s.cluster_id,
            "node_id": s.capture.who.node_id,
            "directory_id": s.capture.who.directory_id,
            "base_offset": s.file.base_offset,
            "size_now": s.file.size_bytes,
        }
        for number, s in enumerate(segments)
        if s.digests is not None
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def _agrees(segment: CapturedSegment, known: Row) -> bool:
    """Whether the segment begins with the known bytes, by the edges of those bytes."""
    now = segment.digests
    if now is None:
        return False
    if known["size_bytes"] != segment.file.size_bytes:
        try:
            now = file_identity(segment.path, known["size_bytes"])
        except OSError:
            return False
    return (now.head_digest, now.tail_digest) == (known["head_digest"], known["tail_digest"])


def _ranges_of(lake: Location, rows: list[Row]) -> dict[tuple[str, int], tuple[FileEpochRange, ...]]:
    """The ranges of known segments, by capture_id and base offset."""
    clusters, captures = ({row[name] for row in rows} for name in ("stored_cluster_id", "capture_id"))
    columns = ("capture_id", "base_offset", "epoch_ranges")
    held = rows_with(lake, SEGMENTS, columns, cluster_id=clusters, capture_id=captures) if rows else []
    return {
        (row["capture_id"], row["base_offset"]): tuple(
            FileEpochRange(**held) for held in row["epoch_ranges"] or []
        )
        for row in held
    }


def known_checkpoints(lake: Location, checkpoints: Sequence[CapturedCheckpoint]) -> dict[int, Row]:
    """By place in the sequence: the row of a complete checkpoint with the same name, size and edges."""
    if not exists(lake, SNAPSHOTS) or not checkpoints:
        return {}
    ids = cluster_ids_of(lake, {c.cluster_id for c in checkpoints})
    stored = arrow_with(
        lake,
        SNAPSHOTS,
        (*SAME_CHECKPOINT, *OF_CHECKPOINT),
        where=pc.field("complete"),
        cluster_id=chain.from_iterable(ids.values()),
    )
    stored = _under_kafka_ids(stored, ids).drop_columns(["stored_cluster_id"])
    joined = stored.join(_wanted_checkpoints(checkpoints), list(SAME_CHECKPOINT), join_type="inner")
    return {row["number"]: row | {"damage": []} for row in joined.to_pylist()}


def _wanted_checkpoints(checkpoints: Sequence[CapturedCheckpoint]) -> pa.Table:
    """The identity of each readable checkpoint."""
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("cluster_id", pa.string()),
            ("end_offset", pa.int64()),
            ("leader_epoch", pa.int32()),
            ("size_bytes", pa.int64()),
            ("head_digest", pa.string()),
            ("tail_digest", pa.string()),
        ]
    )
    rows = [
        {"number": number, "cluster_id": c.cluster_id, "size_bytes": c.digests.size_bytes}
        | {"head_digest": c.digests.head_digest, "tail_digest": c.digests.tail_digest}
        | snapshot_id(str(c.path))
        for number, c in enumerate(checkpoints)
        if c.digests is not None
    ]
    return pa.Table.from_pylist(rows, schema=schema)
