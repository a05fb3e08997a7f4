"""Rows of captures and segments, from what was planned and what the files gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jobs.captures.input_files import CopiedSegment
from jobs.captures.planning import PlannedCapture
from transforms.ingest import capture_rows
from transforms.ingest.epoch_ranges import KEPT, FileEpochRange, join_pieces
from transforms.ingest.order_faults import order_faults
from transforms.lake.arrow_rows import moment
from transforms.lake.tables import PARSER_VERSION

Row = dict[str, Any]


def captured_rows(
    copies: Sequence[PlannedCapture],
    runs: Iterable[tuple[CopiedSegment, list[FileEpochRange]]],
    checkpoints: Iterable[Row],
    damage: Iterable[Row],
    versions: Mapping[str, list[Row]],
) -> list[Row]:
    """A row of captures a copy; copies of one capture are merged by whoever commits them.

    runs: the stretches of each segment. checkpoints and damage bear `copy`. versions: a cluster's
    KRaftVersion records.
    """
    pieces_of: dict[int, list[FileEpochRange]] = {number: [] for number in range(len(copies))}
    for segment, pieces in runs:
        pieces_of[segment.copy] += pieces
    held_of, damage_of = map(capture_rows.by_copy, (checkpoints, damage))
    rows = []
    for number, copy in enumerate(copies):
        lost = [{n: v for n, v in d.items() if n != "copy"} for d in damage_of[number]]
        lost += checkpoint_damage(held_of[number])
        row = capture_rows.capture_row(described(copy), pieces_of[number], lost, held_of[number])
        known = versions.get(copy.who.cluster_id, [])
        row["kraft_version"] = capture_rows.known_kraft_version(row, known, held_of[number])
        rows.append(row)
    return rows


def segment_rows(
    runs: Iterable[tuple[CopiedSegment, list[FileEpochRange]]], damaged: set[tuple[int, str]]
) -> list[Row]:
    """A row of segments each that could be opened. damaged: copy and name of those that lost something."""
    rows = []
    for segment, pieces in runs:
        if segment.digests is None:
            continue
        read = sum(p.size_bytes for p in pieces)
        # Stretches are kept by offset: of one whose batches are out of order they do not tell that.
        disordered = any(order_faults(segment.file.base_offset, pieces, ()))
        is_lost = (segment.copy, segment.name) in damaged
        is_whole = read == segment.file.size_bytes and not is_lost and not disordered
        who = segment.capture.who
        rows.append(
            {
                "cluster_id": who.cluster_id,
                "capture_id": segment.capture.capture_id,
                "node_id": who.node_id,
                "directory_id": who.directory_id,
                "base_offset": segment.file.base_offset,
                "size_bytes": segment.file.size_bytes,
                "bytes_read": read,
                "head_digest": segment.digests.head_digest,
                "tail_digest": segment.digests.tail_digest,
                "runs": [piece_column(p) for p in join_pieces(pieces)] if is_whole else None,
                "parser_version": PARSER_VERSION,
            }
        )
    return rows


def piece_column(piece: FileEpochRange) -> Row:
    """A stretch as segments.runs holds it."""
    return {name: getattr(piece, name) for name in KEPT}


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
