"""Parts of sentences: numbers and lists of things, and what a user may have meant by an unknown word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def count(value: int, noun: str, plural: str | None = None) -> str:
    """1 capture, 24 captures, 1,200 batches."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def length(ms: int, digits: int = 0) -> str:
    """A time of days or hours if there are several, else of seconds: "222 days", "30 hours", "7199 s"."""
    units = ((86_400_000, "day"), (3_600_000, "hour"))
    seconds = ms // 1000 if digits == 0 else f"{ms / 1000:.{digits}f}"
    return next((count(ms // unit, name) for unit, name in units if ms >= 2 * unit), f"{seconds} s")


def offset_words(first: int, end: int) -> str:
    """Offsets from first to before end, as sentences name them: "offset 5", "offsets 5 to 9"."""
    return f"{'offset' if end == first + 1 else 'offsets'} {range_words(first, end)}"


def range_words(first: int, end: int) -> str:
    """Numbers from first to before end: "5", "5 to 9"."""
    return str(first) if end == first + 1 else f"{first} to {end - 1}"


def missing_offsets(first: int, end: int) -> str:
    """Offsets from first to before end: "offset 5 is missing", "offsets 5 to 9 are missing"."""
    return f"offset {first} is missing" if end == first + 1 else f"offsets {first} to {end - 1} are missing"


def first_named(things: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first things, and how many more there are: "a, b and 3 more", or "a; b; and 3 more"."""
    more = len(things) - most
    before = ";" if separator == "; " else ""
    return separator.join(things[:most]) + (f"{before} and {more} more" if more > 0 else "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the known word nearest to this one; "" if none is near.

    A verb that is known without what follows its hyphen is near: add of add-controller.
    """
    # Errors are rare, and it is slow to import.
    from difflib import get_close_matches

    by_folded = {name.lower(): name for name in sorted(known)}
    folded = word.lower()
    near = get_close_matches(folded, by_folded, n=1) or [
        name for name in by_folded if folded.startswith(f"{name}-")
    ]
    return f"; did you mean {by_folded[near[0]]}?" if near else ""
