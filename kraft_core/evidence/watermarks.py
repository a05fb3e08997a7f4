"""Bounds of the high watermark: what was reached by then, and what cannot have been.

The high watermark is the offset that a majority of the voters has stored (KIP-595): of their log ends,
sorted descending, the one at index floor(n/2). What is committed is never cut off, so a log end captured at
or after t is at least the share its replica had in the high watermark of t; a voter that was not captured
may have stored anything. The set that counted at t is the newest that was committed by then, or any later
one that a leader had appended by then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, label
from kraft_core.evidence.in_force import SetInForce
from kraft_core.evidence.rows import HighWatermarkRow
from kraft_core.evidence.voter_sets import SetNode
from kraft_core.raft.voters import ReplicaKey, Voter


def high_watermarks(known: Conclusions, sets: list[SetNode]) -> list[HighWatermarkRow]:
    """Every proof, the strongest only where one says more than another of the same kind at every moment."""
    rows = [*_lower(known), *_upper(known, sets)]
    return sorted(rows, key=lambda row: (row.evidence, row.source, row.as_of))


def _lower(known: Conclusions) -> Iterator[HighWatermarkRow]:
    for bound in known.lower_bounds:
        yield HighWatermarkRow(
            known.facts.cluster_id,
            bound.kind,
            bound.words,
            bound.as_of,
            bound.leader_epoch,
            None if bound.believed else bound.bound,
            None,
            bound.bound if bound.believed else None,
        )


def _upper(known: Conclusions, sets: list[SetNode]) -> Iterator[HighWatermarkRow]:
    """One row for each moment of a capture that no later moment with an equal or lower bound covers."""
    ends = _LogEnds.of(known)
    lowest = inf
    for as_of in sorted({capture.captured_at for capture in known.facts.captures}, reverse=True):
        bounds = [(ends.bound(node.voters, as_of), node.voters) for node in _possible(sets, as_of)]
        if not bounds:
            continue
        highest, voters = max(bounds, key=lambda entry: entry[0])
        if highest < lowest:
            lowest = highest
            words = f"log ends of {voters.words}: {ends.words(voters, as_of)}"
            bound = int(highest)
            yield HighWatermarkRow(known.facts.cluster_id, "log_ends", words, as_of, None, None, bound, None)


def _possible(sets: list[SetNode], as_of: int) -> list[SetNode]:
    """The sets that may have counted at a moment, oldest first; none where an unknown one may have."""
    by_then = [node for node in sets if node.since is None or node.since <= as_of]
    for nth in range(len(by_then) - 1, -1, -1):
        committed_at = by_then[nth].committed_at
        if committed_at is not None and committed_at <= as_of:
            return by_then[nth:]
    return by_then if by_then and by_then[0].is_first else []


@dataclass(frozen=True, slots=True)
class _LogEnds:
    """For each replica the moments of its captures, rising, and the lowest log end from each moment on."""

    by_replica: dict[ReplicaKey, tuple[list[int], list[int]]]

    @staticmethod
    def of(known: Conclusions) -> _LogEnds:
        return _LogEnds({key: _lowest_from(captures) for key, captures in known.holdings.captures.items()})

    def bound(self, voters: SetInForce, as_of: int) -> float:
        """What a majority can have stored at a moment, at most; infinite if the captures do not bound it."""
        ends = sorted((self._end(voter, as_of) for voter in voters.voters), reverse=True)
        return ends[len(ends) // 2] if ends else inf

    def words(self, voters: SetInForce, as_of: int) -> str:
        ends = [(voter.key, self._end(voter, as_of)) for voter in voters.voters]
        return ", ".join(f"{label(key)} {'not captured' if end == inf else int(end)}" for key, end in ends)

    def _end(self, voter: Voter, as_of: int) -> float:
        found: list[int] = []
        for replica, (moments, lowest) in self.by_replica.items():
            if voter.matches(replica):
                nth = bisect_left(moments, as_of)
                found += lowest[nth : nth + 1]
        return max(found, default=inf)


def _lowest_from(captures: tuple[Capture, ...]) -> tuple[list[int], list[int]]:
    known = [(c.captured_at, c.known_end) for c in captures if c.known_end is not None]
    lowest: list[int] = []
    for _, end in reversed(known):
        lowest.append(min(end, lowest[-1]) if lowest else end)
    return [at for at, _ in known], lowest[::-1]
