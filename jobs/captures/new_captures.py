"""Which planned captures and describe outputs are not in the lake yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import pyarrow.dataset as ds

from jobs.captures.broker_dirs import CapturedBrokerDir
from jobs.captures.describe_files import DescribeFile
from jobs.captures.known_copies import KnownCopies, copies_by_id
from jobs.captures.planning import ReadPlan
from kraft_core.format.capture import EDGE_BYTES
from kraft_core.format.controller_dir import SegmentFile
from transforms.ingest.capture_rows import COMPARED, fault_rows, is_unreadable, says_more
from transforms.ingest.captured_files import CaptureCopy, checkpoint_edges
from transforms.ingest.quarantine import FILE_REASONS
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import each_row, rows_with
from transforms.lake.lives import expanded
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    BROKER_DIRECTORIES,
    CAPTURES,
    EXPIRED_CAPTURES,
    OBSERVATIONS,
    PARSER_VERSION,
    SEGMENTS,
    SNAPSHOTS,
)


@dataclass(frozen=True, slots=True)
class NewCaptures:
    """unread, described, broker_dirs: what is to be read. segments: the rows of known captures read again.

    known: rows of captures, by capture_id, of those and of others of which a planned copy says more.
    """

    known: dict[str, Row]
    unread: tuple[CaptureCopy, ...]
    described: tuple[DescribeFile, ...]
    segments: tuple[Row, ...] = ()
    broker_dirs: tuple[CapturedBrokerDir, ...] = ()


def new_captures(
    lake: Location, plan: ReadPlan, known: KnownCopies, since: datetime | None = None
) -> NewCaptures:
    """Compare a plan with the lake, and add what turns out to be known to `known`. Writes nothing.

    since: rows loaded before may be left out, so that what they hold counts as new. In memory are the planned
    ids, and rows of known captures only where a copy may add something.
    """
    every = copies_by_id(plan.captures)
    copies = known.unknown(lake, every)
    copies = every if plan.selection.verify else copies
    sought = {name: some for name, some in copies.items() if name not in known.absent()}
    planned = _ids(lake, sought)
    recent = ds.scalar(True) if since is None else ds.field("loaded_at") >= since
    ids = {*copies, *(each.capture_id for each in plan.broker_dirs)}
    found = rows_with(lake, EXPIRED_CAPTURES, ["capture_id"], capture_id=ids)
    expired = {row["capture_id"] for row in found}
    read = _read_segments(lake, recent, planned) if sought else {}
    unread: dict[str, list[CaptureCopy]] = dict(copies)
    bootstraps = _read_bootstraps(lake, planned) if sought else set[tuple[Any, ...]]()
    wanted: set[str] = set()
    absent = set(sought) if since is None else set[str]()
    columns = (*COMPARED, "cluster_id")
    for row in each_row(lake, CAPTURES, columns, recent, **planned) if sought else ():
        capture_id, held_by = row["capture_id"], row.pop("cluster_id")
        absent.discard(capture_id)
        of_row = copies[capture_id]
        unread[capture_id] = [
            copy
            for copy in of_row
            if plan.selection.verify
            or _is_unread(copy, row, read)
            or (copy.bootstrap and (held_by, *checkpoint_edges(copy.bootstrap)) not in bootstraps)
        ]
        if unread[capture_id] or any(says_more(copy, row) for copy in of_row):
            wanted.add(capture_id)
    chosen = tuple(copy for name, some in unread.items() if name not in expired for copy in some)
    again = {copy.capture_id for copy in chosen} & wanted
    segments = rows_with(lake, SEGMENTS, capture_id=again) if again else []
    news = {copy.capture_id for copy in chosen} | wanted
    whole = (copy for name, some in copies.items() if name not in news for copy in some)
    known.add(lake, whole, absent)
    outputs, brokers = _new_outputs(lake, plan), _new_broker_dirs(lake, plan, expired)
    return NewCaptures(_rows_of(lake, wanted), chosen, outputs, tuple(segments), brokers)


def known_now(lake: Location, new: NewCaptures) -> NewCaptures:
    """The same with the rows that the lake holds now: a capture may have moved to another life."""
    if not new.known:
        return new
    segments = rows_with(lake, SEGMENTS, capture_id={row["capture_id"] for row in new.segments})
    return replace(new, known=_rows_of(lake, new.known), segments=tuple(segments))


def _rows_of(lake: Location, capture_ids: Collection[str]) -> dict[str, Row]:
    rows = rows_with(lake, CAPTURES, capture_id=capture_ids) if capture_ids else []
    return {row["capture_id"]: row for row in rows}


def _ids(lake: Location, copies: Mapping[str, Sequence[CaptureCopy]]) -> dict[str, Collection[str]]:
    """The ids of captures and of their clusters, as the tables have them."""
    clusters = {copy.who.cluster_id for some in copies.values() for copy in some}
    return {"capture_id": copies, "cluster_id": expanded(lake, clusters)}


def _read_segments(
    lake: Location, recent: ds.Expression, planned: Mapping[str, Collection[str]]
) -> dict[tuple[str, int], Row]:
    """The rows of segments of the planned captures, without ranges, by capture_id and base offset.

    Of those that lost something only what this version read: it may read more than an earlier one.
    """
    is_whole = (ds.field("bytes_read") == ds.field("size_bytes")) & ds.field("epoch_ranges").is_valid()
    is_current = ds.field("parser_version") == PARSER_VERSION
    columns = ["capture_id", "base_offset", "size_bytes", "bytes_read"]
    rows = rows_with(lake, SEGMENTS, columns, recent, is_whole | is_current, **planned)
    return {(row["capture_id"], row["base_offset"]): row for row in rows}


def _read_bootstraps(lake: Location, planned: Mapping[str, Collection[str]]) -> set[tuple[Any, ...]]:
    """Cluster id and checkpoint_edges of each bootstrap checkpoint: a copy may have another one."""
    columns = ["cluster_id", "size_bytes", "head_digest", "tail_digest"]
    rows = rows_with(lake, SNAPSHOTS, columns, kind=["bootstrap"], cluster_id=planned["cluster_id"])
    return {tuple(row[name] for name in columns) for row in rows}


def _is_unread(copy: CaptureCopy, known: Row, read: Mapping[tuple[str, int], Row]) -> bool:
    """Whether this copy may supply what the known one lost.

    It may not where its files are known to their ends, and the damage lies in the edges that identify them.
    """
    unreadable = {fault.file for fault in copy.directory.unreadable}
    damage = [lost for lost in known["damage"] if lost["file"] not in unreadable]
    faults = fault_rows(copy.directory)
    return (
        any(fault not in faults for fault in known["file_faults"])
        or not all(_is_read(copy, segment, read, damage) for segment in copy.directory.segments)
        or any(_may_be_supplied(copy, lost) for lost in damage)
    )


def _is_read(
    copy: CaptureCopy, segment: SegmentFile, read: Mapping[tuple[str, int], Row], damage: Sequence[Row]
) -> bool:
    """Whether each byte of a segment is known, as part of a good batch or as damage."""
    row = read.get((copy.capture_id, segment.base_offset))
    name = copy.directory.relative(segment.path)
    lost = sum(d["size_bytes"] for d in damage if d["file"] == name and d["reason"] in FILE_REASONS)
    return row is not None and row["bytes_read"] + lost == row["size_bytes"]


def _may_be_supplied(copy: CaptureCopy, lost: Row) -> bool:
    """Whether another copy with the same edges may hold what one file lost."""
    name = PurePosixPath(lost["file"]).name
    size = next((file.size_bytes for file in copy.files if file.name == name), None)
    if size is None or is_unreadable(lost):
        return True
    if lost["reason"] not in FILE_REASONS:  # values of good batches, which no copy has otherwise
        return False
    return lost["position"] + lost["size_bytes"] > EDGE_BYTES and lost["position"] < size - EDGE_BYTES


def _new_outputs(lake: Location, plan: ReadPlan) -> tuple[DescribeFile, ...]:
    """The planned describe outputs that the lake does not hold."""
    clusters = {file.cluster_id for file in plan.described}
    rows = rows_with(lake, OBSERVATIONS, ["cluster_id", "observation_id"], cluster_id=clusters)
    known = {(row["cluster_id"], row["observation_id"]) for row in rows}
    return tuple(f for f in plan.described if (f.cluster_id, f.observation_id) not in known)


def _new_broker_dirs(
    lake: Location, plan: ReadPlan, expired: Collection[str]
) -> tuple[CapturedBrokerDir, ...]:
    """The planned copies of brokers' directories that the lake does not hold."""
    if not plan.broker_dirs:
        return ()
    ids = {each.capture_id for each in plan.broker_dirs} - set(expired)
    rows = rows_with(lake, BROKER_DIRECTORIES, ["cluster_id", "capture_id"], capture_id=ids)
    known = {(row["cluster_id"], row["capture_id"]) for row in rows}
    return tuple(
        each
        for each in plan.broker_dirs
        if each.capture_id in ids and (each.cluster_id, each.capture_id) not in known
    )
