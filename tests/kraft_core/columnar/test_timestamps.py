"""Clocks that say what no calendar has: the kernel and the reference codec hold them alike."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from kraft_core.columnar.timestamps import FIRST_MS, LAST_MS
from kraft_core.format.batch import RawRecord, write_batch
from tests.kraft_core.batches import NO_OP
from tests.kraft_core.columnar.comparing import assert_same

BASE_TIMESTAMP, ATTRIBUTES, CRC = 27, 21, 17
MOST, LEAST = (1 << 63) - 1, -(1 << 63)


def stamped(base: int, deltas: list[int]) -> bytes:
    """A batch of records at a base timestamp and so many ms after it, its checksum good."""
    records = [RawRecord(offset, delta, None, NO_OP) for offset, delta in enumerate([0, *deltas])]
    batch = bytearray(write_batch(0, 1, records))
    batch[BASE_TIMESTAMP : BASE_TIMESTAMP + 16] = struct.pack(">qq", base, base)
    batch[CRC : CRC + 4] = google_crc32c.value(bytes(batch[ATTRIBUTES:])).to_bytes(4, "big")
    return bytes(batch)


@pytest.mark.parametrize(
    ("base", "deltas"),
    [
        (0, [0]),
        (LAST_MS, [-1, 0, 1, MOST - LAST_MS]),
        (FIRST_MS, [-1, 0, 1, LEAST - FIRST_MS]),
        (MOST, [-1, 0, 1, LEAST, MOST]),
        (LEAST, [-1, 0, 1, LEAST, MOST]),
        (MOST // 2 + 2, [MOST // 2, MOST]),
        (-1, [LEAST, LEAST + 1, MOST]),
    ],
)
def test_times_at_the_ends_of_the_calendar_and_of_64_bits(tmp_path, base, deltas):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(stamped(base, deltas))
    moments = assert_same(path)["appended_at"].cast("int64").to_pylist()
    assert moments == [min(max(base + delta, FIRST_MS), LAST_MS) for delta in [0, *deltas]]
