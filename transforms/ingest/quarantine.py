"""The bytes of a cluster's captures that no captured copy supplied.

Damage of one capture is not a loss where other captures of the same replica hold its offsets, or one of them
holds a complete copy of the damaged checkpoint. Values that no decoder understood are lost in every copy.
The content of a file that could not be opened is not known: a later capture that has it replaces it. Supplied
bytes are not rows of quarantine; their finding remains, and lists the captures that supply them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kraft_core.format.snapshot import parse_name
from transforms.ingest.capture_rows import is_unreadable
from transforms.ingest.scanning import DISORDERED
from transforms.lake.arrow_rows import Row

# Reasons for bytes that are not a batch (kraft_core.format.segment), not there, or not read; all others are
# about values in good batches.
FILE_REASONS = (
    "torn_tail",
    "zero_tail",
    "garbage_tail",
    "zero_bytes",
    "bad_crc",
    "bad_magic",
    "bad_length",
    "bad_offset",
    "incomplete",
    DISORDERED,
)


def faults(captures: Iterable[Mapping[str, Any]], snapshots: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Everything that captures of one cluster lost: rows of table quarantine (but cluster_id) with
    supplied_by, the ids of the captures that hold it.
    """
    copies: defaultdict[tuple[int, str], list[Mapping[str, Any]]] = defaultdict(list)
    for capture in captures:
        copies[capture["node_id"], capture["directory_id"]].append(capture)
    faulty = [of_replica for of_replica in copies.values() if any(map(_has_faults, of_replica))]
    for of_replica in faulty:
        of_replica.sort(key=lambda c: (c["captured_at"], c["capture_id"]))
    faulty.sort(key=lambda of_replica: (of_replica[0]["captured_at"], of_replica[0]["capture_id"]))
    # bootstrap.checkpoint is no copy of the one of formatting, though both end at 0.
    whole = {
        (s["end_offset"], s["leader_epoch"], s["content_digest"])
        for s in snapshots
        if s["complete"] and s["kind"] == "snapshot"
    }
    return [
        row | {"supplied_by": _suppliers(row, capture, of_replica, whole)}
        for of_replica in faulty
        for capture in of_replica
        if _has_faults(capture)
        for row in faults_of(capture)
    ]


def quarantined(faults: Iterable[Row]) -> list[Row]:
    """Of `faults` what no copy supplied, as rows of table quarantine."""
    rows = {(r["capture_id"], r["file"], r["position"]): r for r in faults if not r["supplied_by"]}
    return [{name: row[name] for name in row if name != "supplied_by"} for row in rows.values()]


def is_of_file(row: Mapping[str, Any]) -> bool:
    """Whether a file could not be read at all, or was not used; else bytes of it are damaged."""
    return row["reason"].startswith(("unreadable: ", "invalid: "))


def _is_superseded(lost: Mapping[str, Any], capture: Mapping[str, Any]) -> bool:
    """Whether another copy of the same bytes has the file without that fault."""
    fault = {"file": lost["file"], "reason": lost["reason"]}
    return fault not in capture["file_faults"] and fault in (capture["superseded_faults"] or ())


def _suppliers(
    lost: Mapping[str, Any],
    capture: Mapping[str, Any],
    copies: list[Mapping[str, Any]],
    whole: set[tuple[Any, ...]],
) -> list[str]:
    """The captures of the same replica (copies, by time) that hold what one of them lost."""
    if _is_superseded(lost, capture):
        return [capture["capture_id"]]
    if is_of_file(lost) and (lost["lost_from_offset"] is None or lost["lost_to_offset"] is None):
        return _superseded_by(lost, capture, copies)
    if lost["reason"] not in FILE_REASONS and not is_unreadable(lost):
        return []
    if lost["lost_from_offset"] is not None:
        return _holders(lost, capture, copies)
    damaged = _checkpoint_id(lost)
    for copy in copies:
        held = {(s["end_offset"], s["leader_epoch"], s["content_digest"]) for s in copy["snapshots"]} & whole
        is_sound = damaged not in map(_checkpoint_id, copy["damage"])
        if damaged is not None and is_sound and any(damaged == key[:2] for key in held):
            return [copy["capture_id"]]
    return []


