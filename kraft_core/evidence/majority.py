"""The majority rule: what a majority of one voter set stored while in the batch's own epoch.

Raft 5.3 and 5.4 (KIP-595, KIP-853): a leader commits a batch of its own epoch once a majority of its voters
has stored it. Storing the batch under a later epoch counts nothing by itself (figure 8). The set that counts
is the newest on the batch's line, or the next one, if one voter was added or removed: the leader counts by
that as soon as it has appended it, and not before, for older batches too, and majorities of neighbouring
sets meet. A next set of a later epoch is left to the rule for VotersRecords (lower_bounds.py), which proves
more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.evidence.facts import label
from kraft_core.evidence.holdings import Holdings
from kraft_core.evidence.in_force import InForce, VoterSetRange
from kraft_core.evidence.lineage import EpochLine
from kraft_core.evidence.proofs import Proof
from kraft_core.evidence.states import SetInForce
from kraft_core.raft.voters import Voter, change_between


@dataclass(frozen=True, slots=True)
class MajorityRule:
    """The rule over one cluster's captures."""

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
                    if not any(p.end_offset >= proof.end_offset and p.as_of <= proof.as_of for p in of_part)
                ]
            found += of_part
        return found

    def _proofs_by(self, voters: SetInForce, part: VoterSetRange, epoch: int) -> Iterator[Proof]:
        reached = part.first_offset
        for stored_at, stored in self._stored_by(voters, epoch):
            as_of = max(stored_at, voters.appended_at or 0)
            end = min(part.end_offset, sorted(stored.values(), reverse=True)[voters.voters.majority - 1])
            if end > reached:
                reached = end
                words = self._words(voters, epoch, end, stored)
                yield Proof("majority", epoch, end, as_of, words, committed_in=epoch)

    def _stored_by(self, voters: SetInForce, epoch: int) -> Iterator[tuple[int, dict[Voter, int]]]:
        """The end up to which each voter had stored the epoch in the epoch, moment by moment."""
        leader = self.in_force.leader_among(voters.voters, epoch)
        of_epoch = self.holdings.by_epoch.get(epoch, {})
        steps: list[tuple[int, int, Voter]] = []
        for voter in voters.voters:
            for replica, holding in of_epoch.items():
                if voter.matches(replica):
                    held = holding.held if voter == leader else holding.held_in_epoch
                    steps += [(at, end, voter) for at, end in held]
        steps.sort(key=lambda step: step[:2])
        stored = dict.fromkeys(voters.voters, 0)
        for nth, (at, end, voter) in enumerate(steps):
            stored[voter] = max(stored[voter], end)
            if nth + 1 == len(steps) or steps[nth + 1][0] > at:
                yield at, stored

    def _words(self, voters: SetInForce, epoch: int, end: int, stored: dict[Voter, int]) -> str:
        leader = self.in_force.leader_among(voters.voters, epoch)
        names = [
            label(voter.key) + (" (leader)" if voter == leader else "")
            for voter in voters.voters
            if stored[voter] >= end
        ]
        return f"a majority of {voters.words} stored it up to {end} in epoch {epoch}: {', '.join(names)}"


def _counting_sets(part: VoterSetRange, following: VoterSetRange | None) -> list[SetInForce]:
    if part.voters is None:
        return []
    if following is None or following.voters is None:
        return [part.voters]
    change = change_between(part.voters.voters, following.voters.voters)
    one_voter = len(change.added) + len(change.removed) == 1
    return [part.voters, following.voters] if one_voter else [part.voters]
