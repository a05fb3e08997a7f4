"""Records of partitions that Kafka refuses to replay, found by columns; the words are those of the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image import names, refusals
from kraft_core.image.change import Refusal, RefusedRecord
from kraft_core.image.missing_records import MissingRecords
from transforms.histories.partition_events import CHANGED, KEPT, WHOLE, numbers

# directories, replicas: how many the partition would have; leader_recovery_state: the record's own.
REFUSED = pa.schema(
    [
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("type", pa.string()),
        ("topic_id", pa.string()),
        ("partition_id", pa.int32()),
        ("cause", pa.string()),
        ("directories", pa.int64()),
        ("replicas", pa.int64()),
        ("leader_recovery_state", pa.int8()),
    ]
)


def has_unknown_state(events: pa.Table) -> Any:
    """Which events name a leader recovery state that Kafka does not know."""
    state = events["leader_recovery_state"]
    known = pc.is_in(state, pa.array(list(names.LEADER_RECOVERY_STATES), state.type))
    return pc.and_(pc.is_valid(state), pc.invert(known)).to_numpy()


def of_unknown(events: pa.Table, cause: str) -> pa.Table:
    """REFUSED of events outside of every life of their topic, or before their partition is registered."""
    nothing = pa.nulls(len(events), pa.int64())
    return _refused(events, pa.repeat(pa.scalar(cause), len(events)), nothing, nothing)


def of_invalid(events: pa.Table, misplaced: Any, directories: Any, replicas: Any) -> pa.Table:
    """REFUSED of events whose directories are not one a replica (misplaced), else of unknown states."""
    cause = pc.if_else(pa.array(misplaced), refusals.WRONG_DIRECTORIES, refusals.UNKNOWN_VALUE)
    return _refused(events, cause, pa.array(directories), pa.array(replicas))


def _refused(events: pa.Table, cause: pa.Array, directories: pa.Array, replicas: pa.Array) -> pa.Table:
    columns = [
        pc.coalesce(events["record_offset"], events["known_from_offset"]),
        events["record_leader_epoch"],
        events["record_type"],
        events["topic_id"],
        events["partition_id"],
        cause,
        directories,
        replicas,
        events["leader_recovery_state"],
    ]
    return pa.table(columns, names=REFUSED.names).cast(REFUSED).filter(pa.array(_is_judged(events)))


def _is_judged(events: pa.Table) -> Any:
    """Which events are records, of a checkpoint or of the log outside of metadata transactions.

    Inside of one a topic may have been made and removed, which its lives do not show (transaction_refusals).
    """
    is_record = numbers(events, "batch_crc") != KEPT
    named = pc.is_in(events["event"], pa.array([WHOLE, CHANGED])).to_numpy()
    return is_record & named & pc.is_null(events["transaction"]).to_numpy()


def refused_records(refused: pa.Table, unsure: Sequence[MissingRecords], most: int) -> list[RefusedRecord]:
    """The first rows of REFUSED in order, as the core has them, without those that are not sure."""
    if not len(refused):
        return []
    known = np.ones(len(refused), dtype=bool)
    offsets = numbers(refused, "offset")
    for each in unsure:
        until = np.inf if each.until_offset is None else each.until_offset
        known &= ~((each.first_offset <= offsets) & (offsets < until))
    rows = refused.filter(pa.array(known)).sort_by([("offset", "ascending"), ("partition_id", "ascending")])
    return [_record(row) for row in rows.slice(0, most).to_pylist()]


def _record(row: dict[str, Any]) -> RefusedRecord:
    return RefusedRecord.of(row["offset"], row["leader_epoch"], row["type"], _refusal(row))


def _refusal(row: dict[str, Any]) -> Refusal:
    match row["cause"]:
        case refusals.UNKNOWN_TOPIC:
            return refusals.partition_of_unknown_topic(row["topic_id"], row["partition_id"])
        case refusals.UNKNOWN_PARTITION:
            return refusals.unknown_partition(row["topic_id"], row["partition_id"])
        case refusals.WRONG_DIRECTORIES:
            return refusals.wrong_directories(row["topic_id"], row["directories"], row["replicas"])
        case _:
            return refusals.unknown_recovery_state(row["topic_id"], row["leader_recovery_state"])
