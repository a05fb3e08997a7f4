"""The most that a majority of a voter set can have stored at a moment, by captured log ends.

What is committed is never truncated, so a log end captured at or after t is no lower than what its replica
contributed to the high watermark at t; a voter that was not captured may have stored anything. Of the ends in
descending order the one at index floor(n/2) bounds the high watermark by this set.

A leader also counts by a set that it appended and no captured log shows. If the known set is odd, no majority
of such a next set fits above the bound. If it is even, half of its voters, above the bound, are a majority of
the set without one of the others: then the bound is the next higher end, unless the leader of the only epoch
above the bound was captured in that epoch, at or after t, and so shows every set it had appended.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import inf

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, label
from kraft_core.evidence.states import SetInForce
from kraft_core.raft.voters import ReplicaKey, Voter


@dataclass(frozen=True, slots=True)
class _Ends:
    """Of one replica: the moments of its captures, rising, and the lowest log end from each moment on."""

    moments: list[int]
    lowest: list[int]


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The log ends of every captured replica."""

    known: Conclusions
    by_replica: dict[ReplicaKey, _Ends]

    @staticmethod
    def of(known: Conclusions) -> LogEnds:
        captures = known.holdings.captures
        return LogEnds(known, {replica: _ends(known, captures[replica]) for replica in captures})

    def bound(self, voters: SetInForce, as_of: int) -> float:
        """The bound at a moment (ms); infinite where the captures give none."""
        ends = sorted((self._end(voter, as_of) for voter in voters.voters), reverse=True)
        if not ends:
            return inf
        bound, half = ends[len(ends) // 2], len(ends) // 2
        above = sum(end > bound for end in ends)
        if len(ends) % 2 == 0 and above == half and not self._leader_shows(voters, as_of, bound):
            return ends[half - 1]
        return bound

    def words(self, voters: SetInForce, as_of: int) -> str:
        """The ends that count at a moment, by voter."""
        ends = [(voter.key, self._end(voter, as_of)) for voter in voters.voters]
        return ", ".join(f"{label(key)} {'not captured' if end == inf else int(end)}" for key, end in ends)

    def _end(self, voter: Voter, as_of: int) -> float:
        found: list[int] = []
        for replica, ends in self.by_replica.items():
            if voter.matches(replica):
                nth = bisect_left(ends.moments, as_of)
                found += ends.lowest[nth : nth + 1]
        return max(found, default=inf)

    def _leader_shows(self, voters: SetInForce, as_of: int, bound: float) -> bool:
        """Whether a voter's first capture from a moment on is that of the leader of all it holds above."""
        for voter in voters.voters:
            for replica, captures in self.known.holdings.captures.items():
                if voter.matches(replica):
                    nth = bisect_left(captures, as_of, key=lambda capture: capture.captured_at)
                    if any(self._leads_above(voter, voters, c, bound) for c in captures[nth : nth + 1]):
                        return True
        return False

    def _leads_above(self, voter: Voter, voters: SetInForce, capture: Capture, bound: float) -> bool:
        if not capture.runs or capture.in_epoch is None:
            return False
        last = capture.runs[-1]
        in_last_epoch = capture.in_epoch == last.leader_epoch and last.first_offset <= bound < last.end_offset
        return in_last_epoch and self.known.in_force.leader_among(voters.voters, last.leader_epoch) == voter


def _ends(known: Conclusions, captures: tuple[Capture, ...]) -> _Ends:
    """Only logs whose voter set at their end is known: a hole may hide a set that counts."""
    shown = [c for c in captures if _shows_set(known, c)]
    dated = [(c.captured_at, c.known_end) for c in shown if c.known_end is not None]
    lowest: list[int] = []
    for _, end in reversed(dated):
        lowest.append(min(end, lowest[-1]) if lowest else end)
    return _Ends([at for at, _ in dated], lowest[::-1])


def _shows_set(known: Conclusions, capture: Capture) -> bool:
    if not capture.runs:
        return True
    last = capture.runs[-1]
    return known.in_force.voters_at(last.leader_epoch, last.end_offset - 1) is not None
