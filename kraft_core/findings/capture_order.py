"""Which of a replica's captures was taken later, as far as that is known.

Only a stated time, or a timestamp inside the copy, says when a capture was taken (Capture.captured_from and
captured_until). Without them the replica's epoch may tell: it never falls (KIP-595, quorum state).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from kraft_core.evidence.facts import Capture


def is_later(after: Capture, before: Capture) -> bool:
    """Whether a capture was provably taken after another one of the same replica."""
    until, since = before.captured_until, after.captured_from
    if until is not None and since is not None and until < since:
        return True
    if _is_stated(before) and _is_stated(after):
        return False
    return before.in_epoch is not None and before.in_epoch < _reached(after)


def successive(captures: Sequence[Capture]) -> Iterator[tuple[Capture, Capture]]:
    """Pairs of a replica's captures, by time, of which the second was provably taken after the first.

    Of stated times each with the next, and where that was not read as a whole or its quorum-state does not
    fit its log, with the next that is in order; a capture without one with the nearest that its epoch orders.
    """
    stated = [capture for capture in captures if _is_stated(capture)]
    yield from ((before, after) for before, after in pairwise(stated) if is_later(after, before))
    whole: Capture | None = None
    for before, after in zip(reversed(stated[:-1]), reversed(stated[1:]), strict=True):
        whole = after if after.known_end is not None and after.in_epoch is not None else whole
        if whole is not None and whole is not after and is_later(whole, before):
            yield before, whole
    for capture in captures:
        if not _is_stated(capture):
            earlier = [c for c in captures if is_later(capture, c)]
            later = [c for c in captures if is_later(c, capture)]
            yield from ((c, capture) for c in earlier[-1:])
            yield from ((capture, c) for c in later[:1] if _is_stated(c))


def newest_readable(captures: Sequence[Capture]) -> tuple[Capture, ...]:
    """Of the captures that could be read, those of which none is known to be older than another one."""
    readable = [capture for capture in captures if capture.readable]
    return tuple(c for c in readable if not any(is_later(other, c) for other in reversed(readable)))


def taken_by(captures: Iterable[Capture]) -> int | None:
    """The earliest time (ms) by which one of the captures had been taken; None where none shows its time."""
    return min((c.captured_until for c in captures if c.captured_until is not None), default=None)


def _is_stated(capture: Capture) -> bool:
    return capture.captured_until is not None


def _reached(capture: Capture) -> int:
    """An epoch that the replica had reached when it was captured, -1 if none is known."""
    state = -1 if capture.quorum_state_epoch is None else capture.quorum_state_epoch
    return max(state, *(run.leader_epoch for run in capture.runs[-1:]), -1)
