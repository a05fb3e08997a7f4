import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.format.errors import DecodeError
from kraft_core.format.varint import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    write_unsigned_varint,
    write_varint,
    write_varlong,
)

UNSIGNED = (read_unsigned_varint, write_unsigned_varint, 0, (1 << 32) - 1)
SIGNED = (read_varint, write_varint, -(1 << 31), (1 << 31) - 1)
LONG = (read_varlong, write_varlong, -(1 << 63), (1 << 63) - 1)
KINDS = pytest.mark.parametrize(
    ("read", "write", "low", "high"), [UNSIGNED, SIGNED, LONG], ids=["unsigned", "varint", "varlong"]
)


@pytest.mark.parametrize(
    ("read", "encoded", "value"),
    [
        (read_unsigned_varint, "00", 0),
        (read_unsigned_varint, "7f", 127),
        (read_unsigned_varint, "8001", 128),
        (read_unsigned_varint, "ffffffff0f", (1 << 32) - 1),
        (read_varint, "01", -1),
        (read_varint, "02", 1),
        (read_varint, "ffffffff0f", -(1 << 31)),
        (read_varint, "feffffff0f", (1 << 31) - 1),
        (read_varlong, "ffffffffffffffffff01", -(1 << 63)),
        (read_varlong, "feffffffffffffffff01", (1 << 63) - 1),
    ],
)
def test_known_encodings(read, encoded, value):
    assert read(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@KINDS
@given(data=st.data())
def test_what_is_written_is_read_back(read, write, low, high, data):
    value = data.draw(st.integers(low, high))
    before = data.draw(st.binary(max_size=3))
    out = bytearray(before)
    write(out, value)
    assert read(out + b"\xff", len(before)) == (value, len(out))


@KINDS
def test_numbers_too_big_are_refused(read, write, low, high):
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=str(value)):
            write(bytearray(), value)
    bits = 64 if read is read_varlong else 32
    for encoded in (b"\xff" * 20, b"\xff" * (bits // 7) + b"\x7f"):
        with pytest.raises(DecodeError) as caught:
            read(b"\0" + encoded, 1)
        assert (caught.value.position, caught.value.reason) == (1, f"varint of more than {bits} bits")


@pytest.mark.parametrize("read", [read_unsigned_varint, read_varint, read_varlong])
@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\x80\x80"])
def test_an_early_end_is_an_error_at_the_end(read, encoded):
    with pytest.raises(DecodeError) as caught:
        read(memoryview(encoded), 0)
    assert (caught.value.position, caught.value.reason) == (len(encoded), "varint ends early")


def test_longer_forms_than_needed_are_read():
    assert read_unsigned_varint(b"\x81\x80\x00", 0) == (1, 3)
    assert read_varlong(b"\x82\x80\x00", 0) == (1, 3)
