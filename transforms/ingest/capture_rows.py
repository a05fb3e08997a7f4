"""Rows of captures and segments, from the planned copies and the content of their files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from kraft_core.findings.facts import MOST_ORDER_FAULTS
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.log_files import parse_segment_name
from transforms.ingest.captured_files import CAPTURED_AT_SOURCES, CaptureCopy, CapturedSegment
from transforms.ingest.epoch_ranges import KEPT, FileEpochRange, join_ranges
from transforms.ingest.order_faults import order_faults
from transforms.lake.arrow_rows import Row, moment
from transforms.lake.tables import PARSER_VERSION

SegmentRanges = Iterable[tuple[CapturedSegment, list[FileEpochRange]]]


# --- captures ---

# What is compared with the copies of a capture whose bytes are known.
COMPARED = (
    "capture_id",
    "captured_at",
    "captured_at_source",
    "last_captured_at",
    "damage",
    "file_faults",
    "superseded_faults",
)


def capture_rows(
    copies: Sequence[CaptureCopy],
    segments: SegmentRanges,
    checkpoints: Iterable[Row],
    damage: Iterable[Row],
    versions: Mapping[str, list[Row]],
) -> list[Row]:
    """One row of captures for each copy; the commit merges copies of one capture.

    segments: every segment with its ranges. checkpoints (rows of checkpoints.CHECKPOINTS) and damage bear the
    number of their `copy`. versions: the KRaftVersion records by cluster.
    """
    ranges_of: dict[int, list[FileEpochRange]] = {number: [] for number in range(len(copies))}
    for segment, ranges in segments:
        ranges_of[segment.copy] += ranges
    checkpoints_of, damage_of = map(_by_copy, (checkpoints, damage))
    rows = []
    for number, copy in enumerate(copies):
        held = checkpoints_of[number]
        lost = [{n: v for n, v in d.items() if n != "copy"} for d in damage_of[number]]
        row = _capture_row(copy, ranges_of[number], [*lost, *_checkpoint_damage(held)], held)
        row["kraft_version"] = _kraft_version(row, versions.get(copy.who.cluster_id, []), held)
        rows.append(row)
    return rows


def _capture_row(
    copy: CaptureCopy, ranges: Sequence[FileEpochRange], damage: list[Row], checkpoints: list[Row]
) -> Row:
    """A row of captures without kraft_version. ranges: in the order of the files."""
    unopened = unopened_segments(copy.directory)
    offsets = sorted([*(s.base_offset for s in copy.directory.segments), *unopened])
    damage = [*damage, *(_unopened_row(*unopened[start], start, offsets) for start in unopened)]
    joined = join_ranges(ranges)
    # The 0-0 checkpoint is from formatting, before there was any log.
    complete = [c["end_offset"] for c in checkpoints if c["complete"] and c["end_offset"] > 0]
    start = min(offsets, default=0)
    readable = copy.directory.log_readable and not any(map(is_unreadable, damage))
    end = max([*(r.end_offset for r in joined), *offsets, *complete], default=None)
    return {
        "cluster_id": copy.who.cluster_id,
        "capture_id": copy.capture_id,
        "node_id": copy.who.node_id,
        "directory_id": copy.who.directory_id,
        **captured_at_columns(copy),
        "consistent": not _state_is_older(copy, joined),
        "log_start_offset": min(offsets, default=None),
        "log_readable": readable,
        "log_end_offset": end if readable else None,
        "last_leader_epoch": joined[-1].leader_epoch if joined and readable else None,
        **_side_file_columns(copy),
        "epoch_ranges": [_range_column(r) for r in joined],
        "snapshots": _snapshot_keys(checkpoints),
        "damage": sorted(damage, key=lambda d: (d["file"], d["position"])),
        "order_faults": list(islice(order_faults(start, ranges, damage), MOST_ORDER_FAULTS)),
        "file_faults": fault_rows(copy.directory),
        "superseded_faults": None,
        "batches": sum(r.batches for r in joined),
        "size_bytes": sum(f.size_bytes for f in copy.files),
        "life": copy.life,
    }


def _state_is_older(copy: CaptureCopy, log: Sequence[FileEpochRange]) -> bool:
    """Whether quorum-state was copied before the log: a replica stores an epoch before it appends in it."""
    state = copy.directory.quorum_state
    return state is not None and bool(log) and state.leader_epoch < log[-1].leader_epoch


def captured_at_columns(copy: CaptureCopy) -> Row:
    """When the copy was made, and how that is known."""
    return {
        "captured_at": moment(copy.captured_at),
        "captured_at_source": copy.captured_at_source,
        "last_captured_at": moment(copy.captured_at),
    }


def fault_rows(directory: ControllerDir) -> list[Row]:
    """The column file_faults: what was not readable, and files whose content or name is invalid."""
    return [
        {"file": f.file, "reason": f"{'unreadable' if f in directory.unreadable else 'invalid'}: {f.reason}"}
        for f in directory.faults
    ]


def copy_columns(copy: CaptureCopy, row: Row) -> Row:
    """What a copy adds to the row of its capture, whose bytes are known: its time, and its faults."""
    faults = [fault for fault in fault_rows(copy.directory) if fault not in row["file_faults"]]
    superseded = _sorted_faults(row["superseded_faults"], faults)
    return captured_at_columns(copy) | {"superseded_faults": superseded or None}


def _sorted_faults(*faults: Iterable[Row] | None) -> list[Row]:
    """The faults of all lists, each once."""
    distinct = {(fault["file"], fault["reason"]) for each in faults for fault in each or ()}
    return [{"file": file, "reason": reason} for file, reason in sorted(distinct)]


def is_unreadable(lost: Mapping[str, Any]) -> bool:
    """Whether a row of damage or file_faults is about bytes that were not read at all."""
    return lost["reason"].startswith("unreadable")


def unopened_segments(directory: ControllerDir) -> dict[int, tuple[str, str]]:
    """The segments that could not be opened: base offset to name in the tables and reason."""
    named = ((parse_segment_name(PurePosixPath(f.file).name), f) for f in directory.unreadable)
    return {start: (f.file, f.reason) for start, f in named if start is not None}


def _unopened_row(file: str, reason: str, start: int, offsets: Sequence[int]) -> Row:
    """The damage that such a segment is: all up to the next one. offsets: of all segments, rising."""
    return {
        "file": file,
        "position": 0,
        "size_bytes": 0,
        "sha256": None,
        "reason": f"unreadable: {reason}",
        "lost_from_offset": start,
        "lost_to_offset": next((offset for offset in offsets if offset > start), None),
    }


def _side_file_columns(copy: CaptureCopy) -> Row:
    """The files quorum-state and leader-epoch-checkpoint."""
    state, epochs = copy.directory.quorum_state, copy.directory.leader_epoch_checkpoint
    return {
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
    }


def _range_column(joined: FileEpochRange) -> Row:
    """A range as captures.epoch_ranges holds it."""
    row = {name: getattr(joined, name) for name in KEPT if name not in ("batches", "size_bytes")}
    return row | {"digest": f"{joined.digest & 0xFFFF_FFFF_FFFF_FFFF:016x}"}


def _snapshot_keys(checkpoints: list[Row]) -> list[Row]:
    """The keys of the checkpoints that could be opened."""
    keys = {
        (c["end_offset"], c["leader_epoch"], c["content_digest"]) for c in checkpoints if c["content_digest"]
    }
    return [dict(zip(("end_offset", "leader_epoch", "content_digest"), k, strict=True)) for k in sorted(keys)]


def _checkpoint_damage(checkpoints: list[Row]) -> list[Row]:
    """What was lost of a copy's checkpoints: no offsets of the log."""
    return [
        {**damage, "file": row["file"], "lost_from_offset": None, "lost_to_offset": None}
        for row in checkpoints
        for damage in row["damage"]
    ]


