"""The kernel against the reference codec on random records, random batches and random damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraft_core.columnar import fast
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from tests.kraft_core.batches import control_batch, no_op_batch, raw, raw_records
from tests.kraft_core.columnar import reference
from tests.kraft_core.columnar.comparing import assert_parts, assert_same, decoded, differing
from tests.kraft_core.strategies import CONTROL_VERSIONS, METADATA_VERSIONS, message_id, values

GOLDEN = Path(__file__).parents[2] / "golden"
SEGMENT = GOLDEN / "corrupt" / "good" / "00000000000000000408.log"
ALL_TYPES = GOLDEN / "all-record-types" / "node-7" / "__cluster_metadata-0" / "00000000000000000000.log"

few = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
many = settings(few, max_examples=60)


def assert_same_bytes(folder: Path, log: bytes) -> None:
    path = folder / "00000000000000000000.log"
    path.write_bytes(log)
    assert_same(path)


def metadata_batch(offset: int, case: tuple, held: list[dict]) -> bytes:
    message, version = case
    records = [raw(offset + i, write_metadata_value(message, version, value)) for i, value in enumerate(held)]
    return write_batch(offset, 3, records)


@pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
@given(data=st.data())
@few
def test_any_value_of_a_metadata_record(tmp_path, case, data):
    held = data.draw(st.lists(values(*case), min_size=1, max_size=6))
    assert_same_bytes(tmp_path, metadata_batch(0, case, held))


@pytest.mark.parametrize("case", CONTROL_VERSIONS, ids=message_id)
@given(data=st.data())
@few
def test_any_value_of_a_control_record(tmp_path, case, data):
    control_type, message, version = case
    value = data.draw(values(message, version))
    assert_same_bytes(tmp_path, control_batch(0, 1, control_type, value) + no_op_batch(1))


batches = st.one_of(
    st.sampled_from(METADATA_VERSIONS).flatmap(
        lambda case: st.lists(values(*case), min_size=1, max_size=3).map(
            lambda held: metadata_batch(0, case, held)
        )
    ),
    raw_records(0).map(lambda records: write_batch(0, 1, records)),
    st.builds(no_op_batch, st.just(0), records=st.integers(1, 3), codec=st.integers(0, 4)),
    st.builds(
        lambda times: write_batch(0, 1, [_no_op_at(i, t) for i, t in enumerate(times)], log_append_time=True),
        st.lists(st.integers(-(1 << 62), 1 << 62), min_size=1, max_size=3),
    ),
)


def _no_op_at(offset: int, timestamp: int) -> RawRecord:
    return RawRecord(offset, timestamp, None, b"\x01\x14\x00\x00")


@given(st.lists(batches, max_size=8))
@many
def test_any_batches(tmp_path, log):
    assert_same_bytes(tmp_path, b"".join(log))


@given(data=st.data())
@many
def test_random_damage(tmp_path, data):
    log = bytearray(SEGMENT.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        if not log:
            break
        at = data.draw(st.integers(0, len(log) - 1))
        change = data.draw(st.sampled_from(["flip", "cut", "insert", "end"]))
        some = data.draw(st.binary(min_size=1, max_size=80))
        if change == "flip":
            log[at] ^= some[0] or 1
        elif change == "cut":
            del log[at : at + len(some)]
        elif change == "insert":
            log[at:at] = some
        else:
            del log[at:]
    assert_same_bytes(tmp_path, bytes(log))


def resealed(log: bytes, changes: list[tuple[int, int]]) -> bytes:
    """The batches of a log with bytes of their records changed and their checksums made good again."""
    from google_crc32c import value as crc32c

    damaged = bytearray(log)
    for at, change in changes:
        damaged[at] ^= change
    position = 0
    while position < len(log):
        end = position + 12 + int.from_bytes(log[position + 8 : position + 12], "big")
        damaged[position : position + 21] = log[position : position + 21]
        crc = crc32c(bytes(damaged[position + 21 : end]))
        damaged[position + 17 : position + 21] = crc.to_bytes(4, "big")
        position = end
    return bytes(damaged)


@given(data=st.data())
@many
def test_damaged_records_with_good_checksums(tmp_path, data):
    log = ALL_TYPES.read_bytes()
    positions = st.tuples(st.integers(0, len(log) - 1), st.integers(1, 255))
    path = tmp_path / "damaged.log"
    path.write_bytes(resealed(log, data.draw(st.lists(positions, min_size=1, max_size=40))))
    expected = decoded(reference, path)
    assert differing(decoded(fast, path), expected) == []
    assert_parts(path, expected)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.booleans())
@many
def test_any_bytes_as_values(tmp_path, held, is_control):
    key = (0).to_bytes(2, "big") + (6).to_bytes(2, "big") if is_control else None
    records = [raw(offset, value, key) for offset, value in enumerate(held)]
    assert_same_bytes(tmp_path, write_batch(0, 1, records, is_control=is_control))


def test_strings_that_are_not_utf8(tmp_path):
    value = bytearray(write_control_value(6, {"voters": []}))
    assert value
    texts = [
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\xaf",
        b"\xe2\x82",
        b"ok \xe2\x82\xac \xf0\x9f\x98\x80",
    ]
    records = [
        # ClearElrRecord: frame 1, id 28, version 0, the topic's name, no tagged fields.
        raw(offset, b"\x01\x1c\x00" + bytes([len(text) + 1]) + text + b"\x00")
        for offset, text in enumerate(texts)
    ]
    log = b"".join(write_batch(record.offset, 1, [record]) for record in records)
    assert_same_bytes(tmp_path, log)
