"""Captures that lack what a majority had stored before: a part of the log is missing, or a time is wrong.

What is committed, a majority of the voters has stored (KIP-595). Where so many voters' later captures lack it
that the others are no majority, one of these captures at least is not whole, and nobody knows which; unless
the quorum lost what it had committed, which is no lawful history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from kraft_core.evidence.facts import Capture
from kraft_core.evidence.holdings import Holdings
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.lineage import Lineage
from kraft_core.evidence.lower_bounds import LowerBound
from kraft_core.evidence.next_sets import NextSets
from kraft_core.evidence.states import SetInForce
from kraft_core.raft.voters import ReplicaKey


def lacking_committed(
    bounds: Iterable[LowerBound], holdings: Holdings, lineage: Lineage, in_force: InForce
) -> frozenset[str]:
    """The ids of those captures."""
    next_sets = NextSets(lineage, in_force)
    copies = {replica: _Copies.of(holdings, captures) for replica, captures in holdings.captures.items()}
    found: set[str] = set()
    for bound in bounds:
        for epoch, end in bound.commits:
            line, voters = lineage.lines.get(epoch), in_force.voters_at(epoch, end - 1)
            if line is None or line.contested or voters is None:
                continue
            for counted in (voters, *next_sets.after(line, end)):
                found.update(_of_no_majority(counted, holdings, copies, end, bound.as_of))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Copies:
    """The captures of a replica that show where its log ended.

    times: captured_from (ms), rising. lowest: the lowest end of each and all later ones.
    """

    times: list[int]
    ends: list[int]
    lowest: list[int]
    capture_ids: list[str]

    @staticmethod
    def of(holdings: Holdings, captures: tuple[Capture, ...]) -> _Copies:
        shown = sorted(
            (capture.captured_from, capture.known_end, capture.capture_id)
            for capture in captures
            if capture.captured_from is not None
            and capture.known_end is not None
            and holdings.shows_end(capture)
        )
        ends = [end for _, end, _ in shown]
        lowest = list(accumulate(reversed(ends), min))[::-1]
        return _Copies([at for at, *_ in shown], ends, lowest, [name for *_, name in shown])

    def lowest_since(self, at: int) -> float:
        """The lowest end of those copied at a moment (ms) or later."""
        nth = bisect_left(self.times, at)
        return self.lowest[nth] if nth < len(self.lowest) else inf

    def ending_below(self, end: int, at: int) -> Iterator[str]:
        """Those copied at a moment (ms) or later that end below an offset."""
        for nth in range(bisect_left(self.times, at), len(self.ends)):
            if self.ends[nth] < end:
                yield self.capture_ids[nth]


def _of_no_majority(
    counted: SetInForce, holdings: Holdings, copies: dict[ReplicaKey, _Copies], end: int, as_of: int
) -> Iterator[str]:
    """The captures of a set's voters that lack what was committed by as_of, if they leave no majority."""
    replicas = [holdings.replicas_of(voter) for voter in counted.voters]
    lacking = sum(
        bool(of_voter) and all(copies[replica].lowest_since(as_of) < end for replica in of_voter)
        for of_voter in replicas
    )
    if len(replicas) - lacking < counted.voters.majority:
        for replica in (replica for of_voter in replicas for replica in of_voter):
            yield from copies[replica].ending_below(end, as_of)
