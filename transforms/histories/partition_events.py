"""Events of partitions: registrations, changes and other events, as Arrow rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image.history import SNAPSHOT
from kraft_core.image.partitions import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE

REGISTRATION, CHANGE, CLEAR_ELR = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD"
MOMENT = pa.timestamp("us", tz="UTC")
# Takes the place of a batch's CRC: the event is a version of an earlier run that goes on.
KEPT = -1
NUMBER_LISTS = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
)
LISTS = (*NUMBER_LISTS, "directories")
NEVER = np.iinfo(np.int64).max
# Of partitions: Kafka writes no negative one, but would replay it.
LOWEST_ID = np.iinfo(np.int32).min
# What an event is: a registration, which has all fields; a change; ELRs cleared; absence from a snapshot.
WHOLE, CHANGED, CLEARED, GONE = "whole", "changed", "cleared", "gone"
# When and by what an event happened; seq: its place in the log. transaction: where the metadata transaction
# begins in which it lies, null if it lies in none. visible_offset: where it took effect, null if it did not.
# known_from_offset: set if a snapshot shows it; then earliest_offset, earliest_at: where it can have happened
# first, null if nothing bounds it.
ENVELOPE = pa.schema(
    [
        ("seq", pa.int64()),
        ("batch_crc", pa.int64()),
        ("transaction", pa.int64()),
        ("visible_offset", pa.int64()),
        ("effective_at", MOMENT),
        ("commit_status", pa.string()),
        ("record_offset", pa.int64()),
        ("record_type", pa.string()),
        ("record_leader_epoch", pa.int32()),
        ("appended_at", MOMENT),
        ("known_from_offset", pa.int64()),
        ("earliest_offset", pa.int64()),
        ("earliest_at", MOMENT),
    ]
)
# What an event says of its partition.
SAID = pa.schema(
    [
        ("event", pa.string()),
        ("topic_id", pa.string()),
        ("partition_id", pa.int32()),
        *((name, pa.list_(pa.int32())) for name in NUMBER_LISTS),
        ("directories", pa.list_(pa.string())),
        ("leader", pa.int32()),
        ("leader_recovery_state", pa.int8()),
        ("leader_epoch", pa.int32()),
        ("partition_epoch", pa.int32()),
    ]
)
EVENTS = pa.schema([*ENVELOPE, *SAID])


@dataclass(frozen=True, slots=True)
class Life:
    """A topic under its id, from the record that made it (first_seq) until it ends, null if it goes on."""

    topic_id: str
    name: str
    first_seq: int
    end_offset: int | None
    end_at: Any
    earliest_end_offset: int | None
    earliest_end_at: Any
    end_type: str | None
    end_status: str | None


def events_from(rows: pa.Table, envelope: pa.Table) -> pa.Table:
    """EVENTS of rows of records with the structs partition and partition_change; none of one without both."""
    said = said_by(rows)
    found = pa.table([*envelope.columns, *said.columns], [*envelope.column_names, *said.column_names])
    held = pc.or_(pc.is_valid(rows["partition"]), pc.is_valid(rows["partition_change"]))
    return found.filter(held).select(EVENTS.names).cast(EVENTS)


def said_by(rows: pa.Table) -> pa.Table:
    """SAID of rows of records with the structs partition and partition_change, one of which is null."""
    whole, change = (rows[name].combine_chunks() for name in ("partition", "partition_change"))

    def named(name: str) -> Any:
        return pc.coalesce(pc.struct_field(whole, name), pc.struct_field(change, name))

    def changed(name: str, nothing: int) -> Any:
        of_change = pc.struct_field(change, name)
        of_change = pc.if_else(pc.equal(of_change, nothing), pa.scalar(None, of_change.type), of_change)
        return pc.coalesce(pc.struct_field(whole, name), of_change)

    columns = {
        "event": pc.if_else(pc.is_valid(whole), WHOLE, CHANGED),
        "leader": changed("leader", NO_LEADER_CHANGE),
        "leader_recovery_state": changed("leader_recovery_state", NO_RECOVERY_STATE_CHANGE),
        "leader_epoch": pc.struct_field(whole, "leader_epoch"),
        "partition_epoch": pc.struct_field(whole, "partition_epoch"),
    }
    columns |= {name: named(name) for name in ("topic_id", "partition_id", *LISTS)}
    return pa.table(columns).select(SAID.names).cast(SAID)


def cleared(
    events: pa.Table, things: Any, lives: Sequence[Life], clears: pa.Table
) -> Iterator[tuple[pa.Table, Any]]:
    """For each record that clears ELRs, an event of every partition that its topics have by then.

    clears: ENVELOPE, and topic_id, null: of all topics.
    """
    if not len(clears):
        return
    known = KnownPartitions.of(events, things)
    of_topic: defaultdict[str, list[int]] = defaultdict(list)
    for place, life in enumerate(lives):
        of_topic[life.topic_id].append(place)
    for clear in clears.to_pylist():
        topic_id, seq = clear["topic_id"], clear["seq"]
        for place in range(len(lives)) if topic_id is None else of_topic[topic_id]:
            # One that ends here was cleared before: kraft_core.image.replay_path.replay_order.
            if lives[place].first_seq < seq <= (lives[place].end_offset or NEVER):
                found = known.of_life(place, seq)
                if len(found):
                    yield event_of_each(found, clear, CLEARED, lives), found


def vanished(
    events: pa.Table, things: Any, lives: Sequence[Life], loads: pa.Table
) -> Iterator[tuple[pa.Table, Any]]:
    """For each snapshot that is loaded, an end of every partition known by then that it lacks."""
    if not len(loads):
        return
    known = KnownPartitions.of(events, things)
    loaded, seqs = is_loaded(events), numbers(events, "seq")
    goes_on_until = np.array([each.end_offset or NEVER for each in lives], dtype=np.int64)
    for load in loads.to_pylist():
        before = known.things[known.first < load["seq"]]
        before = before[goes_on_until[before >> 32] > load["seq"]]
        found = np.setdiff1d(before, things[loaded & (seqs == load["seq"])])
        if len(found):
            yield event_of_each(found, load | {"record_type": SNAPSHOT}, GONE, lives), found


def event_of_each(things: Any, envelope: dict[str, Any], event: str, lives: Sequence[Life]) -> pa.Table:
    """The same event of each of the partitions."""
    count = len(things)
    topics = pa.array([each.topic_id for each in lives], pa.string())
    events: dict[str, Any] = {
        "event": pa.repeat(pa.scalar(event), count),
        "topic_id": topics.take(pa.array(things >> 32)),
        "partition_id": pa.array((things & 0xFFFFFFFF) + LOWEST_ID).cast(pa.int32()),
    }
    if event == CLEARED:
        nothing = pa.array([[]] * count, pa.list_(pa.int32()))
        events |= {"eligible_leader_replicas": nothing, "last_known_elr": nothing}
    columns = [
        events[f.name] if f.name in events else pa.repeat(pa.scalar(envelope.get(f.name), f.type), count)
        for f in EVENTS
    ]
    return pa.table(columns, schema=EVENTS)


@dataclass(frozen=True, slots=True)
class KnownPartitions:
    """The partitions that events name, sorted, and the place in the log of the first event of each."""

    things: Any
    first: Any

    @classmethod
    def of(cls, events: pa.Table, things: Any) -> KnownPartitions:
        order = np.lexsort((numbers(events, "seq"), things))
        found, places = np.unique(things[order], return_index=True)
        return cls(found, numbers(events, "seq")[order][places])

    def of_life(self, place: int, seq: int) -> Any:
        """Those of one life of a topic that an event below an offset names."""
        first, end = np.searchsorted(self.things, [place << 32, place + 1 << 32])
        return self.things[first:end][self.first[first:end] < seq]


def things_of(life: Any, partition_id: Any) -> Any:
    """A number for each partition, with the place of its topic's life in the upper 32 bits."""
    return life << 32 | partition_id - LOWEST_ID


