"""Captured controller directories into the lake: what is new of them, and the commit of what was read.

Order of writes: records and batches (reading), then what is derived (conclusions.deriving), then captures and
segments as the commit mark. An append leaves out what its table holds, so a killed run is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.captures.describe_files import DescribeFile
from jobs.captures.planning import PlannedCapture, ReadPlan
from jobs.captures.reading import Reading, WritingRun
from jobs.runtime.progress import Progress
from transforms.ingest.capture_rows import better
from transforms.lake.arrow_rows import moment
from transforms.lake.delta_rs import rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import CAPTURES, EXPIRED_CAPTURES, OBSERVATIONS, SEGMENTS
from transforms.quality.findings import observation_rows

Row = dict[str, Any]


@dataclass(slots=True)
class Ingested:
    """Rows of captures, segments and observations still to be committed, and counts."""

    captures: dict[str, Row] = field(default_factory=dict)
    segments: list[Row] = field(default_factory=list)
    observations: list[Row] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def clusters(self) -> set[str]:
        return {row["cluster_id"] for row in (*self.captures.values(), *self.observations)}

    def add(self, row: Row, known: Row | None) -> None:
        """A reading of a capture, beside another one of it if there is one; kept if it adds anything."""
        other = self.captures.get(row["capture_id"], known)
        best = better(other, row) if other else row
        if best != known:
            self.captures[row["capture_id"]] = best


@dataclass(frozen=True, slots=True)
class News:
    """Rows of `captures` that the lake holds of what was planned, by capture_id; and what it lacks."""

    known: dict[str, Row]
    unread: tuple[PlannedCapture, ...]
    described: tuple[DescribeFile, ...]


def news(lake: Path, plan: ReadPlan) -> News:
    """What is new of what was planned. Only small tables are asked, nothing is written."""
    known = known_captures(lake, plan)
    held = {c.capture_id for c in plan.captures} - expired_captures(lake, plan)
    unread = tuple(
        c
        for c in plan.captures
        if c.capture_id in held and (plan.verify or wants_reading(known.get(c.capture_id)))
    )
    return News(known, unread, new_outputs(lake, plan))


def from_known(plan: ReadPlan, news: News) -> Ingested:
    """What the plan alone adds: captures' times stated better, observations."""
    counts = {
        "captures": len(plan.captures),
        "captures_read": len(news.unread),
        "left_out": len(plan.left_out),
        "ignored_files": plan.ignored_files,
        "describe_outputs": len(plan.described),
        "describe_outputs_read": len(news.described),
    }
    result = Ingested(counts=counts)
    for file in news.described:
        result.observations += observation_rows(file.cluster_id, file.observation_id, file.observations)
    for copy in plan.captures:
        row = news.known.get(copy.capture_id)
        if row is not None:
            result.add(timed(row, copy), row)
    return result


def ingest(
    lake: Lake,
    plan: ReadPlan,
    news: News,
    run: WritingRun,
    progress: Progress,
    fetch: Callable[[Iterable[Path]], None],
) -> Ingested:
    """Read the planned captures that are new; nothing is read or written where none is.

    `fetch` is called with the files that will be opened, before they are (see jobs.captures.inputs).
    """
    result = from_known(plan, news)
    if news.unread:
        reading = Reading(lake, run, progress, news.unread, plan.verify)
        fetch(reading.files)
        read = reading.read()
        result.counts |= read.counts
        for row in read.captures:
            result.add(row, news.known.get(row["capture_id"]))
        # A capture that was read again and gave nothing new is as it was, its segments too.
        changed = (row for row in read.segments if row["capture_id"] in result.captures)
        result.segments = distinct_segments(changed)
    return result


def known_captures(lake: Path, plan: ReadPlan) -> dict[str, Row]:
    """The rows of the planned captures that the lake holds, by capture_id; no session is needed."""
    ids = {c.capture_id for c in plan.captures}
    rows = rows_with(lake, CAPTURES, cluster_id=plan.clusters, capture_id=ids)
    return {row["capture_id"]: row for row in rows}


def expired_captures(lake: Path, plan: ReadPlan) -> set[str]:
    """Those of the planned captures that were in the lake and have expired."""
    ids = {c.capture_id for c in plan.captures}
    columns = ["capture_id"]
    rows = rows_with(lake, EXPIRED_CAPTURES, columns, cluster_id=plan.clusters, capture_id=ids)
    return {row["capture_id"] for row in rows}


def new_outputs(lake: Path, plan: ReadPlan) -> tuple[DescribeFile, ...]:
    """The planned describe outputs that the lake does not hold."""
    clusters = {file.cluster_id for file in plan.described}
    rows = rows_with(lake, OBSERVATIONS, ["cluster_id", "observation_id"], cluster_id=clusters)
    known = {(row["cluster_id"], row["observation_id"]) for row in rows}
    return tuple(f for f in plan.described if (f.cluster_id, f.observation_id) not in known)


def wants_reading(known: Row | None) -> bool:
    """A capture is read if it is new, or if something of it was lost: another copy may supply that."""
    return known is None or bool(known["damage"]) or bool(known["file_faults"])


def timed(row: Row, copy: PlannedCapture) -> Row:
    """A known capture with the time that this copy of it states."""
    return row | {"captured_at": moment(copy.captured_at), "captured_at_source": copy.captured_at_source}


def distinct_segments(rows: Iterable[Row]) -> list[Row]:
    """Of several copies of a segment the one of which most was read."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["capture_id"], row["base_offset"])
        if key not in best or row["bytes_read"] > best[key]["bytes_read"]:
            best[key] = row
    return list(best.values())


def commit(lake: Lake, ingested: Ingested, run: WritingRun) -> None:
    """Write observations, segments and, last of all, captures: from then on their content is known."""
    if ingested.observations:
        observations = [row | run.columns for row in ingested.observations]
        lake.put(OBSERVATIONS, observations, by="observation_id")
    if ingested.segments:
        lake.put(SEGMENTS, ingested.segments, by="capture_id")
    if ingested.captures:
        lake.put(CAPTURES, list(ingested.captures.values()), by="capture_id")
