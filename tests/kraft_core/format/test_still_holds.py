"""Whether a file still begins with the bytes that were identified."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_core.format.capture import EDGE_BYTES, file_identity, still_holds

SIZE = 3 * EDGE_BYTES


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A file that is larger than its edges, written a while ago."""
    path = tmp_path / "log"
    path.write_bytes(os.urandom(SIZE))
    os.utime(path, (1_760_000_000, 1_760_000_000))
    return path


def write_at(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def cut_and_grow(path: Path) -> None:
    os.truncate(path, SIZE - 10)
    write_at(path, SIZE - 10, bytes(100))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.rename(path)


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda _: None, True),
    "a link": (lambda path: path.with_name("link").hardlink_to(path), True),
    "permissions": (lambda path: path.chmod(0o600), True),
    "appended": (lambda path: write_at(path, SIZE, b"more"), True),
    "shorter": (lambda path: os.truncate(path, SIZE - 1), False),
    "other bytes at the start": (lambda path: write_at(path, 0, bytes(9)), False),
    "other bytes between the edges": (lambda path: write_at(path, SIZE // 2, bytes(9)), False),
    "shorter, then longer": (cut_and_grow, False),
    "replaced by an equal file": (replace, False),
    "gone": (lambda path: path.unlink(), False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_still_holds(log: Path, change: str) -> None:
    act, expected = CHANGES[change]
    identified = file_identity(log, SIZE)
    act(log)
    assert still_holds(log, identified) == expected


def test_a_file_that_had_grown_when_it_was_identified(log: Path) -> None:
    """A capture has the size that was listed."""
    identified = file_identity(log, SIZE - 100)
    assert still_holds(log, identified)
    os.truncate(log, SIZE - 50)
    assert not still_holds(log, identified)
    write_at(log, SIZE - 50, bytes(500))
    assert still_holds(log, identified)
