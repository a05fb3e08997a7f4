import zlib
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.format.compression import (
    CODEC_NAMES,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    TooLargeError,
    UnpackError,
    compress,
    decompress,
)

CODECS = range(len(CODEC_NAMES))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=100_000))
def test_what_is_packed_is_unpacked(codec, data):
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_stopped_at_the_limit(codec):
    bomb = compress(codec, bytes(10_000_000))
    assert len(bomb) < 600_000
    with pytest.raises(TooLargeError, match="more than 1000000 bytes"):
        decompress(codec, bomb, limit=1_000_000)
    assert len(decompress(codec, bomb, limit=10_000_000)) == 10_000_000


def test_raw_snappy_is_read_and_its_stated_size_is_not_believed():
    packed = pa.Codec("snappy").compress(b"metadata" * 100, asbytes=True)
    assert decompress(SNAPPY, packed) == b"metadata" * 100
    with pytest.raises(TooLargeError):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f")


def test_gzip_members_follow_each_other():
    members = b"".join(zlib.compress(part, wbits=31) for part in (b"one", b"two"))
    assert decompress(GZIP, members) == b"onetwo"


def full_header(crc_change=0):
    """A gzip header with all its optional fields."""
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"name\x00" + b"comment\x00"
    return header + ((zlib.crc32(header) & 0xFFFF) ^ crc_change).to_bytes(2, "little")


@pytest.mark.parametrize(
    "rest",
    [bytes(11), b"\x1f", b"\x1f\x8b\x08", b"\x1f\x8b\x09" + bytes(30), full_header(1), full_header()[:-3]]
    + [full_header()[:at] for at in (12, 14, 18, 24)],
)
def test_what_follows_gzip_members_and_is_none_is_ignored(rest):
    """As Java's GZIPInputStream does."""
    assert decompress(GZIP, compress(GZIP, b"one") + rest) == b"one"


def test_a_gzip_member_with_a_full_header_counts():
    body = compress(GZIP, b"two")[10:]
    members = compress(GZIP, b"one") + full_header() + body
    assert decompress(GZIP, members) == b"onetwo"
    for damaged in (members[:-1], compress(GZIP, b"one") + full_header() + b"\xff" + body):
        with pytest.raises(UnpackError):
            decompress(GZIP, damaged)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@given(data=st.data())
def test_damage_raises_unpack_errors_only(codec, data):
    packed = bytearray(compress(codec, b"kraft metadata " * 50))
    cut = data.draw(st.integers(0, len(packed)))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    with suppress(UnpackError):
        decompress(codec, bytes(packed[:cut]), limit=10_000)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_data_that_ends_early_is_no_shorter_data(codec):
    packed = compress(codec, b"kraft metadata " * 50)
    with pytest.raises(UnpackError):
        decompress(codec, packed[:-9])


def test_unknown_codecs():
    assert decompress(NONE, b"plain") == b"plain"
    with pytest.raises(UnpackError):
        decompress(7, b"")
    with pytest.raises(ValueError, match="unknown"):
        compress(7, b"")
