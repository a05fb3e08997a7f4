"""What the lake holds of captured files already, so that nothing is read twice.

A segment whose name, size and edges are those of one that was read of the same replica is not opened; one
that has grown since is read from where it ended, if its bytes before that end still have the same edges. What
two captures of a log share up to there they share before it too: a batch names its epoch, and of one epoch
and offset there is one batch. Everything else is read whole and compared batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.captures.input_files import CopiedCheckpoint, CopiedSegment, KnownSegment
from kraft_core.format.capture import file_identity
from transforms.ingest.checkpoints import snapshot_id
from transforms.ingest.epoch_ranges import FileEpochRange
from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.tables import PARSER_VERSION, SEGMENTS, SNAPSHOTS

Row = dict[str, Any]
REPLICA_SEGMENT = ("cluster_id", "node_id", "directory_id", "base_offset")
SAME_SEGMENT = ("size_bytes", "head_digest", "tail_digest")
SAME_CHECKPOINT = ("cluster_id", "end_offset", "leader_epoch", *SAME_SEGMENT)
OF_CHECKPOINT = ("content_digest", "kind", "complete", "kraft_version")


def with_known(lake: Path, segments: Sequence[CopiedSegment]) -> list[CopiedSegment]:
    """The segments, each with what of it is known."""
    candidates = longest_known(lake, segments)
    with ThreadPoolExecutor(8) as threads:
        agree = list(threads.map(lambda number: agrees(segments[number], candidates[number]), candidates))
    chosen = {number: row for (number, row), same in zip(candidates.items(), agree, strict=True) if same}
    pieces = pieces_of(lake, list(chosen.values()))
    found = list(segments)
    for number, row in chosen.items():
        known = KnownSegment(row["size_bytes"], pieces[row["capture_id"], row["base_offset"]])
        found[number] = replace(segments[number], known=known)
    return found


def longest_known(lake: Path, segments: Sequence[CopiedSegment]) -> dict[int, Row]:
    """By place in the sequence: the longest known state of the segment that is no longer than it is now."""
    if not exists(lake, SEGMENTS) or not segments:
        return {}
    stored = arrow_with(
        lake,
        SEGMENTS,
        ("capture_id", *REPLICA_SEGMENT, *SAME_SEGMENT),
        where=(pc.field("parser_version") == PARSER_VERSION) & pc.field("runs").is_valid(),
        cluster_id={s.capture.who.cluster_id for s in segments},
    )
    joined = stored.join(wanted_segments(segments), list(REPLICA_SEGMENT), join_type="inner")
    fitting = joined.filter(pc.field("size_bytes") <= pc.field("size_now"))
    order = [("number", "ascending"), ("size_bytes", "descending"), ("capture_id", "ascending")]
    ordered = fitting.sort_by(order)
    _, first = np.unique(ordered["number"].to_numpy(), return_index=True)
    return {row["number"]: row for row in ordered.take(first).to_pylist()}


def wanted_segments(segments: Sequence[CopiedSegment]) -> pa.Table:
    """What identifies each segment that could be opened, and its size now."""
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
            "cluster_id": s.capture.who.cluster_id,
            "node_id": s.capture.who.node_id,
            "directory_id": s.capture.who.directory_id,
            "base_offset": s.file.base_offset,
            "size_now": s.file.size_bytes,
        }
        for number, s in enumerate(segments)
        if s.digests is not None
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def agrees(segment: CopiedSegment, known: Row) -> bool:
    """Whether the segment begins with the bytes that are known, by the edges of those bytes."""
    now = segment.digests
    if now is None:
        return False
    if known["size_bytes"] != segment.file.size_bytes:
        try:
            now = file_identity(segment.path, known["size_bytes"])
        except OSError:
            return False
    return (now.head_digest, now.tail_digest) == (known["head_digest"], known["tail_digest"])


def pieces_of(lake: Path, rows: list[Row]) -> dict[tuple[str, int], tuple[FileEpochRange, ...]]:
    """The stretches of known segments, by capture_id and base offset."""
    clusters, captures = ({row[name] for row in rows} for name in ("cluster_id", "capture_id"))
    columns = ("capture_id", "base_offset", "runs")
    held = rows_with(lake, SEGMENTS, columns, cluster_id=clusters, capture_id=captures) if rows else []
    return {
        (row["capture_id"], row["base_offset"]): tuple(FileEpochRange(**piece) for piece in row["runs"] or [])
        for row in held
    }


def known_checkpoints(lake: Path, checkpoints: Sequence[CopiedCheckpoint]) -> dict[int, Row]:
    """By place in the sequence: the row of a complete checkpoint with the same name, size and edges."""
    if not exists(lake, SNAPSHOTS) or not checkpoints:
        return {}
    stored = arrow_with(
        lake,
        SNAPSHOTS,
        (*SAME_CHECKPOINT, *OF_CHECKPOINT),
        where=pc.field("complete"),
        cluster_id={c.capture.who.cluster_id for c in checkpoints},
    )
    joined = stored.join(wanted_checkpoints(checkpoints), list(SAME_CHECKPOINT), join_type="inner")
    return {row["number"]: row | {"damage": []} for row in joined.to_pylist()}


def wanted_checkpoints(checkpoints: Sequence[CopiedCheckpoint]) -> pa.Table:
    """What identifies each checkpoint that could be opened."""
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
        {"number": number, "cluster_id": c.capture.who.cluster_id, "size_bytes": c.digests.size_bytes}
        | {"head_digest": c.digests.head_digest, "tail_digest": c.digests.tail_digest}
        | snapshot_id(str(c.path))
        for number, c in enumerate(checkpoints)
        if c.digests is not None
    ]
    return pa.Table.from_pylist(rows, schema=schema)
