"""The histories of partitions of which there is much: records of the lake by columns, in bounded memory.

Events are spread over buckets by their topic, on disk where one would be too big; each bucket is worked out
by itself (transforms.histories.partition_columns).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.image import names
from kraft_core.image.history import SNAPSHOT
from kraft_core.image.replay_path import COMMITTED, PathCheckpoint
from transforms.histories.history_events import KEPT
from transforms.histories.history_line import MOMENT
from transforms.histories.partition_columns import (
    CHANGE,
    ENVELOPE,
    EVENTS,
    REGISTRATION,
    WHOLE,
    Life,
    events,
    numbers,
    partition_versions,
)
from transforms.histories.replay_plan import ReplayPlan
from transforms.lake import delta_rs
from transforms.lake.arrow_rows import arrow_schema, moment
from transforms.lake.tables import PARTITIONS, RECORDS, SNAPSHOT_RECORDS, TOPICS, Table

# Events that are worked out together: some 1,500 bytes each, results and all.
TOGETHER = 100_000
# The tables that are read, where they are there.
Held = Mapping[Table, ds.Dataset]
SPREAD = pa.schema([("cluster_id", pa.string()), *EVENTS])
WAS_READ = ds.field("unread_reason").is_null()
PARTITION_RECORDS = WAS_READ & ds.field("type").isin([REGISTRATION, CHANGE])
CLEARS = WAS_READ & (ds.field("type") == "CLEAR_ELR_RECORD")
READ = ("leader_epoch", "batch_crc", "appended_at", "type", "partition", "partition_change")


def partition_rows(lake: Path, replays: Sequence[ReplayPlan]) -> pa.RecordBatchReader:
    """Rows of PARTITIONS that end at the lowest start of the replays or later, or not at all.

    The topics of the lake must be those of the replays already.
    """
    schema = arrow_schema(PARTITIONS.schema)
    # Opened here: delta-rs, which writes what it pulls from the reader, opens no table meanwhile.
    lake_tables = (RECORDS, SNAPSHOT_RECORDS, TOPICS, PARTITIONS)
    held = {t: delta_rs.opened(lake, t) for t in lake_tables if delta_rs.exists(lake, t)}
    made = chain(rows_before(held, replays), rows_made(held, replays))
    found = (batch for rows in made for batch in rows.select(schema.names).cast(schema).to_batches())
    return pa.RecordBatchReader.from_batches(schema, found)


def rows_made(held: Held, replays: Sequence[ReplayPlan]) -> Iterator[pa.Table]:
    """The rows that the replays tell."""
    with ExitStack() as stack:
        lives, clears = topic_lives(held, replays), cleared(held, replays)
        loads = {replay.cluster_id: loaded(replay) for replay in replays}
        for bucket in spread(held, replays, stack):
            for cluster in pc.unique(bucket["cluster_id"]).to_pylist():
                told = bucket.filter(pc.equal(bucket["cluster_id"], cluster)).select(EVENTS.names)
                told = told.combine_chunks()
                found = partition_versions(told, lives[cluster], clears[cluster], loads[cluster])
                yield found.append_column("cluster_id", pa.array([cluster] * len(found), pa.string()))


def rows_before(held: Held, replays: Sequence[ReplayPlan]) -> Iterator[pa.Table]:
    """Rows that end at the lowest start or later, but before the replay of their own cluster starts."""
    lowest = min(replay.start for replay in replays)
    later = {replay.cluster_id: replay for replay in replays if replay.start > lowest}
    ended = ds.field("valid_to_offset") >= lowest
    for rows, replay in scanned(held, PARTITIONS, PARTITIONS.names, ended, later):
        yield rows.filter(pc.less(rows["valid_to_offset"], replay.start))


def spread(held: Held, replays: Sequence[ReplayPlan], stack: ExitStack) -> Iterator[pa.Table]:
    """The events in tables of about TOGETHER rows, all of a topic in one."""
    count = -(-count_events(held, replays) // TOGETHER)
    if count <= 1:
        yield pa.concat_tables([SPREAD.empty_table(), *all_events(held, replays)])
        return
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="kraftlake-")))
    files = [folder / str(number) for number in range(count)]
    with ExitStack() as writing:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        writers = [
            writing.enter_context(pa.ipc.new_stream(str(file), SPREAD, options=options)) for file in files
        ]
        for told in all_events(held, replays):
            number = bucket_of(told, count)
            for place in np.unique(number):
                writers[place].write_table(told.filter(pa.array(number == place)))
    for file in files:
        with pa.OSFile(str(file)) as source:
            yield pa.ipc.open_stream(source).read_all()
        file.unlink()
        # Of what Arrow took for the bucket, it would keep the most.
        pa.default_memory_pool().release_unused()


def bucket_of(told: pa.Table, count: int) -> Any:
    topics = told["topic_id"].combine_chunks().dictionary_encode()
    numbers = np.array([zlib.crc32(topic.encode()) % count for topic in topics.dictionary.to_pylist()])
    return numbers[topics.indices.to_numpy()]


def count_events(held: Held, replays: Sequence[ReplayPlan]) -> int:
    """About how many there are."""
    of_them = delta_rs.among({"cluster_id": [replay.cluster_id for replay in replays]})
    sources = (
        (RECORDS, rows_of_log(replays)),
        (SNAPSHOT_RECORDS, rows_of_loads(replays)),
        (PARTITIONS, standing_rows(replays)),
    )
    return sum(held[table].count_rows(filter=where & of_them) for table, where in sources if table in held)


def rows_of_log(replays: Sequence[ReplayPlan]) -> ds.Expression:
    return PARTITION_RECORDS & (ds.field("offset") >= min(replay.start for replay in replays))


def rows_of_loads(replays: Sequence[ReplayPlan]) -> ds.Expression:
    loads = [c.content_digest for replay in replays for c in replay.checkpoints]
    return PARTITION_RECORDS & (ds.field("content_digest").isin(loads) if loads else ds.scalar(False))


def standing_rows(replays: Sequence[ReplayPlan]) -> ds.Expression:
    """Versions that may stand where a replay starts."""
    going_on = [replay.start for replay in replays if replay.start > 0]
    end = ds.field("valid_to_offset")
    return end.is_null() | (end >= min(going_on)) if going_on else ds.scalar(False)


def all_events(held: Held, replays: Sequence[ReplayPlan]) -> Iterator[pa.Table]:
    """Tables of SPREAD: versions that go on, what checkpoints hold, what the log tells."""
    by_cluster = {replay.cluster_id: replay for replay in replays}
    for rows, replay in scanned(held, PARTITIONS, PARTITIONS.names, standing_rows(replays), by_cluster):
        yield spread_events(standing_events(rows, replay), replay)
    columns = [*READ, "content_digest"]
    for rows, replay in scanned(held, SNAPSHOT_RECORDS, columns, rows_of_loads(replays), by_cluster):
        for checkpoint in replay.checkpoints:
            of_load = rows.filter(pc.equal(rows["content_digest"], checkpoint.content_digest))
            envelope = loaded_envelope(of_load, replay, checkpoint)
            yield spread_events(events(of_load, envelope), replay)
    for rows, replay in scanned(held, RECORDS, ["offset", *READ], rows_of_log(replays), by_cluster):
        rows, envelope = on_line(rows, replay)
        yield spread_events(events(rows, envelope), replay)


def scanned(
    held: Held, table: Table, columns: Sequence[str], where: ds.Expression, replays: Mapping[str, ReplayPlan]
) -> Iterator[tuple[pa.Table, ReplayPlan]]:
    """The rows of a table for which a condition holds, in pieces of one cluster each."""
    if table not in held or not replays:
        return
    of_them = delta_rs.among({"cluster_id": replays})
    names_of = list(dict.fromkeys(["cluster_id", *columns]))
    # Not much is read ahead: rows are wide.
    ahead = {"batch_readahead": 2, "fragment_readahead": 1}
    for batch in held[table].to_batches(columns=names_of, filter=where & of_them, **ahead):
        rows = pa.Table.from_batches([batch])
        for cluster in pc.unique(rows["cluster_id"]).to_pylist():
            yield rows.filter(pc.equal(rows["cluster_id"], cluster)), replays[cluster]


def spread_events(told: pa.Table, replay: ReplayPlan) -> pa.Table:
    cluster = pa.array([replay.cluster_id] * len(told), pa.string())
    return told.append_column("cluster_id", cluster).select(SPREAD.names)


def standing_events(rows: pa.Table, replay: ReplayPlan) -> pa.Table:
    """Those of the versions that stand where the replay starts, as registrations."""
    began = pc.less(rows["valid_from_offset"], replay.start)
    goes_on = pc.fill_null(pc.greater_equal(rows["valid_to_offset"], replay.start), True)
    kept = rows.filter(pc.and_(began, goes_on))
    words = pa.array(names.LEADER_RECOVERY_STATES.values(), pa.string())
    columns = {
        "seq": pc.coalesce(kept["record_offset"], kept["known_from_offset"]),
        "batch_crc": pa.array(np.full(len(kept), KEPT)),
        "visible_offset": kept["valid_from_offset"],
        "effective_at": kept["valid_from_at"],
        "says": pa.array([WHOLE] * len(kept), pa.string()),
        "leader_recovery_state": pc.index_in(kept["leader_recovery_state"], words),
    }
    told = [columns[name] if name in columns else kept[name] for name in EVENTS.names]
    return pa.table(told, EVENTS.names).cast(EVENTS)


def topic_lives(held: Held, replays: Sequence[ReplayPlan]) -> dict[str, list[Life]]:
    """By cluster, the lives of topics that end at the lowest start of the replays or later, or not at all."""
    end = ds.field("valid_to_offset")
    late = end.is_null() | (end >= min(replay.start for replay in replays))
    by_cluster = {replay.cluster_id: replay for replay in replays}
    found: dict[str, list[Life]] = {cluster: [] for cluster in by_cluster}
    for rows, replay in scanned(held, TOPICS, TOPICS.names, late, by_cluster):
        found[replay.cluster_id] += map(life_of, rows.to_pylist())
    return found


def life_of(row: dict[str, Any]) -> Life:
    return Life(
        topic_id=row["topic_id"],
        name=row["name"],
        first_seq=row["known_from_offset"] if row["record_offset"] is None else row["record_offset"],
        end_offset=row["valid_to_offset"],
        end_at=row["valid_to_at"],
        end_type=row["ended_by"],
        end_status=row["end_commit_status"],
    )


def cleared(held: Held, replays: Sequence[ReplayPlan]) -> dict[str, pa.Table]:
    """By cluster, the records that clear ELRs: ENVELOPE and topic_name."""
    by_cluster = {replay.cluster_id: replay for replay in replays}
    columns = ["offset", "leader_epoch", "batch_crc", "appended_at", "type", "clear_elr"]
    where = CLEARS & (ds.field("offset") >= min(replay.start for replay in replays))
    schema = pa.schema([*ENVELOPE, ("topic_name", pa.string())])
    found = {cluster: [schema.empty_table()] for cluster in by_cluster}
    for rows, replay in scanned(held, RECORDS, columns, where, by_cluster):
        rows, envelope = on_line(rows, replay)
        names = pc.struct_field(rows["clear_elr"].combine_chunks(), "topic_name")
        found[replay.cluster_id].append(envelope.append_column("topic_name", names).cast(schema))
    return {cluster: pa.concat_tables(tables) for cluster, tables in found.items()}


def loaded(replay: ReplayPlan) -> pa.Table:
    """The checkpoints that take the place of a state known before: ENVELOPE."""
    jumps = [c for c in replay.checkpoints if c is not replay.steps[0]]
    snapshot = pa.table({"type": pa.array([SNAPSHOT])})
    return pa.concat_tables([ENVELOPE.empty_table(), *(loaded_envelope(snapshot, replay, c) for c in jumps)])


def loaded_envelope(rows: pa.Table, replay: ReplayPlan, checkpoint: PathCheckpoint) -> pa.Table:
    """When what a checkpoint holds takes effect: at the last offset that it stands for."""
    count, seq = len(rows), checkpoint.first_offset
    at = moment(checkpoint.timestamp)
    floors = [moment(f.at) for f in replay.floors if f.first_offset <= seq < f.end_offset]
    told = {
        "seq": seq,
        "batch_crc": 0,
        "visible_offset": seq,
        "effective_at": max((time for time in (at, *floors) if time is not None), default=None),
        "commit_status": COMMITTED,
        "record_offset": None,
        "record_leader_epoch": checkpoint.leader_epoch,
        "appended_at": at,
        "known_from_offset": seq,
    }
    columns = [
        rows["type"] if f.name == "record_type" else pa.repeat(pa.scalar(told[f.name], f.type), count)
        for f in ENVELOPE
    ]
    return pa.table(columns, schema=ENVELOPE)


def on_line(rows: pa.Table, replay: ReplayPlan) -> tuple[pa.Table, pa.Table]:
    """The rows that are replayed, and when each of them takes effect."""
    offset, epoch = numbers(rows, "offset"), numbers(rows, "leader_epoch")
    stretches = replay.stretches
    place = place_of(offset, [s.first_offset for s in stretches])
    on = (place >= 0) & (offset < np.array([s.end_offset for s in stretches] or [0])[place])
    on &= epoch == np.array([s.leader_epoch for s in stretches] or [0])[place]
    status = np.array([s.commit_status for s in stretches] or [""])[place]
    at = np.maximum(numbers(rows.set_column(0, "at", rows["appended_at"].cast(MOMENT)), "at", -1), -1)
    floors = replay.floors
    lag = place_of(offset, [f.first_offset for f in floors])
    if floors:
        lags = (lag >= 0) & (offset < np.array([f.end_offset for f in floors])[lag])
        at = np.where(lags, np.maximum(at, np.array([f.at for f in floors])[lag] * 1000), at)
    visible = offset
    spans = replay.transactions
    if spans:
        within = place_of(offset, [t.begin_offset for t in spans])
        inside = (within >= 0) & (offset <= np.array([t.last_offset for t in spans])[within])
        ended = np.array([t.outcome == "ended" for t in spans])[within]
        on &= ~inside | ended
        inside &= ended
        visible = np.where(inside, np.array([t.end_offset or 0 for t in spans])[within], offset)
        at = np.where(inside, np.array([(t.effective_at or 0) * 1000 for t in spans])[within], at)
        status = np.where(inside, np.array([t.commit_status for t in spans])[within], status)
    envelope = pa.table(
        [
            pa.array(offset),
            rows["batch_crc"],
            pa.array(visible),
            pa.array(at, mask=at < 0).cast(MOMENT),
            pa.array(status),
            pa.array(offset),
            rows["type"],
            rows["leader_epoch"],
            rows["appended_at"].cast(MOMENT),
            pa.nulls(len(rows), pa.int64()),
        ],
        schema=ENVELOPE,
    )
    chosen = pa.array(on)
    return rows.filter(chosen), envelope.filter(chosen)


def place_of(offset: Any, firsts: Sequence[int]) -> Any:
    """For each offset the last interval that begins at it or below; -1: none."""
    return np.searchsorted(np.array(firsts, dtype=np.int64), offset, side="right") - 1
