"""The most that a majority of a voter set can have stored at a moment, by captured log ends.

What is committed is never truncated, so a log end captured at or after t is no lower than what its replica
contributed to the high watermark at t; a voter that was not captured may have stored anything. When a
capture was taken at the earliest is stated, or shows in the newest timestamp inside it. Of the ends in
descending order the one at index floor(n/2) bounds the high watermark by this set.

A leader also counts by a set that it appended and no captured log shows. If the known set is odd, no majority
of such a next set fits above the bound. If it is even, half of its voters, above the bound, are a majority of
the set without one of the others: then the bound is the next higher end, unless the leader of the only epoch
above the bound was captured in that epoch, at or after t, and so shows every set it had appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, EpochRange, label
from kraft_core.evidence.replica_ends import ReplicaEnds
from kraft_core.evidence.shared_parts import each_once
from kraft_core.evidence.states import SetInForce
from kraft_core.raft.voters import ReplicaKey, Voter


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The log ends of every captured replica. by_id: likewise, where a voter is known by its id alone."""

    known: Conclusions
    by_replica: dict[ReplicaKey, ReplicaEnds]
    by_id: dict[ReplicaKey, ReplicaEnds]
    # Of each voter those that count, which are asked for at each moment.
    _of_voter: dict[ReplicaKey, list[ReplicaEnds]] = field(
        default_factory=dict[ReplicaKey, list[ReplicaEnds]], compare=False
    )

    @staticmethod
    def of(known: Conclusions) -> LogEnds:
        by_replica: dict[ReplicaKey, ReplicaEnds] = {}
        by_id: dict[ReplicaKey, ReplicaEnds] = {}
        for replica, captures in known.holdings.captures.items():
            by_replica[replica] = by_id[replica] = _ends(known, captures)
            old = tuple(each for each in captures if each.capture_id not in known.holdings.new_disks)
            if len(old) < len(captures):
                by_id[replica] = _ends(known, old)
        return LogEnds(known, by_replica, by_id)

    def bounds(self, voters: SetInForce, moments: Sequence[int]) -> list[float]:
        """The bound at each of some moments (ms); infinite where the captures give none."""
        ends = [self._lowest(voter, moments) for voter in voters.voters] or [[inf] * len(moments)]
        return [
            self._bound(voters, as_of, sorted(of_voters, reverse=True))
            for as_of, of_voters in zip(moments, zip(*ends, strict=True), strict=True)
        ]

    def _bound(self, voters: SetInForce, as_of: int, ends: list[float]) -> float:
        """ends: of the voters at that moment, falling."""
        bound, half = ends[len(ends) // 2], len(ends) // 2
        if len(ends) % 2 == 0 and sum(end > bound for end in ends) == half:
            return bound if self._leader_shows(voters, as_of, bound) else ends[half - 1]
        return bound

    def words(self, voters: SetInForce, as_of: int) -> str:
        """The ends that count at a moment, by voter, with what says when they were captured."""
        return ", ".join(f"{label(voter.key)} {self._end_words(voter, as_of)}" for voter in voters.voters)

    def _end_words(self, voter: Voter, as_of: int) -> str:
        found = [ends.from_then_on(as_of) for ends in self._counted(voter)]
        known = [each for each in found if each is not None]
        if not known or len(known) < len(found):
            return "not known from then on"
        sources = {first.time_source for first, _ in known}
        return f"at {max(end for _, end in known)} (by {', '.join(sorted(sources))})"

    def _lowest(self, voter: Voter, moments: Sequence[int]) -> list[float]:
        """The lowest log end from each moment on; of an id by itself, all its directories count."""
        found = [[ends.lowest_since(at) for at in moments] for ends in self._counted(voter)]
        if len(found) == 1:
            return found[0]
        return [max(each) for each in zip(*found, strict=True)] if found else [inf] * len(moments)

    def _counted(self, voter: Voter) -> list[ReplicaEnds]:
        """Those of a voter that say what it had stored."""
        if voter.key not in self._of_voter:
            self._of_voter[voter.key] = [] if self.known.holdings.is_doubtful(voter) else self._of(voter)
        return self._of_voter[voter.key]

    def _of(self, voter: Voter) -> list[ReplicaEnds]:
        known = self.by_id if voter.key.directory_id is None else self.by_replica
        return [ends for replica, ends in known.items() if voter.matches(replica)]

    def _leader_shows(self, voters: SetInForce, as_of: int, bound: float) -> bool:
        """Whether a voter's first capture from a moment on is that of the leader of all it holds above."""
        for voter in voters.voters:
            for ends in self._of(voter):
                found = ends.from_then_on(as_of)
                if found is not None and self._leads_above(voter, voters, found[0], bound):
                    return True
        return False

    def _leads_above(self, voter: Voter, voters: SetInForce, capture: Capture, bound: float) -> bool:
        if not capture.epoch_ranges or capture.in_epoch is None:
            return False
        last = capture.epoch_ranges[-1]
        in_last_epoch = capture.in_epoch == last.leader_epoch and last.first_offset <= bound < last.end_offset
        return in_last_epoch and self.known.in_force.leader_among(voters.voters, last.leader_epoch) == voter


def _ends(known: Conclusions, captures: tuple[Capture, ...]) -> ReplicaEnds:
    """Only logs whose voter set at their end is known, for a hole may hide a set that counts.

    A directory that went back says nothing of what its replica had stored.
    """
    logs = each_once(capture.epoch_ranges for capture in captures)
    unknown = {id(log) for log in logs if log and not _shows_set(known, log[-1])}
    return ReplicaEnds.of(
        capture
        for capture in captures
        if capture.known_end is not None
        and id(capture.epoch_ranges) not in unknown
        and known.holdings.shows_end(capture)
    )


def _shows_set(known: Conclusions, last: EpochRange) -> bool:
    return known.in_force.voters_at(last.leader_epoch, last.end_offset - 1) is not None
