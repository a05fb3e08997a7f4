"""The compression codecs of record batches, both ways, with a limit on the decompressed size.

Codec ids are those of a batch's attributes (Kafka's CompressionType). Snappy is framed as Kafka's
Java client frames it (xerial's block stream); raw snappy is read too.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, cast

from kraft_core.format.errors import DecodeError
from kraft_core.format.varint import read_unsigned_varint

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

# Kafka limits a metadata batch to 8 MiB before compression; twice that is a decompression bomb.
MAX_UNPACKED_BYTES = 16 * 1024 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_BLOCK_BYTES = 32 * 1024
_CHUNK_BYTES = 1024 * 1024
# Magic, two bytes that describe the frame, and their checksum; the first of the two has these flags.
_LZ4_SHORTEST_HEADER_BYTES = 7
_LZ4_DICTIONARY_ID, _LZ4_CONTENT_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_BLOCK_CHECKSUM = 1, 4, 8, 16
# The other bit of a block's size says that it is not compressed.
_LZ4_BLOCK_SIZE = 0x7FFFFFFF
_GZIP_HEADER_BYTES = 10
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
        if codec in (LZ4, ZSTD):
            return _read_stream(codec, _lz4_frame(data) if codec == LZ4 else data, limit)
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
    if codec in (LZ4, ZSTD):
        return _arrow_codec(codec).compress(data, asbytes=True)
    raise ValueError(f"unknown compression codec {codec}")


def _gunzip(data: bytes, limit: int) -> bytes:
    """All members; what follows the last and is none is ignored, as by Java's GZIPInputStream."""
    out = bytearray()
    while data:
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(data, limit + 1 - len(out))
        if len(out) > limit:
            raise TooLargeError(limit)
        if not member.eof:
            raise UnpackError(0, "gzip data ends early")
        data = member.unused_data if _is_gzip_member(member.unused_data) else b""
    return bytes(out)


def _is_gzip_member(data: bytes) -> bool:
    """Whether a whole gzip header begins here (RFC 1952, 2.3)."""
    if data[:3] != b"\x1f\x8b\x08" or len(data) < _GZIP_HEADER_BYTES:
        return False
    flags, at = data[3], _GZIP_HEADER_BYTES
    if flags & _GZIP_EXTRA:
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for text in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & text:
            at = data.find(0, at) + 1
            if at == 0:
                return False
    if flags & _GZIP_HEADER_CRC:
        stated = int.from_bytes(data[at : at + 2], "little")
        if stated != zlib.crc32(data[:at]) & 0xFFFF:
            return False
        at += 2
    return at <= len(data)


def _unsnappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnappy_block(data, limit, limit)
    out = bytearray()
    at = _XERIAL_HEADER.size
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if not 0 <= size <= len(data) - at:
            raise UnpackError(at, "snappy block ends early")
        out += _unsnappy_block(data[at : at + size], limit - len(out), limit)
        at += size
    return bytes(out)


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


def _lz4_frame(data: bytes) -> bytes:
    """The first frame, or all if it ends early. Kafka's Lz4BlockInputStream ignores what follows."""
    if len(data) < _LZ4_SHORTEST_HEADER_BYTES:
        return data
    flags = data[4]
    at = _LZ4_SHORTEST_HEADER_BYTES
    at += 8 * bool(flags & _LZ4_CONTENT_SIZE) + 4 * bool(flags & _LZ4_DICTIONARY_ID)
    while size := int.from_bytes(data[at : at + 4], "little") & _LZ4_BLOCK_SIZE:
        at += 4 + size + 4 * bool(flags & _LZ4_BLOCK_CHECKSUM)
    return data[: at + 4 + 4 * bool(flags & _LZ4_CONTENT_CHECKSUM)]


def _read_stream(codec: int, data: bytes, limit: int) -> bytes:
    arrow = _arrow()
    out = bytearray()
    with arrow.CompressedInputStream(arrow.BufferReader(data), CODEC_NAMES[codec]) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            out += chunk
            if len(out) > limit:
                raise TooLargeError(limit)
    return bytes(out)


def _arrow_codec(codec: int) -> Any:
    return _arrow().Codec(CODEC_NAMES[codec])


def _arrow() -> Any:
    # pyarrow takes a fifth of a second to import, and metadata logs are hardly ever compressed.
    import pyarrow

    return cast(Any, pyarrow)
