"""What was in force at an offset of an epoch, along the lines of the log.

What counted for a batch follows from the records below it on its own line. While there is no VotersRecord the
static set counts, which shows in each epoch's LEADER_CHANGE. Above a gap that no capture fills nothing
is known until the next record.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeVar

from kraft_core.evidence.elections import Election, agrees_with
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.evidence.lineage import EpochLine, Lineage
from kraft_core.evidence.states import (
    EMPTY_LOG,
    UNKNOWN,
    SetInForce,
    StateInForce,
    changes_of,
    snapshot_states,
    static_set,
    timeline_of,
)
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VoterSetRange:
    """Offsets of one epoch under one voter set: batches that end above first and at or below end."""

    first_offset: int
    end_offset: int
    voters: SetInForce | None


class InForce:
    """The states of every epoch line of a cluster's (distinct) facts."""

    def __init__(self, facts: ClusterFacts, lineage: Lineage, elections: dict[int, Election]) -> None:
        self.elections = elections
        self._static = {epoch: static_set(each) for epoch, each in elections.items() if each.voters}
        self._snapshots = snapshot_states(facts.snapshots)
        self._starts: dict[int, StateInForce] = {}
        # Of each line (offset from which it holds, state), rising.
        self._timelines: dict[int, tuple[tuple[int, StateInForce], ...]] = {}
        self._ranges: dict[int, tuple[VoterSetRange, ...]] = {}
        changes = changes_of(facts)
        for epoch, line in lineage.lines.items():
            start = self._starts[epoch] = self._start_state(line, lineage)
            self._timelines[epoch] = timeline_of(line, start, changes[epoch], self._snapshots[epoch])
            self._ranges[epoch] = self._cut(line)

    def at(self, leader_epoch: int, offset: int) -> StateInForce:
        """The state that the records of that epoch's line at or below `offset` put in force."""
        timeline = self._timelines.get(leader_epoch, ())
        count = bisect_right(timeline, offset, key=lambda entry: entry[0])
        return timeline[count - 1][1] if count else UNKNOWN

    def below_epoch(self, leader_epoch: int) -> StateInForce:
        """The state just below the epoch's first batch; UNKNOWN where captures do not show it."""
        return self._starts.get(leader_epoch, UNKNOWN)

    def voters_at(self, leader_epoch: int, offset: int) -> SetInForce | None:
        """The voter set that counts for a batch of that epoch whose last offset is `offset`."""
        return self._voters(leader_epoch, self.at(leader_epoch, offset))

    def voter_set_ranges(self, line: EpochLine) -> tuple[VoterSetRange, ...]:
        """The epoch's offsets cut where the voter set changes, before the batch that changes it."""
        return self._ranges[line.leader_epoch]

    def is_unlawful(self, leader_epoch: int) -> bool:
        """Whether the epoch's LEADER_CHANGE is known to disagree with the voter set in force below it."""
        election = self.elections.get(leader_epoch)
        below = self.below_epoch(leader_epoch).voters
        return election is not None and below is not None and not agrees_with(election, below.voters)

    def leader_among(self, voters: VoterSet, leader_epoch: int) -> Voter | None:
        """The epoch's leader among the voters: the directory that won counts, not another one of its id.

        Where the set it was elected by is unknown, or has no directory ids, the id decides: a leader's
        id cannot get another directory while it leads.
        """
        election = self.elections.get(leader_epoch)
        if election is None:
            return None
        there = self.voters_at(leader_epoch, election.batch_end_offset - 1)
        if there is None:
            leader: ReplicaKey | None = ReplicaKey(election.leader_id)
        else:
            leader = _only([voter.key for voter in there.voters if voter.key.id == election.leader_id])
        return _only([voter for voter in voters if leader and _same_replica(voter.key, leader)])

    def _start_state(self, line: EpochLine, lineage: Lineage) -> StateInForce:
        """What the epoch inherits; an epoch whose first batches are gone inherits nothing that is known."""
        below = line.below
        if line.contested or line.start != line.first_offset:
            return UNKNOWN
        if below is None:
            return EMPTY_LOG if line.start == 0 else UNKNOWN
        parent = lineage.lines.get(below.parent)
        if parent is not None and parent.covers(below.end_offset - 1):
            return self.at(below.parent, below.end_offset - 1)
        return self._snapshots[below.parent].get(below.end_offset, UNKNOWN)

    def _voters(self, leader_epoch: int, state: StateInForce) -> SetInForce | None:
        if state.voters is not None or not state.is_static:
            return state.voters
        return self._static.get(leader_epoch)

    def _cut(self, line: EpochLine) -> tuple[VoterSetRange, ...]:
        cuts: list[tuple[int, SetInForce | None]] = []
        for offset, state in self._timelines[line.leader_epoch]:
            voters = self._voters(line.leader_epoch, state)
            own = voters is not None and voters.source == "record" and voters.offset == offset
            first = voters.batch_base_offset if own and voters is not None else offset
            if not cuts or cuts[-1][1] != voters:
                cuts.append((first, voters))
        ends = [first for first, _ in cuts[1:]] + [line.end_offset]
        return tuple(
            VoterSetRange(first, end, voters)
            for (first, voters), end in zip(cuts, ends, strict=True)
            if first < end
        )


def _only(found: list[T]) -> T | None:
    return found[0] if len(found) == 1 else None


def _same_replica(one: ReplicaKey, other: ReplicaKey) -> bool:
    """By directory id where both have one, else by id."""
    unknown = None in (one.directory_id, other.directory_id)
    return one.id == other.id and (unknown or one.directory_id == other.directory_id)
