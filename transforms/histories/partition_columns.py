"""Versions of partitions by one pass over whole columns: partition_states, and the end of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image.history import SNAPSHOT
from kraft_core.image.refusals import UNKNOWN_PARTITION, UNKNOWN_TOPIC
from transforms.histories.partition_events import (
    NEVER,
    Life,
    cleared,
    in_lives,
    is_loaded,
    numbers,
    things_of,
    vanished,
)
from transforms.histories.partition_refusals import of_invalid, of_unknown
from transforms.histories.partition_states import (
    Lengths,
    Ordered,
    PartitionStates,
    fields,
    misplaced,
    settled,
    worded,
)


def partition_versions(
    events: pa.Table, lives: Sequence[Life], clears: pa.Table, loads: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """The versions of the partitions of one cluster: the columns of PARTITIONS but for the cluster's.

    events: EVENTS, in any order. What lies outside of every life of its topic is not a partition. clears:
    ELRs cleared (ENVELOPE and topic_id, null: of all topics). loads: snapshots that take the place of what
    was known (ENVELOPE). The second table has the events that Kafka refuses: partition_refusals.REFUSED.
    """
    events, life, outside = in_lives(events, lives)
    things = things_of(life, numbers(events, "partition_id"))
    more = [*cleared(events, things, lives, clears), *vanished(events, things, lives, loads)]
    ordered = Ordered.of(events, things, more, ("seq", "batch_crc"))
    found = settled(ordered)
    state, lengths = found.state, found.lengths
    refused = [of_unknown(outside, UNKNOWN_TOPIC)]
    refused += [refused_as_invalid(ordered, invalid, lengths) for invalid in found.invalid]
    refused.append(of_unknown(ordered.take(np.flatnonzero(~found.judged)), UNKNOWN_PARTITION))
    if len(loads):
        state = state.at(~repeated(ordered, state, lengths))
    ends = np.array([NEVER if e is None else e for e in (each.end_offset for each in lives)], dtype=np.int64)
    visible = ordered.numbers("visible_offset")[state.rows]
    remains = state.followed(visible, ends[state.things >> 32]) > visible
    return as_table(ordered, state.at(remains), lives, lengths), pa.concat_tables(refused)


def refused_as_invalid(ordered: Ordered, state: PartitionStates, lengths: Mapping[str, Lengths]) -> pa.Table:
    """Events of a state that Kafka does not accept."""
    wrong = misplaced(state, lengths)
    directories = lengths["directories"].all[state.sources["directories"]]
    replicas = lengths["replicas"].all[state.sources["replicas"]]
    return of_invalid(ordered.take(state.rows), wrong, directories, replicas)


def repeated(ordered: Ordered, state: PartitionStates, lengths: Mapping[str, Lengths]) -> Any:
    """Where a snapshot holds what was there before, or lacks what was not."""
    after = np.flatnonzero(is_loaded(ordered.events)[ordered.order[state.rows]])
    after = after[after > 0]
    after = after[state.things[after] == state.things[after - 1]]
    same = state.present[after] == state.present[after - 1]
    one, other = (fields(ordered, state.at(places), lengths) for places in (after, after - 1))
    for name, column in one.items():
        same &= pc.fill_null(pc.equal(comparable(column), comparable(other[name])), True).to_numpy(False)
    found = np.zeros(len(state.rows), dtype=bool)
    found[after[same | ~(state.present[after] | state.present[after - 1])]] = True
    return found


def comparable(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return pc.binary_join(column.cast(pa.list_(pa.string())), ",")
    return column


def as_table(
    ordered: Ordered, state: PartitionStates, lives: Sequence[Life], lengths: Mapping[str, Lengths]
) -> pa.Table:
    """The rows of the state as versions, each ended by the next one or with its topic."""
    events, life = ordered.events, state.things >> 32
    # What ends it: the event of the next row, or else, behind all events, the end of its topic.
    ending = state.followed(ordered.order[state.rows], len(events) + life)[state.present]
    state, life = state.at(state.present), life[state.present]

    def ended(column: pa.ChunkedArray, of_lives: Sequence[Any]) -> Any:
        mine = column.combine_chunks()
        return pa.concat_arrays([mine, pa.array(of_lives, mine.type)]).take(pa.array(ending))

    enders = pc.if_else(pa.array(is_loaded(events)), SNAPSHOT, events["record_type"])
    topics = pa.array([each.name for each in lives], pa.string())
    columns = fields(ordered, state, lengths) | {
        "topic_name": topics.take(pa.array(life)),
        "valid_to_offset": ended(events["visible_offset"], [each.end_offset for each in lives]),
        "valid_to_at": ended(events["effective_at"], [each.end_at for each in lives]),
        "earliest_to_offset": ended(events["earliest_offset"], [each.earliest_end_offset for each in lives]),
        "earliest_to_at": ended(events["earliest_at"], [each.earliest_end_at for each in lives]),
        "ended_by": ended(enders, [each.end_type for each in lives]),
        "end_commit_status": ended(events["commit_status"], [each.end_status for each in lives]),
    }
    columns["leader_recovery_state"] = worded(columns["leader_recovery_state"])
    begun = ordered.take(state.rows)
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
