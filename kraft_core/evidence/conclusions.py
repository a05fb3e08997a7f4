"""What follows from a cluster's facts, before it is written as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kraft_core.evidence.commit import CommitStatus, committed_prefixes
from kraft_core.evidence.consistency import with_consistency
from kraft_core.evidence.elections import Election, elections_of
from kraft_core.evidence.elsewhere import that_may_be_ours
from kraft_core.evidence.facts import Capture, ClusterFacts, distinct
from kraft_core.evidence.holdings import Holdings, holdings_of
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.lacking_copies import lacking_committed
from kraft_core.evidence.lineage import Lineage, lineage_of
from kraft_core.evidence.lower_bounds import LowerBound, LowerBounds
from kraft_core.evidence.majority import MajorityRule
from kraft_core.evidence.new_disks import on_new_disks, upgraded_voters
from kraft_core.evidence.next_sets import NextSets
from kraft_core.evidence.proofs import CommittedPrefix, by_epoch
from kraft_core.evidence.static_voters import newest_static_election, reconfigured
from kraft_core.raft.voters import ReplicaKey


@dataclass(frozen=True, slots=True)
class Conclusions:
    """facts are distinct(); the rest is derived from them. What the tables and the rules read.

    reconfigured: captures of static voters that are configured with others than the newest election names: a
    majority of those may have stored what a majority of these had not.
    committed_in: what is committed of each epoch, for each end the proof of the lowest epoch in which that
    was; proofs that know no epoch are not among them.
    """

    facts: ClusterFacts
    lineage: Lineage
    elections: dict[int, Election]
    in_force: InForce
    holdings: Holdings
    lower_bounds: list[LowerBound]
    commit: CommitStatus
    committed_in: dict[int, CommittedPrefix]
    reconfigured: tuple[Capture, ...]

    def at_face_value(self) -> Conclusions:
        """As if every capture were whole. Rules are judged so: a broken one may look like a cut copy."""
        if not self.holdings.lacks_committed:
            return self
        holdings = replace(self.holdings, lacks_committed=frozenset())
        commit, others = self.commit, bool(self.reconfigured)
        again = CommitStatus(self.lineage, self.in_force, holdings, commit.prefixes, commit.next_sets, others)
        return replace(self, holdings=holdings, commit=again)


def _reconfigured(
    captures: tuple[Capture, ...],
    elections: dict[int, Election],
    states: InForce,
    upgraded: frozenset[ReplicaKey],
) -> tuple[Capture, ...]:
    """Not the directories that voters had when kraft.version was upgraded, if that is captured."""
    others = reconfigured(captures, newest_static_election(elections, states))
    return tuple(each for each in others if each.current_voters or each.replica not in upgraded)


def conclude(facts: ClusterFacts) -> Conclusions:
    """Everything that a cluster's facts prove. Grows with runs and control records, not with batches."""
    facts = distinct(facts)
    facts = replace(facts, elsewhere=that_may_be_ours(facts.elsewhere, facts.captures))
    lineage = lineage_of(facts)
    elections = elections_of(facts.control_records)
    states = InForce(facts, lineage, elections)
    facts = replace(facts, captures=with_consistency(facts.captures, states, lineage.contested_epochs))
    leaders = {
        epoch: each.leader_id for epoch, each in elections.items() if epoch not in lineage.contested_epochs
    }
    holdings = holdings_of(facts.captures, leaders, frozenset(one.replica for one in facts.elsewhere))
    bounds = LowerBounds(facts, lineage, states).all()
    next_sets = NextSets(lineage, states)
    lacking = lacking_committed(bounds, holdings, lineage, states, next_sets)
    upgraded = upgraded_voters(facts.control_records)
    new_disks = on_new_disks(facts.captures, upgraded)
    holdings = replace(holdings, lacks_committed=lacking, new_disks=new_disks)
    rule = MajorityRule(lineage, states, holdings)
    proofs = [proof for bound in bounds for proof in bound.proofs()]
    proofs += [
        (p.leader_epoch, p.end_offset, p) for line in lineage.lines.values() for p in rule.proofs(line)
    ]
    others = _reconfigured(facts.captures, elections, states, upgraded)
    prefixes = committed_prefixes(lineage, proofs)
    commit = CommitStatus(lineage, states, holdings, prefixes, next_sets, bool(others))
    dated = [proof for proof in proofs if proof[2].committed_in is not None]
    committed_in = committed_prefixes(lineage, dated, by_epoch)
    return Conclusions(facts, lineage, elections, states, holdings, bounds, commit, committed_in, others)
