"""CRC-32C (Castagnoli) for compiled code: by the processor's instruction, or by eight tables.

The instruction has its result three cycles later, but can begin every cycle: of long inputs three pieces are
summed at once, and the sums combined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.memory import (
    crc_1_byte,
    crc_4_bytes,
    crc_8_bytes,
    get,
    has_crc_instruction,
    load_u8,
    word,
)

_POLYNOMIAL = 0x82F63B78  # reflected
_ALL_ONES = 0xFFFFFFFF


def _tables() -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """tables[k][b]: what byte b does to the checksum when k zero bytes follow it."""
    first = np.arange(256, dtype=np.int64)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ _POLYNOMIAL, first >> 1)
    tables = [first]
    for _ in range(7):
        last = tables[-1]
        tables.append((last >> 8) ^ first[last & 0xFF])
    return np.stack(tables)


_TABLES = _tables()


@compiled
def crc32c_by_tables(address: int, size: int) -> int:
    """The checksum of `size` bytes; eight at a time, each through a table of its own."""
    crc = _ALL_ONES
    end = address + size
    while address + 8 <= end:
        crc ^= load_u8(address) | load_u8(address + 1) << 8
        crc ^= load_u8(address + 2) << 16 | load_u8(address + 3) << 24
        crc = (
            _TABLES[7, crc & 0xFF]
            ^ _TABLES[6, crc >> 8 & 0xFF]
            ^ _TABLES[5, crc >> 16 & 0xFF]
            ^ _TABLES[4, crc >> 24]
            ^ _TABLES[3, load_u8(address + 4)]
            ^ _TABLES[2, load_u8(address + 5)]
            ^ _TABLES[1, load_u8(address + 6)]
            ^ _TABLES[0, load_u8(address + 7)]
        )
        address += 8
    while address < end:
        crc = (crc >> 8) ^ _TABLES[0, (crc ^ load_u8(address)) & 0xFF]
        address += 1
    return crc ^ _ALL_ONES


def _appended_zeros(size: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """tables[k][b]: what byte k of a checksum, if it is b, becomes when `size` zeros follow; a power of 2."""
    # What each bit becomes; for twice the size, once more.
    bits = [int(_TABLES[0, 1 << bit]) if bit < 8 else 1 << bit - 8 for bit in range(32)]
    for _ in range(size.bit_length() - 1):
        bits = [_sum_of(bits, image) for image in bits]
    return np.array([[_sum_of(bits, byte << 8 * place) for byte in range(256)] for place in range(4)])


def _sum_of(bits: list[int], checksum: int) -> int:
    total = 0
    for bit in range(32):
        if checksum >> bit & 1:
            total ^= bits[bit]
    return total


# The size of each of the three pieces that are summed at once.
_PIECE = 256
_PIECE_LATER = _appended_zeros(_PIECE)


@inlined
def _later(crc: int) -> int:
    """What a checksum becomes when _PIECE zero bytes follow."""
    return (
        _PIECE_LATER[0, crc & 0xFF]
        ^ _PIECE_LATER[1, crc >> 8 & 0xFF]
        ^ _PIECE_LATER[2, crc >> 16 & 0xFF]
        ^ _PIECE_LATER[3, crc >> 24]
    )


@compiled
def crc32c_by_instruction(address: int, size: int) -> int:
    """The checksum of `size` bytes; eight an instruction."""
    crc = _ALL_ONES
    end = address + size
    while address + 3 * _PIECE <= end:
        second, third = 0, 0
        for at in range(address, address + _PIECE, 8):
            crc = crc_8_bytes(crc, get(at))
            second = crc_8_bytes(second, get(at + _PIECE))
            third = crc_8_bytes(third, get(at + 2 * _PIECE))
        crc = _later(_later(crc) ^ second) ^ third
        address += 3 * _PIECE
    while address + 8 <= end:
        crc = crc_8_bytes(crc, get(address))
        address += 8
    if address + 4 <= end:
        crc = crc_4_bytes(crc, word(address))
        address += 4
    while address < end:
        crc = crc_1_byte(crc, load_u8(address))
        address += 1
    return crc ^ _ALL_ONES


crc32c: Callable[[int, int], int] = crc32c_by_instruction if has_crc_instruction() else crc32c_by_tables
