"""The majority rule: what a majority of one voter set stored while in the batch's own epoch.

Raft 5.3 and 5.4 (KIP-595, KIP-853): a leader commits a batch of its own epoch once a majority of its voters
has stored it. The leader wrote what any log holds of its epoch, so it counts, captured or not. Storing the
batch under a later epoch counts nothing by itself (figure 8). The set that counts is the newest on the
batch's line, or the next one, if one voter was added or removed: the leader counts by that as soon as it has
appended it, and not before, for older batches too, and majorities of neighbouring sets meet. A next set of a
later epoch is left to the rule for VotersRecords (lower_bounds.py), which proves more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from kraft_core.evidence.facts import label
from kraft_core.evidence.holdings import Holdings
from kraft_core.evidence.in_force import InForce, VoterSetRange
from kraft_core.evidence.lineage import EpochLine, Lineage
from kraft_core.evidence.proofs import Proof, time_order
from kraft_core.evidence.states import SetInForce
from kraft_core.raft.voters import Voter, change_between


@dataclass(frozen=True, slots=True)
class MajorityRule:
    """The rule over one cluster's captures."""

    lineage: Lineage
    in_force: InForce
    holdings: Holdings

    def proofs(self, line: EpochLine) -> list[Proof]:
        """How far the captures prove an epoch's batches committed, by when; later proofs reach further."""
        if line.contested:
            return []
        found: list[Proof] = []
        parts = list(self.in_force.voter_set_ranges(line))
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            of_part: list[Proof] = []
            for voters in _counting_sets(part, following):
                of_part += [
                    proof
                    for proof in self._proofs_by(voters, part, line.leader_epoch)
                    if not any(_implies(known, proof) for known in of_part)
                ]
            found += of_part
        return found

    def _proofs_by(self, voters: SetInForce, part: VoterSetRange, epoch: int) -> Iterator[Proof]:
        reached = part.first_offset
        leader = self.in_force.leader_among(voters.voters, epoch)
        names = [label(voter.key) + (" (leader)" if voter == leader else "") for voter in voters.voters]
        majority = f"a majority of {voters.words}"
        for stored_at, stored in self._stored_by(voters, epoch):
            end = min(part.end_offset, sorted(stored, reverse=True)[voters.voters.majority - 1])
            if end > reached:
                reached = end
                as_of = None if stored_at is None else max(stored_at, voters.appended_at or 0)
                by = ", ".join(name for name, held in zip(names, stored, strict=True) if held >= end)
                words = f"{majority} stored it up to {end} in epoch {epoch}: {by}"
                yield Proof("majority", epoch, end, as_of, words, committed_in=epoch)

    def _stored_by(self, voters: SetInForce, epoch: int) -> Iterator[tuple[int | None, list[int]]]:
        """The end up to which each voter had stored the epoch in the epoch, moment by moment."""
        steps = [
            (at, end, number, place)
            for number, voter in enumerate(voters.voters)
            for place, (at, end) in self._steps_of(voter, voters, epoch)
        ]
        steps.sort(key=lambda step: (time_order(step[0]), step[1]))
        captured = [self._directories(voter) for voter in voters.voters]
        stored_in = [[0] * len(directories) for directories in captured]
        for nth, (at, end, number, place) in enumerate(steps):
            stored_in[number][place] = max(stored_in[number][place], end)
            if nth + 1 == len(steps) or steps[nth + 1][0] != at:
                yield (
                    at,
                    [
                        ends[0] if len(ends) == 1 else _stored_by_id(ends, captured[of], at)
                        for of, ends in enumerate(stored_in)
                    ],
                )

    def _steps_of(
        self, voter: Voter, voters: SetInForce, epoch: int
    ) -> Iterator[tuple[int, tuple[int | None, int]]]:
        """What it stored, by when, for each of its directories.

        The epoch's leader wrote every batch of it, so it had stored whatever any log holds (KIP-595). The
        leader of the next epoch was in this one until it stood for election, and fetched nothing after that.
        """
        of_epoch = self.holdings.by_epoch.get(epoch, {})
        inherited = self._inherited(epoch)
        is_one = len(self._directories(voter)) == 1
        if is_one and inherited and voter == self.in_force.leader_among(voters.voters, epoch + 1):
            yield 0, inherited
        if is_one and voter == self.in_force.leader_among(voters.voters, epoch):
            for holding in of_epoch.values():
                yield from ((0, step) for step in holding.held.steps())
            yield from ((0, step) for step in [inherited] if step)
            return
        for place, replica in enumerate(self.holdings.replicas_of(voter)):
            if replica in of_epoch:
                yield from ((place, step) for step in of_epoch[replica].held_in_epoch.steps())

    def _inherited(self, epoch: int) -> tuple[int, int] | None:
        """When the next epoch's leader was elected, and where this epoch ends in its log; None if unknown."""
        line, election = self.lineage.lines.get(epoch + 1), self.in_force.elections.get(epoch + 1)
        below = line.below if line is not None and not line.contested else None
        if election is None or below is None or below.parent != epoch:
            return None
        return election.elected_at, below.end_offset

    def _directories(self, voter: Voter) -> list[tuple[float, float]]:
        """Of each of its directories (several only for an id by itself) when it was first and last captured.

        A time that is not known may be any; so may that of a directory of another life.
        """
        another = [(-inf, inf)] if self.holdings.is_doubtful(voter) else []
        found = [self.holdings.captures[replica] for replica in self.holdings.replicas_of(voter)]
        return [
            (
                min(-inf if c.captured_from is None else c.captured_from for c in captures),
                max(inf if c.captured_until is None else c.captured_until for c in captures),
            )
            for captures in found
        ] + another or [(-inf, inf)]


def _stored_by_id(ends: list[int], captured: list[tuple[float, float]], at: int | None) -> int:
    """What an id by itself has stored, of the ends and the times of its directories.

    Two that may have been live at once bind it only by what both have; a replaced disk had its time.
    """
    moment = inf if at is None else at
    found = [0]
    for end, (first, _) in zip(ends, captured, strict=True):
        rivals = [
            other
            for other, (since, until) in zip(ends, captured, strict=True)
            if since <= moment and until >= first
        ]
        found.append(min([end, *rivals]))
    return max(found)


def _implies(known: Proof, proof: Proof) -> bool:
    return known.end_offset >= proof.end_offset and time_order(known.as_of) <= time_order(proof.as_of)


def _counting_sets(part: VoterSetRange, following: VoterSetRange | None) -> list[SetInForce]:
    if part.voters is None:
        return []
    if following is None or following.voters is None:
        return [part.voters]
    change = change_between(part.voters.voters, following.voters.voters)
    one_voter = len(change.added) + len(change.removed) == 1
    return [part.voters, following.voters] if one_voter else [part.voters]
