"""The partitions after a replay, as columns: the state between two pieces of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.histories.partition_events import (
    ENVELOPE,
    REGISTRATION,
    SAID,
    WHOLE,
    Life,
    cleared,
    in_lives,
    numbers,
    said_by,
    things_of,
)
from transforms.histories.partition_states import Ordered, fields, settled

# A partition, as the event that registers it.
STANDING = SAID
PLACED = pa.schema([("seq", pa.int64()), *SAID])
CLEARS = pa.schema([*ENVELOPE, ("topic_id", pa.string())])
Clear = tuple[int, str | None]
# Without them the core does not replay a record either; the others may be null.
NEEDED = {
    "partition": (
        "topic_id",
        "partition_id",
        "replicas",
        "isr",
        "removing_replicas",
        "adding_replicas",
        "leader",
        "leader_recovery_state",
        "leader_epoch",
        "partition_epoch",
    ),
    "partition_change": ("topic_id", "partition_id", "leader"),
}


def after(
    standing: pa.Table, rows: pa.Table, seq: Any, lives: Sequence[Life], clears: Sequence[Clear]
) -> pa.Table:
    """The partitions (STANDING) after records of the log.

    rows: records of partitions, with their structs. seq: the place of each in the log, above 0, which is that
    of what stood before. lives: of the topics, from those that stand until they end. clears: places of
    records that clear ELRs, with the id of their topic, None: of all topics.
    """
    events = pa.concat_tables([placed(standing, np.zeros(len(standing), dtype=np.int64)), said(rows, seq)])
    events, life, _ = in_lives(events.combine_chunks(), lives)
    things = things_of(life, numbers(events, "partition_id"))
    more = [(each.select(PLACED.names), of) for each, of in cleared(events, things, lives, clears_of(clears))]
    ordered = Ordered.of(events, things, more, ["seq"])
    found = settled(ordered)
    state = found.state
    goes_on = np.array([each.end_offset is None for each in lives], dtype=bool)
    last = np.append(state.things[1:] != state.things[:-1], True)[: len(state.things)]
    state = state.at(last & goes_on[state.things >> 32])
    of_events = ordered.take(state.rows)
    columns = fields(ordered, state, found.lengths) | {
        "event": pa.repeat(pa.scalar(WHOLE), len(state.rows)),
        "topic_id": of_events["topic_id"],
        "partition_id": of_events["partition_id"],
    }
    return pa.table(columns).select(STANDING.names).cast(STANDING)


def placed(events: pa.Table, seq: Any) -> pa.Table:
    """Events (SAID) with their places."""
    return pa.table([pa.array(seq), *events.columns], schema=PLACED)


def said(rows: pa.Table, seq: Any) -> pa.Table:
    """PLACED of records. Raises ValueError for one without what its type must have: no codec wrote it."""
    is_whole = pc.equal(rows["type"], REGISTRATION).combine_chunks()
    for name, needed in NEEDED.items():
        of_type = is_whole if name == "partition" else pc.invert(is_whole)
        structs = rows[name].combine_chunks()
        whole = pc.is_valid(structs).equals(of_type)
        if not whole or any(pc.struct_field(structs, f).null_count != structs.null_count for f in needed):
            raise ValueError(
                f"a record of type {name} lacks fields, or a record of another type has a {name}"
            )
    return placed(said_by(rows), seq)


def clears_of(clears: Sequence[Clear]) -> pa.Table:
    """CLEARS of places and topics."""
    columns = {"seq": [seq for seq, _ in clears], "topic_id": [topic_id for _, topic_id in clears]}
    arrays = [pa.array(columns.get(f.name, [None] * len(clears)), f.type) for f in CLEARS]
    return pa.table(arrays, schema=CLEARS)
