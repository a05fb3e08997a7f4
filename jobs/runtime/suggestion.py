"""What a user may have meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" for the known word nearest to this one; "" if none is near."""
    # Errors are rare, and it is slow to import.
    from difflib import get_close_matches

    by_folded = {name.lower(): name for name in sorted(known)}
    near = get_close_matches(word.lower(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]}?" if near else ""
