"""The batches of a segment or checkpoint file, and every byte range that is not part of one.

After damage the scan continues with the next batch whose checksum matches. The order of batches (offsets,
epochs) is checked separately, as no batch's CRC covers it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kraft_core.format.batch import (
    HEADER_BYTES,
    MAGIC,
    MIN_LENGTH,
    PREFIX_BYTES,
    BatchHeader,
    check_crc,
    read_header,
)
from kraft_core.format.checksums import RangeChecksums
from kraft_core.format.varint import Buffer

# Why bytes could not be read: not a batch (up to bad_offset), not there (incomplete), a record of a good
# batch (up to malformed_key), or records of a good batch that cannot be separated.
Reason = Literal[
    "torn_tail",  # the file ends inside its last batch
    "zero_tail",  # nothing but zero bytes to the end of the file
    "garbage_tail",  # no batch to the end of the file
    "zero_bytes",  # nothing but zero bytes up to the next batch
    "bad_crc",
    "bad_magic",  # a magic other than 2, or not a batch at all
    "bad_length",  # a length below a batch's minimum, or beyond the end of the file
    "bad_offset",  # a negative base offset, last offset delta or record count, or offsets beyond 64 bits
    "incomplete",  # a checkpoint lacks its header or footer, though all of its bytes can be read
    "unknown_frame",
    "unknown_type",
    "unknown_version",
    "unknown_control_type",
    "empty_value",
    "malformed_value",
    "trailing_bytes",
    "malformed_key",
    "malformed_batch",
    "wrong_record_count",
    "unpack_failed",
    "unpacked_too_large",
]

OrderFaultKind = Literal["gap", "overlap", "duplicate", "epoch_regression"]

# Kafka writes metadata batches of at most 8 MiB (KafkaRaftClient.MAX_BATCH_SIZE_BYTES); a length
# far beyond that is damage, for which the scan computes no checksum.
MAX_BATCH_BYTES = 64 * 1024 * 1024

_MAGIC_BYTE = re.compile(re.escape(bytes([MAGIC])))
_MAGIC_AT = 16
_MAX_OFFSET = (1 << 63) - 1
_SCAN_BYTES = 1024 * 1024
_ZEROS = bytes(_SCAN_BYTES)


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that could not be read. position: from the start of the buffer; sha256: their hex digest."""

    position: int
    size_bytes: int
    reason: Reason
    sha256: str

    @property
    def end(self) -> int:
        """The position after the damage."""
        return self.position + self.size_bytes


@dataclass(frozen=True, slots=True)
class OrderFault:
    """A batch that is out of order.

    kind: gap (offsets are missing before it), overlap (its offsets occurred before), duplicate (the same
    batch again), epoch_regression (an epoch below an earlier one). expected: the minimum offset, or for an
    epoch_regression the minimum epoch; found: the batch's own.
    """

    position: int
    kind: OrderFaultKind
    expected: int
    found: int


def scan(
    buf: Buffer, start: int = 0, end: int | None = None, next_offset: int | None = None
) -> Iterator[BatchHeader | Damage]:
    """Every batch with a matching CRC and every damaged range between start (inclusive) and end (exclusive).

    Ordered by position and without a gap: each item begins where the previous one ends. next_offset: the
    offset the first batch should have, if known (a segment's name); it only serves to distinguish an
    incomplete batch from garbage.
    """
    stop = len(buf) if end is None else min(end, len(buf))
    position = start
    while position < stop:
        header = _good_batch(buf, position, stop)
        if header is None:
            good = None if _all_zero(buf, position, stop) else _next_good(buf, position, stop)
            for damage in _damages(buf, position, stop if good is None else good, stop, next_offset):
                yield damage
                position = damage.end
        else:
            yield header
            position = header.end
            next_offset = header.next_offset


class OrderCheck:
    """Checks the order of one file's batches, item by item.

    next_offset: the offset the first batch should have, if known. A gap right after damage is not reported:
    the damage accounts for the missing batches.
    """

    def __init__(self, next_offset: int | None = None) -> None:
        self._next_offset = next_offset
        self._last: BatchHeader | None = None
        self._highest_epoch = -1
        self._after_damage = False

    def faults(self, item: BatchHeader | Damage) -> list[OrderFault]:
        """The order faults of the next item."""
        if isinstance(item, Damage):
            self._after_damage = True
            return []
        found = [OrderFault(item.position, *fault) for fault in self._judge(item)]
        self._highest_epoch = max(self._highest_epoch, item.leader_epoch)
        self._next_offset = item.next_offset
        self._last = item
        self._after_damage = False
        return found

    def _judge(self, item: BatchHeader) -> Iterator[tuple[OrderFaultKind, int, int]]:
        expected = item.base_offset if self._next_offset is None else self._next_offset
        if item.base_offset < expected:
            same = self._last is not None and self._last._replace(position=item.position) == item
            yield "duplicate" if same else "overlap", expected, item.base_offset
        elif item.base_offset > expected and not self._after_damage:
            yield "gap", expected, item.base_offset
        if item.leader_epoch < self._highest_epoch:
            yield "epoch_regression", self._highest_epoch, item.leader_epoch


def order_faults(
    items: Iterable[BatchHeader | Damage], next_offset: int | None = None
) -> Iterator[OrderFault]:
    """The order faults of a file's items; see OrderCheck."""
    check = OrderCheck(next_offset)
    for item in items:
        yield from check.faults(item)


