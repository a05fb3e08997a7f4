"""From the bytes of a log or a checkpoint to the engine's batches and snapshots, to compare with Kafka's."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.format.batch import BatchHeader, iter_records
from kraft_core.format.codec import read_control_value
from kraft_core.format.errors import DecodeError, UnknownRecord
from kraft_core.format.segment import scan
from kraft_core.raft.batches import Batch, ControlRecord, KRaftVersion, control_record
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import VoterSet


def read_batches(buf: bytes) -> tuple[Batch, ...]:
    """Every batch in `buf`, which holds whole batches. Raises DecodeError at the first damage."""
    return tuple(_batch(buf, header) for header in _headers(buf))


def read_snapshot(end_offset: int, leader_epoch: int, buf: bytes) -> Snapshot:
    """The kraft.version and voters of a checkpoint's bytes. Raises DecodeError at the first damage."""
    kraft_version = None
    voters = None
    for header in _headers(buf):
        for record in _control_records(buf, header):
            if isinstance(record.value, KRaftVersion):
                kraft_version = record.value.level
            elif isinstance(record.value, VoterSet):
                voters = record.value
    return Snapshot(end_offset, leader_epoch, kraft_version, voters)


def _headers(buf: bytes) -> Iterator[BatchHeader]:
    for item in scan(buf):
        if not isinstance(item, BatchHeader):
            raise DecodeError(item.position, str(item.reason))
        yield item


def _batch(buf: bytes, header: BatchHeader) -> Batch:
    return Batch(
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.size_bytes,
        header.crc,
        tuple(_control_records(buf, header)),
    )


def _control_records(buf: bytes, header: BatchHeader) -> Iterator[ControlRecord]:
    if not header.is_control:
        return
    for raw in iter_records(buf, header):
        if raw.key is None or raw.value is None or len(raw.key) < 4:
            raise DecodeError(header.position, f"control record at {raw.offset} without type or value")
        try:
            control = read_control_value(int.from_bytes(raw.key[2:4], "big"), raw.value)
        except UnknownRecord:
            continue  # of a newer Kafka; Kafka skips control records that it does not know, too
        record = control_record(raw.offset, control.message.type_name, control.value)
        if record is not None:
            yield record
