"""Versions of partitions by one pass over whole columns (the rules: kraft_core.image.partitions).

Registrations and changes are sorted by partition; what a change does not name is taken from the last row
that does. Lists are not touched for that: each output row names the row it takes a list from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image import names
from kraft_core.image.history import SNAPSHOT
from kraft_core.image.partitions import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE
from transforms.histories.history_events import KEPT
from transforms.histories.history_line import MOMENT

REGISTRATION, CHANGE = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"
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
SCALARS = ("leader", "leader_recovery_state")
# What an event is: a registration, which tells all; a change; ELRs cleared; what a snapshot no longer holds.
WHOLE, CHANGED, CLEARED, GONE = "whole", "changed", "cleared", "gone"
# What is told of each event, seq being its place in the log. known_from_offset: a snapshot tells it.
ENVELOPE = pa.schema(
    [
        ("seq", pa.int64()),
        ("batch_crc", pa.int64()),
        ("visible_offset", pa.int64()),
        ("effective_at", MOMENT),
        ("commit_status", pa.string()),
        ("record_offset", pa.int64()),
        ("record_type", pa.string()),
        ("record_leader_epoch", pa.int32()),
        ("appended_at", MOMENT),
        ("known_from_offset", pa.int64()),
    ]
)
EVENTS = pa.schema(
    [
        *ENVELOPE,
        ("says", pa.string()),
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


@dataclass(frozen=True, slots=True)
class Life:
    """A topic under its id, from the record that made it (first_seq) until it ends, null if it goes on."""

    topic_id: str
    name: str
    first_seq: int
    end_offset: int | None
    end_at: Any
    end_type: str | None
    end_status: str | None


def events(rows: pa.Table, envelope: pa.Table) -> pa.Table:
    """Events from rows of records with the structs partition and partition_change, one of which is null.

    Rows that name a leader recovery state which Kafka does not know are left out: it refuses them.
    """
    whole, change = (rows[name].combine_chunks() for name in ("partition", "partition_change"))

    def told(name: str) -> Any:
        return pc.coalesce(pc.struct_field(whole, name), pc.struct_field(change, name))

    def changed(name: str, nothing: int) -> Any:
        of_change = pc.struct_field(change, name)
        of_change = pc.if_else(pc.equal(of_change, nothing), pa.scalar(None, of_change.type), of_change)
        return pc.coalesce(pc.struct_field(whole, name), of_change)

    columns = {
        "says": pc.if_else(pc.is_valid(whole), WHOLE, CHANGED),
        "leader": changed("leader", NO_LEADER_CHANGE),
        "leader_recovery_state": changed("leader_recovery_state", NO_RECOVERY_STATE_CHANGE),
        "leader_epoch": pc.struct_field(whole, "leader_epoch"),
        "partition_epoch": pc.struct_field(whole, "partition_epoch"),
    }
    columns |= {name: told(name) for name in ("topic_id", "partition_id", *LISTS)}
    found = pa.table([*envelope.columns, *columns.values()], [*envelope.column_names, *columns])
    state = found["leader_recovery_state"]
    known = pc.is_in(state, pa.array(list(names.LEADER_RECOVERY_STATES), pa.int8()))
    held = pc.or_(pc.is_valid(whole), pc.is_valid(change))
    return found.filter(pc.and_(held, pc.or_(pc.is_null(state), known))).select(EVENTS.names).cast(EVENTS)


def partition_versions(told: pa.Table, lives: Sequence[Life], clears: pa.Table, loads: pa.Table) -> pa.Table:
    """The versions of the partitions of one cluster: the columns of PARTITIONS but for the cluster's.

    told: EVENTS, in any order. What lies outside of every life of its topic is no partition. clears: ELRs
    cleared (ENVELOPE and topic_name, empty: of all topics). loads: snapshots that take the place of what was
    known (ENVELOPE).
    """
    told, life = in_lives(told, lives)
    things = life << 32 | numbers(told, "partition_id")
    more = [*cleared(told, things, lives, clears), *vanished(told, things, lives, loads)]
    if more:
        told = pa.concat_tables([told, *(rows for rows, _ in more)]).combine_chunks()
        things = np.concatenate([things, *(of_rows for _, of_rows in more)])
    order = np.lexsort((numbers(told, "batch_crc"), numbers(told, "seq"), things))
    told, things = told.take(pa.array(order)).combine_chunks(), things[order]
    life = things >> 32
    lengths = {name: Lengths.of(told[name]) for name in LISTS}
    rows = np.arange(len(told))
    while True:
        state = PartitionStates.after(told, things, rows)
        out = state.first_of_each_thing(misplaced(state, lengths) | without_effect(told, state, lengths))
        if not out.any() and len(state.rows) == len(rows):
            break
        rows = state.rows[~out]
    if len(loads):
        state = state.at(~repeated(told, state, lengths))
    ends = np.array([NEVER if e is None else e for e in (each.end_offset for each in lives)], dtype=np.int64)
    visible = numbers(told, "visible_offset")[state.rows]
    stands = state.followed(visible, ends[life[state.rows]]) > visible
    return as_table(told, state.at(stands), life, lives, lengths)


def cleared(
    told: pa.Table, things: Any, lives: Sequence[Life], clears: pa.Table
) -> Iterator[tuple[pa.Table, Any]]:
    """For each record that clears ELRs an event of every partition that its topics have by then."""
    known = KnownPartitions.of(told, things)
    of_name: dict[str, list[int]] = defaultdict(list)
    for place, life in enumerate(lives):
        of_name[life.name].append(place)
    for clear in clears.to_pylist():
        named, seq = clear["topic_name"], clear["seq"]
        for place in of_name[named] if named else range(len(lives)):
            if lives[place].first_seq < seq and (lives[place].end_offset or NEVER) > seq:
                found = known.of_life(place, seq)
                if len(found):
                    yield event_of_each(found, clear, CLEARED, lives), found


def vanished(
    told: pa.Table, things: Any, lives: Sequence[Life], loads: pa.Table
) -> Iterator[tuple[pa.Table, Any]]:
    """For each snapshot that is loaded an end of every partition known by then that it does not hold."""
    known = KnownPartitions.of(told, things)
    loaded, seqs = is_loaded(told), numbers(told, "seq")
    goes_on_until = np.array([each.end_offset or NEVER for each in lives], dtype=np.int64)
    for load in loads.to_pylist():
        before = known.things[known.first < load["seq"]]
        before = before[goes_on_until[before >> 32] > load["seq"]]
        found = np.setdiff1d(before, things[loaded & (seqs == load["seq"])])
        if len(found):
            yield event_of_each(found, load | {"record_type": SNAPSHOT}, GONE, lives), found


def event_of_each(things: Any, envelope: dict[str, Any], says: str, lives: Sequence[Life]) -> pa.Table:
    """The same event of each of the partitions."""
    count = len(things)
    topics = pa.array([each.topic_id for each in lives], pa.string())
    told: dict[str, Any] = {
        "says": pa.repeat(pa.scalar(says), count),
        "topic_id": topics.take(pa.array(things >> 32)),
        "partition_id": pa.array(things & 0xFFFFFFFF).cast(pa.int32()),
    }
    if says == CLEARED:
        nothing = pa.array([[]] * count, pa.list_(pa.int32()))
        told |= {"eligible_leader_replicas": nothing, "last_known_elr": nothing}
    columns = [
        told[f.name] if f.name in told else pa.repeat(pa.scalar(envelope.get(f.name), f.type), count)
        for f in EVENTS
    ]
    return pa.table(columns, schema=EVENTS)


@dataclass(frozen=True, slots=True)
class KnownPartitions:
    """The partitions that are told of, sorted, and the place in the log where each is told of first."""

    things: Any
    first: Any

    @classmethod
    def of(cls, told: pa.Table, things: Any) -> KnownPartitions:
        order = np.lexsort((numbers(told, "seq"), things))
        found, places = np.unique(things[order], return_index=True)
        return cls(found, numbers(told, "seq")[order][places])

    def of_life(self, place: int, seq: int) -> Any:
        """Those of one life of a topic that are told of before an offset."""
        first, end = np.searchsorted(self.things, [place << 32, place + 1 << 32])
        return self.things[first:end][self.first[first:end] < seq]


def is_loaded(told: pa.Table) -> Any:
    """Which events a snapshot tells, that was loaded now."""
    of_snapshot = pc.is_valid(told["known_from_offset"]).to_numpy()
    return of_snapshot & (numbers(told, "batch_crc") != KEPT)


def numbers(table: pa.Table, name: str, null: int = 0) -> Any:
    """A column of whole numbers as a numpy array of 64 bits."""
    return table[name].cast(pa.int64()).fill_null(null).to_numpy()


def in_lives(told: pa.Table, lives: Sequence[Life]) -> tuple[pa.Table, Any]:
    """The events that lie in the life of a topic, and for each the place of that life in `lives`."""
    codes: dict[str, int] = {}
    for life in lives:
        codes.setdefault(life.topic_id, len(codes))
    topics = told["topic_id"].combine_chunks().dictionary_encode()
    code_of = np.array([codes.get(topic, -1) for topic in topics.dictionary.to_pylist()], dtype=np.int64)
    if not len(told) or not codes:
        return told.slice(0, 0), np.array([], dtype=np.int64)
    code = code_of[topics.indices.to_numpy()]
    seq = numbers(told, "seq")
    of_life = np.array([codes[life.topic_id] for life in lives], dtype=np.int64)
    first = np.array([life.first_seq for life in lives], dtype=np.int64)
    end = np.array([NEVER if e is None else e for e in (life.end_offset for life in lives)])
    order = np.lexsort((first, of_life))
    # Codes and offsets in one number, so that one search finds the topic's newest life by then.
    bits = 40
    place = np.searchsorted(of_life[order] << bits | first[order], code << bits | seq, side="right") - 1
    found = order[np.maximum(place, 0)]
    inside = (code >= 0) & (place >= 0) & (of_life[found] == code) & (seq < end[found])
    return told.filter(pa.array(inside)), found[inside]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of lists of log directories, or of anything: how many elements, how many of them name something."""

    all: Any
    assigned: Any

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Lengths:
        lists = column.combine_chunks()
        length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        ends = np.cumsum(length)
        values = lists.flatten()
        if values.type == pa.string():
            values = pc.not_equal(values, names.MIGRATING_DIRECTORY)
        flags = values.cast(pa.int8()).to_numpy() if values.type == pa.bool_() else np.ones(len(values))
        before = np.concatenate([[0], np.cumsum(flags)])
        return cls(length, before[ends] - before[ends - length])


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """What stands after each event: `rows` are places in the sorted events, those of what is no partition
    left out; the other arrays go along with it.

    things: the partition, whose life of a topic is in the upper 32 bits. present: whether it is there after
    the event. base: the row of its last registration. sources: by column, the row to take it from.
    """

    rows: Any
    things: Any
    present: Any
    base: Any
    sources: dict[str, Any]
    elections: Any
    changes: Any

    @classmethod
    def after(cls, told: pa.Table, things: Any, rows: Any) -> PartitionStates:
        whole = pc.equal(told["says"], WHOLE).to_numpy()[rows]
        gone = pc.equal(told["says"], GONE).to_numpy()[rows]
        place = np.arange(len(rows))
        begins = np.concatenate([[True], things[rows][1:] != things[rows][:-1]])[: len(rows)]
        first = np.maximum.accumulate(np.where(begins, place, 0)) if len(rows) else place
        base = last_where(whole)
        present = (base >= first) & (base > last_where(gone))
        told_of = present | gone

        def source(name: str) -> Any:
            says = pc.is_valid(told[name]).to_numpy()[rows] | whole
            return rows[last_where(says)[told_of]]

        named = pc.is_valid(told["leader"]).to_numpy()[rows]
        elections, changes = np.cumsum(~whole & named), np.cumsum(~whole)
        return cls(
            rows=rows[told_of],
            things=things[rows][told_of],
            present=present[told_of],
            base=rows[base[told_of]],
            sources={name: source(name) for name in (*LISTS, *SCALARS)},
            elections=(elections - elections[base])[told_of],
            changes=(changes - changes[base])[told_of],
        )

    def at(self, chosen: Any) -> PartitionStates:
        """Some of the rows of it."""
        return PartitionStates(
            self.rows[chosen],
            self.things[chosen],
            self.present[chosen],
            self.base[chosen],
            {name: rows[chosen] for name, rows in self.sources.items()},
            self.elections[chosen],
            self.changes[chosen],
        )

    def first_of_each_thing(self, chosen: Any) -> Any:
        """Of the chosen ones the first of each partition: by what follows it others may be right."""
        places = np.flatnonzero(chosen)
        _, first = np.unique(self.things[places], return_index=True)
        found = np.zeros(len(chosen), dtype=bool)
        found[places[first]] = True
        return found

    def followed(self, values: Any, otherwise: Any) -> Any:
        """For each row the value of the partition's next one, or what ends it from outside."""
        goes_on = self.things[1:] == self.things[:-1]
        found = otherwise.copy()
        found[:-1][goes_on] = values[1:][goes_on]
        return found


