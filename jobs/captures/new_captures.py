"""Which planned captures and describe outputs the lake does not hold yet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds

from jobs.captures.describe_files import DescribeFile
from jobs.captures.planning import ReadPlan
from transforms.ingest.capture_rows import fault_rows
from transforms.ingest.captured_files import CaptureCopy
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import among, arrow_with, exists, rows_with
from transforms.lake.tables import CAPTURES, EXPIRED_CAPTURES, OBSERVATIONS, SEGMENTS


@dataclass(frozen=True, slots=True)
class NewCaptures:
    """known: rows of captures of the planned ones, by capture_id. unread, described: what is to be read.

    segments: the rows of segments of those captures that are known and read again.
    """

    known: dict[str, Row]
    unread: tuple[CaptureCopy, ...]
    described: tuple[DescribeFile, ...]
    segments: tuple[Row, ...] = ()


def new_captures(lake: Path, plan: ReadPlan) -> NewCaptures:
    """Compare a plan with the lake. Reads small tables, writes nothing."""
    planned = among({"cluster_id": plan.clusters, "capture_id": {c.capture_id for c in plan.captures}})
    known = {row["capture_id"]: row for row in rows_with(lake, CAPTURES, where=planned)}
    expired = {row["capture_id"] for row in rows_with(lake, EXPIRED_CAPTURES, ["capture_id"], planned)}
    whole = _whole_segments(lake, planned)
    unread = tuple(
        copy
        for copy in plan.captures
        if copy.capture_id not in expired
        and (
            plan.selection.verify
            or whole[copy.capture_id] < len(copy.directory.segments)
            or _is_unread(copy, known.get(copy.capture_id))
        )
    )
    again = {copy.capture_id for copy in unread} & known.keys()
    segments = rows_with(lake, SEGMENTS, capture_id=again) if again else []
    return NewCaptures(known, unread, _new_outputs(lake, plan), tuple(segments))


def _whole_segments(lake: Path, planned: ds.Expression) -> Counter[str]:
    """Of how many segments of each planned capture all bytes were read, and good."""
    if not exists(lake, SEGMENTS):
        return Counter()
    is_whole = (ds.field("bytes_read") == ds.field("size_bytes")) & ds.field("runs").is_valid()
    read = arrow_with(lake, SEGMENTS, ["capture_id"], where=planned & is_whole)
    return Counter(read["capture_id"].to_pylist())


def _is_unread(copy: CaptureCopy, known: Row | None) -> bool:
    """Whether a capture is new, or the known one lacks something that this copy may supply."""
    if known is None:
        return True
    faults = fault_rows(copy.directory)
    unreadable = {fault.file for fault in copy.directory.unreadable}
    return any(fault not in faults for fault in known["file_faults"]) or any(
        lost["file"] not in unreadable for lost in known["damage"]
    )


def _new_outputs(lake: Path, plan: ReadPlan) -> tuple[DescribeFile, ...]:
    """The planned describe outputs that the lake does not hold."""
    clusters = {file.cluster_id for file in plan.described}
    rows = rows_with(lake, OBSERVATIONS, ["cluster_id", "observation_id"], cluster_id=clusters)
    known = {(row["cluster_id"], row["observation_id"]) for row in rows}
    return tuple(f for f in plan.described if (f.cluster_id, f.observation_id) not in known)
