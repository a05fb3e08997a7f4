"""The kernel's small parts against their counterparts in Python."""

from __future__ import annotations

import google_crc32c
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraft_core.columnar.compiled import entry
from kraft_core.columnar.compiled_varint import read_unsigned_varint, read_varint, read_varlong
from kraft_core.columnar.crc import crc32c_by_instruction, crc32c_by_tables
from kraft_core.columnar.digits import write_number
from kraft_core.columnar.memory import has_crc_instruction
from kraft_core.columnar.text import is_utf8
from kraft_core.columnar.vectors import REACH, UUID_TEXT_BYTES, write_uuid
from kraft_core.format import varint
from kraft_core.format.errors import DecodeError
from kraft_core.messages.uuid_text import uuid_text

relaxed = settings(deadline=None, max_examples=300)


@entry
def by_tables(address: int, size: int) -> int:
    return crc32c_by_tables(address, size)


@entry
def by_instruction(address: int, size: int) -> int:
    return crc32c_by_instruction(address, size)


@entry
def utf8(address: int, size: int) -> bool:
    return is_utf8(address, size)


@entry
def uuid(target: int, source: int) -> None:
    write_uuid(target, source)


@entry
def number(value: int, out: int) -> int:
    return write_number(value, out)


@entry
def unsigned_varint(at: int, end: int) -> tuple[int, int]:
    return read_unsigned_varint(at, end)


@entry
def signed_varint(at: int, end: int) -> tuple[int, int]:
    return read_varint(at, end)


@entry
def varlong(at: int, end: int) -> tuple[int, int]:
    return read_varlong(at, end)


def held(data: bytes) -> tuple[np.ndarray, int]:
    """The bytes in memory with more after them, and where they are."""
    array = np.frombuffer(data + b"\xa5" * 16, dtype=np.uint8)
    return array, array.ctypes.data


@pytest.mark.parametrize("size", [767, 768, 769, 1535, 1536, 5000])
def test_checksums_of_long_inputs(size):
    data = bytes(n * n % 251 for n in range(size))
    _array, address = held(data)
    assert by_tables(address, size) == google_crc32c.value(data)
    if has_crc_instruction():
        assert by_instruction(address, size) == google_crc32c.value(data)


@given(st.binary(max_size=300))
@relaxed
def test_checksums(data):
    _array, address = held(data)
    expected = google_crc32c.value(data)
    assert by_tables(address, len(data)) == expected
    if has_crc_instruction():
        assert by_instruction(address, len(data)) == expected


def test_the_instruction_is_not_used_for_another_processor(monkeypatch):
    from numba.core import config

    monkeypatch.setattr(config, "CPU_NAME", "generic")
    assert not has_crc_instruction()


@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)))
@relaxed
def test_utf8(data):
    _array, address = held(data)
    try:
        data.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert utf8(address, len(data)) == expected


@pytest.mark.parametrize("lead", range(0x80, 0x100))
def test_utf8_of_every_lead_byte(lead):
    for second in range(0x70, 0x100, 3):
        for rest in (b"", b"\x80", b"\x80\x80", b"\xbf\xbf\xbf"):
            data = bytes([lead, second]) + rest
            _array, address = held(data)
            assert utf8(address, len(data)) == (data.decode("utf-8", "ignore").encode() == data)


@given(st.binary(min_size=16, max_size=16))
@relaxed
def test_uuids(data):
    _array, address = held(data)
    text = np.full(REACH + 1, 0xA5, dtype=np.uint8)
    uuid(text.ctypes.data, address)
    assert text[:UUID_TEXT_BYTES].tobytes().decode() == uuid_text(data)
    assert text[UUID_TEXT_BYTES:].tolist() == [0] * (REACH - UUID_TEXT_BYTES) + [0xA5]


@pytest.mark.parametrize(
    ("compiled", "reference"),
    [
        (unsigned_varint, varint.read_unsigned_varint),
        (signed_varint, varint.read_varint),
        (varlong, varint.read_varlong),
    ],
)
@given(data=st.lists(st.sampled_from([0, 1, 0x0F, 0x10, 0x7F, 0x80, 0x81, 0xFF]), max_size=12).map(bytes))
@relaxed
def test_varints(compiled, reference, data):
    _array, address = held(data)
    value, after = compiled(address, address + len(data))
    try:
        assert (value, after - address) == reference(data, 0)
    except DecodeError:
        assert after == address + len(data) + 1


@relaxed
@given(
    st.one_of(
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.integers(-120, 120),
        st.builds(
            lambda power, step, sign: sign * (10**power + step),
            st.integers(1, 18),
            st.integers(-1, 1),
            st.sampled_from([1, -1]),
        ),
        st.builds(lambda digit, power: digit * 10**power, st.integers(1, 9), st.integers(0, 17)),
    )
)
@example(-(1 << 63))
@example((1 << 63) - 1)
@example(0)
def test_numbers_are_written_in_decimal(value: int) -> None:
    out = np.zeros(32, dtype=np.uint8)
    size = number(value, out.ctypes.data) - out.ctypes.data
    assert out[:size].tobytes().decode() == str(value)
