"""Records that a replay path lacks, not captured or not decoded, and the versions that they may affect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kraft_core.format.record import BATCH_REASONS, OF_NO_HISTORY
from kraft_core.image.missing_records import MissingRecords, may_lack, missing_records
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange, Step
from transforms.histories.clocks import Clock
from transforms.lake.arrow_rows import UTC_TIME, Row, moment
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import BATCHES, RECORDS, SNAPSHOT_RECORDS

IS_UNDECODED = ds.field("unread_reason").is_valid() & ~ds.field("unread_reason").isin(OF_NO_HISTORY)
NOT_UNDERSTOOD = ds.field("unread_reason").is_valid() | (ds.field("unknown_tagged_fields") > 0)
UNDECODED = ("cluster_id", "offset", "leader_epoch", "batch_base_offset", "batch_crc", "unread_reason")
BATCH_ENDS = ("cluster_id", "base_offset", "leader_epoch", "crc", "last_offset")
_Batch = tuple[str, int, int, int]
# By cluster: first offsets, and ends (exclusive).
_Spans = defaultdict[str, list[tuple[int, int]]]
INCOMPLETE = {
    "incomplete_from_offset": pa.int64(),
    "incomplete_from_at": UTC_TIME,
    "incomplete_to_offset": pa.int64(),
    "incomplete_to_at": UTC_TIME,
}


@dataclass(frozen=True, slots=True)
class Lacking:
    """missing: what a replay path lacks. unsure: that, and what a newer Kafka wrote and is not all known."""

    missing: list[MissingRecords]
    unsure: list[MissingRecords]


def lacking_by_cluster(lake: Location, paths: Mapping[str, Sequence[Step]]) -> dict[str, Lacking]:
    """What keeps each cluster's replay path from being known as a whole."""
    undecoded, unknown = _not_known(lake, paths, NOT_UNDERSTOOD)
    for cluster, offset in _unknown_in_checkpoints(lake, paths):
        unknown[cluster].append((offset, offset + 1))
    return {
        cluster: Lacking(
            missing_records(steps, undecoded[cluster]),
            missing_records(steps, undecoded[cluster] + unknown[cluster]),
        )
        for cluster, steps in paths.items()
    }


def missing_by_cluster(
    lake: Location, paths: Mapping[str, Sequence[Step]]
) -> dict[str, list[MissingRecords]]:
    """What the replay path of each cluster lacks."""
    undecoded, _ = _not_known(lake, paths, IS_UNDECODED)
    return {cluster: missing_records(steps, undecoded[cluster]) for cluster, steps in paths.items()}


def _not_known(
    lake: Location, paths: Mapping[str, Sequence[Step]], where: ds.Expression
) -> tuple[_Spans, _Spans]:
    """The offsets on each path of records that meet a condition: of its histories, and of unknown kinds."""
    undecoded: _Spans = defaultdict(list)
    unknown: _Spans = defaultdict(list)
    rows = rows_with(lake, RECORDS, UNDECODED, where=where, cluster_id=paths) if paths else []
    ends = _batch_ends(lake, [row for row in rows if row["unread_reason"] in BATCH_REASONS])
    for row in rows:
        if _is_on_path(row, paths[row["cluster_id"]]):
            of_history = row["unread_reason"] is not None and row["unread_reason"] not in OF_NO_HISTORY
            end = ends.get(_batch(row))
            end = row["offset"] + 1 if end is None else end
            if row["offset"] < end:  # else the rest of its batch has no offset
                (undecoded if of_history else unknown)[row["cluster_id"]].append((row["offset"], end))
    return undecoded, unknown


def _unknown_in_checkpoints(lake: Location, paths: Mapping[str, Sequence[Step]]) -> Iterator[tuple[str, int]]:
    """The clusters and offsets where a checkpoint is loaded of which not every record is understood."""
    loaded = {
        (cluster, step.content_digest): step.first_offset
        for cluster, steps in paths.items()
        for step in steps
        if isinstance(step, PathCheckpoint)
    }
    if loaded:
        columns = ("cluster_id", "content_digest")
        clusters = {cluster for cluster, _ in loaded}
        for row in rows_with(lake, SNAPSHOT_RECORDS, columns, where=NOT_UNDERSTOOD, cluster_id=clusters):
            offset = loaded.get((row["cluster_id"], row["content_digest"]))
            if offset is not None:
                yield row["cluster_id"], offset


def _is_on_path(row: Row, steps: Iterable[Step]) -> bool:
    return any(
        isinstance(step, ReplayRange)
        and step.first_offset <= row["offset"] < step.end_offset
        and step.leader_epoch == row["leader_epoch"]
        for step in steps
    )


def _batch_ends(lake: Location, rows: Sequence[Row]) -> dict[_Batch, int]:
    """The ends (exclusive) of the batches of which the rows are the rest."""
    if not rows:
        return {}
    clusters = {row["cluster_id"] for row in rows}
    wanted = ds.field("base_offset").isin(sorted({row["batch_base_offset"] for row in rows}))
    return {
        (b["cluster_id"], b["base_offset"], b["leader_epoch"], b["crc"]): b["last_offset"] + 1
        for b in rows_with(lake, BATCHES, BATCH_ENDS, where=wanted, cluster_id=clusters)
    }


def _batch(row: Row) -> _Batch:
    return row["cluster_id"], row["batch_base_offset"], row["leader_epoch"], row["batch_crc"]


def times_of(missing: Iterable[MissingRecords], steps: Iterable[Step], clock: Clock) -> dict[int, int]:
    """By the first offsets of missing records the time (ms) before which they did not take effect, and by the
    offsets where they end when the checkpoint does; -1: nothing bounds it, or it is not known.
    """
    times = {each.first_offset: clock.highest_below(each.first_offset) for each in missing}
    loaded = (step for step in steps if isinstance(step, PathCheckpoint) and step.timestamp is not None)
    return times | {s.first_offset: max(s.timestamp or -1, clock.highest_below(s.end_offset)) for s in loaded}


def with_missing(rows: pa.Table, missing: Sequence[MissingRecords], times: Mapping[int, int]) -> pa.Table:
    """Rows of a history with the columns INCOMPLETE, whatever they held."""
    rows = rows.drop_columns([name for name in INCOMPLETE if name in rows.column_names])
    bounds: list[tuple[int, int | None] | None] = []
    if missing:
        validity = (rows["valid_from_offset"].to_pylist(), rows["valid_to_offset"].to_pylist())
        bounds = [may_lack(missing, first, end) for first, end in zip(*validity, strict=True)]
    found: list[Any] = []
    for place in (0, 1):
        offsets = [bound[place] if bound else None for bound in bounds]
        found += [offsets, [None if o is None or times.get(o, -1) < 0 else moment(times[o]) for o in offsets]]
    for (name, type_), values in zip(INCOMPLETE.items(), found, strict=True):
        column = pa.array(values, type_) if missing else pa.nulls(len(rows), type_)
        rows = rows.append_column(name, column)
    return rows
