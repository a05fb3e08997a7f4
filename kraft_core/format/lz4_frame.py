"""LZ4 frames as Kafka reads them (Lz4BlockInputStream): one frame, and less of it than the format defines.

Kafka looks neither at the size and the checksum of the content nor at what follows the end mark, ends at an
empty block too, and refuses blocks that depend on each other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from kraft_core.format.errors import DecodeError

_MAGIC = b"\x04\x22\x4d\x18"
_DESCRIPTOR_AT = len(_MAGIC)
_SIZE = struct.Struct("<I")
_CHECKSUM_BYTES = 4
_CONTENT_SIZE_BYTES = 8

# Of the flags: format version 1 with independent blocks, and what is optional.
_VERSION_AND_INDEPENDENT, _OPTIONAL = 0x60, 0x1C
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
# Blocks of at most 64 KiB, as Kafka writes them.
_BLOCK_BYTES = 64 * 1024
_DESCRIPTOR = bytes((_VERSION_AND_INDEPENDENT, 0x40))
# Of a block's size: whether the block is stored as it is.
_STORED = 0x80000000
# Blocks of one byte below this hold nothing: a last sequence without literals.
_EMPTY_BLOCK = 0x10

_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF


def read_by_kafka(data: bytes) -> bytes:
    """The frame without what Kafka does not look at, for a decoder that does.

    Raises DecodeError or struct.error where Kafka refuses the frame; its blocks are not looked into.
    """
    flags, block_size = data[_DESCRIPTOR_AT : _DESCRIPTOR_AT + 2].ljust(2, b"\0")
    has_size = bool(flags & _CONTENT_SIZE)
    start = _DESCRIPTOR_AT + 2 + _CONTENT_SIZE_BYTES * has_size
    if not data.startswith(_MAGIC) or flags & ~_OPTIONAL != _VERSION_AND_INDEPENDENT or len(data) <= start:
        raise DecodeError(0, "no LZ4 frame of Kafka's kind")
    if data[start] != _header_checksum(data[_DESCRIPTOR_AT:start]):
        raise DecodeError(start, "LZ4 frame descriptor with another checksum")
    blocks_at = start + 1
    end = _blocks_end(data, blocks_at, flags)
    descriptor = bytes((flags & ~(_CONTENT_SIZE | _CONTENT_CHECKSUM), block_size))
    header = _MAGIC + descriptor + bytes((_header_checksum(descriptor),))
    return header + data[blocks_at:end] + bytes(_SIZE.size)


def of_blocks(data: bytes, compress: Callable[[bytes], bytes]) -> bytes:
    """A frame as Kafka writes it, without checksums. compress: a block without its size."""
    out = bytearray(_MAGIC + _DESCRIPTOR + bytes((_header_checksum(_DESCRIPTOR),)))
    for at in range(0, len(data), _BLOCK_BYTES):
        block = data[at : at + _BLOCK_BYTES]
        packed = compress(block)
        is_smaller = len(packed) < len(block)
        out += _SIZE.pack(len(packed) if is_smaller else _STORED | len(block))
        out += packed if is_smaller else block
    return bytes(out) + bytes(_SIZE.size)


def _blocks_end(data: bytes, at: int, flags: int) -> int:
    """The end of the blocks from `at` on, exclusive."""
    checksum_bytes = _CHECKSUM_BYTES if flags & _BLOCK_CHECKSUM else 0
    while True:
        (size,) = _SIZE.unpack_from(data, at)
        length = size & ~_STORED
        end = at + _SIZE.size + length + checksum_bytes
        if length == 0:
            end = at + _SIZE.size + (_CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0)
        if end > len(data):
            raise DecodeError(at, "LZ4 frame ends early")
        if length == 0:
            return at
        is_empty = size == 1 and data[at + _SIZE.size] < _EMPTY_BLOCK
        at = end
        if is_empty:
            return at


def _header_checksum(descriptor: bytes) -> int:
    """The second byte of the xxHash32 of less than 16 bytes."""
    value = _PRIME_5 + len(descriptor)
    whole = len(descriptor) // 4 * 4
    for (word,) in _SIZE.iter_unpack(descriptor[:whole]):
        value = _rotated(value + word * _PRIME_3, 17) * _PRIME_4
    for byte in descriptor[whole:]:
        value = _rotated(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return (value ^ value >> 16) >> 8 & 0xFF


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
