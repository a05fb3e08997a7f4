"""Which of two captures, mostly of one replica, was taken later, as far as that is known.

Only a stated time, or a timestamp inside the copy, shows when a capture was taken (Capture.captured_from and
captured_until). Without them the replica's epoch may show it: it never decreases (KIP-595, quorum state).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf

from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture
from kraft_core.evidence.holdings import copied_by


def is_later(after: Capture, before: Capture) -> bool:
    """Whether a capture was provably taken after another one of the same replica."""
    until = copied_by(before)
    if until is not None and until < _since(after):
        return True
    if _is_stated(before) and _is_stated(after):
        return False
    return before.in_epoch is not None and before.in_epoch < _reached(after)


def copied_before(one: Capture, other: Capture, apart_ms: int = 0) -> bool:
    """Whether it is proven that a directory was copied before another one, by more than apart_ms.

    Epochs do not order different directories.
    """
    until, since = copied_by(one), other.captured_from
    return until is not None and since is not None and until + apart_ms < since


def successive(captures: Sequence[Capture]) -> Iterator[tuple[Capture, Capture]]:
    """Pairs of a replica's captures, by time, of which the second was provably taken after the first.

    Of stated times each with the next and the one before, and where that was not read as a whole or its
    quorum-state does not fit its log, with the nearest that is in order; a capture without one with the
    nearest that its epoch orders.
    """
    stated = [capture for capture in captures if _is_stated(capture)]
    yield from ((before, after) for before, after in pairwise(stated) if is_later(after, before))
    yield from (
        (before, whole) for before, whole in _with_next_whole(stated[::-1]) if is_later(whole, before)
    )
    yield from ((whole, after) for after, whole in _with_next_whole(stated) if is_later(after, whole))
    unstated = [capture for capture in captures if not _is_stated(capture)]
    if unstated:
        neighbours = _Neighbours(captures)
        for capture in unstated:
            if (earlier := neighbours.last_before(capture)) is not None:
                yield earlier, capture
            if (later := neighbours.first_after(capture)) is not None and _is_stated(later):
                yield capture, later


def _with_next_whole(captures: Sequence[Capture]) -> Iterator[tuple[Capture, Capture]]:
    """Each capture that follows one that is not in order, with the last one before that is.

    Copies of one moment have no order, so that a damaged one may stand between a sound one and the next.
    """
    whole: Capture | None = None
    for one, other in pairwise(captures):
        whole = one if one.known_end is not None and one.in_epoch is not None else whole
        if whole is not None and whole is not one:
            yield other, whole


class _Neighbours:
    """The captures of a replica that are provably earlier or later than one without a stated time.

    As is_later has it; but of a year's captures not each is compared with each.
    """

    def __init__(self, captures: Sequence[Capture]) -> None:
        self._captures = captures
        # Of each place the least from there on, or the greatest up to there: what a bisection needs.
        self._least_until = _least_from([_or_inf(copied_by(c)) for c in captures])
        self._least_epoch = _least_from([_or_inf(c.in_epoch) for c in captures])
        self._most_reached = list(accumulate(map(_reached, captures), max))

    def last_before(self, capture: Capture) -> Capture | None:
        """The last in the sequence that was provably taken before."""
        by_time = bisect_left(self._least_until, _since(capture))
        count = max(by_time, bisect_left(self._least_epoch, _reached(capture)))
        return self._captures[count - 1] if count else None

    def first_after(self, capture: Capture) -> Capture | None:
        """The first in the sequence that was provably taken after: only its epoch can tell."""
        nth = len(self._captures)
        if capture.in_epoch is not None:
            nth = bisect_right(self._most_reached, capture.in_epoch)
        return self._captures[nth] if nth < len(self._captures) else None


def newest_readable(captures: Sequence[Capture]) -> tuple[Capture, ...]:
    """Of the captures that could be read, those of which none is known to be older than another one."""
    readable = [capture for capture in captures if capture.readable]
    unstated = [capture for capture in readable if not _is_stated(capture)]
    since = max(map(_since, readable), default=-inf)
    reached_unstated = max(map(_reached, unstated), default=-1)
    reached = max((_reached(c) for c in readable if _is_stated(c)), default=-1)
    reached = max(reached, reached_unstated)

    def is_older(capture: Capture) -> bool:
        """Than any other, as is_later has it."""
        if capture.captured_until is not None and (copied_by(capture) or 0) < since:
            return True
        most = reached if capture.captured_until is None else reached_unstated
        return capture.in_epoch is not None and capture.in_epoch < most

    return tuple(capture for capture in readable if not is_older(capture))


def have_one_log(captures: Iterable[Capture]) -> bool:
    """Whether the logs of captures are equal, as far as their ends are known."""
    # A set would hash each range of each log.
    logs = {(c.log_start_offset, c.known_end, id(c.epoch_ranges)): c.epoch_ranges for c in captures}
    found = [(start, end, epoch_ranges) for (start, end, _), epoch_ranges in logs.items()]
    return all(log == found[0] for log in found[1:])


def taken_by(captures: Iterable[Capture]) -> int | None:
    """The earliest time (ms) by which one of the captures had been taken; None where none shows its time."""
    return min((at for c in captures if (at := copied_by(c)) is not None), default=None)


def _is_stated(capture: Capture) -> bool:
    return capture.captured_until is not None


def _since(capture: Capture) -> float:
    """When it was taken at the earliest, by a clock that states times; -inf where nothing shows it.

    Timestamps inside a copy are by the leader's clock.
    """
    if capture.captured_from is None:
        return -inf
    return capture.captured_from if _is_stated(capture) else capture.captured_from - CLOCK_SKEW_MS


def _reached(capture: Capture) -> int:
    """An epoch that the replica had reached when it was captured, -1 if none is known."""
    state = -1 if capture.quorum_state_epoch is None else capture.quorum_state_epoch
    return max(state, capture.last_epoch, -1)


def _or_inf(value: int | None) -> float:
    return inf if value is None else value


def _least_from(values: Sequence[float]) -> list[float]:
    """Of each place the least value from there on: it never falls."""
    return list(accumulate(reversed(values), min))[::-1]