def last_where(flags: Any) -> Any:
    """For each place the last one up to it that is flagged; -1: none."""
    places = np.where(flags, np.arange(len(flags)), -1)
    return np.maximum.accumulate(places) if len(flags) else places


def misplaced(state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where a record leaves other than one directory a replica, which Kafka refuses."""
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    placed, directories = state.sources["directories"], lengths["directories"]
    return state.present & (directories.assigned[placed] > 0) & (directories.all[placed] != replicas)


def without_effect(told: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where ELRs are cleared of a partition that has none."""
    clears = pc.equal(told["says"], CLEARED).to_numpy()[state.rows]
    had = np.zeros(len(clears), dtype=bool)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        had[1:] |= lengths[name].all[state.sources[name][:-1]] > 0
    return clears & ~had


def repeated(told: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where a snapshot tells what stood already, or lacks what was not there."""
    after = np.flatnonzero(is_loaded(told)[state.rows])
    after = after[after > 0]
    after = after[state.things[after] == state.things[after - 1]]
    same = state.present[after] == state.present[after - 1]
    one, other = (values(told, state.at(places), lengths) for places in (after, after - 1))
    for name, column in one.items():
        same &= pc.fill_null(pc.equal(comparable(column), comparable(other[name])), True).to_numpy(False)
    found = np.zeros(len(state.rows), dtype=bool)
    found[after[same | ~(state.present[after] | state.present[after - 1])]] = True
    return found


def comparable(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), ",")
    return column


def values(told: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> dict[str, pa.Array]:
    """What the records say of the partitions, in the columns of PARTITIONS."""
    found = {name: taken(told[name], state.sources[name]) for name in (*NUMBER_LISTS, *SCALARS)}
    found["directories"] = placed_directories(told, state, lengths)
    found["leader_recovery_state"] = worded(found["leader_recovery_state"])
    for name, rises in (("leader_epoch", state.elections), ("partition_epoch", state.changes)):
        found[name] = pa.array(numbers(told, name)[state.base] + rises, pa.int32())
    return found


def as_table(
    told: pa.Table, state: PartitionStates, life: Any, lives: Sequence[Life], lengths: Mapping[str, Lengths]
) -> pa.Table:
    """The rows of the state as versions, each ended by the next one or with its topic."""
    # What ends it: the next row, or else, behind all rows, the end of its topic.
    ending = state.followed(state.rows, len(told) + life[state.rows])[state.present]
    state = state.at(state.present)

    def ended(column: pa.ChunkedArray, of_lives: Sequence[Any]) -> Any:
        mine = column.combine_chunks()
        return pa.concat_arrays([mine, pa.array(of_lives, mine.type)]).take(pa.array(ending))

    enders = pc.if_else(pa.array(is_loaded(told)), SNAPSHOT, told["record_type"])
    topics = pa.array([each.name for each in lives], pa.string())
    columns = values(told, state, lengths) | {
        "topic_name": topics.take(pa.array(life[state.rows])),
        "valid_to_offset": ended(told["visible_offset"], [each.end_offset for each in lives]),
        "valid_to_at": ended(told["effective_at"], [each.end_at for each in lives]),
        "ended_by": ended(enders, [each.end_type for each in lives]),
        "end_commit_status": ended(told["commit_status"], [each.end_status for each in lives]),
    }
    as_told = told.take(pa.array(state.rows))
    columns |= {name: as_told[name] for name in AS_TOLD}
    columns |= {"valid_from_offset": as_told["visible_offset"], "valid_from_at": as_told["effective_at"]}
    return pa.table(columns)


AS_TOLD = (
    "topic_id",
    "partition_id",
    "commit_status",
    "record_offset",
    "record_type",
    "record_leader_epoch",
    "appended_at",
    "known_from_offset",
)


def taken(column: pa.ChunkedArray, rows: Any) -> pa.Array:
    """The values of the rows, an empty list where a registration names none."""
    found = column.combine_chunks()
    if pa.types.is_list(found.type):
        nothing = len(found)
        rows = np.where(pc.is_valid(found).to_numpy(zero_copy_only=False)[rows], rows, nothing)
        found = pa.concat_arrays([found, pa.array([[]], found.type)])
    return found.take(pa.array(rows))


def placed_directories(told: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> pa.Array:
    """The directories; where none was assigned yet, so many times Kafka's word for that."""
    rows = state.sources["directories"]
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    column = told["directories"].combine_chunks()
    most = int(replicas.max()) if len(replicas) else 0
    unassigned = pa.array([[names.MIGRATING_DIRECTORY] * count for count in range(most + 1)], column.type)
    rows = np.where(lengths["directories"].assigned[rows] == 0, len(column) + replicas, rows)
    return pa.concat_arrays([column, unassigned]).take(pa.array(rows))


def worded(states: pa.Array) -> pa.Array:
    known = list(names.LEADER_RECOVERY_STATES)
    words = pa.array(names.LEADER_RECOVERY_STATES.values(), pa.string())
    return words.take(pc.index_in(states, pa.array(known, states.type)))
