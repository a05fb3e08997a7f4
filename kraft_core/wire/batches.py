"""Whole batches of a fetched piece of the log, checked."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.format.batch import HEADER_BYTES, MAGIC, BatchHeader, check_crc, read_header
from kraft_core.wire.errors import WireError


def whole_batches(records: bytes) -> Iterator[BatchHeader]:
    """The batches of an answer, the last of which may be cut. Raises WireError for damage or a gap."""
    position, expected = 0, None
    while len(records) - position >= HEADER_BYTES:
        header = read_header(records, position)
        if header.magic != MAGIC or header.size_bytes < HEADER_BYTES or header.last_offset_delta < 0:
            raise WireError(f"the leader sent no batch where offset {expected} is expected")
        if header.end > len(records):
            return
        if not check_crc(records, header):
            raise WireError(f"the batch at offset {header.base_offset} came with another CRC")
        if expected is not None and header.base_offset != expected:
            raise WireError(f"the leader sent offset {header.base_offset} where {expected} follows")
        yield header
        position, expected = header.end, header.next_offset
