"""Batches and logs for tests: built by the writer under test and held against real ones elsewhere."""

from __future__ import annotations

from hypothesis import strategies as st

from kraft_core.format.batch import RawRecord, RecordHeader, crc32c, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.messages.metadata import by_api_key

NO_OP = write_metadata_value(by_api_key[20], 0, {})


def no_op_batch(offset: int, epoch: int = 1, records: int = 1, codec: int = 0) -> bytes:
    """A batch of NoOpRecords."""
    return write_batch(offset, epoch, [raw(offset + index, NO_OP) for index in range(records)], codec=codec)


def raw(offset: int, value: bytes | None, key: bytes | None = None) -> RawRecord:
    return RawRecord(offset=offset, timestamp=1_760_000_000_000 + offset, key=key, value=value)


def control_batch(offset: int, epoch: int, control_type: int, value: dict) -> bytes:
    key = (0).to_bytes(2, "big") + control_type.to_bytes(2, "big")
    record = raw(offset, write_control_value(control_type, value), key)
    return write_batch(offset, epoch, [record], is_control=True)


def resealed(batch: bytes) -> bytes:
    """The batch with a CRC that fits its content."""
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


def log_of(*batches: bytes) -> bytes:
    return b"".join(batches)


def raw_records(base_offset: int) -> st.SearchStrategy[list[RawRecord]]:
    """Records with ascending offsets, of a few to many."""
    some_bytes = st.none() | st.binary(max_size=60)
    header = st.builds(RecordHeader, st.text(max_size=5), some_bytes)
    one = st.tuples(
        st.integers(1, 3), st.integers(0, 1 << 44), some_bytes, some_bytes, st.lists(header, max_size=2)
    )

    def number(parts: list[tuple]) -> list[RawRecord]:
        records: list[RawRecord] = []
        offset = base_offset - 1
        for step, timestamp, key, value, headers in parts:
            offset += step
            records.append(RawRecord(offset, timestamp, key, value, tuple(headers)))
        return records

    return st.lists(one, min_size=1, max_size=8).map(number)
