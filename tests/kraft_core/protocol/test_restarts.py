"""How a replica begins again: what quorum-state keeps of a vote, and a sole voter's election."""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.lifecycle import durable_vote, first_start, formatted_store, restart
from kraft_core.protocol.messages import UpdateFeaturesRequest, UpdateVoterRequest, VoteRequest
from kraft_core.protocol.replica import Candidate, Replica, Votes
from kraft_core.protocol.roles import Role
from kraft_core.protocol.step import ResignLeadership, ShutDown, Tick
from kraft_core.protocol.transitions import to_candidate
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet
from tests.kraft_core.protocol.replicas import (
    ADMIN,
    CLUSTER_ID,
    SETTINGS,
    after,
    answer_to,
    ask,
    endpoints,
    fetch,
    follower,
    key,
    leader,
    static_leader,
    unattached,
    voter_set,
)

OTHER_DISK = "another-disk-of-node-2"


def static_voter(node: int) -> Replica:
    """A voter of a quorum with kraft.version 0, in epoch 0."""
    voters = VoterSet.of(Voter(ReplicaKey(one), endpoints(one)) for one in (1, 2, 3))
    store = formatted_store(static_voters=voters)
    return replace(first_start(CLUSTER_ID, key(node), endpoints(node), store, SETTINGS, seed=node), now=1)


def vote(candidate: ReplicaKey, epoch: int) -> VoteRequest:
    return VoteRequest(CLUSTER_ID, None, candidate, epoch, epoch - 1, 9)


class TestQuorumState:
    def test_of_version_0_keeps_the_voted_id_only(self) -> None:
        voted = ask(static_voter(1), vote(key(2), 1)).replica
        assert voted.voted == key(2)
        assert not answer_to(voted, vote(ReplicaKey(2, OTHER_DISK), 1)).vote_granted
        again = restart(voted, None).replica
        assert again.voted == ReplicaKey(2)
        assert answer_to(again, vote(ReplicaKey(2, OTHER_DISK), 1)).vote_granted
        assert not answer_to(again, vote(key(3), 1), 3).vote_granted

    def test_of_version_1_keeps_the_directory(self) -> None:
        again = restart(ask(unattached(1), vote(key(2), 1)).replica, None).replica
        assert again.voted == key(2)

    def test_of_version_0_restarts_a_candidate(self) -> None:
        standing = to_candidate(static_voter(1)).replica
        assert (restart(standing, None).replica.role, standing.epoch) == (Role.CANDIDATE, 1)

    def test_is_version_0_until_it_is_written_again_after_the_upgrade(self) -> None:
        replica = ask(static_leader(), fetch(2, 1)).replica
        for node in (2, 3):
            request = UpdateVoterRequest(CLUSTER_ID, 1, key(node), endpoints(node), 0, 1)
            replica = ask(replica, request, node).replica
        replica = ask(replica, UpdateFeaturesRequest(1), ADMIN).replica
        assert (replica.kraft_version, replica.quorum_state_voters) == (1, (1, 2, 3))
        replica = ask(replica, vote(key(3), 2), 3).replica
        assert (replica.quorum_state_voters, durable_vote(replica)) == (None, key(3))


class TestSoleVoter:
    def test_is_elected_with_its_first_tick(self) -> None:
        store = formatted_store(bootstrap_voters=voter_set(1))
        replica = first_start(CLUSTER_ID, key(1), endpoints(1), store, SETTINGS, seed=1)
        assert (after(replica, Tick(0)).role, after(replica, Tick(0)).epoch) == (Role.LEADER, 1)

    def test_is_elected_with_its_first_tick_after_a_restart_whatever_it_was(self) -> None:
        led = leader(1, (1,))
        for before in (led, follower(1, 2, (1,)), unattached(1, (1,), epoch=1)):
            again = after(restart(before, None).replica, Tick(1))
            assert (again.role, again.epoch) == (Role.LEADER, 2)

    def test_that_voted_for_itself_leads_that_epoch(self) -> None:
        standing = replace(unattached(1, (1,)), state=Candidate(1, 500, Votes(voter_set(1))))
        again = after(restart(standing, None).replica, Tick(1))
        assert (again.role, again.epoch) == (Role.LEADER, 1)

    def test_that_resigned_waits_as_any_other(self) -> None:
        for event in (ResignLeadership(1), ShutDown()):
            replica = after(leader(1, (1,)), event, Tick(50))
            assert (replica.role, replica.epoch) == (Role.RESIGNED, 1)
            assert after(replica, Tick(1000)).epoch == 2
