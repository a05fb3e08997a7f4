"""States of partitions after each of their events, by whole columns (the rules: kraft_core.image.partitions).

Registrations and changes are sorted by partition; a field that a change leaves out is taken from the last row
that has it. Columns are not sorted for that: `order` names the event of each place, and a state the places
from which its fields are to be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image import names
from transforms.histories.partition_events import CLEARED, GONE, LISTS, NUMBER_LISTS, WHOLE, numbers
from transforms.histories.partition_refusals import has_unknown_state

SCALARS = ("leader", "leader_recovery_state")


@dataclass(frozen=True, slots=True)
class Ordered:
    """Events by partition, then by their place in the log.

    events: in any order, one chunk. order: the event at each place; things: its partition (things_of).
    """

    events: pa.Table
    order: Any
    things: Any

    @classmethod
    def of(
        cls, events: pa.Table, things: Any, more: Iterable[tuple[pa.Table, Any]], keys: Iterable[str]
    ) -> Ordered:
        """The events and more of them in one order: by partition, then by the keys, columns of numbers."""
        more = list(more)
        if more:
            events = pa.concat_tables([events, *(rows for rows, _ in more)])
            things = np.concatenate([things, *(of_rows for _, of_rows in more)])
        events = events.combine_chunks()
        first, *rest = (numbers(events, key) for key in keys)
        # Of conflicting batches (kraft_core.image.replay_path.replay_order), what clears comes first.
        later = pc.not_equal(events["event"], CLEARED).to_numpy()
        order = np.lexsort((*reversed(rest), later, first, things))
        return cls(events, order, things[order])

    def are(self, event: str) -> Any:
        """Which places are events of a kind."""
        return pc.equal(self.events["event"], event).to_numpy()[self.order]

    def have(self, name: str) -> Any:
        """Which places name a field."""
        return pc.is_valid(self.events[name]).to_numpy()[self.order]

    def numbers(self, name: str) -> Any:
        return numbers(self.events, name)[self.order]

    def take(self, places: Any) -> pa.Table:
        """The events at some places."""
        return self.events.take(pa.array(self.order[places]))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of lists of log directories, or of anything: how many elements, how many of them name something."""

    all: Any
    assigned: Any

    @classmethod
    def of(cls, ordered: Ordered, name: str) -> Lengths:
        lists = ordered.events[name].combine_chunks()
        length = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        ends = np.cumsum(length)
        values = lists.flatten()
        if values.type == pa.string():
            values = pc.not_equal(values, names.MIGRATING_DIRECTORY)
        flags = values.cast(pa.int8()).to_numpy() if values.type == pa.bool_() else np.ones(len(values))
        before = np.concatenate([[0], np.cumsum(flags)])
        return cls(length[ordered.order], (before[ends] - before[ends - length])[ordered.order])


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """The state after each event: `rows` are places, those of what is not a partition left out; the other
    arrays go along with it.

    things: the partition, whose life of a topic is in the upper 32 bits. present: whether it is there after
    the event. base: the place of its last registration. sources: by column, the place to take it from.
    """

    rows: Any
    things: Any
    present: Any
    base: Any
    sources: dict[str, Any]
    elections: Any
    changes: Any

    @classmethod
    def after(cls, ordered: Ordered, rows: Any) -> PartitionStates:
        whole, gone = ordered.are(WHOLE)[rows], ordered.are(GONE)[rows]
        things = ordered.things[rows]
        place = np.arange(len(rows))
        begins = np.concatenate([[True], things[1:] != things[:-1]])[: len(rows)]
        first = np.maximum.accumulate(np.where(begins, place, 0)) if len(rows) else place
        base = last_where(whole)
        present = (base >= first) & (base > last_where(gone))
        known = present | gone

        def source(name: str) -> Any:
            return rows[last_where(ordered.have(name)[rows] | whole)[known]]

        elections = np.cumsum(~whole & ordered.have("leader")[rows])
        changes = np.cumsum(~whole)
        return cls(
            rows=rows[known],
            things=things[known],
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

    def up_to_first_of_each_thing(self, invalid: Any, idle: Any) -> Any:
        """Of each partition the first invalid event and the idle ones before it.

        By what is invalid others may be judged wrongly that follow it; what is idle makes no difference.
        """
        places = np.flatnonzero(invalid)
        things, at = np.unique(self.things[places], return_index=True)
        first = np.full(len(things) + 1, len(invalid))
        first[:-1] = places[at]
        known = np.searchsorted(things, self.things)
        others = np.append(things, -1)[known] != self.things
        until = np.where(others, len(invalid), first[known])
        return (invalid | idle) & (np.arange(len(invalid)) <= until)

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


@dataclass(frozen=True, slots=True)
class Settled:
    """The states after the events that Kafka accepts and that have an effect.

    lengths: of the lists, by column. invalid: the states after those that it refuses for what they would
    lead to. judged: which places are events of a partition, refused or not.
    """

    state: PartitionStates
    lengths: Mapping[str, Lengths]
    invalid: list[PartitionStates]
    judged: Any


def settled(ordered: Ordered) -> Settled:
    """The states after the events, without those that are refused or change nothing."""
    lengths = {name: Lengths.of(ordered, name) for name in LISTS}
    rows, judged = np.arange(len(ordered.order)), np.zeros(len(ordered.order), dtype=bool)
    odd = has_unknown_state(ordered.events)[ordered.order]
    refused: list[PartitionStates] = []
    while True:
        state = PartitionStates.after(ordered, rows)
        invalid = misplaced(state, lengths) | odd[state.rows]
        out = state.up_to_first_of_each_thing(invalid, without_effect(ordered, state, lengths))
        if not out.any() and len(state.rows) == len(rows):
            break
        refused.append(state.at(out & invalid))
        judged[state.rows[out]] = True
        rows = state.rows[~out]
    judged[state.rows] = True
    return Settled(state, lengths, refused, judged)


def misplaced(state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where the directories after a record are not one for each replica, which Kafka refuses."""
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    placed, directories = state.sources["directories"], lengths["directories"]
    return state.present & (directories.assigned[placed] > 0) & (directories.all[placed] != replicas)


def without_effect(ordered: Ordered, state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where ELRs are cleared of a partition that has none."""
    clears = ordered.are(CLEARED)[state.rows]
    had = np.zeros(len(clears), dtype=bool)
    for name in ("eligible_leader_replicas", "last_known_elr"):
        had[1:] |= lengths[name].all[state.sources[name][:-1]] > 0
    return clears & ~had


def fields(ordered: Ordered, state: PartitionStates, lengths: Mapping[str, Lengths]) -> dict[str, pa.Array]:
    """The fields of the partitions by column; leader_recovery_state is a number."""
    found = {name: taken(ordered, name, state.sources[name]) for name in (*NUMBER_LISTS, *SCALARS)}
    found["directories"] = placed_directories(ordered, state, lengths)
    for name, rises in (("leader_epoch", state.elections), ("partition_epoch", state.changes)):
        # Behind the largest number the smallest follows, as in Java.
        risen = (ordered.numbers(name)[state.base] + rises).astype(np.int32)
        found[name] = pa.array(risen, pa.int32())
    return found


def taken(ordered: Ordered, name: str, places: Any) -> pa.Array:
    """The values at the places, an empty list where a registration names none."""
    found, rows = ordered.events[name].combine_chunks(), ordered.order[places]
    if pa.types.is_list(found.type):
        nothing = len(found)
        rows = np.where(pc.is_valid(found).to_numpy(zero_copy_only=False)[rows], rows, nothing)
        found = pa.concat_arrays([found, pa.array([[]], found.type)])
    return found.take(pa.array(rows))


def placed_directories(ordered: Ordered, state: PartitionStates, lengths: Mapping[str, Lengths]) -> pa.Array:
    """The directories; where none is assigned yet, Kafka's id for that, once for each replica."""
    places = state.sources["directories"]
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    column = ordered.events["directories"].combine_chunks()
    most = int(replicas.max()) if len(replicas) else 0
    unassigned = pa.array([[names.MIGRATING_DIRECTORY] * count for count in range(most + 1)], column.type)
    none = lengths["directories"].assigned[places] == 0
    rows = np.where(none, len(column) + replicas, ordered.order[places])
    return pa.concat_arrays([column, unassigned]).take(pa.array(rows))


def worded(states: pa.Array) -> pa.Array:
    """Leader recovery states as words."""
    known = list(names.LEADER_RECOVERY_STATES)
    words = pa.array(names.LEADER_RECOVERY_STATES.values(), pa.string())
    return words.take(pc.index_in(states, pa.array(known, states.type)))
