from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.format import compression
from kraft_core.format.batch import (
    HEADER_BYTES,
    RawRecord,
    WrongCountError,
    check_crc,
    iter_records,
    read_header,
    write_batch,
)
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.errors import DecodeError
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import read_batch
from kraft_core.format.segment import scan
from tests.kraft_core.batches import NO_OP, no_op_batch, raw, raw_records

GOLDEN = Path(__file__).parents[2] / "golden"
ALL_TYPES = sorted(GOLDEN.glob("all-record-types*/node-7/__cluster_metadata-0/*.log"))
CODECS = range(len(compression.CODEC_NAMES))


def bare(record: RawRecord) -> RawRecord:
    """What was given to the writer, without what only a reader knows."""
    return record._replace(size_bytes=0, value_position=None)


def read_records(log, header):
    return list(iter_records(log, header))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.data())
def test_what_is_written_is_read(codec, data):
    base_offset = data.draw(st.integers(0, (1 << 63) - 1000))
    records = data.draw(raw_records(base_offset))
    log = b"before" + write_batch(base_offset, 7, records, codec=codec, is_control=True)
    header = read_header(log, 6)
    assert check_crc(log, header)
    assert (header.base_offset, header.leader_epoch, header.end) == (base_offset, 7, len(log))
    assert (header.last_offset, header.record_count) == (records[-1].offset, len(records))
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert (header.is_control, header.is_transactional, header.compression) == (
        True,
        False,
        compression.CODEC_NAMES[codec],
    )
    assert [bare(record) for record in read_records(log, header)] == records


def test_the_position_of_a_value():
    log = b"before" + write_batch(5, 1, [raw(5, b"one", b"key"), raw(6, b"two"), raw(7, None)])
    records = read_records(log, read_header(log, 6))
    assert [log[r.value_position :][:3] for r in records[:2]] == [b"one", b"two"]
    compressed = write_batch(5, 1, [raw(5, b"one")], codec=compression.GZIP)
    assert read_records(compressed, read_header(compressed, 0))[0].value_position is None


@pytest.mark.parametrize("path", ALL_TYPES, ids=lambda p: p.parts[-4])
def test_a_log_written_by_kafka_is_written_again_byte_by_byte(path):
    rewritten = []
    with mapped(path) as log:
        for header in scan(log, next_offset=0):
            again = write_batch(
                header.base_offset,
                header.leader_epoch,
                read_records(log, header),
                codec=header.codec,
                is_control=header.is_control,
            )
            original = log[header.position : header.end]
            if header.codec != compression.NONE:
                # Other releases of the compressing libraries pack the same records otherwise.
                again, original = (unpacked(batch) for batch in (again, original))
            assert again == original
            rewritten.append(header.compression)
    assert [rewritten.count(name) for name in compression.CODEC_NAMES[1:]] == [1, 1, 1, 1]
    assert rewritten.count("none") > 70


def unpacked(batch: bytes) -> tuple[bytes, bytes]:
    header = read_header(batch, 0)
    covered = batch[21:HEADER_BYTES]  # the header without sizes and CRC
    return covered, compression.decompress(header.codec, batch[HEADER_BYTES:])


@pytest.mark.parametrize("path", ALL_TYPES, ids=lambda p: p.parts[-4])
def test_every_record_kafka_wrote_is_written_again_byte_by_byte(path):
    types = set()
    with mapped(path) as log:
        for header in scan(log, next_offset=0):
            for record, original in zip(read_batch(log, header), read_records(log, header), strict=True):
                assert record.reason is None
                if header.is_control:
                    again = write_control_value(record.api_key, record.value)
                else:
                    again = write_metadata_value(record.message, record.version, record.value)
                assert again == original.value
                types.add((record.type, record.version))
    # 26 metadata record types (27 in Kafka 4.4) and three control types, each at each of its versions.
    expected = (30, 41) if "4.4.0" in str(path) else (29, 40)
    assert (len({type_ for type_, _ in types}), len(types)) == expected


def test_a_batch_of_several_mebibytes():
    log = write_batch(0, 1, [raw(i, bytes([i]) * 1_000_000) for i in range(5)])
    header = read_header(log, 0)
    assert check_crc(log, header)
    assert [len(record.value) for record in read_records(log, header)] == [1_000_000] * 5
    assert not check_crc(patched(log, 4_500_000, b"\xff"), header)


def test_log_append_time_applies_to_every_record():
    log = write_batch(0, 1, [raw(0, b"a"), raw(9, b"b")], log_append_time=True)
    header = read_header(log, 0)
    assert header.timestamp_type == "LogAppendTime"
    assert {r.timestamp for r in read_records(log, header)} == {header.max_timestamp}


@pytest.mark.parametrize("cut", [0, 11, HEADER_BYTES - 1])
def test_a_header_that_ends_early(cut):
    with pytest.raises(DecodeError):
        read_header(no_op_batch(0)[:cut], 0)


def patched(log: bytes, at: int, new: bytes) -> bytes:
    return log[:at] + new + log[at + len(new) :]


def with_count(log: bytes, count: int) -> bytes:
    return patched(log, HEADER_BYTES - 4, count.to_bytes(4, "big"))


@pytest.mark.parametrize(("count", "read"), [(4, 3), (2, 2), (0, 0)])
def test_a_wrong_count_costs_no_record(count, read):
    log = with_count(no_op_batch(0, records=3), count)
    found, error = read_as_far_as_possible(log)
    assert len(found) == read
    assert isinstance(error, WrongCountError)
    assert error.stated == count


def read_as_far_as_possible(log: bytes) -> tuple[list[RawRecord], DecodeError | None]:
    found: list[RawRecord] = []
    try:
        for record in iter_records(log, read_header(log, 0)):
            found.append(record)
    except DecodeError as error:
        return found, error
    return found, None


def test_offsets_that_do_not_ascend_or_leave_the_batch():
    for offsets in ([5, 5], [6, 5]):
        log = write_batch(5, 1, [raw(offset, NO_OP) for offset in offsets])
        with pytest.raises(DecodeError, match="offset delta"):
            read_records(log, read_header(log, 0))


@given(at=st.integers(HEADER_BYTES, 400), byte=st.integers(0, 255), codec=st.sampled_from(CODECS))
def test_damaged_records_raise_only_decode_errors(at, byte, codec):
    log = write_batch(0, 1, [raw(i, b"x" * 30, b"key") for i in range(9)], codec=codec)
    log = patched(log, min(at, len(log) - 1), bytes([byte]))
    with suppress(DecodeError):
        read_records(log, read_header(log, 0))


def test_an_unknown_codec_is_named():
    log = patched(no_op_batch(0), 21, (5).to_bytes(2, "big"))
    header = read_header(log, 0)
    assert header.compression == "codec_5"
    with pytest.raises(compression.UnpackError, match="unknown compression codec 5"):
        read_records(log, header)


def test_nothing_to_write():
    with pytest.raises(ValueError, match="needs a record"):
        write_batch(0, 1, [])
