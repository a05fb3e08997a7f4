"""The compression codecs of record batches, both ways, with a limit on the decompressed size.

Codec ids are those of a batch's attributes (Kafka's CompressionType). Snappy is framed as Kafka's
Java client frames it (xerial's block stream); raw snappy is read too. What follows the end of the data is
read, ignored or refused as by Kafka's consumer on Java 17.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, cast

from kraft_core.format import lz4_frame
from kraft_core.format.errors import DecodeError
from kraft_core.format.varint import read_unsigned_varint

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

# Kafka limits a metadata batch to 8 MiB before compression; twice that is a decompression bomb.
MAX_UNPACKED_BYTES = 16 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_SIZE = struct.Struct(">i")
# The beginning of a header where the size of a block is expected.
(_XERIAL_MAGIC_SIZE,) = _XERIAL_SIZE.unpack_from(_XERIAL_MAGIC)
_XERIAL_BLOCK_BYTES = 32 * 1024
_CHUNK_BYTES = 1024 * 1024
# Of the chunk in which zstd data ends early nothing is returned: it is read again in smaller ones.
_ZSTD_CHUNKS = (_CHUNK_BYTES, 16 * 1024, 256, 1)
_ZSTD_LEAST_BYTES = 9
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_GZIP_HEADER_BYTES = 10
_GZIP_LEAST_BYTES = 18
_GZIP_TRAILER = struct.Struct("<II")
_GZIP_HEADER_CRC, _GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 2, 4, 8, 16


class UnpackError(DecodeError):
    """Bytes that are invalid for their codec, or a codec unknown to Kafka."""


class TooLargeError(UnpackError):
    """The decompressed size exceeds the limit; the bytes are discarded."""

    def __init__(self, limit: int) -> None:
        super().__init__(0, f"unpacks to more than {limit} bytes")


def decompress(codec: int, data: bytes, limit: int = MAX_UNPACKED_BYTES) -> bytes:
    """The decompressed bytes; raises UnpackError, TooLargeError beyond `limit` bytes."""
    if codec == NONE:
        return data
    try:
        if codec == GZIP:
            return _gunzip(data, limit)
        if codec == SNAPPY:
            return _unsnappy(data, limit)
        if codec == LZ4:
            return _unlz4(data, limit)
        if codec == ZSTD:
            return _unzstd(data, limit)
    except UnpackError:
        raise
    # struct.error, zlib.error, DecodeError of a varint; OSError and ArrowInvalid (a ValueError) of pyarrow.
    except (struct.error, zlib.error, OSError, ValueError) as error:
        raise UnpackError(0, f"no {CODEC_NAMES[codec]} data: {error}") from None
    raise UnpackError(0, f"unknown compression codec {codec}")


def compress(codec: int, data: bytes) -> bytes:
    """The compressed bytes in Kafka's framing; ValueError for an unknown codec."""
    if codec == NONE:
        return data
    if codec == GZIP:
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        return _snappy(data)
    if codec == LZ4:
        return lz4_frame.of_blocks(
            data, lambda block: _arrow().Codec("lz4_raw").compress(block, asbytes=True)
        )
    if codec == ZSTD:
        return _arrow_codec(codec).compress(data, asbytes=True)
    raise ValueError(f"unknown compression codec {codec}")


def _gunzip(data: bytes, limit: int) -> bytes:
    """All members; what follows the last and is none is ignored, as by Java's GZIPInputStream."""
    out = bytearray()
    start = _gzip_header_end(data, 0)
    if start == 0:
        raise UnpackError(0, "no gzip header")
    while start:
        member = zlib.decompressobj(wbits=-15)
        content = member.decompress(data[start:], limit + 1 - len(out))
        out += content
        if len(out) > limit:
            raise TooLargeError(limit)
        if not member.eof or len(member.unused_data) < _GZIP_TRAILER.size:
            raise UnpackError(0, "gzip data ends early")
        if _GZIP_TRAILER.unpack_from(member.unused_data) != (zlib.crc32(content), len(content)):
            raise UnpackError(0, "gzip data with another checksum or size")
        end = len(data) - len(member.unused_data) + _GZIP_TRAILER.size
        start = _gzip_header_end(data, end) if len(data) - end > _GZIP_LEAST_BYTES else 0
    return bytes(out)


def _gzip_header_end(data: bytes, start: int) -> int:
    """The end of the gzip header that begins at `start` (RFC 1952, 2.3); 0 if no whole one does."""
    if data[start : start + 3] != b"\x1f\x8b\x08" or len(data) < start + _GZIP_HEADER_BYTES:
        return 0
    flags, at = data[start + 3], start + _GZIP_HEADER_BYTES
    if flags & _GZIP_EXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for text in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & text:
            at = data.find(0, at) + 1
            if at == 0:
                return 0
    if flags & _GZIP_HEADER_CRC:
        stated = int.from_bytes(data[at : at + 2], "little")
        if stated != zlib.crc32(data[start:at]) & 0xFFFF:
            return 0
        at += 2
    return at if at <= len(data) else 0


