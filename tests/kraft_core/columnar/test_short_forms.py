"""Frames and tags of records that are read at once, and those that are just too long for it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kraft_core.format.batch import RawRecord, RecordHeader, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import NO_OP, no_op_batch
from tests.kraft_core.columnar.comparing import assert_same

T0 = 1_760_000_000_000
CHANGE = by_api_key[5]
HEADERS = (RecordHeader("h", b"x"),)


def write(folder: Path, *batches: bytes) -> Path:
    path = folder / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("headers", [(), HEADERS])
def test_frames_of_every_length(tmp_path, is_last, key, headers):
    """Deltas and sizes of one byte to six, at the end of the file and before it."""
    deltas = (0, 63, 64, 8191, 8192, 1 << 20, 1 << 31, -1, -64, -65, -8193, -(1 << 31), 1 << 40)
    values = [NO_OP, NO_OP + b"x" * 70, NO_OP + b"x" * 9000, None, b"", NO_OP[:1], NO_OP[:2], NO_OP[:3]]
    batches, offset = [], 0
    for delta, value in itertools.product(deltas, values):
        first = RawRecord(offset, T0, None, NO_OP)
        last = RawRecord(offset + max(1, abs(delta) % (1 << 21)), T0 + delta, key, value, headers)
        batches.append(write_batch(offset, 1, [first, last]))
        offset = last.offset + 1
    if not is_last:
        batches.append(no_op_batch(offset, records=3))
    records = assert_same(write(tmp_path, *batches))
    assert len(records) == 2 * len(deltas) * len(values) + (0 if is_last else 3)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("known", [(), ("isr",), ("leader",), ("isr", "leader", "removingReplicas")])
@pytest.mark.parametrize("more", [b"", b"\x09\x00", b"\x3e\x01x", b"\x3f\x00", b"\x7f\x80\x01" + b"x" * 128])
@pytest.mark.parametrize("further", [b"", b"\x80\x01\x02yz", b"\xff\xff\xff\xff\x0f\x00"])
def test_unknown_tags_behind_known_ones(tmp_path, version, known, more, further):
    fields = {"isr": [1, 2], "leader": 3, "removingReplicas": []}
    value = write_metadata_value(
        CHANGE, version, CHANGE.default(version) | {name: fields[name] for name in known}
    )
    # Frame version, api key, version, partition and topic come before the number of tags.
    count_at = 3 + 4 + 16
    count = value[count_at] + bool(more) + bool(further)
    value = value[:count_at] + bytes([count]) + value[count_at + 1 :] + more + further
    records = [RawRecord(offset, T0, None, value) for offset in range(3)]
    found = assert_same(write(tmp_path, write_batch(0, 1, [*records, RawRecord(3, T0, None, NO_OP)])))
    assert found["unknown_tagged_fields"].to_pylist() == [bool(more) + bool(further)] * 3 + [0]
    assert found["partition_change"].null_count == 1


def test_tags_of_a_later_version_are_unknown_before(tmp_path):
    value = bytearray(write_metadata_value(CHANGE, 2, CHANGE.default(2) | {"eligibleLeaderReplicas": [7]}))
    value[2] = 0
    found = assert_same(write(tmp_path, write_batch(0, 1, [RawRecord(0, T0, None, bytes(value))])))
    assert found["unknown_tagged_fields"].to_pylist() == [1]


def test_what_a_rejected_batch_wrote_is_gone(tmp_path):
    """Key sizes, unknown tags and redacted secrets of a batch that ends in an unreadable record."""
    scram = by_api_key[11]
    secret = write_metadata_value(scram, 0, scram.default(0) | {"name": "u", "salt": b"s"})
    tagged = NO_OP[:-1] + b"\x01\x05\x00"
    rejected = [secret, tagged, NO_OP + b"x"]
    records = [RawRecord(offset, T0, b"key", value) for offset, value in enumerate(rejected)]
    path = write(tmp_path, write_batch(0, 1, records), no_op_batch(3, records=5))
    found = assert_same(path)
    assert found["unknown_tagged_fields"].to_pylist()[3:] == [0] * 5
    assert found["redacted"].to_pylist()[3:] == [False] * 5
    assert found["key_size_bytes"].to_pylist()[3:] == [-1] * 5
