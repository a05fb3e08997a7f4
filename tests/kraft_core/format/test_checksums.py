"""Checksums of ranges, and the search for the next batch behind bytes that imitate thousands of headers."""

from __future__ import annotations

import random
import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.format.batch import CRC_FROM, HEADER, HEADER_BYTES, crc32c, read_header
from kraft_core.format.checksums import RangeChecksums
from kraft_core.format.segment import Damage, scan

NOISE = random.Random(1).randbytes(1 << 20)


def header(offset: int, size_bytes: int, crc: int = 0) -> bytes:
    """A header that nothing but its CRC may refute."""
    return HEADER.pack(offset, size_bytes - 12, 1, 2, crc, 0, 0, 0, 0, -1, -1, -1, 1)


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(0, 1 << 18), st.integers(HEADER_BYTES, 1 << 19), st.integers(0, 7))
def test_a_range_matches_as_its_bytes_do(start: int, gap: int, size_bytes: int, flipped: int) -> None:
    position = start + gap
    buf = bytearray(NOISE)
    buf[position : position + HEADER_BYTES] = header(5, size_bytes)
    crc = crc32c(bytes(buf[position + CRC_FROM : position + size_bytes]))
    struct.pack_into(">I", buf, position + 17, crc)
    checksums = RangeChecksums(bytes(buf), start)
    assert checksums.match(read_header(buf, position))
    damaged = bytearray(buf)
    damaged[position + size_bytes - 1] ^= 1 << flipped
    assert not RangeChecksums(bytes(damaged), start).match(read_header(damaged, position))
    # Asked in any order, the answers are the same.
    assert checksums.match(read_header(buf, position))


def test_imitated_headers_cost_no_checksum_of_all_they_span() -> None:
    """4 MiB of headers, each of a batch to the end: 128 GiB of checksums, would each be computed anew."""
    many = (4 << 20) // HEADER_BYTES
    size_bytes = many * HEADER_BYTES
    imitations = b"".join(header(at, size_bytes - at * HEADER_BYTES) for at in range(many - 1000))
    body = NOISE[:100]
    good = bytearray(header(7, HEADER_BYTES + len(body)) + body)
    struct.pack_into(">I", good, 17, crc32c(bytes(good[CRC_FROM:])))
    buf = imitations + bytes(good) + NOISE[: HEADER_BYTES * 1000]
    items = list(scan(buf))
    (found,) = [item for item in items if not isinstance(item, Damage)]
    assert found.position == len(imitations)
    assert sum(item.size_bytes for item in items) == len(buf)
