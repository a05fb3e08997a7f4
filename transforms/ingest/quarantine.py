"""The bytes of a cluster's captures that no captured copy supplied.

Damage of one capture is no loss where other captures of the same replica hold its offsets, or one of them
holds a complete copy of the damaged checkpoint. Values that no decoder understood are lost in every copy.
What a file held that could not be opened is not known: a later capture that has it takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraft_core.format.snapshot import parse_name
from transforms.ingest.capture_rows import is_unreadable, last_captured_at
from transforms.ingest.scanning import DISORDERED
from transforms.lake.arrow_rows import Row

# Reasons for bytes that are no batch (kraft_core.format.segment), or were not read; all others are about
# values in good batches.
FILE_REASONS = (
    "torn_tail",
    "zero_tail",
    "garbage_tail",
    "zero_bytes",
    "bad_crc",
    "bad_magic",
    "bad_length",
    "bad_offset",
    DISORDERED,
)


def quarantined(captures: Iterable[Mapping[str, Any]], snapshots: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows of table quarantine (but cluster_id), from rows of captures and snapshots of one cluster."""
    captures = list(captures)
    whole = {(s["end_offset"], s["leader_epoch"], s["content_digest"]) for s in snapshots if s["complete"]}
    rows = [
        row
        for capture in captures
        for row in faults_of(capture)
        if not _is_supplied(row, capture, [c for c in captures if _replica(c) == _replica(capture)], whole)
    ]
    return list({(r["capture_id"], r["file"], r["position"]): r for r in rows}.values())


def unread_files(captures: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Such rows of what each capture could not read or use of its files, whether or not a copy supplied it:
    damaged bytes are lost or not, but a file that may not be read is a fault of the newest capture.
    """
    return [row for capture in captures for row in faults_of(capture) if _is_of_file(row)]


def _is_of_file(row: Mapping[str, Any]) -> bool:
    return row["reason"].startswith(("unreadable: ", "invalid: "))


def _replica(capture: Mapping[str, Any]) -> tuple[int, str]:
    return capture["node_id"], capture["directory_id"]


def _is_supplied(
    lost: Mapping[str, Any],
    capture: Mapping[str, Any],
    copies: list[Mapping[str, Any]],
    whole: set[tuple[Any, ...]],
) -> bool:
    """Whether the captures of the same replica hold what one of them lost."""
    if _is_of_file(lost) and (lost["lost_from_offset"] is None or lost["lost_to_offset"] is None):
        return _is_superseded(lost, capture, copies)
    if lost["reason"] not in FILE_REASONS and not is_unreadable(lost):
        return False
    if lost["lost_from_offset"] is not None:
        return _are_held(lost["lost_from_offset"], lost["lost_to_offset"], copies)
    damaged = parse_name(lost["file"].rsplit("/", 1)[-1])
    held = {(s["end_offset"], s["leader_epoch"], s["content_digest"]) for c in copies for s in c["snapshots"]}
    return damaged is not None and any(damaged[:2] == (end, epoch) for end, epoch, _ in held & whole)


def _are_held(first: int, end: int | None, copies: list[Mapping[str, Any]]) -> bool:
    """Whether runs of the captures cover the offsets; an unknown end stands for one batch."""
    runs = sorted((r["first_offset"], r["end_offset"]) for c in copies for r in c["runs"])
    reached = first
    for run_first, run_end in runs:
        if run_first <= reached < run_end:
            reached = run_end
    return reached >= (first + 1 if end is None else end)


def faults_of(capture: Mapping[str, Any]) -> list[Row]:
    """Rows of quarantine of everything that a capture lost, each file fault once."""
    of_segments = {lost["file"] for lost in capture["damage"] if is_unreadable(lost)}
    of_files = [
        {
            "file": fault["file"],
            "position": 0,
            "size_bytes": 0,
            "sha256": None,
            "reason": fault["reason"],
            "lost_from_offset": None,
            "lost_to_offset": None,
        }
        for fault in capture["file_faults"]
        if fault["file"] not in of_segments
    ]
    return [{"capture_id": capture["capture_id"], **lost} for lost in [*capture["damage"], *of_files]]


def _is_superseded(
    lost: Mapping[str, Any], capture: Mapping[str, Any], copies: list[Mapping[str, Any]]
) -> bool:
    """Whether a capture of the same replica, made at the same time or later, has the file without a fault.

    Of a segment, whose offsets nobody knows but the first, it must hold what is above that, too.
    """
    first = lost["lost_from_offset"]
    for other in copies:
        faults = {fault["file"] for fault in other["file_faults"]}
        is_later = last_captured_at(other) >= capture["captured_at"] and other is not capture
        if not is_later or lost["file"] in faults or other["log_readable"] is False:
            continue
        if first is None or _are_held(first, max(first, other["log_start_offset"] or 0), copies):
            return True
    return False
