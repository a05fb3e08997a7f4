"""Records that cannot be read, each with its reason."""

import hashlib

import pytest

from kraft_core.format import compression
from kraft_core.format.batch import HEADER_BYTES, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.record import Record, read_log
from kraft_core.messages.control import LEADER_CHANGE
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import NO_OP, log_of, no_op_batch, raw, resealed

TOPIC = write_metadata_value(by_api_key[2], 0, {"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"})
LEADER = write_control_value(LEADER_CHANGE, {"version": 0, "leaderId": 1})
KEY = bytes([0, 0, 0, LEADER_CHANGE])


def read(log: bytes) -> list[Record]:
    items = list(read_log(log, next_offset=0))
    assert all(isinstance(item, Record) for item in items)
    return items


@pytest.mark.parametrize(
    ("value", "reason", "type_", "version", "api_key"),
    [
        (None, "empty_value", "UNKNOWN", None, None),
        (b"", "empty_value", "UNKNOWN", None, None),
        (b"\x07\x02\x00rest", "unknown_frame", "UNKNOWN", None, None),
        (b"\x00\x02\x00", "unknown_frame", "UNKNOWN", None, None),
        (b"\x01\xe7\x07\x00", "unknown_type", "UNKNOWN", 0, 999),
        (b"\x01\x02\x63", "unknown_version", "TOPIC_RECORD", 99, 2),
        (TOPIC[:-3], "malformed_value", "TOPIC_RECORD", 0, 2),
        (TOPIC[:3], "malformed_value", "TOPIC_RECORD", 0, 2),
        (TOPIC[:2], "malformed_value", "UNKNOWN", None, None),
        (b"\xff" * 9, "malformed_value", "UNKNOWN", None, None),
        (b"\x01\x02\xff\xff\x7f", "malformed_value", "UNKNOWN", None, None),
        (TOPIC + b"\x00", "trailing_bytes", "TOPIC_RECORD", 0, 2),
    ],
)
def test_values_that_cannot_be_read(value, reason, type_, version, api_key):
    first, unread, last = read(write_batch(0, 4, [raw(0, TOPIC), raw(1, value), raw(2, NO_OP)]))
    assert (first.type, last.type) == ("TOPIC_RECORD", "NO_OP_RECORD")
    assert first.value == {"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert (unread.reason, unread.type, unread.version, unread.api_key) == (reason, type_, version, api_key)
    assert (unread.message, unread.value) == (None, None)
    assert (unread.offset, unread.leader_epoch, unread.position_in_batch) == (1, 4, 1)
    assert unread.timestamp == raw(1, value).timestamp
    assert unread.unread == (value or b"")
    assert unread.detail
    assert unread.digest == hashlib.sha256(value or b"").hexdigest()
    assert unread.damage.size_bytes == len(value or b"")
    assert first.damage is None
    assert not unread.is_rest_of_batch


@pytest.mark.parametrize(
    ("key", "value", "reason", "type_"),
    [
        (None, LEADER, "malformed_key", "UNKNOWN"),
        (b"\x00\x00\x00", LEADER, "malformed_key", "UNKNOWN"),
        (bytes([0, 0, 0, 77]), LEADER, "unknown_control_type", "UNKNOWN"),
        (bytes([0, 0, 255, 255]), LEADER, "unknown_control_type", "UNKNOWN"),
        (KEY, b"\x00\x63" + LEADER[2:], "unknown_version", "LeaderChange"),
        (KEY, LEADER[:-1], "malformed_value", "LeaderChange"),
        (KEY, b"\x00", "malformed_value", "LeaderChange"),
        (KEY, None, "malformed_value", "LeaderChange"),
        (KEY, LEADER + b"\x00", "trailing_bytes", "LeaderChange"),
    ],
)
def test_control_records_that_cannot_be_read(key, value, reason, type_):
    log = write_batch(0, 4, [raw(0, value, key), raw(1, LEADER, KEY)], is_control=True)
    unread, last = read(log)
    assert (unread.reason, unread.type) == (reason, type_)
    assert (last.type, last.version, last.api_key) == ("LeaderChange", 0, LEADER_CHANGE)
    assert last.value["leaderId"] == 1


def test_a_keys_later_version_may_be_longer():
    (record,) = read(write_batch(0, 4, [raw(0, LEADER, b"\x00\x01" + KEY[2:] + b"more")], is_control=True))
    assert record.type == "LeaderChange"


def overwritten(batch: bytes, at: int, new: bytes) -> bytes:
    return resealed(batch[:at] + new + batch[at + len(new) :])


BATCH = no_op_batch(1, records=3)
GZIPPED = no_op_batch(1, records=3, codec=compression.GZIP)


@pytest.mark.parametrize(
    ("batch", "reason", "records"),
    [
        (overwritten(BATCH, HEADER_BYTES - 4, (5).to_bytes(4, "big")), "wrong_record_count", 3),
        (overwritten(BATCH, HEADER_BYTES - 4, (2).to_bytes(4, "big")), "wrong_record_count", 2),
        (overwritten(BATCH, HEADER_BYTES, b"\x7e"), "malformed_batch", 0),
        (overwritten(BATCH, HEADER_BYTES, b"\x01"), "malformed_batch", 0),
        (overwritten(BATCH, 23, bytes(4)), "malformed_batch", 1),
        (overwritten(BATCH, 21, b"\x00\x07"), "unpack_failed", 0),
        (overwritten(BATCH, 21, b"\x00\x04"), "unpack_failed", 0),
        (overwritten(GZIPPED, HEADER_BYTES, b"\x00"), "unpack_failed", 0),
    ],
)
def test_batches_whose_records_cannot_be_separated(batch, reason, records):
    log = log_of(no_op_batch(0), batch, no_op_batch(4))
    first, *found, rest, last = read(log)
    assert (first.offset, last.offset, last.reason) == (0, 4, None)
    assert [record.offset for record in found] == list(range(1, 1 + records))
    assert all(record.reason is None for record in found)
    assert rest.is_rest_of_batch
    assert (rest.reason, rest.type, rest.offset, rest.position_in_batch) == (
        reason,
        "UNKNOWN",
        1 + records,
        records,
    )
    end = rest.batch.next_offset
    assert rest.lost_offsets == ((1 + records, end) if 1 + records < end else None)
    assert rest.unread == batch
    assert (rest.damage.position, rest.damage.size_bytes) == (len(no_op_batch(0)), len(batch))


def test_the_rest_of_a_batch_begins_behind_what_was_read():
    """Offsets of a batch may have gaps."""
    batch = write_batch(1, 1, [raw(1, NO_OP), raw(5, NO_OP), raw(9, NO_OP)])
    cut = overwritten(batch, HEADER_BYTES - 4, (4).to_bytes(4, "big"))
    *_, rest = read(cut)
    assert (rest.offset, rest.position_in_batch, rest.lost_offsets) == (10, 3, None)
    size = (len(batch) - HEADER_BYTES) // 3
    *_, last, rest = read(overwritten(batch, HEADER_BYTES + 2 * size, b"\x01"))
    assert (last.offset, rest.offset, rest.lost_offsets) == (5, 6, (6, 10))


def test_a_decompression_bomb_is_named(monkeypatch):
    monkeypatch.setattr(compression.decompress, "__defaults__", (10,))
    (rest,) = read(GZIPPED)
    assert (rest.reason, rest.detail) == ("unpacked_too_large", "unpacks to more than 10 bytes (byte 0)")


def test_positions_of_values():
    log = log_of(no_op_batch(0), write_batch(1, 1, [raw(1, TOPIC)]), no_op_batch(2, codec=compression.GZIP))
    _, topic, packed = read(log)
    assert log[topic.position : topic.position + topic.size_bytes] == TOPIC
    assert packed.position == packed.batch.position
