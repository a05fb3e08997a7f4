"""Histories without a Spark job: replayed by the pure core from the lake's rows, written by delta-rs.

A query of Spark costs a second to plan, the histories of a night a dozen of them; the core replays a record
in 50 microseconds. What is too much for that goes by columns (partitions: partition_replay) or by
SQL (the rest: transforms.histories.histories), which tell the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.image.from_columns import MESSAGES, StoredRecord, fields_of
from kraft_core.image.from_rows import change_of
from kraft_core.image.history import SNAPSHOT, History, Version, rows
from kraft_core.image.image import Image
from kraft_core.image.replay_path import COMMITTED, ReplayRange
from kraft_core.image.tables import ZK_MIGRATION
from transforms.histories.partition_columns import CHANGE, REGISTRATION
from transforms.histories.replay_plan import MARKERS, ReplayPlan, replaced_by
from transforms.lake import delta_rs
from transforms.lake.arrow_rows import milliseconds, moment
from transforms.lake.tables import (
    CLIENT_QUOTAS,
    HISTORIES,
    PARTITIONS,
    RECORDS,
    SNAPSHOT_RECORDS,
    ZK_MIGRATION_STATES,
    Table,
)

Row = dict[str, Any]
KIND_OF = {ZK_MIGRATION_STATES.name: ZK_MIGRATION}
PARTITION_TYPES = frozenset({REGISTRATION, CHANGE})
TIMES = ("valid_from_at", "valid_to_at", "appended_at")


# A record with the digest of its checkpoint; None: it is one of the log.
Placed = tuple[str | None, StoredRecord]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Rows that take the place of all in a history of which `condition` (SQL) holds."""

    table: Table
    rows: list[Row]
    condition: str


@dataclass(frozen=True, slots=True)
class Material:
    """What is replayed: versions that stand, by table, records of the log, and those of checkpoints."""

    standing: dict[str, list[Row]]
    records: pa.Table
    loaded: pa.Table


def replayed_histories(
    lake: Path, replays: Sequence[ReplayPlan], tables: Sequence[Table], most: int
) -> list[Rewritten] | None:
    """What the replays change of some histories; None where it is not for the core to say.

    most: how many records and standing versions there may be. All histories may be asked for, or all but
    partitions, of which no other kind tells anything.
    """
    if any(c.timestamp is None for r in replays for c in r.checkpoints):
        return None
    given = material(lake, replays, tables, most)
    if given is None:
        return None
    told = all_retold(replays, given)
    return [each for table in tables for each in rewritten(table, replays, given, told)]


def material(
    lake: Path, replays: Sequence[ReplayPlan], tables: Sequence[Table], most: int
) -> Material | None:
    """What is replayed of these kinds; None where it is too much, or not for the core to say."""
    types = [type_ for type_ in MESSAGES if PARTITIONS in tables or type_ not in PARTITION_TYPES]
    standing: dict[str, list[Row]] = {}
    end = ds.field("valid_to_offset")
    late = end.is_null() | (end >= min(replay.start for replay in replays))
    for table in tables:
        held = matching(lake, table, table.names, late, most, replays)
        if held is None:
            return None
        standing[table.name] = held.to_pylist()
        most -= len(held)
    records = log_records(lake, replays, types, most)
    if records is None or has_conflicts(records):
        return None
    loaded = snapshot_records(lake, replays, types, most - len(records))
    return None if loaded is None else Material(standing, records, loaded)


def log_records(
    lake: Path, replays: Sequence[ReplayPlan], types: Sequence[str], most: int
) -> pa.Table | None:
    """The records of the log of these types that may matter; None if they are more."""
    read = ds.field("unread_reason").is_null() & ds.field("type").isin([*types, *MARKERS])
    late = ds.field("offset") >= min(replay.start for replay in replays)
    columns = ["offset", "leader_epoch", "appended_at", "type", "redacted", *struct_columns(types)]
    return matching(lake, RECORDS, columns, read & late, most, replays)


