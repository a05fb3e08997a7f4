"""Random damage of bytes: what disks, copies, editors and attackers do to a file."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

MOST_INSERTED = 80
_LENGTHS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, (1 << 63) - 1)
# Varints: the largest of 32 bits, of 64 bits, and one that has no end.
_VARINTS = (b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\xff" * 12)

Damage = Callable[[Random, bytearray, bytes], None]


def _place(rng: Random, data: bytearray) -> int:
    return rng.randrange(len(data) + 1)


def flip(rng: Random, data: bytearray, _: bytes) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(rng: Random, data: bytearray, _: bytes) -> None:
    at = _place(rng, data)
    some = rng.randbytes(rng.randint(1, MOST_INSERTED))
    data[at : at + len(some)] = some


def truncate(rng: Random, data: bytearray, _: bytes) -> None:
    del data[_place(rng, data) :]


def delete(rng: Random, data: bytearray, _: bytes) -> None:
    at = _place(rng, data)
    del data[at : at + rng.randint(1, max(1, len(data) // 2))]


def duplicate(rng: Random, data: bytearray, _: bytes) -> None:
    at = _place(rng, data)
    data[at:at] = data[at : at + rng.randint(1, max(1, len(data) // 2))]


def zero(rng: Random, data: bytearray, _: bytes) -> None:
    at = _place(rng, data)
    size = rng.choice((8, 61, 512, 4096))
    data[at : at + size] = bytes(size if rng.random() < 0.5 else min(size, len(data) - at))


def insert(rng: Random, data: bytearray, _: bytes) -> None:
    at = _place(rng, data)
    data[at:at] = rng.randbytes(rng.randint(1, MOST_INSERTED))


def length(rng: Random, data: bytearray, _: bytes) -> None:
    """An extreme number in place of some bytes, as if they were a length."""
    at = _place(rng, data)
    number = rng.choice(_LENGTHS)
    size = rng.choice([n for n in (1, 2, 4, 8) if number < 1 << 8 * n])
    some = rng.choice((number.to_bytes(size, "big"), number.to_bytes(size, "little"), *_VARINTS))
    data[at : at + len(some)] = some


def splice(rng: Random, data: bytearray, other: bytes) -> None:
    """The beginning of one file, and the end of another."""
    data[_place(rng, data) :] = other[rng.randrange(len(other) + 1) :]


ANY: tuple[Damage, ...] = (flip, overwrite, truncate, delete, duplicate, zero, insert, length, splice)


def damaged(rng: Random, data: bytes, other: bytes) -> bytes:
    """The bytes with a few kinds of damage; other: a file of the same kind, for splices."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        rng.choice(ANY)(rng, found, other)
    return bytes(found)
