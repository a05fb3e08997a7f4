"""Java's random numbers, hash tables and numbers as text; the expected values are a JDK's."""

from __future__ import annotations

import pytest

from kraft_core.topic_control.java import (
    JavaRandom,
    double_text,
    hash_map_order,
    parse_double,
    parse_integer,
    string_hash,
    trimmed,
    utf16_length,
)


def test_random_numbers_of_a_seed() -> None:
    random = JavaRandom(42)
    assert [random.next_int(10) for _ in range(5)] == [0, 3, 8, 4, 0]
    random = JavaRandom(42)
    assert [random.next_int(16) for _ in range(3)] == [11, 0, 10]
    # A large bound refuses some numbers, and draws again.
    random = JavaRandom(-1)
    assert [random.next_int((1 << 30) + 1) for _ in range(3)] == [577549913, 943952225, 26349579]


def test_a_shuffle_of_a_seed() -> None:
    values = list(range(6))
    JavaRandom(7).shuffle(values)
    assert values == [3, 0, 1, 2, 5, 4]


@pytest.mark.parametrize(("text", "expected"), [("", 0), ("Aa", 2112), ("BB", 2112), ("zone-17", -111223833)])
def test_hash_of_a_string(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_order_of_a_hash_map() -> None:
    assert hash_map_order([33, 1, 17, 2], int) == [33, 1, 17, 2]
    assert hash_map_order([17, 33, 2, 1], int) == [17, 33, 1, 2]
    assert hash_map_order(range(40), int) == list(range(40))
    assert hash_map_order([5, 1], int, at_once=1) == [5, 1]


def test_numbers_as_java_reads_them() -> None:
    assert [parse_integer(text, 32) for text in ("+7", "-7", "2147483648", "1_0", "", "9" * 5000)] == [
        7,
        -7,
        None,
        None,
        None,
        None,
    ]
    texts = ("1e3", ".5", "5.", "0x1p-1", "1d", "Infinity", "-NaN", "1_0", "e", "+-1", "")
    read = [parse_double(text) for text in texts]
    assert read[:6] == [1000.0, 0.5, 5.0, 0.5, 1.0, float("inf")]
    assert read[6] != read[6]
    assert read[7:] == [None] * 4


def test_text() -> None:
    assert [double_text(each) for each in (1.5, 1e10, 0.001, float("nan"))] == [
        "1.5",
        "1.0E10",
        "0.001",
        "NaN",
    ]
    assert trimmed("\x00 a b\t") == "a b"
    assert utf16_length("a\N{GRINNING FACE}") == 3