def _kraft_version(row: Row, versions: Iterable[Row], checkpoints: Iterable[Row]) -> int | None:
    """kraft.version in force at the end of a captured log, by its records and its checkpoints.

    versions: rows (offset, leader_epoch, kraft_version) of its cluster's KRaftVersion records. A log from its
    first offset on without such a record has version 0; a later part of one without either has None, and so
    has a log that could not be read.
    """
    if not row["log_readable"]:
        return None
    held = [
        (v["offset"], v["kraft_version"])
        for v in versions
        if _holds(row["epoch_ranges"], v["offset"], v["leader_epoch"])
    ]
    if held:
        return max(held)[1]
    recorded = [
        (c["end_offset"], c["kraft_version"])
        for c in checkpoints
        if c["complete"] and c["kraft_version"] is not None and c["kind"] == "snapshot"
    ]
    if recorded:
        return max(recorded)[1]
    return 0 if row["log_start_offset"] == 0 and row["epoch_ranges"] else None


def _holds(runs: Iterable[Row], offset: int, leader_epoch: int) -> bool:
    """Whether a captured log holds the batch at an offset of an epoch."""
    return any(
        r["leader_epoch"] == leader_epoch and r["first_offset"] <= offset < r["end_offset"] for r in runs
    )


def _by_copy(rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["copy"]].append(row)
    return grouped


