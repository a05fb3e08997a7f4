"""Versions of partitions by one pass over whole columns (the rules: kraft_core.image.partitions).

Registrations and changes are sorted by partition; what a change does not name is taken from the last row
that does. Lists are not touched for that: each output row names the row it takes a list from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image import names
from kraft_core.image.partitions import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE
from transforms.history_line import MOMENT

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
SCALARS = ("leader", "leader_recovery_state")
# What is told of each event, seq being its place in the log.
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
        ("is_whole", pa.bool_()),
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
        "is_whole": pc.is_valid(whole),
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


def partition_versions(told: pa.Table, lives: Sequence[Life]) -> pa.Table:
    """The versions of the partitions of one cluster: the columns of PARTITIONS but for the cluster's.

    told: EVENTS, in any order. What lies outside of every life of its topic is no partition.
    """
    told, life = in_lives(told, lives)
    things = life << 32 | numbers(told, "partition_id")
    order = np.lexsort((numbers(told, "batch_crc"), numbers(told, "seq"), things))
    told, life, things = told.take(pa.array(order)).combine_chunks(), life[order], things[order]
    lists = {name: Lengths.of(told[name]) for name in ("replicas", "directories")}
    rows = np.arange(len(told))
    while True:
        state = State.after(told, things, rows)
        refused = state.first_of_each_thing(misplaced(state, lists["replicas"], lists["directories"]))
        if not refused.any() and len(state.rows) == len(rows):
            break
        rows = state.rows[~refused]
    ends = pa.array([each.end_offset for each in lives], pa.int64())
    last = np.iinfo(np.int64).max
    until = ends.fill_null(last).to_numpy()[life[state.rows]] if len(lives) else life[state.rows]
    visible = numbers(told, "visible_offset")[state.rows]
    stands = state.followed(visible, until) > visible
    return as_table(told, state, np.flatnonzero(stands), life, lives, lists["directories"])


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
    end = np.array([np.iinfo(np.int64).max if e is None else e for e in (x.end_offset for x in lives)])
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
class State:
    """What stands after each event: `rows` are places in the sorted events, those that are no partition yet
    left out; the other arrays go along with it.

    things: the partition. base: the row of its last registration. sources: by column, the row to take from.
    """

    rows: Any
    things: Any
    base: Any
    sources: dict[str, Any]
    elections: Any
    changes: Any

    @classmethod
    def after(cls, told: pa.Table, things: Any, rows: Any) -> State:
        whole = told["is_whole"].to_numpy()[rows]
        place = np.arange(len(rows))
        begins = np.concatenate([[True], things[rows][1:] != things[rows][:-1]])[: len(rows)]
        first = np.maximum.accumulate(np.where(begins, place, 0)) if len(rows) else place
        base = last_where(whole)
        present = base >= first

        def source(name: str) -> Any:
            says = pc.is_valid(told[name]).to_numpy()[rows] | whole
            return rows[last_where(says)[present]]

        named = pc.is_valid(told["leader"]).to_numpy()[rows]
        elections, changes = np.cumsum(~whole & named), np.cumsum(~whole)
        return cls(
            rows=rows[present],
            things=things[rows][present],
            base=rows[base[present]],
            sources={name: source(name) for name in (*LISTS, *SCALARS)},
            elections=(elections - elections[base])[present],
            changes=(changes - changes[base])[present],
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


def misplaced(state: State, replicas: Lengths, directories: Lengths) -> Any:
    """Where a record leaves other than one directory a replica, which Kafka refuses."""
    held, placed = state.sources["replicas"], state.sources["directories"]
    return (directories.assigned[placed] > 0) & (directories.all[placed] != replicas.all[held])


def as_table(
    told: pa.Table, state: State, standing: Any, life: Any, lives: Sequence[Life], directories: Lengths
) -> pa.Table:
    """The standing rows of the state as versions, each ended by the next one or with its topic."""
    rows = state.rows[standing]
    same = state.things[standing][1:] == state.things[standing][:-1]
    # What ends it: the next row, or else, behind all rows, the end of its topic.
    ending = len(told) + life[rows]
    ending[:-1][same] = rows[1:][same]

    def ended(column: str, of_lives: Sequence[Any]) -> Any:
        mine = told[column].combine_chunks()
        return pa.concat_arrays([mine, pa.array(of_lives, mine.type)]).take(pa.array(ending))

    columns = {name: taken(told[name], state.sources[name][standing]) for name in (*NUMBER_LISTS, *SCALARS)}
    columns["directories"] = placed_directories(told, state, standing, directories)
    for name, rises in (("leader_epoch", state.elections), ("partition_epoch", state.changes)):
        columns[name] = pa.array(numbers(told, name)[state.base[standing]] + rises[standing], pa.int32())
    columns["leader_recovery_state"] = worded(columns["leader_recovery_state"])
    columns |= {
        "topic_name": pa.array([each.name for each in lives], pa.string()).take(pa.array(life[rows])),
        "valid_to_offset": ended("visible_offset", [each.end_offset for each in lives]),
        "valid_to_at": ended("effective_at", [each.end_at for each in lives]),
        "ended_by": ended("record_type", [each.end_type for each in lives]),
        "end_commit_status": ended("commit_status", [each.end_status for each in lives]),
    }
    as_told = told.take(pa.array(rows))
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


def placed_directories(told: pa.Table, state: State, standing: Any, directories: Lengths) -> pa.Array:
    """The directories; where none was assigned yet, so many times Kafka's word for that."""
    rows = state.sources["directories"][standing]
    replicas = Lengths.of(told["replicas"]).all[state.sources["replicas"][standing]]
    column = told["directories"].combine_chunks()
    most = int(replicas.max()) if len(replicas) else 0
    unassigned = pa.array([[names.MIGRATING_DIRECTORY] * count for count in range(most + 1)], column.type)
    rows = np.where(directories.assigned[rows] == 0, len(column) + replicas, rows)
    return pa.concat_arrays([column, unassigned]).take(pa.array(rows))


def worded(states: pa.Array) -> pa.Array:
    known = list(names.LEADER_RECOVERY_STATES)
    words = pa.array(names.LEADER_RECOVERY_STATES.values(), pa.string())
    return words.take(pc.index_in(states, pa.array(known, states.type)))
