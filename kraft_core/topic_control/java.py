"""What the controller's answers owe to Java: random numbers, the order of hash tables, numbers as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import ceil, inf, nan
from typing import Any, Protocol, TypeVar

from kraft_core.format.java_text import java_double

T = TypeVar("T")

_DIGITS = r"\d+(?:\.\d*)?|\.\d+"
_DECIMAL = re.compile(rf"([+-]?(?:{_DIGITS})(?:[eE][+-]?\d+)?)[fFdD]?", re.ASCII)
_HEX = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_WORDS = {"NaN": nan, "Infinity": inf}
_GOLDEN_RATIO = -7046029254386353131


class JavaRandom:
    """java.util.Random, the linear congruential generator that its documentation specifies."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & (1 << 48) - 1

    def _next(self, bits: int) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        return self._state >> 48 - bits

    def next_int(self, bound: int) -> int:
        """From 0 to bound, exclusive."""
        if bound & -bound == bound:
            return bound * self._next(31) >> 31
        while True:
            bits = self._next(31)
            value = bits % bound
            # The last range of bits below 2^31 is incomplete.
            if bits - value + bound - 1 < 1 << 31:
                return value

    def shuffle(self, values: list[Any]) -> None:
        """Collections.shuffle: from the end, each with one at or before it."""
        for end in range(len(values), 1, -1):
            other = self.next_int(end)
            values[end - 1], values[other] = values[other], values[end - 1]


class Chooser(Protocol):
    """A source of random numbers; JavaRandom is Kafka's."""

    def next_int(self, bound: int) -> int: ...
    def shuffle(self, values: list[Any]) -> None: ...


def utf16_length(text: str) -> int:
    """String.length: in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def string_hash(text: str) -> int:
    """String.hashCode, a signed 32-bit number."""
    units = text.encode("utf-16-le", "surrogatepass")
    found = 0
    for at in range(0, len(units), 2):
        found = (31 * found + units[at] + (units[at + 1] << 8)) & 0xFFFFFFFF
    return found - (1 << 32) if found >> 31 else found


def hash_map_order(keys: Iterable[T], hash_of: Callable[[T], int], at_once: int = 0) -> list[T]:
    """The keys in the order in which a HashMap iterates over them, given the order of their insertion.

    at_once: how many of the first were put into the empty map by one putAll. Holds as long as no bucket has
    more than eight keys, which then become a tree.
    """
    distinct = list(dict.fromkeys(keys))
    capacity = 16 if not at_once else _power_of_two(int(at_once / 0.75 + 1))
    while len(distinct) > capacity * 3 // 4:
        capacity *= 2

    def bucket(key: T) -> int:
        spread = hash_of(key) & 0xFFFFFFFF
        return (spread ^ spread >> 16) & capacity - 1

    return sorted(distinct, key=bucket)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length() if least > 1 else 1


def timeline_order(keys: Iterable[T], hash_of: Callable[[T], int], expected_size: int = 0) -> list[T]:
    """The keys in the order of Kafka's TimelineHashSet or map (BaseHashTable), given that of insertion."""
    slots: list[list[T]] = [[] for _ in range(max(2, _power_of_two(ceil(expected_size / 0.75))))]

    def slot_of(key: T) -> list[T]:
        spread = hash_of(key) * _GOLDEN_RATIO & (1 << 64) - 1
        return slots[spread >> 65 - len(slots).bit_length()]

    for size, key in enumerate(dict.fromkeys(keys)):
        if (size + 1) * 0.75 > len(slots):
            held = [each for slot in slots for each in slot]
            slots = [[] for _ in range(2 * len(slots))]
            for each in held:
                slot_of(each).append(each)
        slot_of(key).append(key)
    return [key for slot in slots for key in reversed(slot)]


def split(text: str) -> list[str]:
    """String.split(","): empty strings at the end are left out, but for an empty text."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


def trimmed(text: str) -> str:
    """String.trim: without control characters and spaces around it."""
    return text.strip("".join(map(chr, range(0x21))))


def parse_integer(text: str, bits: int) -> int | None:
    """Integer.parseInt or Long.parseLong; None where Java throws NumberFormatException."""
    if re.fullmatch(r"[+-]?\d+", text) is None or len(text.lstrip("+-0")) > 19:
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def parse_double(text: str) -> float | None:
    """Double.parseDouble of a trimmed text; None where Java throws NumberFormatException."""
    word = _WORDS.get(text.lstrip("+-")) if len(text) - len(text.lstrip("+-")) < 2 else None
    if word is not None:
        return -word if text.startswith("-") else word
    decimal = _DECIMAL.fullmatch(text)
    if decimal is not None:
        return float(decimal[1])
    number = _HEX.fullmatch(text)
    return None if number is None else float.fromhex(number[1])


def double_text(value: float) -> str:
    """Double.toString."""
    return java_double(value).strip('"')
