"""Who won which epoch, by its LEADER_CHANGE record, and whether that election was lawful.

KIP-595: a leader's first batch in its epoch begins with LEADER_CHANGE, which contains the leader, its voters
and those whose votes were counted. Both must agree with the voter set in force just below the record;
a leader elected by an older set (the stale voter set of Kafka 3.9 and later) shows here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from kraft_core.evidence.facts import CapturedControlRecord
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet


@dataclass(frozen=True, slots=True)
class Election:
    """A LEADER_CHANGE record. voters and granting_voters are ids, rising; batch_end_offset is exclusive."""

    leader_epoch: int
    leader_id: int
    offset: int
    batch_end_offset: int
    elected_at: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]

    @property
    def voter_set(self) -> VoterSet:
        """The voters as a set without directory ids, as in a static configuration."""
        return VoterSet.of(Voter(ReplicaKey(voter_id)) for voter_id in self.voters)


def elections_of(records: tuple[CapturedControlRecord, ...]) -> dict[int, Election]:
    """The election of each epoch; none where two records of one epoch differ, for then neither is known."""
    found: defaultdict[int, set[Election]] = defaultdict(set)
    for record in records:
        if record.type == "LeaderChange" and record.value is not None:
            found[record.leader_epoch].add(_election(record, record.value))
    return {epoch: next(iter(found[epoch])) for epoch in sorted(found) if len(found[epoch]) == 1}


def _election(record: CapturedControlRecord, value: dict[str, Any]) -> Election:
    return Election(
        record.leader_epoch,
        value["leaderId"],
        record.offset,
        record.batch_end_offset,
        record.appended_at,
        tuple(sorted({voter["voterId"] for voter in value["voters"]})),
        tuple(sorted({voter["voterId"] for voter in value["grantingVoters"]})),
    )


def agrees_with(election: Election, below: VoterSet) -> bool:
    """Whether an election names the voters of the set in force below it and a majority of them granted it."""
    granting = sum(voter.key.id in election.granting_voters for voter in below)
    return election.voters == below.ids and granting >= below.majority
