"""What verbs print about the lives of a cluster id."""

from __future__ import annotations

from collections.abc import Sequence


def named_lives(lives: Sequence[str], chosen: str) -> str:
    """Which of the lives, the newest last, an answer is about, as the end of a sentence about their id."""
    newest = lives[-1]
    which = "is the newest" if chosen == newest else f"is an earlier one; {newest} is the newest"
    all_ = ", ".join(lives)
    return f"has {len(lives)} histories: this answer is about {chosen}, which {which}; all: {all_}"
