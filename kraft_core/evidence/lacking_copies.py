"""Captures that lack what a majority had stored before: a part of the log is missing, or a time is wrong.

What is committed, a majority of the voters has stored (KIP-595). Where so many voters' later captures lack it
that the others are no majority, one of these captures at least is not whole, and nobody knows which; unless
the quorum lost what it had committed, which is no lawful history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_core.evidence.holdings import Holdings
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.lineage import Lineage
from kraft_core.evidence.lower_bounds import LowerBound
from kraft_core.evidence.next_sets import NextSets
from kraft_core.evidence.replica_ends import ReplicaEnds
from kraft_core.evidence.states import SetInForce
from kraft_core.raft.voters import ReplicaKey


def lacking_committed(
    bounds: Iterable[LowerBound], holdings: Holdings, lineage: Lineage, in_force: InForce, next_sets: NextSets
) -> frozenset[str]:
    """The ids of those captures."""
    ends = {
        replica: ReplicaEnds.of(filter(holdings.shows_end, captures))
        for replica, captures in holdings.captures.items()
    }
    found: set[str] = set()
    for bound in bounds:
        for epoch, end in bound.commits:
            line, voters = lineage.lines.get(epoch), in_force.voters_at(epoch, end - 1)
            if line is None or line.contested or voters is None:
                continue
            for counted in (voters, *next_sets.after(line, end)):
                found.update(_of_no_majority(counted, holdings, ends, end, bound.as_of))
    return frozenset(found)


def _of_no_majority(
    counted: SetInForce, holdings: Holdings, ends: dict[ReplicaKey, ReplicaEnds], end: int, as_of: int
) -> Iterator[str]:
    """The captures of a set's voters that lack what was committed by as_of, if they leave no majority."""
    replicas = [holdings.replicas_of(voter) for voter in counted.voters]
    lacking = sum(
        bool(of_voter) and all(ends[replica].lowest_since(as_of) < end for replica in of_voter)
        for of_voter in replicas
    )
    if len(replicas) - lacking < counted.voters.majority:
        for replica in (replica for of_voter in replicas for replica in of_voter):
            later = ends[replica].since(as_of)
            yield from (
                each.capture_id for each in later if each.known_end is not None and each.known_end < end
            )