def snapshot_records(
    lake: Path, replays: Sequence[ReplayPlan], types: Sequence[str], most: int
) -> pa.Table | None:
    """Those of the checkpoints that are loaded, `offset` being their place; None if they are more."""
    digests = [c.content_digest for replay in replays for c in replay.checkpoints]
    wanted = ds.field("content_digest").isin(digests) if digests else ds.scalar(False)
    read = ds.field("unread_reason").is_null() & ds.field("type").isin(list(types))
    columns = ["position", "leader_epoch", "appended_at", "type", "redacted", "content_digest"]
    found = matching(lake, SNAPSHOT_RECORDS, columns + struct_columns(types), read & wanted, most, replays)
    return None if found is None else found.rename_columns({"position": "offset"})


def struct_columns(types: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(MESSAGES[type_].column for type_ in types))


def matching(
    lake: Path,
    table: Table,
    columns: Sequence[str],
    where: ds.Expression,
    most: int,
    replays: Sequence[ReplayPlan],
) -> pa.Table | None:
    """The rows of the replayed clusters of which a condition holds; None if they are more than `most`."""
    clusters = [replay.cluster_id for replay in replays]
    names = list(dict.fromkeys(["cluster_id", *columns]))
    if not delta_rs.exists(lake, table):
        return pa.table({name: [] for name in names})
    condition = where & delta_rs.among({"cluster_id": clusters})
    if delta_rs.opened(lake, table).count_rows(filter=condition) > most:
        return None
    return delta_rs.arrow_with(lake, table, names, where, cluster_id=clusters)


def has_conflicts(records: pa.Table) -> bool:
    """Whether two batches of one epoch hold the same offset: what then stands is not for this way to say."""
    offsets = records.select(["cluster_id", "offset", "leader_epoch"])
    return len(offsets.group_by(offsets.column_names).aggregate([])) < len(offsets)


def grouped(records: pa.Table) -> defaultdict[str, list[Placed]]:
    """The records of each cluster by offset."""
    found: defaultdict[str, list[Placed]] = defaultdict(list)
    for type_ in pc.unique(records["type"]).to_pylist() if len(records) else ():
        of_type = records.filter(pc.equal(records["type"], type_))
        message = MESSAGES.get(type_)
        values = None if message is None else of_type[message.column].to_pylist()
        envelope = of_type.drop_columns([f.name for f in of_type.schema if pa.types.is_struct(f.type)])
        for place, row in enumerate(envelope.to_pylist()):
            value = None
            if message is not None and values is not None:
                value = fields_of(message, values[place], row["redacted"])
                # Lakes of an earlier version hold nothing that names a token.
                if any(f.digested and f.name not in value for f in message.fields):
                    continue
            at = milliseconds(row["appended_at"])
            record = StoredRecord(row["offset"], row["leader_epoch"], -1 if at is None else at, type_, value)
            found[row["cluster_id"]].append((row.get("content_digest"), record))
    for of_cluster in found.values():
        of_cluster.sort(key=lambda each: each[1].offset)
    return found


def all_retold(replays: Sequence[ReplayPlan], given: Material) -> dict[str, dict[str, list[Row]]]:
    """By cluster and history, the rows that end where the replay starts or later, or not at all."""
    records, loaded = grouped(given.records), grouped(given.loaded)
    return {
        replay.cluster_id: retold(
            replay, given.standing, records[replay.cluster_id], loaded[replay.cluster_id]
        )
        for replay in replays
    }


def retold(
    replay: ReplayPlan, before: Mapping[str, list[Row]], records: Sequence[Placed], held: Sequence[Placed]
) -> dict[str, list[Row]]:
    told = History()
    tables = [table for table in HISTORIES if table.name in before]
    for table in tables:
        for row in before[table.name]:
            if is_replaced(row, replay) and row["valid_from_offset"] < replay.start:
                told.stand(version_of(table, row))
    for step in steps_of(replay, records, held):
        told.reach(floor_at(replay, step.offset))
        if isinstance(step, Image):
            told.load(step)
        else:
            told.apply(step)
    return {
        table.name: [
            lake_row(table, row, replay) for row in rows(told.versions(KIND_OF.get(table.name, table.name)))
        ]
        for table in HISTORIES
    }


def is_replaced(row: Row, replay: ReplayPlan) -> bool:
    """Whether the replay of its cluster tells of that version."""
    end = row["valid_to_offset"]
    return row["cluster_id"] == replay.cluster_id and (end is None or end >= replay.start)


