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


def must_follow(batch: BatchHeader, offset: int, epoch_below: int | None, leader_epoch: int) -> None:
    """Raises WireError for a batch that cannot stand at an offset of the log of that epoch's leader.

    epoch_below: of the record below the offset, None if that is not known.
    """
    begins_below = batch.base_offset < offset and epoch_below is not None
    if batch.base_offset > offset or begins_below:
        raise WireError(f"the leader sent offset {batch.base_offset} where {offset} follows")
    if not (epoch_below or 0) <= batch.leader_epoch <= leader_epoch:
        raise WireError(
            f"the leader of epoch {leader_epoch} sent epoch {batch.leader_epoch} at offset "
            f"{batch.base_offset}, after epoch {epoch_below}"
        )
