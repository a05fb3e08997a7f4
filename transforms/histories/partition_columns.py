"""Versions of partitions by one pass over whole columns (the rules: kraft_core.image.partitions).

Registrations and changes are sorted by partition; a field that a change leaves out is taken from the last row
that has it. Lists are not copied for that: each output row names the row it takes a list from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image import names
from kraft_core.image.history import SNAPSHOT
from kraft_core.image.refusals import UNKNOWN_PARTITION, UNKNOWN_TOPIC
from transforms.histories.partition_events import (
    CLEARED,
    GONE,
    LISTS,
    NEVER,
    NUMBER_LISTS,
    WHOLE,
    Life,
    cleared,
    in_lives,
    is_loaded,
    numbers,
    things_of,
    vanished,
)
from transforms.histories.partition_refusals import (
    has_unknown_state,
    of_invalid,
    of_unknown,
)

SCALARS = ("leader", "leader_recovery_state")


def partition_versions(
    events: pa.Table, lives: Sequence[Life], clears: pa.Table, loads: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """The versions of the partitions of one cluster: the columns of PARTITIONS but for the cluster's.

    events: EVENTS, in any order. What lies outside of every life of its topic is no partition. clears: ELRs
    cleared (ENVELOPE and topic_name, empty: of all topics). loads: snapshots that take the place of what was
    known (ENVELOPE). The second table has the events that Kafka refuses: partition_refusals.REFUSED.
    """
    events, life, outside = in_lives(events, lives)
    things = things_of(life, numbers(events, "partition_id"))
    more = [*cleared(events, things, lives, clears), *vanished(events, things, lives, loads)]
    if more:
        events = pa.concat_tables([events, *(rows for rows, _ in more)]).combine_chunks()
        things = np.concatenate([things, *(of_rows for _, of_rows in more)])
    # Of conflicting batches (kraft_core.image.replay_path.replay_order), what clears comes first.
    later = pc.not_equal(events["event"], CLEARED).to_numpy()
    order = np.lexsort((numbers(events, "batch_crc"), later, numbers(events, "seq"), things))
    events, things = events.take(pa.array(order)).combine_chunks(), things[order]
    life = things >> 32
    lengths = {name: Lengths.of(events[name]) for name in LISTS}
    rows, judged = np.arange(len(events)), np.zeros(len(events), dtype=bool)
    refused, odd = [of_unknown(outside, UNKNOWN_TOPIC)], has_unknown_state(events)
    while True:
        state = PartitionStates.after(events, things, rows)
        invalid = misplaced(state, lengths) | odd[state.rows]
        out = state.first_of_each_thing(invalid | without_effect(events, state, lengths))
        if not out.any() and len(state.rows) == len(rows):
            break
        refused.append(refused_as_invalid(events, state.at(out & invalid), lengths))
        judged[state.rows[out]] = True
        rows = state.rows[~out]
    judged[state.rows] = True
    refused.append(of_unknown(events.filter(pa.array(~judged)), UNKNOWN_PARTITION))
    if len(loads):
        state = state.at(~repeated(events, state, lengths))
    ends = np.array([NEVER if e is None else e for e in (each.end_offset for each in lives)], dtype=np.int64)
    visible = numbers(events, "visible_offset")[state.rows]
    remains = state.followed(visible, ends[life[state.rows]]) > visible
    made = as_table(events, state.at(remains), life, lives, lengths)
    return made, pa.concat_tables(refused)


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
    """The state after each event: `rows` are places in the sorted events, those of what is no partition
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
    def after(cls, events: pa.Table, things: Any, rows: Any) -> PartitionStates:
        whole = pc.equal(events["event"], WHOLE).to_numpy()[rows]
        gone = pc.equal(events["event"], GONE).to_numpy()[rows]
        place = np.arange(len(rows))
        begins = np.concatenate([[True], things[rows][1:] != things[rows][:-1]])[: len(rows)]
        first = np.maximum.accumulate(np.where(begins, place, 0)) if len(rows) else place
        base = last_where(whole)
        present = (base >= first) & (base > last_where(gone))
        known = present | gone

        def source(name: str) -> Any:
            has = pc.is_valid(events[name]).to_numpy()[rows] | whole
            return rows[last_where(has)[known]]

        named = pc.is_valid(events["leader"]).to_numpy()[rows]
        elections, changes = np.cumsum(~whole & named), np.cumsum(~whole)
        return cls(
            rows=rows[known],
            things=things[rows][known],
            present=present[known],
            base=rows[base[known]],
            sources={name: source(name) for name in (*LISTS, *SCALARS)},
            elections=(elections - elections[base])[known],
            changes=(changes - changes[base])[known],
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
    """Where the directories after a record are not one for each replica, which Kafka refuses."""
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    placed, directories = state.sources["directories"], lengths["directories"]
    return state.present & (directories.assigned[placed] > 0) & (directories.all[placed] != replicas)


def refused_as_invalid(events: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> pa.Table:
    """Events of a state that Kafka does not accept."""
    wrong = misplaced(state, lengths)
    directories = lengths["directories"].all[state.sources["directories"]]
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    return of_invalid(events.take(pa.array(state.rows)), wrong, directories, replicas)


def without_effect(events: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where ELRs are cleared of a partition that has none."""
    clears = pc.equal(events["event"], CLEARED).to_numpy()[state.rows]
    had = np.zeros(len(clears), dtype=bool)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        had[1:] |= lengths[name].all[state.sources[name][:-1]] > 0
    return clears & ~had


def repeated(events: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where a snapshot holds what was there before, or lacks what was not."""
    after = np.flatnonzero(is_loaded(events)[state.rows])
    after = after[after > 0]
    after = after[state.things[after] == state.things[after - 1]]
    same = state.present[after] == state.present[after - 1]
    one, other = (values(events, state.at(places), lengths) for places in (after, after - 1))
    for name, column in one.items():
        same &= pc.fill_null(pc.equal(comparable(column), comparable(other[name])), True).to_numpy(False)
    found = np.zeros(len(state.rows), dtype=bool)
    found[after[same | ~(state.present[after] | state.present[after - 1])]] = True
    return found


def comparable(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), ",")
    return column


def values(events: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> dict[str, pa.Array]:
    """The fields of the partitions, in the columns of PARTITIONS."""
    found = {name: taken(events[name], state.sources[name]) for name in (*NUMBER_LISTS, *SCALARS)}
    found["directories"] = placed_directories(events, state, lengths)
    found["leader_recovery_state"] = worded(found["leader_recovery_state"])
    for name, rises in (("leader_epoch", state.elections), ("partition_epoch", state.changes)):
        # Behind the largest number the smallest follows, as in Java.
        risen = (numbers(events, name)[state.base] + rises).astype(np.int32)
        found[name] = pa.array(risen, pa.int32())
    return found


def as_table(
    events: pa.Table, state: PartitionStates, life: Any, lives: Sequence[Life], lengths: Mapping[str, Lengths]
) -> pa.Table:
    """The rows of the state as versions, each ended by the next one or with its topic."""
    # What ends it: the next row, or else, behind all rows, the end of its topic.
    ending = state.followed(state.rows, len(events) + life[state.rows])[state.present]
    state = state.at(state.present)

    def ended(column: pa.ChunkedArray, of_lives: Sequence[Any]) -> Any:
        mine = column.combine_chunks()
        return pa.concat_arrays([mine, pa.array(of_lives, mine.type)]).take(pa.array(ending))

    enders = pc.if_else(pa.array(is_loaded(events)), SNAPSHOT, events["record_type"])
    topics = pa.array([each.name for each in lives], pa.string())
    columns = values(events, state, lengths) | {
        "topic_name": topics.take(pa.array(life[state.rows])),
        "valid_to_offset": ended(events["visible_offset"], [each.end_offset for each in lives]),
        "valid_to_at": ended(events["effective_at"], [each.end_at for each in lives]),
        "earliest_to_offset": ended(events["earliest_offset"], [each.earliest_end_offset for each in lives]),
        "earliest_to_at": ended(events["earliest_at"], [each.earliest_end_at for each in lives]),
        "ended_by": ended(enders, [each.end_type for each in lives]),
        "end_commit_status": ended(events["commit_status"], [each.end_status for each in lives]),
    }
    begun = events.take(pa.array(state.rows))
    columns |= {name: begun[name] for name in AS_THEY_ARE}
    columns |= {name: begun[event_name] for name, event_name in OF_START.items()}
    columns["valid_from_exact"] = pc.is_null(begun["known_from_offset"])
    columns["valid_to_exact"] = pc.not_equal(columns["ended_by"], SNAPSHOT)
    return pa.table(columns)


OF_START = {
    "valid_from_offset": "visible_offset",
    "valid_from_at": "effective_at",
    "earliest_from_offset": "earliest_offset",
    "earliest_from_at": "earliest_at",
}
AS_THEY_ARE = (
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


def placed_directories(events: pa.Table, state: PartitionStates, lengths: Mapping[str, Lengths]) -> pa.Array:
    """The directories; where none is assigned yet, Kafka's id for that, once for each replica."""
    rows = state.sources["directories"]
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    column = events["directories"].combine_chunks()
    most = int(replicas.max()) if len(replicas) else 0
    unassigned = pa.array([[names.MIGRATING_DIRECTORY] * count for count in range(most + 1)], column.type)
    rows = np.where(lengths["directories"].assigned[rows] == 0, len(column) + replicas, rows)
    return pa.concat_arrays([column, unassigned]).take(pa.array(rows))


def worded(states: pa.Array) -> pa.Array:
    known = list(names.LEADER_RECOVERY_STATES)
    words = pa.array(names.LEADER_RECOVERY_STATES.values(), pa.string())
    return words.take(pc.index_in(states, pa.array(known, states.type)))