# --- copies of one capture ---


def better_row(one: Row, other: Row) -> Row:
    """Of two rows of one capture: the fuller content, the most reliable captured_at, and the last time.

    The order of the rows makes no difference.
    """
    return _best_times(one, other, max(one, other, key=_fullness))


def says_more(copy: CaptureCopy, known: Row) -> bool:
    """Whether better_row of a known capture and this copy, whose bytes are the same, is not the known one.

    known: the columns COMPARED.
    """
    return _best_times(known, known | copy_columns(copy, known), known) != known


def _best_times(one: Row, other: Row, fuller: Row) -> Row:
    """The fuller of two rows with the times and superseded faults of both."""
    dated = min(one, other, key=lambda row: captured_at_rank(row["captured_at_source"], row["captured_at"]))
    recorded = [row for row in (one, other) if row["captured_at_source"] != "file_time"]
    last = max(row["last_captured_at"] for row in recorded or (one, other))
    lists = (row[name] for row in (one, other) for name in ("file_faults", "superseded_faults"))
    superseded = [fault for fault in _sorted_faults(*lists) if fault not in fuller["file_faults"]]
    return fuller | {
        "captured_at": dated["captured_at"],
        "captured_at_source": dated["captured_at_source"],
        "last_captured_at": last,
        "superseded_faults": superseded or None,
    }


def captured_at_rank(source: Any, captured_at: Any) -> tuple[int, Any]:
    """Sorts times of captures: the most reliable source first, then the earliest time."""
    return CAPTURED_AT_SOURCES.index(source), captured_at


def _fullness(row: Row) -> tuple[Any, ...]:
    held = sum(r["end_offset"] - r["first_offset"] for r in row["epoch_ranges"])
    lost = -len(row["damage"]), -len(row["file_faults"])
    snapshots = row["snapshots"] or []
    content = repr((row["epoch_ranges"], row["damage"], row["file_faults"], snapshots))
    return held, row["log_readable"] is not False, *lost, len(snapshots), content


# --- segments ---


def segment_rows(segments: SegmentRanges, damaged: set[tuple[int, str]]) -> list[Row]:
    """One row of segments for each that could be opened. damaged: copy and name of those that lost data."""
    rows = []
    for segment, ranges in segments:
        if segment.digests is None:
            continue
        read = sum(r.size_bytes for r in ranges)
        # segments.epoch_ranges is sorted by offset: it does not show that a segment's batches are disordered.
        disordered = any(order_faults(segment.file.base_offset, ranges, ()))
        is_damaged = (segment.copy, segment.name) in damaged
        is_whole = read == segment.file.size_bytes and not is_damaged and not disordered
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
                "epoch_ranges": [{n: getattr(r, n) for n in KEPT} for r in join_ranges(ranges)]
                if is_whole
                else None,
                "parser_version": PARSER_VERSION,
            }
        )
    return rows


def fullest_segments(rows: Iterable[Row]) -> list[Row]:
    """Of several copies of a segment the one of which most was read."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["capture_id"], row["base_offset"])
        if key not in best or row["bytes_read"] > best[key]["bytes_read"]:
            best[key] = row
    return list(best.values())