def _damage_at(buf: Buffer, position: int, size_bytes: int, reason: Reason) -> Damage:
    """A range of the buffer that could not be read."""
    digest = hashlib.sha256()
    for at in range(position, position + size_bytes, _SCAN_BYTES):
        digest.update(buf[at : min(at + _SCAN_BYTES, position + size_bytes)])
    return Damage(position, size_bytes, reason, digest.hexdigest())


def _good_batch(buf: Buffer, position: int, stop: int) -> BatchHeader | None:
    if stop - position < HEADER_BYTES:
        return None
    header = read_header(buf, position)
    return header if _fault(buf, header, stop) is None else None


def _fault(buf: Buffer, header: BatchHeader, stop: int) -> Reason | None:
    return _header_fault(header, stop) or (None if check_crc(buf, header) else "bad_crc")


def _header_fault(header: BatchHeader, stop: int) -> Reason | None:
    """What is wrong with a batch by its header alone."""
    if header.magic != MAGIC:
        return "bad_magic"
    if header.size_bytes < HEADER_BYTES or header.end > stop:
        return "bad_length"
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.record_count < 0:
        return "bad_offset"
    if header.next_offset > _MAX_OFFSET:
        return "bad_offset"
    return None


def _next_good(buf: Buffer, position: int, stop: int) -> int | None:
    """The position of the first good batch after a bad one."""
    after = _successor(buf, position, stop)
    if after is not None:
        return after
    checksums = RangeChecksums(buf, position)
    for match in _MAGIC_BYTE.finditer(buf, position + 1 + _MAGIC_AT, stop):
        at = match.start() - _MAGIC_AT
        if buf[at] > 0x7F:  # a negative base offset
            continue
        length = int.from_bytes(buf[at + 8 : at + PREFIX_BYTES], "big")
        if not MIN_LENGTH <= length <= MAX_BATCH_BYTES or stop - at < HEADER_BYTES:
            continue
        header = read_header(buf, at)
        # A batch of this log has a record for each of its offsets: it is never compacted.
        whole = header.record_count == header.last_offset_delta + 1
        if whole and _header_fault(header, stop) is None and checksums.match(header):
            return at
    return None


def _successor(buf: Buffer, position: int, stop: int) -> int | None:
    """The end of a bad batch by its own length, if a good batch is there that follows it by offset, too.

    Then the length is right, and bytes inside the bad batch that look like a batch are its own.
    """
    if stop - position < HEADER_BYTES:
        return None
    bad = read_header(buf, position)
    if bad.size_bytes < HEADER_BYTES or bad.base_offset < 0:
        return None
    after = _good_batch(buf, bad.end, stop)
    return bad.end if after is not None and after.base_offset == bad.next_offset else None


def _damages(buf: Buffer, position: int, until: int, stop: int, next_offset: int | None) -> Iterator[Damage]:
    """The damage up to the next good batch (until) or the end (until == stop), batch by batch if possible."""
    while position < until:
        size, reason = _judge(buf, position, until, stop, next_offset)
        yield _damage_at(buf, position, size, reason)
        position += size


def _judge(buf: Buffer, position: int, until: int, stop: int, next_offset: int | None) -> tuple[int, Reason]:
    rest = until - position
    at_end = until == stop
    follows = _may_follow(buf, position, until, next_offset)
    # The first bytes of a low base offset are zero, too; a length of zero is invalid.
    if _all_zero(buf, position, until) and not (at_end and follows and rest < PREFIX_BYTES):
        return rest, "zero_tail" if at_end else "zero_bytes"
    if rest < HEADER_BYTES:
        if not at_end:
            return rest, "bad_length"
        return rest, "torn_tail" if follows else "garbage_tail"
    header = read_header(buf, position)
    reason = _fault(buf, header, until)
    if at_end and not follows:
        return rest, "garbage_tail"
    if at_end and reason == "bad_length" and HEADER_BYTES <= header.size_bytes <= MAX_BATCH_BYTES:
        return rest, "torn_tail"
    if reason is None or reason == "bad_length" or not HEADER_BYTES <= header.size_bytes <= rest:
        return rest, reason or "bad_crc"
    return header.size_bytes, reason


def _may_follow(buf: Buffer, position: int, until: int, next_offset: int | None) -> bool:
    """Whether the bytes here can be the base offset of a batch at or after next_offset.

    Within 2^31 of it, which allows for a gap but not for random bytes. Of fewer than 8 bytes, the prefix is
    compared.
    """
    expected = 0 if next_offset is None else next_offset
    reach = 1 << 48 if next_offset is None else 1 << 31
    prefix = bytes(buf[position : min(position + 8, until)])
    lowest = int.from_bytes(prefix.ljust(8, b"\x00"), "big")
    highest = int.from_bytes(prefix.ljust(8, b"\xff"), "big")
    return lowest < expected + reach and highest >= expected


def _all_zero(buf: Buffer, position: int, until: int) -> bool:
    """Whether no other byte is there; compared in growing pieces, because most answers need the first."""
    size = 64
    while position < until:
        piece = bytes(buf[position : min(position + size, until)])
        if not _ZEROS.startswith(piece):
            return False
        position += len(piece)
        size = min(8 * size, _SCAN_BYTES)
    return True
