"""Requests that wait: a replica's own, those it parked, and those that its timers are due for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.kafka_text import replica_key
from kraft_core.protocol.lifecycle import first_start, formatted_store
from kraft_core.protocol.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    CurrentLeader,
    DescribeQuorumRequest,
    FetchRequest,
    FetchResponse,
    RaftMessage,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoteRequest,
)
from kraft_core.protocol.replica import Follower, Leader, Replica, Step
from kraft_core.protocol.roles import Role
from kraft_core.protocol.step import AppendRecords, Received, ResignLeadership, Tick, step
from kraft_core.raft.voters import Voter, VoterSet
from tests.kraft_core.protocol.replicas import (
    ADMIN,
    CLUSTER_ID,
    SETTINGS,
    after,
    answer_to,
    ask,
    committed_leader,
    endpoints,
    fetch,
    follower,
    key,
    leader,
    static_leader,
    unattached,
)


def sent(done: Step, body: type) -> list[int]:
    """The destinations of messages of that kind."""
    return [message.destination for message in done.messages if isinstance(message.body, body)]


class TestBeginQuorumEpoch:
    def test_is_sent_to_those_that_have_not_fetched_for_half_a_fetch_timeout(self) -> None:
        replica = committed_leader()
        assert sent(step(replica, Tick(100)), BeginQuorumEpochRequest) == []
        assert sent(step(replica, Tick(101)), BeginQuorumEpochRequest) == [2, 3]
        replica = ask(replace(replica, now=60), fetch(2, 3), 2).replica
        assert sent(step(replica, Tick(101)), BeginQuorumEpochRequest) == [3]

    def test_is_sent_to_all_by_a_new_leader(self) -> None:
        assert sent(step(leader(), Tick(2)), BeginQuorumEpochRequest) == [2, 3]

    def test_is_not_sent_to_a_voter_known_by_its_id_alone_that_has_fetched(self) -> None:
        replica = ask(static_leader(), fetch(2, 1)).replica
        assert sent(step(replica, Tick(2)), BeginQuorumEpochRequest) == [3]
        statuses = answer_to(replica, DescribeQuorumRequest(), ADMIN).voters
        assert [status.last_fetch_at for status in statuses] == [1, 1, -1]


class TestUpdatesOfAVoter:
    @staticmethod
    def moved() -> Replica:
        """A follower with new endpoints, whose fetch is in flight."""
        replica = replace(follower(3, 2), endpoints=endpoints(9))
        return after(replica, Tick(2))

    def test_are_due_after_a_fetch_timeout(self) -> None:
        state = follower(3, 2).state
        assert isinstance(state, Follower)
        assert state.update_deadline == 1 + SETTINGS.fetch_timeout

    def test_that_are_due_while_a_fetch_is_pending_follow_its_response(self) -> None:
        replica = self.due(self.moved())
        done = step(replica, Tick(6))
        assert sent(done, UpdateVoterRequest) == []
        request = replica.sent[0]
        response = FetchResponse(ErrorCode.NONE, CurrentLeader(2, 1, endpoints(2)))
        answered = after(done.replica, Received(RaftMessage(2, 3, request.correlation_id, response)))
        assert sent(step(answered, Tick(7)), UpdateVoterRequest) == [2]

    def test_are_put_off_a_period_once_sent_or_needless(self) -> None:
        for replica in (replace(self.moved(), sent=()), replace(self.moved(), endpoints=endpoints(3))):
            later = after(self.due(replica), Tick(6))
            assert isinstance(later.state, Follower)
            assert later.state.update_deadline == 6 + SETTINGS.fetch_timeout

    def test_an_observer_that_joins_waits_for_its_fetch_too(self) -> None:
        joins = self.due(after(replace(follower(4, 2), auto_join=True), Tick(2)))
        assert sent(step(joins, Tick(6)), AddVoterRequest) == []
        assert sent(step(replace(joins, sent=()), Tick(6)), AddVoterRequest) == [2]

    @pytest.mark.parametrize(
        ("error", "put_off"), [(ErrorCode.DUPLICATE_VOTER, True), (ErrorCode.INVALID_REQUEST, False)]
    )
    def test_an_answer_that_says_nothing_of_the_voters_puts_nothing_off(
        self, error: ErrorCode, put_off: bool
    ) -> None:
        replica = after(replace(self.due(replace(follower(4, 2), auto_join=True)), sent=()), Tick(6))
        answer = RaftMessage(2, 4, replica.sent[0].correlation_id, AddVoterResponse(error))
        answered = step(replace(replica, now=50), Received(answer)).replica
        assert isinstance(answered.state, Follower)
        assert answered.state.update_deadline == (50 if put_off else 6) + SETTINGS.fetch_timeout

    @staticmethod
    def due(replica: Replica) -> Replica:
        assert isinstance(replica.state, Follower)
        return replace(replica, state=replace(replica.state, update_deadline=5))


class TestParkedFetch:
    @staticmethod
    def parked(max_wait: int = 5000) -> Replica:
        return ask(committed_leader(), fetch(2, 3, high_watermark=3, max_wait=max_wait)).replica

    @staticmethod
    def responses(done: Step) -> list[FetchResponse]:
        return [message.body for message in done.messages if isinstance(message.body, FetchResponse)]

    def test_is_refused_by_a_follower_with_its_new_leader(self) -> None:
        done = ask(self.parked(), BeginQuorumEpochRequest(CLUSTER_ID, key(1), 3, 2, endpoints(3)), 3)
        (response,) = self.responses(done)
        assert response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert response.leader == CurrentLeader(3, 2, endpoints(3))
        assert done.replica.parked == ()

    def test_is_refused_by_a_resigned_leader_in_its_own_name(self) -> None:
        (response,) = self.responses(step(self.parked(), Tick(1000)))
        assert response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert response.leader == CurrentLeader(1, 1, endpoints(1))

    def test_waits_on_in_an_epoch_without_a_leader(self) -> None:
        done = ask(self.parked(30), VoteRequest(CLUSTER_ID, key(1), key(3), 2, 1, 3), 3)
        assert done.replica.role is Role.UNATTACHED
        assert self.responses(done) == []
        (response,) = self.responses(step(done.replica, Tick(31)))
        assert (response.error, response.leader) == (ErrorCode.NONE, CurrentLeader(1, 1, endpoints(1)))
        begun = BeginQuorumEpochRequest(CLUSTER_ID, key(1), 3, 2, endpoints(3))
        (response,) = self.responses(ask(done.replica, begun, 3))
        assert response.leader == CurrentLeader(3, 2, endpoints(3))

    def test_counts_as_a_fetch_when_it_is_answered(self) -> None:
        replica = replace(self.parked(), now=40)
        replica = step(replica, AppendRecords(1)).replica
        statuses = answer_to(replica, DescribeQuorumRequest(), ADMIN).voters
        assert [(status.key.id, status.last_fetch_at) for status in statuses][:2] == [(1, 40), (2, 40)]


class TestConnections:
    def test_an_addition_fails_at_once_while_a_request_to_the_new_voter_is_in_flight(self) -> None:
        replica = ask(committed_leader(), fetch(4, 3), 4).replica
        request = AddVoterRequest(CLUSTER_ID, key(4), endpoints(4))
        given_up = ask(replica, request, ADMIN).replica
        assert isinstance(given_up.state, Leader)
        given_up = replace(given_up, state=replace(given_up.state, pending=None))
        done = ask(given_up, request, ADMIN)
        text = f"New voter {replica_key(key(4))} is not ready to receive requests"
        answer = AddVoterResponse(ErrorCode.REQUEST_TIMED_OUT, text)
        assert [message.body for message in done.messages] == [answer]
        assert sent(ask(replace(given_up, sent=()), request, ADMIN), ApiVersionsRequest) == [4]

    def test_a_replica_without_a_leader_asks_its_bootstrap_servers_only(self) -> None:
        replica = replace(unattached(1), bootstrap=(1, 9))
        assert sent(step(replica, Tick(2)), FetchRequest) == [9]
        assert sent(step(replace(replica, bootstrap=()), Tick(2)), FetchRequest) == []

    def test_the_bootstrap_servers_of_a_static_quorum_are_its_voters(self) -> None:
        voters = VoterSet.of(Voter(replace(key(node), directory_id=None), endpoints(node)) for node in (1, 2))
        store = formatted_store(static_voters=voters)
        assert first_start(CLUSTER_ID, key(7), endpoints(7), store, SETTINGS, seed=1).bootstrap == (1, 2)


class TestCheckQuorum:
    def test_exempts_a_leader_that_was_removed_from_a_set_of_one(self) -> None:
        replica = ask(committed_leader((1, 2)), RemoveVoterRequest(CLUSTER_ID, key(1)), ADMIN).replica
        assert replica.voters.ids == (2,)
        assert after(replica, Tick(10_000)).role is Role.LEADER

    def test_of_a_second_voter_runs_from_the_last_fetch(self) -> None:
        """The deadline of a sole voter is extended by any fetch, and by nothing else."""
        replica = after(leader(1, (1,)), Tick(1000))
        assert isinstance(replica.state, Leader)
        assert replica.state.check_quorum_deadline == 1 + SETTINGS.fetch_timeout * 3 // 2
        replica = ask(replica, fetch(4, 3), 4).replica
        assert isinstance(replica.state, Leader)
        assert replica.state.check_quorum_deadline == 1000 + SETTINGS.fetch_timeout * 3 // 2


class TestResignLeadership:
    def test_of_its_epoch_makes_the_leader_resign(self) -> None:
        assert after(leader(), ResignLeadership(1)).role is Role.RESIGNED

    def test_of_an_older_epoch_or_again_is_ignored(self) -> None:
        assert after(leader(), ResignLeadership(0)) == leader()
        resigned = after(leader(), ResignLeadership(1))
        assert after(resigned, ResignLeadership(1)) == resigned

    @pytest.mark.parametrize(
        ("replica", "epoch"), [(leader(), -1), (leader(), 2), (follower(1, 2), 1), (unattached(1), 0)]
    )
    def test_of_an_epoch_that_it_does_not_lead_is_an_error(self, replica: Replica, epoch: int) -> None:
        with pytest.raises(ValueError, match="cannot resign from epoch"):
            step(replica, ResignLeadership(epoch))


def test_an_observer_follows_its_leader_until_it_hears_of_another() -> None:
    """Only a voter's fetch timeout ends anything (pollFollowerAsObserver)."""
    replica = after(follower(4, 2), Tick(10_000))
    assert (replica.role, replica.leader.leader_id) == (Role.OBSERVER, 2)