def _checkpoint_id(lost: Mapping[str, Any]) -> tuple[int, int] | None:
    """End offset and epoch of the checkpoint whose bytes were lost, by its name; None for any other file."""
    named = parse_name(lost["file"].rsplit("/", 1)[-1])
    return None if named is None else named[:2]


def _holders(
    lost: Mapping[str, Any], capture: Mapping[str, Any], copies: list[Mapping[str, Any]]
) -> list[str]:
    """The captures whose logs together hold the lost offsets, [] if they do not.

    Where the capture's log goes on says how many were lost. If it does not, the number is not known: an
    incomplete last batch counts for one; other damage is supplied by captures that are not older.
    """
    first, end = lost["lost_from_offset"], lost["lost_to_offset"]
    if end is None:
        following = (
            max(r["first_offset"], first) for r in capture["epoch_ranges"] if r["end_offset"] > first
        )
        end = min(following, default=None)
    is_open = end is None and lost["reason"] != "torn_tail"
    pieces = [
        (run["first_offset"], run["end_offset"], copy["capture_id"])
        for copy in copies
        if not (is_open and _is_older(copy, capture))
        for run in copy["epoch_ranges"]
        if copy is capture or _is_same_log(run, copy, capture, first, end)
    ]
    return _cover(first, first + 1 if end is None else end, pieces)


def _is_same_log(
    run: Mapping[str, Any], copy: Mapping[str, Any], capture: Mapping[str, Any], first: int, end: int | None
) -> bool:
    """Whether a run of a copy holds what the capture had between two offsets, as far as is known.

    By log matching (KIP-595) logs with one epoch at one offset are the same below; epochs never fall.
    """
    before = max(
        (r["leader_epoch"] for r in capture["epoch_ranges"] if r["first_offset"] < first), default=-1
    )
    after = None if end is None else _epoch_at(capture, end)
    if end is None or after is None:
        return run["leader_epoch"] >= before
    return after == run["leader_epoch"] or (run["leader_epoch"] >= before and after == _epoch_at(copy, end))


def _epoch_at(capture: Mapping[str, Any], offset: int) -> int | None:
    """The epoch of a captured log at an offset, None where it has none."""
    of = (r["leader_epoch"] for r in capture["epoch_ranges"] if r["first_offset"] <= offset < r["end_offset"])
    return next(of, None)


def _is_older(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one capture was made before another one, by stated times."""
    stated = all(capture["captured_at_source"] != "file_time" for capture in (one, other))
    return stated and one["last_captured_at"] < other["captured_at"]


def _cover(first: int, end: int, pieces: list[tuple[int, int, str]]) -> list[str]:
    """Whose pieces (first and end offset, capture id) cover the offsets; [] if they leave a gap.

    Of pieces that reach as far, the first one of the list.
    """
    found: list[str] = []
    reached = first
    while reached < end or not found:
        held = [(min(e, end), name) for f, e, name in pieces if f <= reached < e]
        if not held:
            return []
        reached, name = max(held, key=lambda piece: piece[0])
        found.append(name)
    return list(dict.fromkeys(found))


def _has_faults(capture: Mapping[str, Any]) -> bool:
    return bool(capture["damage"] or capture["file_faults"] or capture["superseded_faults"])


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
        for fault in [*capture["file_faults"], *(capture["superseded_faults"] or ())]
        if fault["file"] not in of_segments
    ]
    return [{"capture_id": capture["capture_id"], **lost} for lost in [*capture["damage"], *of_files]]


def _superseded_by(
    lost: Mapping[str, Any], capture: Mapping[str, Any], copies: list[Mapping[str, Any]]
) -> list[str]:
    """A capture of the same replica, made at the same time or later, that has the file without a fault.

    Only the first offset of such a segment is known: it must also contain what is above that.
    """
    first = lost["lost_from_offset"]
    pieces = [
        (r["first_offset"], r["end_offset"], c["capture_id"]) for c in copies for r in c["epoch_ranges"]
    ]
    for other in copies:
        faulty = {fault["file"] for fault in other["file_faults"]}
        is_later = other["last_captured_at"] >= capture["captured_at"] and other is not capture
        if not is_later or lost["file"] in faulty or other["log_readable"] is False:
            continue
        end = None if first is None else max(first, other["log_start_offset"] or 0)
        if first is None or end in (None, first) or _cover(first, end, pieces):
            return [other["capture_id"]]
    return []
