"""Text in compiled code: whether bytes are UTF-8, and copying."""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.memory import get, load_u8, put, store_8

_HIGH_BITS = -0x7F7F7F7F7F7F7F80  # 0x80 in every byte


@inlined
def copy(target: int, source: int, size: int) -> None:
    """Copies bytes that do not overlap, eight at a time; the last eight may be written twice."""
    if size < 8:
        for index in range(size):
            store_8(target + index, load_u8(source + index))
        return
    last = size - 8
    index = 0
    while index < last:
        put(target + index, get(source + index))
        index += 8
    put(target + last, get(source + last))


@compiled
def is_utf8(address: int, size: int) -> bool:
    """Whether the bytes are UTF-8 as Python decodes it: no surrogates, nothing longer than needed."""
    end = address + size
    while address + 8 <= end and get(address) & _HIGH_BITS == 0:
        address += 8
    while address < end:
        lead = load_u8(address)
        address += 1
        if lead < 0x80:
            continue
        following, lowest, highest = _continuation(lead)
        if following < 0 or address + following > end:
            return False
        for index in range(following):
            byte = load_u8(address + index)
            if byte < lowest or byte > highest:
                return False
            lowest, highest = 0x80, 0xBF
        address += following
    return True


@compiled
def _continuation(lead: int) -> tuple[int, int, int]:
    """How many bytes follow a lead byte (-1: not a lead byte), and the valid range of the first of them."""
    if 0xC2 <= lead <= 0xDF:
        return 1, 0x80, 0xBF
    if 0xE0 <= lead <= 0xEF:
        return 2, 0xA0 if lead == 0xE0 else 0x80, 0x9F if lead == 0xED else 0xBF
    if 0xF0 <= lead <= 0xF4:
        return 3, 0x90 if lead == 0xF0 else 0x80, 0x8F if lead == 0xF4 else 0xBF
    return -1, 0, 0