def _unsnappy(data: bytes, limit: int) -> bytes:
    """As xerial's SnappyInputStream: up to three bytes after the last block are ignored."""
    if not data.startswith(_XERIAL_MAGIC) or len(data) < _XERIAL_HEADER.size:
        return _unsnappy_block(data, limit, limit)
    out = bytearray()
    at = _XERIAL_HEADER.size
    while len(data) - at >= _XERIAL_SIZE.size:
        (size,) = _XERIAL_SIZE.unpack_from(data, at)
        if size == _XERIAL_MAGIC_SIZE:
            at = _next_stream(data, at, is_first=not out)
            continue
        at += _XERIAL_SIZE.size
        if not 0 <= size <= len(data) - at:
            raise UnpackError(at, "snappy block ends early")
        out += _unsnappy_block(data[at : at + size], limit - len(out), limit)
        at += size
    return bytes(out)


def _next_stream(data: bytes, at: int, is_first: bool) -> int:
    """Where blocks go on after a header among them. is_first: nothing was read; a wrong one ends it then."""
    if len(data) - at < _XERIAL_HEADER.size:
        raise UnpackError(at, "snappy header ends early")
    magic, version, _ = _XERIAL_HEADER.unpack_from(data, at)
    if magic != _XERIAL_MAGIC and is_first:
        return len(data)
    if magic == _XERIAL_MAGIC and version < 1:
        raise UnpackError(at, f"snappy stream of version {version}")
    return at + _XERIAL_HEADER.size


def _unsnappy_block(data: bytes, room: int, limit: int) -> bytes:
    size, _ = read_unsigned_varint(data, 0)
    if size > room:
        raise TooLargeError(limit)
    return _arrow_codec(SNAPPY).decompress(data, decompressed_size=size, asbytes=True)


def _snappy(data: bytes) -> bytes:
    codec = _arrow_codec(SNAPPY)
    out = bytearray(_XERIAL_HEADER.pack(_XERIAL_MAGIC, 1, 1))
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block: bytes = codec.compress(data[at : at + _XERIAL_BLOCK_BYTES], asbytes=True)
        out += struct.pack(">i", len(block)) + block
    return bytes(out)


def _unlz4(data: bytes, limit: int) -> bytes:
    out = bytearray()
    _read_stream(LZ4, lz4_frame.read_by_kafka(data), limit, _CHUNK_BYTES, out)
    return bytes(out)


def _unzstd(data: bytes, limit: int) -> bytes:
    """All frames; of a later one that ends early, what can be read, as by zstd-jni's ZstdInputStream."""
    out = bytearray()
    for chunk in _ZSTD_CHUNKS:
        try:
            _read_stream(ZSTD, data, limit, chunk, out)
        except OSError as error:
            ends_early = str(error).startswith("Truncated") and _holds_zstd_frame(data)
            if not ends_early:
                raise
        else:
            break
    return bytes(out)


def _holds_zstd_frame(data: bytes) -> bool:
    """Whether the first frame is whole (RFC 8878, 3.1)."""
    if len(data) < _ZSTD_LEAST_BYTES:
        return False
    if data[1:4] == _ZSTD_SKIPPABLE:
        return len(data) >= 8 + int.from_bytes(data[4:8], "little")
    flags = data[4]
    is_single = bool(flags & 0x20)
    at = 5 + (not is_single) + (0, 1, 2, 4)[flags & 3] + (int(is_single), 2, 4, 8)[flags >> 6]
    is_last = False
    while not is_last:
        block = int.from_bytes(data[at : at + 3], "little")
        is_last = bool(block & 1)
        is_repeated = block >> 1 & 3 == 1
        at += 3 + (1 if is_repeated else block >> 3)
        if at > len(data):
            return False
    return at + (4 if flags & 4 else 0) <= len(data)


def _read_stream(codec: int, data: bytes, limit: int, chunk_bytes: int, out: bytearray) -> None:
    """Adds what is unpacked after the bytes that `out` holds; raises OSError where the data ends early."""
    arrow = _arrow()
    with arrow.CompressedInputStream(arrow.BufferReader(data), CODEC_NAMES[codec]) as stream:
        stream.read(len(out))
        while chunk := stream.read(chunk_bytes):
            out += chunk
            if len(out) > limit:
                raise TooLargeError(limit)


def _arrow_codec(codec: int) -> Any:
    return _arrow().Codec(CODEC_NAMES[codec])


def _arrow() -> Any:
    # pyarrow takes a fifth of a second to import, and metadata logs are hardly ever compressed.
    import pyarrow

    return cast(Any, pyarrow)