def is_loaded(events: pa.Table) -> Any:
    """Which events come from a snapshot that this replay loads."""
    of_snapshot = pc.is_valid(events["known_from_offset"]).to_numpy()
    return of_snapshot & (numbers(events, "batch_crc") != KEPT)


def numbers(table: pa.Table, name: str, null: int = 0) -> Any:
    """A column of whole numbers as a numpy array of 64 bits."""
    return table[name].cast(pa.int64()).fill_null(null).to_numpy()


def in_lives(events: pa.Table, lives: Sequence[Life]) -> tuple[pa.Table, Any, pa.Table]:
    """The events in the life of a topic, for each the place of that life in `lives`, and the other events."""
    codes: dict[str, int] = {}
    for life in lives:
        codes.setdefault(life.topic_id, len(codes))
    topics = events["topic_id"].combine_chunks().dictionary_encode()
    code_of = np.array([codes.get(topic, -1) for topic in topics.dictionary.to_pylist()], dtype=np.int64)
    if not len(events) or not codes:
        return events.slice(0, 0), np.array([], dtype=np.int64), events
    code = code_of[topics.indices.to_numpy()]
    seq = numbers(events, "seq")
    of_life = np.array([codes[life.topic_id] for life in lives], dtype=np.int64)
    first = np.array([life.first_seq for life in lives], dtype=np.int64)
    end = np.array([NEVER if e is None else e for e in (life.end_offset for life in lives)])
    order = np.lexsort((first, of_life))
    # Codes and the ranks of offsets in one number, so that one search finds the topic's newest life by then.
    starts = np.unique(first)

    def place_of(codes: Any, offsets: Any) -> Any:
        return codes * (len(starts) + 1) + np.searchsorted(starts, offsets, side="right")

    place = np.searchsorted(place_of(of_life[order], first[order]), place_of(code, seq), side="right") - 1
    found = order[np.maximum(place, 0)]
    inside = (code >= 0) & (place >= 0) & (of_life[found] == code) & (seq < end[found])
    if inside.all():
        return events, found, events.slice(0, 0)
    return events.filter(pa.array(inside)), found[inside], events.filter(pa.array(~inside))
