"""What a record has around its key and value, and a metadata record before its fields, in compiled code."""

from __future__ import annotations

from kraft_core.columnar.compiled import compiled, inlined
from kraft_core.columnar.compiled_varint import (
    read_short_varint,
    read_unsigned_varint,
    read_varint,
    read_varlong,
)
from kraft_core.columnar.kernel_abi import MALFORMED, NO_KEY
from kraft_core.columnar.memory import load_u8, load_u32

_FRAME_VERSION = 1
# Frame version, api key and version, mostly a byte each.
_SHORT_KIND_BYTES = 3
# Four numbers of at most two bytes, attributes, and the size of a null key (-1).
_SHORT_FRAME_BYTES = 10
_NULL_KEY = 1


@inlined
def read_frame(at: int, end: int, stop: int) -> tuple[int, int, int, int, int, int, int]:
    """What a record has around its key and value.

    Timestamp and offset delta; address and size of key and value; the address after the record, or MALFORMED.
    """
    if at + _SHORT_FRAME_BYTES <= stop:
        length, begin, more = read_short_varint(at)
        timestamp_delta, place, also = read_short_varint(begin + 1)
        offset_delta, key_at, again = read_short_varint(place)
        value_size, value, finally_ = read_short_varint(key_at + 1)
        after = begin + length
        # As metadata records are: without key and headers. Whatever is not so is read below.
        is_short = (more | also | again | finally_) == 0 and value_size >= 0
        is_all = is_short and value + value_size + 1 == after and after <= end
        if is_all and load_u8(key_at) == _NULL_KEY and load_u8(after - 1) == 0:
            return timestamp_delta, offset_delta, key_at + 1, NO_KEY, value, value_size, after
    return _read_any_frame(at, end)


@compiled
def _read_any_frame(at: int, end: int) -> tuple[int, int, int, int, int, int, int]:
    """As read_frame."""
    malformed = 0, 0, 0, 0, 0, 0, MALFORMED
    length, at = read_varint(at, end)
    if length <= 0 or length > end - at:
        return malformed
    end = at + length
    timestamp_delta, at = read_varlong(at + 1, end)
    offset_delta, at = read_varint(at, end)
    key_size, key = read_varint(at, end)
    if key_size > end - key:
        return malformed
    value_size, value = read_varint(key + max(key_size, 0), end)
    if value_size > end - value:
        return malformed
    value_end = value + max(value_size, 0)
    has_headers = value_end + 1 != end or load_u8(value_end) != 0
    if has_headers and _skip_headers(value_end, end) != end:
        return malformed
    return timestamp_delta, offset_delta, key, key_size, value, value_size, end


@compiled
def _skip_headers(at: int, end: int) -> int:
    """The address after a record's headers; any other than `end` if they cannot be read."""
    count, at = read_varint(at, end)
    if not 0 <= count <= end - at:
        return MALFORMED
    for _ in range(count):
        key_size, at = read_varint(at, end)
        if not 0 <= key_size <= end - at:
            return MALFORMED
        value_size, at = read_varint(at + key_size, end)
        if value_size > end - at:
            return MALFORMED
        at += max(value_size, 0)
    return at


@inlined
def read_kind(value: int, end: int) -> tuple[int, int, int]:
    """Api key and version of a metadata record, the address after them; beyond `end` if there are none."""
    if end - value >= _SHORT_KIND_BYTES:
        # The byte after a value is of its record, too: the number of headers.
        head = load_u32(value)
        if head & 0xFF80_8000 == _FRAME_VERSION << 24:
            return head >> 16 & 0xFF, head >> 8 & 0xFF, value + _SHORT_KIND_BYTES
    return _read_any_kind(value, end)


@compiled
def _read_any_kind(value: int, end: int) -> tuple[int, int, int]:
    """As read_kind."""
    frame_version, value = read_unsigned_varint(value, end)
    api_key, value = read_unsigned_varint(value, end)
    version, value = read_unsigned_varint(value, end)
    return api_key, version, value if frame_version == _FRAME_VERSION else end + 1
