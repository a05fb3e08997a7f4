"""Numbers of things, as sentences name them."""

from __future__ import annotations


def count(value: int, noun: str, plural: str | None = None) -> str:
    """1 capture, 24 captures, 1,200 batches."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"
