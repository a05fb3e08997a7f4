import random
import struct
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


@pytest.mark.parametrize("rest", [b"\x00", bytes(4), b"\xff" * 30, compress(LZ4, b"two")])
@pytest.mark.parametrize("size", [0, 3, 70_000, 300_000])
def test_what_follows_an_lz4_frame_is_ignored(rest, size):
    """As Kafka's Lz4BlockInputStream does, also another frame."""
    data = random.Random(size).randbytes(size // 2) + bytes(size - size // 2)
    assert decompress(LZ4, compress(LZ4, data) + rest) == data


@pytest.mark.parametrize("flags", range(0, 32, 4))
def test_an_lz4_frame_ends_where_its_flags_say(flags):
    frame = lz4_frame(flags)
    assert decompress(LZ4, frame) == decompress(LZ4, frame + b"\x01rest") == b"kraft"
    for end in range(7, len(frame)):
        with pytest.raises(UnpackError):
            decompress(LZ4, frame[:end])


# By flags / 4: the checksums of descriptors, with a content size of 5 where they have one.
LZ4_DESCRIPTORS = bytes.fromhex("82a7612cadbd6b03")
KRAFT_XXH32 = bytes.fromhex("b9f41125")


def lz4_frame(flags):
    """b"kraft" as it is. flags: 8 content size, 16 checksum of the block, 4 of the content."""
    size = struct.pack("<Q", 5) if flags & 8 else b""
    header = LZ4_MAGIC + bytes([0x60 | flags, 0x40]) + size + LZ4_DESCRIPTORS[flags // 4 : flags // 4 + 1]
    block = stored(b"kraft") + (KRAFT_XXH32 if flags & 16 else b"")
    return header + block + END + (KRAFT_XXH32 if flags & 4 else b"")


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


LZ4_MAGIC = b"\x04\x22\x4d\x18"
# Descriptors with their checksum: Kafka's own; with a checksum of the content; with one of each block.
PLAIN, CONTENT_CHECKSUM, BLOCK_CHECKSUM = (bytes.fromhex(text) for text in ("604082", "6440a7", "7040ad"))
END = bytes(4)


def stored(data):
    """An LZ4 block that is stored as it is."""
    return struct.pack("<I", 0x80000000 | len(data)) + data


@pytest.mark.parametrize(
    "frame",
    [
        PLAIN + stored(b"one") + END,
        PLAIN + stored(b"one") + struct.pack("<I", 0x80000000),
        CONTENT_CHECKSUM + stored(b"one") + END + b"none",
        bytes.fromhex("6840") + struct.pack("<Q", 7) + b"\xb0" + stored(b"one") + END,
        PLAIN + stored(b"one") + b"\1\0\0\0\0" + stored(b"two") + END,
    ],
    ids=["plain", "stored end mark", "wrong content checksum", "wrong content size", "empty block"],
)
def test_lz4_frames_are_read_as_far_as_kafka_reads_them(frame):
    assert decompress(LZ4, LZ4_MAGIC + frame) == b"one"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        PLAIN[:2],
        PLAIN[:2] + b"\x83" + stored(b"one") + END,
        PLAIN + stored(b"one"),
        PLAIN + stored(b"one")[:-1],
        CONTENT_CHECKSUM + stored(b"one") + END + b"abc",
        BLOCK_CHECKSUM + stored(b"one") + b"none" + END,
        bytes.fromhex("4040c0") + stored(b"one") + END,
    ],
    ids=["nothing", "no checksum", "descriptor", "no end mark", "early", "early end", "block", "dependent"],
)
def test_lz4_frames_that_kafka_refuses(frame):
    with pytest.raises(UnpackError):
        decompress(LZ4, LZ4_MAGIC + frame)


def test_a_later_zstd_frame_may_end_early():
    """As zstd-jni's ZstdInputStream takes it; other bytes than a frame's are refused."""
    one, two = compress(ZSTD, b"one"), compress(ZSTD, bytes(range(256)) * 99)
    skipped = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    assert decompress(ZSTD, one + two) == b"one" + bytes(range(256)) * 99
    assert decompress(ZSTD, one + one[:1]) == b"one"
    assert decompress(ZSTD, one + one[:-1]) == b"oneon"
    assert decompress(ZSTD, skipped + one[:-1]) == b"on"
    for refused in (one + b"x", one[:-1], skipped[:-1], one[:8]):
        with pytest.raises(UnpackError):
            decompress(ZSTD, refused)


def test_what_follows_snappy_blocks():
    """As by xerial's SnappyInputStream: less than a size is ignored, another stream is read."""
    one = compress(SNAPPY, b"one")
    for rest in (b"\0", b"abc"):
        assert decompress(SNAPPY, one + rest) == b"one"
    assert decompress(SNAPPY, one + compress(SNAPPY, b"two")) == b"onetwo"
    wrong_version = one[:8] + bytes(4) + one[12:]
    assert decompress(SNAPPY, wrong_version) == b"one"
    for refused in (one + bytes(4), one + one[:8], one + wrong_version, one[:8], b""):
        with pytest.raises(UnpackError):
            decompress(SNAPPY, refused)


def test_gzip_data_that_java_reads_and_zlib_does_not():
    """Java ignores reserved flags, and less than a member after the last; it needs one."""
    reserved = bytearray(compress(GZIP, b"one"))
    reserved[3] = 0x80
    assert decompress(GZIP, bytes(reserved)) == b"one"
    assert decompress(GZIP, compress(GZIP, b"one") + full_header()[:18]) == b"one"
    for refused in (b"", b"\x1f\x8b", compress(GZIP, b"one")[:-1]):
        with pytest.raises(UnpackError):
            decompress(GZIP, refused)


def test_unknown_codecs():
    assert decompress(NONE, b"plain") == b"plain"
    with pytest.raises(UnpackError):
        decompress(7, b"")
    with pytest.raises(ValueError, match="unknown"):
        compress(7, b"")
