"""Histories of partitions: partition_columns over pieces of a lake's tables.

The events of a topic go into one bucket on disk, so that no cluster is held in memory as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.findings.facts import MOST_REFUSED
from kraft_core.image import names
from kraft_core.image.history import SNAPSHOT
from kraft_core.image.replay_path import COMMITTED, PathCheckpoint
from transforms.histories.missing import with_missing
from transforms.histories.partition_columns import partition_versions
from transforms.histories.partition_events import (
    CHANGE,
    CLEAR_ELR,
    ENVELOPE,
    EVENTS,
    KEPT,
    MOMENT,
    REGISTRATION,
    WHOLE,
    Life,
    events_from,
    numbers,
)
from transforms.histories.partition_refusals import refused_records
from transforms.histories.partition_shares import Share, bucket_of
from transforms.histories.refused_records import AddRefused
from transforms.histories.replay_plan import ReplayPlan, lowest_start
from transforms.histories.replay_records import (
    WAS_READ,
    Held,
    counted,
    ended_from,
    history_rows,
    in_order,
    opened,
    scanned,
)
from transforms.histories.topics_at_once import (
    InBatch,
    is_named_inside,
    makes_again,
    topic_records,
    with_own_ends,
    with_topics,
)
from transforms.histories.transaction_refusals import refused_inside
from transforms.lake.arrow_rows import moment, of_each
from transforms.lake.storage.location import Location
from transforms.lake.tables import PARTITIONS, RECORDS, SNAPSHOT_RECORDS, TOPICS, Table

# Events that are replayed together: some 1,500 bytes each, results and all.
TOGETHER = 100_000
SPREAD = pa.schema([("cluster_id", pa.string()), *EVENTS])
PARTITION_RECORDS = WAS_READ & ds.field("type").isin([REGISTRATION, CHANGE])
CLEARS = WAS_READ & (ds.field("type") == CLEAR_ELR)
READ = ("leader_epoch", "batch_crc", "appended_at", "type", "partition", "partition_change")


def count_partitions(lake: Location, plans: Sequence[ReplayPlan]) -> Counter[str]:
    """About how many events of partitions the replay of each cluster reads."""
    sources = event_sources(plans)
    return counted(opened(lake, *sources), sources, [plan.cluster_id for plan in plans])


def changed_partitions(
    lake: Location, share: Share, lowest: int, refused: AddRefused
) -> Iterator[tuple[str, Table, pa.Table]]:
    """The rows of partition_rows by cluster, where they change; all of them are held in memory."""
    schema, clusters = PARTITIONS.arrow_schema, [plan.cluster_id for plan in share.plans]
    before = history_rows(opened(lake, PARTITIONS), PARTITIONS, clusters, lowest)
    made = pa.Table.from_batches(partition_rows(lake, share, lowest, refused), schema)
    after = dict(of_each(made, "cluster_id"))
    for cluster, held in before.items():
        rows = in_order(PARTITIONS, after.get(cluster, schema.empty_table()))
        if not rows.equals(held):
            yield cluster, PARTITIONS, rows


def partition_rows(
    lake: Location, share: Share, lowest: int, refused: AddRefused
) -> Iterator[pa.RecordBatch]:
    """Rows of PARTITIONS that end at an offset or later, or not at all.

    lowest: that offset, at most the least start of the plans. The topics of the lake must be those of the
    replays already. refused: takes what Kafka refuses to replay.
    """
    schema = PARTITIONS.arrow_schema
    held = opened(lake, RECORDS, SNAPSHOT_RECORDS, TOPICS, PARTITIONS)
    # The first share has what stays as it is.
    before = rows_before(held, share.plans if share.number == 0 else (), lowest)
    for rows in chain(before, rows_made(held, share, refused)):
        yield from rows.select(schema.names).cast(schema).to_batches()


def rows_made(held: Held, share: Share, refused: AddRefused) -> Iterator[pa.Table]:
    """The rows that the replays make."""
    plans = share.plans
    with ExitStack() as stack:
        lives = topic_lives(held, plans)
        of_topics = cache(lambda: topic_records(held, plans, lives))
        clears = cleared(held, plans, lives, of_topics)
        by_cluster = {plan.cluster_id: plan for plan in plans}
        loads = {plan.cluster_id: loaded(plan) for plan in plans}
        again = {plan.cluster_id: makes_again(plan, lives[plan.cluster_id]) for plan in plans}
        for bucket in buckets(held, share, stack):
            for cluster, of_cluster in of_each(bucket, "cluster_id"):
                of_cluster = of_cluster.select(EVENTS.names).combine_chunks()
                plan = by_cluster[cluster]
                effective = of_cluster.filter(pc.is_valid(of_cluster["visible_offset"]))
                found, invalid = partition_versions(
                    effective, lives[cluster], clears[cluster], loads[cluster]
                )
                if again[cluster]:
                    topics = of_topics()[cluster]
                    found = with_own_ends(plan, found, effective, topics, lives[cluster])
                refused(cluster, refused_records(invalid, plan.unsure, MOST_REFUSED))
                inside = of_cluster.filter(pc.is_valid(of_cluster["transaction"]))
                if len(inside):
                    topics = of_topics()[cluster]
                    refused(cluster, refused_inside(plan, inside, topics, lives[cluster], found))
                found = found.append_column("cluster_id", pa.array([cluster] * len(found), pa.string()))
                yield with_missing(found, plan.missing, plan.missing_at)


def rows_before(held: Held, plans: Sequence[ReplayPlan], lowest: int) -> Iterator[pa.Table]:
    """Rows that end at the lowest start or later, but before the replay of their own cluster starts."""
    later = {plan.cluster_id: plan for plan in plans if plan.start > lowest}
    ended = ds.field("valid_to_offset") >= lowest
    for cluster, rows in scanned(held, PARTITIONS, PARTITIONS.names, ended, list(later)):
        plan = later[cluster]
        kept = rows.filter(pc.less(rows["valid_to_offset"], plan.start))
        yield with_missing(kept, plan.missing, plan.missing_at)


def buckets(held: Held, share: Share, stack: ExitStack) -> Iterator[pa.Table]:
    """The events in tables of about TOGETHER rows, all of a topic in one."""
    count = -(-share.events // TOGETHER)
    events = map(share.of, all_events(held, share.plans, are_many=count > 1))
    if count <= 1:
        yield pa.concat_tables([SPREAD.empty_table(), *events])
        return
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="kraftlake-")))
    files = [folder / str(number) for number in range(count)]
    with ExitStack() as writing:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        writers = [
            writing.enter_context(pa.ipc.new_stream(str(file), SPREAD, options=options)) for file in files
        ]
        for some in events:
            number = bucket_of(some, count)
            order = np.argsort(number, kind="stable")
            edges = np.searchsorted(number[order], np.arange(count + 1))
            some = some.take(pa.array(order))
            for place in np.flatnonzero(np.diff(edges)):
                first, end = edges[place : place + 2]
                writers[place].write_table(some.slice(first, end - first))
    for file in files:
        with pa.OSFile(str(file)) as source:
            yield pa.ipc.open_stream(source).read_all()
        file.unlink()
        # Arrow would keep most of the bucket's memory.
        pa.default_memory_pool().release_unused()


def event_sources(plans: Sequence[ReplayPlan]) -> dict[Table, ds.Expression]:
    """By table the condition of the rows that become events: of the log, of checkpoints, current versions."""
    found = {RECORDS: PARTITION_RECORDS & (ds.field("offset") >= lowest_start(plans))}
    digests = [c.content_digest for plan in plans for c in plan.checkpoints]
    if digests:
        found[SNAPSHOT_RECORDS] = PARTITION_RECORDS & ds.field("content_digest").isin(digests)
    resumed = [plan.start for plan in plans if plan.start > 0]
    if resumed:
        found[PARTITIONS] = ended_from(min(resumed))
    return found


def all_events(held: Held, plans: Sequence[ReplayPlan], are_many: bool) -> Iterator[pa.Table]:
    """Tables of SPREAD: versions that go on, records of checkpoints, records of the log."""
    by_cluster = {plan.cluster_id: plan for plan in plans}
    columns = {
        PARTITIONS: PARTITIONS.names,
        SNAPSHOT_RECORDS: [*READ, "content_digest"],
        RECORDS: ["offset", *READ],
    }
    for table, where in event_sources(plans).items():
        for cluster, rows in scanned(held, table, columns[table], where, list(by_cluster), are_many):
            for found in events_of(table, rows, by_cluster[cluster]):
                names_of_cluster = pa.array([cluster] * len(found), pa.string())
                yield found.append_column("cluster_id", names_of_cluster).select(SPREAD.names)


def events_of(table: Table, rows: pa.Table, plan: ReplayPlan) -> Iterator[pa.Table]:
    if table is PARTITIONS:
        yield standing_events(rows, plan)
    elif table is RECORDS:
        yield events_from(*on_path(rows, plan))
    else:
        for checkpoint in plan.checkpoints:
            of_load = rows.filter(pc.equal(rows["content_digest"], checkpoint.content_digest))
            yield events_from(of_load, loaded_envelope(of_load, plan, checkpoint))


def standing_events(rows: pa.Table, plan: ReplayPlan) -> pa.Table:
    """The versions that are current where the replay starts, as registrations."""
    began = pc.less(rows["valid_from_offset"], plan.start)
    goes_on = pc.fill_null(pc.greater_equal(rows["valid_to_offset"], plan.start), True)
    kept = rows.filter(pc.and_(began, goes_on))
    words = pa.array(names.LEADER_RECOVERY_STATES.values(), pa.string())
    columns = {
        "seq": pc.coalesce(kept["record_offset"], kept["known_from_offset"]),
        "batch_crc": pa.array(np.full(len(kept), KEPT)),
        "transaction": pa.nulls(len(kept), pa.int64()),
        "visible_offset": kept["valid_from_offset"],
        "effective_at": kept["valid_from_at"],
        "earliest_offset": kept["earliest_from_offset"],
        "earliest_at": kept["earliest_from_at"],
        "event": pa.array([WHOLE] * len(kept), pa.string()),
        "leader_recovery_state": pc.index_in(kept["leader_recovery_state"], words),
    }
    found = [columns[name] if name in columns else kept[name] for name in EVENTS.names]
    return pa.table(found, EVENTS.names).cast(EVENTS)


def topic_lives(held: Held, plans: Sequence[ReplayPlan]) -> dict[str, list[Life]]:
    """By cluster, the lives of topics that end at the lowest start of the replays or later, or not at all."""
    found: dict[str, list[Life]] = {plan.cluster_id: [] for plan in plans}
    late = ended_from(lowest_start(plans))
    for cluster, rows in scanned(held, TOPICS, TOPICS.names, late, list(found)):
        found[cluster] += map(life_of, rows.to_pylist())
    return found


def life_of(row: dict[str, Any]) -> Life:
    return Life(
        topic_id=row["topic_id"],
        name=row["topic_name"],
        first_seq=row["known_from_offset"] if row["record_offset"] is None else row["record_offset"],
        end_offset=row["valid_to_offset"],
        end_at=row["valid_to_at"],
        earliest_end_offset=row["earliest_to_offset"],
        earliest_end_at=row["earliest_to_at"],
        end_type=row["ended_by"],
        end_status=row["end_commit_status"],
    )


def cleared(
    held: Held,
    plans: Sequence[ReplayPlan],
    lives: Mapping[str, Sequence[Life]],
    of_topics: Callable[[], Mapping[str, Sequence[InBatch]]],
) -> dict[str, pa.Table]:
    """By cluster, the records that clear ELRs: ENVELOPE and topic_id, null: of all topics."""
    by_cluster = {plan.cluster_id: plan for plan in plans}
    columns = ["offset", "leader_epoch", "batch_crc", "appended_at", "type", "clear_elr"]
    where = CLEARS & (ds.field("offset") >= lowest_start(plans))
    schema = pa.schema([*ENVELOPE, ("topic_name", pa.string())])
    found = {cluster: [schema.empty_table()] for cluster in by_cluster}
    for cluster, rows in scanned(held, RECORDS, columns, where, list(by_cluster)):
        rows, envelope = on_path(rows, by_cluster[cluster])
        took_effect = pc.is_valid(envelope["visible_offset"])
        rows, envelope = rows.filter(took_effect), envelope.filter(took_effect)
        names = pc.struct_field(rows["clear_elr"].combine_chunks(), "topic_name")
        found[cluster].append(envelope.append_column("topic_name", names).cast(schema))
    every = {cluster: pa.concat_tables(tables) for cluster, tables in found.items()}
    inside = any(pc.any(is_named_inside(clears)).as_py() for clears in every.values())
    topics = of_topics() if inside else {}
    return {cluster: with_topics(c, topics.get(cluster, ()), lives[cluster]) for cluster, c in every.items()}


def loaded(plan: ReplayPlan) -> pa.Table:
    """The checkpoints that replace a state known before: ENVELOPE."""
    jumps = [c for c in plan.checkpoints if c is not plan.steps[0]]
    snapshot = pa.table({"type": pa.array([SNAPSHOT])})
    return pa.concat_tables([ENVELOPE.empty_table(), *(loaded_envelope(snapshot, plan, c) for c in jumps)])


def loaded_envelope(rows: pa.Table, plan: ReplayPlan, checkpoint: PathCheckpoint) -> pa.Table:
    """When the records of a checkpoint take effect: at the last offset that it covers."""
    seq = checkpoint.first_offset
    at = max(plan.floor_at(seq), -1 if checkpoint.timestamp is None else checkpoint.timestamp)
    gap = plan.gaps.get(seq)
    values = {
        "seq": seq,
        "batch_crc": 0,
        "transaction": None,
        "visible_offset": seq,
        "effective_at": None if at < 0 else moment(at),
        "commit_status": COMMITTED,
        "record_offset": None,
        "record_leader_epoch": checkpoint.leader_epoch,
        "appended_at": moment(checkpoint.timestamp),
        "known_from_offset": seq,
        "earliest_offset": None if gap is None else gap.first_offset,
        "earliest_at": None if gap is None or gap.begun_at < 0 else moment(gap.begun_at),
    }
    columns = [
        rows["type"] if f.name == "record_type" else pa.repeat(pa.scalar(values[f.name], f.type), len(rows))
        for f in ENVELOPE
    ]
    return pa.table(columns, schema=ENVELOPE)


def on_path(rows: pa.Table, plan: ReplayPlan) -> tuple[pa.Table, pa.Table]:
    """The records on the replay path, and when each of them takes effect, if it does."""
    offset, epoch = numbers(rows, "offset"), numbers(rows, "leader_epoch")
    ranges = plan.ranges
    place = place_of(offset, [r.first_offset for r in ranges])
    on = (place >= 0) & (offset < np.array([r.end_offset for r in ranges] or [0])[place])
    on &= epoch == np.array([r.leader_epoch for r in ranges] or [0])[place]
    status = np.array([r.commit_status for r in ranges] or [""])[place]
    at = np.maximum(numbers(rows.set_column(0, "at", rows["appended_at"].cast(MOMENT)), "at", -1), -1)
    floors = plan.floors
    lag = place_of(offset, [f.first_offset for f in floors])
    if floors:
        lags = (lag >= 0) & (offset < np.array([f.end_offset for f in floors])[lag])
        at = np.where(lags, np.maximum(at, np.array([f.at for f in floors])[lag] * 1000), at)
    visible, takes_effect = offset, np.ones(len(rows), dtype=bool)
    begun, in_transaction = offset, np.zeros(len(rows), dtype=bool)
    spans = plan.transactions
    if spans:
        within = place_of(offset, [t.begin_offset for t in spans])
        in_transaction = (within >= 0) & (offset <= np.array([t.last_offset for t in spans])[within])
        begun = np.array([t.begin_offset for t in spans])[within]
        inside = in_transaction & np.array([t.outcome == "ended" for t in spans])[within]
        takes_effect = ~in_transaction | inside
        visible = np.where(inside, np.array([t.end_offset or 0 for t in spans])[within], offset)
        at = np.where(inside, np.array([(t.effective_at or 0) * 1000 for t in spans])[within], at)
        status = np.where(inside, np.array([t.commit_status for t in spans])[within], status)
    envelope = pa.table(
        [
            pa.array(offset),
            rows["batch_crc"],
            pa.array(begun, mask=~in_transaction),
            pa.array(visible, mask=~takes_effect),
            pa.array(at, mask=at < 0).cast(MOMENT),
            pa.array(status),
            pa.array(offset),
            rows["type"],
            rows["leader_epoch"],
            rows["appended_at"].cast(MOMENT),
            pa.nulls(len(rows), pa.int64()),
            pa.nulls(len(rows), pa.int64()),
            pa.nulls(len(rows), MOMENT),
        ],
        schema=ENVELOPE,
    )
    chosen = pa.array(on)
    return rows.filter(chosen), envelope.filter(chosen)


def place_of(offset: Any, firsts: Sequence[int]) -> Any:
    """For each offset the place of the last interval that begins at it or below; -1: none."""
    return np.searchsorted(np.array(firsts, dtype=np.int64), offset, side="right") - 1
