"""CRC-32C over any range of a buffer, for a search that checks many long ranges that overlap."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

import google_crc32c

from kraft_core.format.batch import CRC_FROM, BatchHeader, check_crc
from kraft_core.format.varint import Buffer

_extend = cast(Callable[[int, bytes], int], google_crc32c.extend)
# The polynomial, its bits reflected.
_POLYNOMIAL = 0x82F63B78
_ANCHOR_BYTES = 16 * 1024


class RangeChecksums:
    """The checksums of batches in one buffer, each in time that does not grow with the batch.

    The checksum of the bytes from start is kept every 16 KiB. That of a range follows from those of its ends:
    crc(a + b) = shift(crc(a), len(b)) xor crc(b), where shift appends len(b) zero bytes.
    """

    def __init__(self, buf: Buffer, start: int) -> None:
        self._buf = buf
        self._start = start
        self._anchors = [0]

    def match(self, header: BatchHeader) -> bool:
        """Whether a batch's bytes match its CRC-32C. It must lie inside the buffer, after start."""
        if header.size_bytes <= _ANCHOR_BYTES:
            return check_crc(self._buf, header)
        begin = header.position + CRC_FROM
        return self._up_to(header.end) ^ _shift(self._up_to(begin), header.end - begin) == header.crc

    def _up_to(self, end: int) -> int:
        """The checksum from start to end (exclusive)."""
        index = (end - self._start) // _ANCHOR_BYTES
        while len(self._anchors) <= index:
            at = self._start + (len(self._anchors) - 1) * _ANCHOR_BYTES
            self._anchors.append(_extend(self._anchors[-1], bytes(self._buf[at : at + _ANCHOR_BYTES])))
        at = self._start + index * _ANCHOR_BYTES
        return _extend(self._anchors[index], bytes(self._buf[at:end]))


def _shift(crc: int, size_bytes: int) -> int:
    """The checksum's part in that of a buffer with size_bytes more behind it."""
    for place, powers in enumerate(_powers()):
        crc = _multiply(powers[size_bytes >> 8 * place & 0xFF], crc)
    return crc


@cache
def _powers() -> tuple[tuple[int, ...], ...]:
    """[place][digit]: x to the power of 8 * digit * 256**place, modulo the polynomial; up to 4 GiB."""
    places: list[tuple[int, ...]] = []
    step = 1 << 31 - 8  # x**8; the bits are reflected, so 1 << 31 is 1
    for _ in range(4):
        powers = [1 << 31]
        for _ in range(256):
            powers.append(_multiply(powers[-1], step))
        step = powers.pop()
        places.append(tuple(powers))
    return tuple(places)


def _multiply(a: int, b: int) -> int:
    """The product of two polynomials modulo the CRC's."""
    product, bit = 0, 1 << 31
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product
