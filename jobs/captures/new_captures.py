"""Which planned captures and describe outputs the lake does not hold yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jobs.captures.describe_files import DescribeFile
from jobs.captures.planning import ReadPlan
from transforms.ingest.capture_rows import fault_rows
from transforms.ingest.captured_files import CaptureCopy
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.tables import CAPTURES, EXPIRED_CAPTURES, OBSERVATIONS


@dataclass(frozen=True, slots=True)
class NewCaptures:
    """known: rows of captures of the planned ones, by capture_id. unread, described: what is to be read."""

    known: dict[str, Row]
    unread: tuple[CaptureCopy, ...]
    described: tuple[DescribeFile, ...]


def new_captures(lake: Path, plan: ReadPlan) -> NewCaptures:
    """Compare a plan with the lake. Reads small tables, writes nothing."""
    planned = among({"cluster_id": plan.clusters, "capture_id": {c.capture_id for c in plan.captures}})
    known = {row["capture_id"]: row for row in rows_with(lake, CAPTURES, where=planned)}
    expired = {row["capture_id"] for row in rows_with(lake, EXPIRED_CAPTURES, ["capture_id"], planned)}
    unread = tuple(
        copy
        for copy in plan.captures
        if copy.capture_id not in expired
        and (plan.selection.verify or _is_unread(copy, known.get(copy.capture_id)))
    )
    return NewCaptures(known, unread, _new_outputs(lake, plan))


def _is_unread(copy: CaptureCopy, known: Row | None) -> bool:
    """Whether a capture is new, or the known one lacks something that this copy may supply."""
    if known is None or fault_rows(copy.directory) != known["file_faults"]:
        return True
    unreadable = {fault.file for fault in copy.directory.unreadable}
    return any(lost["file"] not in unreadable for lost in known["damage"])


def _new_outputs(lake: Path, plan: ReadPlan) -> tuple[DescribeFile, ...]:
    """The planned describe outputs that the lake does not hold."""
    clusters = {file.cluster_id for file in plan.described}
    rows = rows_with(lake, OBSERVATIONS, ["cluster_id", "observation_id"], cluster_id=clusters)
    known = {(row["cluster_id"], row["observation_id"]) for row in rows}
    return tuple(f for f in plan.described if (f.cluster_id, f.observation_id) not in known)