def version_of(table: Table, row: Row) -> Version:
    """A version as it was before anything ended it."""
    change = change_of(KIND_OF.get(table.name, table.name), row)
    appended_at = milliseconds(row["appended_at"])
    return Version(
        kind=change.kind,
        key=change.key,
        value=change.value,
        valid_from_offset=row["valid_from_offset"],
        valid_from_at=milliseconds(row["valid_from_at"]) or 0,
        record_offset=row["record_offset"],
        record_type=row["record_type"],
        record_leader_epoch=row["record_leader_epoch"],
        appended_at=-1 if appended_at is None else appended_at,
        known_from_offset=row["known_from_offset"],
    )


def steps_of(
    replay: ReplayPlan, records: Sequence[Placed], held: Sequence[Placed]
) -> Iterator[StoredRecord | Image]:
    """What is replayed, in its order."""
    offsets = [record.offset for _, record in records]
    for step in replay.steps:
        if isinstance(step, ReplayRange):
            first = bisect_left(offsets, max(step.first_offset, replay.start))
            end = bisect_left(offsets, step.end_offset)
            yield from (r for _, r in records[first:end] if r.leader_epoch == step.leader_epoch)
        elif step.first_offset >= replay.start:
            inside = [record for digest, record in held if digest == step.content_digest]
            at = -1 if step.timestamp is None else step.timestamp
            yield Image.of_snapshot(inside, step.end_offset, step.leader_epoch, at)


def floor_at(replay: ReplayPlan, offset: int) -> int:
    """The time (ms) that batches below an offset had reached, where its own lags behind; else -1."""
    place = bisect_right(replay.floors, offset, key=lambda floor: floor.first_offset) - 1
    floor = replay.floors[place] if place >= 0 else None
    return floor.at if floor is not None and offset < floor.end_offset else -1


def lake_row(table: Table, row: Row, replay: ReplayPlan) -> Row:
    """A row of the core as the table has it."""
    end = row["valid_to_offset"]
    known = row["known_from_offset"] is not None
    more = {
        "cluster_id": replay.cluster_id,
        "commit_status": COMMITTED if known else status_at(replay, row["valid_from_offset"]),
        "end_commit_status": end and (COMMITTED if row["ended_by"] == SNAPSHOT else status_at(replay, end)),
    }
    if table is CLIENT_QUOTAS:
        more["entity_name"] = entity_name(row["entity"])
    times = {name: moment_of(row[name]) for name in TIMES}
    told = row | times | more
    return {name: told[name] for name in table.names}


def status_at(replay: ReplayPlan, offset: int) -> str | None:
    """The commit status of a record of the line."""
    stretches = (s for s in replay.steps if isinstance(s, ReplayRange))
    return next((s.commit_status for s in stretches if s.first_offset <= offset < s.end_offset), None)


def moment_of(ms: int | None) -> datetime | None:
    return None if ms is None or ms < 0 else moment(ms)


def entity_name(parts: Sequence[Row]) -> str:
    """A quota's entity in words: client-id=c1,user=<default>."""
    named = ((part["entity_type"], part["entity_name"]) for part in parts)
    return ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in named)


def rewritten(
    table: Table, replays: Sequence[ReplayPlan], given: Material, told: Mapping[str, Mapping[str, list[Row]]]
) -> Iterator[Rewritten]:
    """The rows of a history that are to be written anew, if anything of it changed."""
    by_cluster: defaultdict[str, list[Row]] = defaultdict(list)
    for row in given.standing[table.name]:
        by_cluster[row["cluster_id"]].append(row)
    changed: list[str] = []
    fresh: list[Row] = []
    for replay in replays:
        held, after = by_cluster[replay.cluster_id], told[replay.cluster_id][table.name]
        if in_order(table, after) != in_order(table, [row for row in held if is_replaced(row, replay)]):
            changed.append(replay.cluster_id)
            fresh += after
            fresh += [row for row in held if not is_replaced(row, replay)]
    if changed:
        yield Rewritten(
            table, in_order(table, fresh), replaced_by(replays, delta_rs.among_texts("cluster_id", changed))
        )


def in_order(table: Table, held: list[Row]) -> list[Row]:
    """By cluster and offset, so that a reader who asks for some finds them together."""
    key = ["cluster_id", "valid_from_offset", *table.key]
    return sorted(held, key=lambda row: [row[name] for name in key])
