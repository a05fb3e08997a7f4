"""Rows of captures and segments, from what was planned and what the scan found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from transforms.ingest.epoch_ranges import KEPT, FileEpochRange, join_pieces
from transforms.ingest.order_faults import MOST_KEPT, order_faults

Row = dict[str, Any]


def capture_row(
    capture: Mapping[str, Any], pieces: Iterable[FileEpochRange], damage: list[Row], checkpoints: list[Row]
) -> Row:
    """The row of a captured directory.

    `capture` has what was planned (reading.described), `damage` what its files lost, `checkpoints`
    its rows of checkpoints.CHECKPOINTS. The pieces come in the order of the files.
    """
    pieces = list(pieces)
    runs = join_pieces(pieces)
    start = min(capture["segment_offsets"], default=0)
    complete = [c["end_offset"] for c in checkpoints if c["complete"]]
    ends = [*(r.end_offset for r in runs), *capture["segment_offsets"], *complete]
    return {
        **{k: v for k, v in capture.items() if k != "segment_offsets"},
        "log_start_offset": min(capture["segment_offsets"], default=None),
        "log_end_offset": max(ends, default=None),
        "last_leader_epoch": runs[-1].leader_epoch if runs else None,
        "runs": [run_column(run) for run in runs],
        "snapshots": snapshot_keys(checkpoints),
        "order_faults": list(islice(order_faults(start, pieces, damage), MOST_KEPT)),
        "damage": sorted(damage, key=lambda d: (d["file"], d["position"])),
        "batches": sum(run.batches for run in runs),
    }


def run_column(run: FileEpochRange) -> Row:
    """A run as captures.runs holds it."""
    row = {name: getattr(run, name) for name in KEPT if name not in ("batches", "size_bytes")}
    return row | {"digest": f"{run.digest & 0xFFFF_FFFF_FFFF_FFFF:016x}"}


def snapshot_keys(checkpoints: list[Row]) -> list[Row]:
    """The keys of the checkpoints that a directory held; those that could not be opened have none."""
    keys = {
        (c["end_offset"], c["leader_epoch"], c["content_digest"]) for c in checkpoints if c["content_digest"]
    }
    return [dict(zip(("end_offset", "leader_epoch", "content_digest"), k, strict=True)) for k in sorted(keys)]


def better(one: Row, other: Row) -> Row:
    """Of two readings of one capture: the content of the fuller, the time that is known best.

    The order of the readings makes no difference.
    """
    fuller = max(one, other, key=fullness)
    timed = min(one, other, key=lambda r: (SOURCE_RANK[r["captured_at_source"]], r["captured_at"]))
    return fuller | {name: timed[name] for name in ("captured_at", "captured_at_source")}


SOURCE_RANK = {"flag": 0, "capture.json": 1, "file_time": 2}


def fullness(row: Row) -> tuple[Any, ...]:
    held = sum(r["end_offset"] - r["first_offset"] for r in row["runs"])
    return held, -len(row["damage"]), -len(row["file_faults"]), repr((row["runs"], row["damage"]))


def known_kraft_version(row: Row, versions: Iterable[Row], checkpoints: Iterable[Row]) -> int | None:
    """kraft.version in force at the end of a captured log, by its records and its checkpoints.

    `versions` are rows (offset, leader_epoch, kraft_version) of its cluster's KRaftVersion records. None when
    neither is in sight: a log from its first offset on without such a record has version 0.
    """
    held = [
        (v["offset"], v["kraft_version"])
        for v in versions
        if holds(row["runs"], v["offset"], v["leader_epoch"])
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
    return 0 if row["log_start_offset"] == 0 and row["runs"] else None


def holds(runs: Iterable[Mapping[str, Any]], offset: int, leader_epoch: int) -> bool:
    """Whether a captured log holds the batch at an offset of an epoch."""
    return any(
        r["leader_epoch"] == leader_epoch and r["first_offset"] <= offset < r["end_offset"] for r in runs
    )


def by_copy(rows: Iterable[Row]) -> defaultdict[int, list[Row]]:
    """Rows by the number of their copy."""
    grouped: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["copy"]].append(row)
    return grouped
