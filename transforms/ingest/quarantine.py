"""The bytes of a cluster's captures that no captured copy supplied.

Damage of one capture is no loss where other captures of the same replica hold its offsets, or one of them
holds a complete copy of the damaged checkpoint. Values that no decoder understood are lost in every copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kraft_core.format.snapshot import parse_name
from transforms.lake.arrow_rows import Row

# Reasons of kraft_core.format.segment for damaged bytes; all others are about values in good batches.
FILE_REASONS = (
    "torn_tail",
    "zero_tail",
    "garbage_tail",
    "zero_bytes",
    "bad_crc",
    "bad_magic",
    "bad_length",
    "bad_offset",
)


def quarantined(captures: Iterable[Mapping[str, Any]], snapshots: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows of table quarantine (but cluster_id), from rows of captures and snapshots of one cluster."""
    captures = list(captures)
    whole = {(s["end_offset"], s["leader_epoch"], s["content_digest"]) for s in snapshots if s["complete"]}
    rows = [
        {"capture_id": capture["capture_id"], **lost}
        for capture in captures
        for lost in [*capture["damage"], *_unopened(capture)]
        if not _is_supplied(lost, [c for c in captures if _replica(c) == _replica(capture)], whole)
    ]
    return list({(r["capture_id"], r["file"], r["position"]): r for r in rows}.values())


def _replica(capture: Mapping[str, Any]) -> tuple[int, str]:
    return capture["node_id"], capture["directory_id"]


def _is_supplied(
    lost: Mapping[str, Any], copies: list[Mapping[str, Any]], whole: set[tuple[Any, ...]]
) -> bool:
    """Whether the captures of the same replica hold what one of them lost."""
    if lost["reason"] not in FILE_REASONS and not lost["reason"].startswith("unreadable"):
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


def _unopened(capture: Mapping[str, Any]) -> list[Row]:
    """Segments and checkpoints that could not be opened at all."""
    return [
        {
            "file": fault["file"],
            "position": 0,
            "size_bytes": 0,
            "sha256": None,
            "reason": f"unreadable: {fault['reason']}",
            "lost_from_offset": None,
            "lost_to_offset": None,
        }
        for fault in capture["file_faults"]
        if fault["file"].endswith((".log", ".checkpoint"))
    ]
