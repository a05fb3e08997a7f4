"""The bytes of a checkpoint: control records, metadata records, a footer (Kafka's RecordsSnapshotWriter).

One control batch, data batches, one control batch; offsets from 0, one epoch, one time for all of them: the
same records give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value
from kraft_core.messages.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER

ControlRecord = tuple[int, Mapping[str, Any]]


def snapshot_header(last_contained_log_timestamp: int) -> ControlRecord:
    """The first record of a checkpoint. last_contained_log_timestamp: ms."""
    return SNAPSHOT_HEADER, {"version": 0, "lastContainedLogTimestamp": last_contained_log_timestamp}


def snapshot_bytes(
    control: Sequence[ControlRecord],
    values: Iterable[bytes],
    leader_epoch: int,
    timestamp: int,
    records_per_batch: int,
) -> bytes:
    """A whole checkpoint.

    control: type and value of each control record, the header first. values: encoded metadata records.
    timestamp (ms): of every batch. Raises EncodeError.
    """
    records = [_control(nth, timestamp, *each) for nth, each in enumerate(control)]
    parts = [write_batch(0, leader_epoch, records, is_control=True)]
    offset = len(records)
    data = list(values)
    for start in range(0, len(data), records_per_batch):
        held = data[start : start + records_per_batch]
        batch = [RawRecord(offset + nth, timestamp, None, value) for nth, value in enumerate(held)]
        parts.append(write_batch(offset, leader_epoch, batch))
        offset += len(batch)
    footer = _control(offset, timestamp, SNAPSHOT_FOOTER, {"version": 0})
    parts.append(write_batch(offset, leader_epoch, [footer], is_control=True))
    return b"".join(parts)


def _control(offset: int, timestamp: int, control_type: int, value: Mapping[str, Any]) -> RawRecord:
    key = (0).to_bytes(2, "big") + control_type.to_bytes(2, "big")
    return RawRecord(offset, timestamp, key, write_control_value(control_type, value))
