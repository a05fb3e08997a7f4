"""What a replica answers, and becomes, in each role; BEHAVIOURS.md sets it beside Kafka's own tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.protocol.errors import ErrorCode, ProtocolFault, UnknownEndpoints
from kraft_core.protocol.lifecycle import restart
from kraft_core.protocol.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    CurrentLeader,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RaftMessage,
    RemoveVoterRequest,
    UpdateFeaturesRequest,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from kraft_core.protocol.replica import Follower, Leader, Replica
from kraft_core.protocol.roles import Role
from kraft_core.protocol.step import AppendRecords, Received, TakeSnapshot, Tick, step
from kraft_core.raft.batches import KRaftVersion, LeaderChange
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.voters import ReplicaKey, VoterSet
from tests.kraft_core.protocol.replicas import (
    ADMIN,
    CLUSTER_ID,
    after,
    answer_to,
    ask,
    candidate,
    committed_leader,
    endpoints,
    fetch,
    follower,
    key,
    leader,
    prospective,
    static_leader,
    unattached,
)


def vote(of: int, epoch: int, *, pre_vote: bool = False, end: tuple[int, int] = (0, 0), to: int = 1):
    return VoteRequest(CLUSTER_ID, key(to), key(of), epoch, *end, pre_vote)


class TestVote:
    def test_is_given_once_an_epoch_and_again_to_the_same_candidate(self) -> None:
        replica = ask(unattached(1), vote(2, 1)).replica
        assert replica.voted == key(2)
        assert answer_to(replica, vote(2, 1)).vote_granted
        assert not answer_to(replica, vote(3, 1)).vote_granted

    def test_is_refused_to_a_shorter_log(self) -> None:
        assert not answer_to(committed_leader(), vote(2, 2, end=(0, 0))).vote_granted
        assert answer_to(committed_leader(), vote(2, 2, end=(1, 3))).vote_granted

    def test_of_an_older_epoch_is_fenced(self) -> None:
        response = answer_to(unattached(1, epoch=3), vote(2, 2))
        assert response == VoteResponse(ErrorCode.FENCED_LEADER_EPOCH, CurrentLeader(None, 3))

    def test_for_another_directory_is_answered_with_invalid_voter_key_in_the_new_epoch(self) -> None:
        request = replace(vote(2, 5), voter=ReplicaKey(1, "another-directory-0000"))
        outcome = ask(unattached(1), request)
        assert outcome.messages[0].body == VoteResponse(ErrorCode.INVALID_VOTER_KEY, CurrentLeader(None, 5))

    @pytest.mark.parametrize("request_", [vote(2, 1, end=(1, 4)), vote(2, 1, end=(-1, 0)), vote(-2, 1)])
    def test_that_cannot_be_is_an_invalid_request(self, request_: VoteRequest) -> None:
        assert answer_to(unattached(1), request_).error is ErrorCode.INVALID_REQUEST

    def test_of_another_cluster_is_refused_without_a_look(self) -> None:
        response = answer_to(unattached(1), replace(vote(2, 1), cluster_id="other"))
        assert response == VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)

    def test_for_another_directory_of_its_own_id_ends_the_process(self) -> None:
        request = replace(vote(1, 1), replica=ReplicaKey(1, "another-disk-of-node-1"))
        with pytest.raises(ProtocolFault):
            ask(unattached(1), request, 9)
        assert answer_to(unattached(1), replace(request, pre_vote=True), 9).vote_granted

    def test_is_given_by_an_observer_too(self) -> None:
        assert answer_to(unattached(4), vote(2, 1, to=4)).vote_granted

    @pytest.mark.parametrize(
        "replica", [unattached(1, epoch=1), prospective(1), candidate(1), follower(1, 2)]
    )
    def test_before_the_vote_changes_nothing(self, replica: Replica) -> None:
        outcome = ask(replica, vote(3, 1, pre_vote=True), 3)
        assert outcome.messages[0].body.vote_granted  # type: ignore[union-attr]
        assert outcome.replica.state == replica.state

    def test_before_the_vote_is_refused_by_who_leads_or_has_fetched(self) -> None:
        assert not answer_to(leader(), vote(2, 1, pre_vote=True, end=(1, 3))).vote_granted
        replica = follower(1, 2)
        assert isinstance(replica.state, Follower)
        fetched = replace(replica, state=replace(replica.state, has_fetched=True))
        assert not answer_to(fetched, vote(3, 1, pre_vote=True), 3).vote_granted

    @pytest.mark.parametrize("replica", [candidate(1), follower(1, 2), leader()])
    def test_within_the_epoch_is_refused_by_who_has_decided(self, replica: Replica) -> None:
        assert not answer_to(replica, vote(3, 1, end=(0, 9)), 3).vote_granted


class TestElection:
    def test_goes_from_pre_votes_to_votes_to_the_leaders_first_records(self) -> None:
        outcome = step(unattached(1), Tick(1000))
        assert outcome.replica.role is Role.PROSPECTIVE
        replica = self._granted(outcome.replica)
        assert (replica.role, replica.epoch) == (Role.CANDIDATE, 1)
        outcome = step(replica, Tick(1010))
        replica = self._granted(outcome.replica)
        assert replica.role is Role.LEADER
        values = [record.value for record in replica.log.control_records()]
        assert values[0] == LeaderChange(1, tuple(map(ReplicaKey, (1, 2, 3))), tuple(map(ReplicaKey, (1, 2))))
        assert values[1] == KRaftVersion(1)
        assert isinstance(values[2], VoterSet)

    @staticmethod
    def _granted(replica: Replica) -> Replica:
        sent = next(request for request in replica.sent if request.destination == 2)
        response = VoteResponse(ErrorCode.NONE, CurrentLeader(None, replica.epoch), True)
        return after(replica, Received(RaftMessage(2, 1, sent.correlation_id, response)))

    def test_of_a_sole_voter_needs_nobody(self) -> None:
        replica = after(unattached(1, (1,)), Tick(1000))
        assert replica.role is Role.LEADER
        assert replica.log.known_high_watermark == 3

    def test_without_a_majority_ends_where_it_began(self) -> None:
        replica = after(follower(1, 2), Tick(1000))
        assert replica.role is Role.PROSPECTIVE
        for node in (2, 3):
            sent = next(request for request in replica.sent if request.destination == node)
            response = VoteResponse(ErrorCode.NONE, CurrentLeader(2, 1, endpoints(2)))
            replica = after(replica, Received(RaftMessage(node, 1, sent.correlation_id, response)))
        assert replica.role is Role.FOLLOWER

    def test_is_not_for_observers(self) -> None:
        assert after(follower(4, 2), Tick(1000)).role is Role.OBSERVER
        assert after(unattached(4), Tick(10_000)).role is Role.UNATTACHED

    def test_a_voter_without_pre_vote_makes_the_prospective_a_candidate(self) -> None:
        replica = after(unattached(1), Tick(1000))
        sent = replica.sent[0]
        response = VoteResponse(ErrorCode.UNSUPPORTED_VERSION)
        replica = after(replica, Received(RaftMessage(sent.destination, 1, sent.correlation_id, response)))
        assert replica.role is Role.CANDIDATE

    def test_an_answer_to_an_earlier_role_is_dropped(self) -> None:
        replica = follower(1, 2)
        response = VoteResponse(ErrorCode.NONE, CurrentLeader(None, 1), True)
        assert step(replica, Received(RaftMessage(3, 1, 99, response))).replica == replica


class TestLeadership:
    def test_is_learnt_from_begin_quorum_epoch(self) -> None:
        request = BeginQuorumEpochRequest(CLUSTER_ID, key(1), 2, 4, endpoints(2))
        replica = ask(unattached(1), request).replica
        assert (replica.role, replica.epoch, replica.leader.leader_id) == (Role.FOLLOWER, 4, 2)

    def test_for_another_directory_is_followed_and_refused(self) -> None:
        request = BeginQuorumEpochRequest(CLUSTER_ID, ReplicaKey(1, "x" * 22), 2, 4, endpoints(2))
        outcome = ask(unattached(1), request)
        assert outcome.replica.role is Role.FOLLOWER
        assert answer_to(unattached(1), request).error is ErrorCode.INVALID_VOTER_KEY

    def test_by_two_in_one_epoch_ends_the_process(self) -> None:
        with pytest.raises(ProtocolFault):
            ask(follower(1, 2), BeginQuorumEpochRequest(CLUSTER_ID, key(1), 3, 1, endpoints(3)), 3)

    def test_that_ends_makes_the_first_successor_a_candidate_first(self) -> None:
        request = EndQuorumEpochRequest(CLUSTER_ID, 2, 1, (key(1), key(3)))
        assert after(ask(follower(1, 2), request).replica, Tick(2)).role is Role.PROSPECTIVE
        other = ask(follower(3, 2), request).replica
        assert after(other, Tick(2)).role is Role.FOLLOWER

    def test_that_ends_with_unknown_endpoints_ends_the_process(self) -> None:
        request = EndQuorumEpochRequest(CLUSTER_ID, 9, 1, (key(1),))
        with pytest.raises(UnknownEndpoints):
            ask(unattached(1), request)

    def test_without_fetches_from_a_majority_is_resigned(self) -> None:
        assert after(committed_leader(), Tick(1000)).role is Role.RESIGNED
        assert after(leader(1, (1,)), Tick(1000)).role is Role.LEADER

    def test_is_resigned_over_a_restart_and_left_with_a_higher_epoch(self) -> None:
        replica = restart(committed_leader(), None).replica
        assert (replica.role, replica.epoch) == (Role.RESIGNED, 1)
        replica = after(replica, Tick(10_000))
        assert (replica.role, replica.epoch) == (Role.UNATTACHED, 2)

    def test_a_vote_for_itself_survives_a_restart(self) -> None:
        replica = restart(candidate(1), None).replica
        assert (replica.role, replica.epoch, replica.voted) == (Role.CANDIDATE, 1, key(1))


class TestFetch:
    def test_commits_what_a_majority_has_fetched(self) -> None:
        replica = leader()
        assert answer_to(replica, fetch(2, 0, 0)).high_watermark == -1
        assert answer_to(replica, fetch(2, 3)).high_watermark == 3

    def test_by_an_observer_commits_nothing(self) -> None:
        assert ask(leader(), fetch(4, 3), 4).replica.log.known_high_watermark is None

    def test_waits_for_records_and_is_answered_by_an_append(self) -> None:
        waiting = ask(committed_leader(), fetch(2, 3, high_watermark=3, max_wait=30))
        assert waiting.messages == ()
        outcome = step(waiting.replica, AppendRecords(2))
        assert [message.body.batches[0].base_offset for message in outcome.messages] == [3]  # type: ignore[union-attr]

    def test_that_waited_long_enough_is_answered_empty(self) -> None:
        waiting = ask(committed_leader(), fetch(2, 3, high_watermark=3, max_wait=30)).replica
        bodies = [message.body for message in step(waiting, Tick(40)).messages]
        assert any(isinstance(body, FetchResponse) and not body.batches for body in bodies)

    def test_waiting_with_a_leader_that_resigns_is_refused(self) -> None:
        waiting = ask(committed_leader(), fetch(2, 3, high_watermark=3, max_wait=5000)).replica
        bodies = [message.body for message in step(waiting, Tick(1000)).messages]
        assert ErrorCode.NOT_LEADER_OR_FOLLOWER in [
            body.error for body in bodies if isinstance(body, FetchResponse)
        ]

    @pytest.mark.parametrize(
        ("request_", "error"),
        [
            (fetch(2, 0, 0, 0), ErrorCode.FENCED_LEADER_EPOCH),
            (fetch(2, 0, 0, 2), ErrorCode.UNKNOWN_LEADER_EPOCH),
            (fetch(2, -1), ErrorCode.INVALID_REQUEST),
            (fetch(2, 3, 2), ErrorCode.INVALID_REQUEST),
        ],
    )
    def test_errors(self, request_: FetchRequest, error: ErrorCode) -> None:
        assert answer_to(leader(), request_).error is error

    def test_from_a_follower_is_refused_with_the_leader(self) -> None:
        response = answer_to(follower(1, 2), fetch(3, 0, 0), 3)
        assert response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert response.leader == CurrentLeader(2, 1, endpoints(2))

    def test_beyond_the_log_diverges(self) -> None:
        assert answer_to(leader(), fetch(2, 9)).diverging_epoch == EpochEnd(3, 1)

    def test_from_an_empty_log_is_sent_to_the_snapshot(self) -> None:
        replica = after(committed_leader(), TakeSnapshot(delete_older=False))
        assert answer_to(replica, fetch(2, 0, 0)).snapshot_id == EpochEnd(3, 1)

    @pytest.mark.parametrize("directory", [key(1).directory_id, "another-disk-of-node-1"])
    def test_with_the_leaders_id_is_answered_with_an_error(self, directory: str) -> None:
        request = replace(fetch(1, 3), replica=ReplicaKey(1, directory))
        outcome = ask(leader(), request, 9)
        assert [message.body for message in outcome.messages] == [
            FetchResponse(
                ErrorCode.UNKNOWN_SERVER_ERROR, CurrentLeader(1, 1, endpoints(1)), log_start_offset=0
            )
        ]
        assert outcome.replica == leader()

    def test_answered_with_a_negative_snapshot_id_is_not_successful(self) -> None:
        replica = follower(1, 2)
        for snapshot_id in (EpochEnd(-1, 1), EpochEnd(3, -1)):
            response = FetchResponse(
                ErrorCode.NONE, CurrentLeader(2, 1, endpoints(2)), snapshot_id=snapshot_id
            )
            assert self._answered(replica, response).state == replica.state

    def test_response_below_the_watermark_ends_the_process(self) -> None:
        response = FetchResponse(
            ErrorCode.NONE, CurrentLeader(2, 1, endpoints(2)), 3, 0, tuple(leader().log.batches)
        )
        replica = self._answered(follower(1, 2), response)
        assert (replica.log.end_offset, replica.log.known_high_watermark) == (3, 3)
        diverging = replace(response, batches=(), diverging_epoch=EpochEnd(1, 1))
        with pytest.raises(ProtocolFault):
            self._answered(replica, diverging)

    @staticmethod
    def _answered(replica: Replica, response: FetchResponse) -> Replica:
        asking = step(replica, Tick(replica.now + 1)).replica
        sent = asking.sent[0]
        return step(asking, Received(RaftMessage(2, 1, sent.correlation_id, response))).replica


class TestFetchSnapshot:
    @pytest.mark.parametrize(
        ("snapshot_id", "position", "error"),
        [
            (EpochEnd(3, 1), 0, ErrorCode.NONE),
            (EpochEnd(3, 1), 400, ErrorCode.POSITION_OUT_OF_RANGE),
            (EpochEnd(2, 1), 0, ErrorCode.SNAPSHOT_NOT_FOUND),
            (EpochEnd(0, 0), 0, ErrorCode.SNAPSHOT_NOT_FOUND),
        ],
    )
    def test_answers(self, snapshot_id: EpochEnd, position: int, error: ErrorCode) -> None:
        replica = after(committed_leader(), TakeSnapshot(delete_older=False))
        request = FetchSnapshotRequest(CLUSTER_ID, key(2), 1, snapshot_id, position, 256)
        assert answer_to(replica, request).error is error

    def test_with_the_leaders_id_ends_the_process(self) -> None:
        replica = after(committed_leader(), TakeSnapshot(delete_older=False))
        with pytest.raises(ProtocolFault):
            ask(replica, FetchSnapshotRequest(CLUSTER_ID, key(1), 1, EpochEnd(3, 1), 0, 256), 9)

    @pytest.mark.parametrize(
        ("response", "goes_on"),
        [
            (FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND), False),
            (FetchSnapshotResponse(ErrorCode.NONE, snapshot_id=EpochEnd(-1, 1)), False),
            (FetchSnapshotResponse(ErrorCode.POSITION_OUT_OF_RANGE, snapshot_id=EpochEnd(3, -1)), False),
            (FetchSnapshotResponse(ErrorCode.POSITION_OUT_OF_RANGE), True),
        ],
    )
    def test_is_given_up_if_the_leader_names_no_snapshot(
        self, response: FetchSnapshotResponse, goes_on: bool
    ) -> None:
        replica = follower(1, 2)
        assert isinstance(replica.state, Follower)
        wanted = EpochEnd(3, 1)
        replica = after(replace(replica, state=replace(replica.state, fetching_snapshot=wanted)), Tick(2))
        answer = replace(response, leader=CurrentLeader(2, 1, endpoints(2)))
        number = replica.sent[0].correlation_id
        answered = step(replica, Received(RaftMessage(2, 1, number, answer))).replica
        assert isinstance(answered.state, Follower)
        assert answered.state.fetching_snapshot == (wanted if goes_on else None)


class TestMembership:
    def test_add_waits_for_the_versions_then_for_the_commit(self) -> None:
        replica = ask(committed_leader(), fetch(4, 3), 4).replica
        asked = ask(replica, AddVoterRequest(CLUSTER_ID, key(4), endpoints(4)), ADMIN)
        assert [type(message.body) for message in asked.messages] == [ApiVersionsRequest]
        replica = self._versions(asked.replica, 0, 1)
        assert replica.voters.ids == (1, 2, 3, 4)
        for node in (2, 3):
            outcome = ask(replica, fetch(node, 4), node)
            replica = outcome.replica
        bodies = [message.body for message in outcome.messages if message.destination == ADMIN]
        assert bodies == [AddVoterResponse(ErrorCode.NONE)]

    @staticmethod
    def _versions(replica: Replica, low: int, high: int) -> Replica:
        sent = next(request for request in replica.sent if request.destination == 4)
        response = ApiVersionsResponse(ErrorCode.NONE, low, high)
        return after(replica, Received(RaftMessage(4, 1, sent.correlation_id, response)))

    def test_add_without_the_version_or_lagging_is_given_up(self) -> None:
        request = AddVoterRequest(CLUSTER_ID, key(4), endpoints(4))
        lagging = ask(committed_leader(), request, ADMIN).replica
        assert self._versions(lagging, 0, 1).voters.ids == (1, 2, 3)
        replica = ask(ask(committed_leader(), fetch(4, 3), 4).replica, request, ADMIN).replica
        assert self._versions(replica, 0, 0).voters.ids == (1, 2, 3)

    @pytest.mark.parametrize(
        ("replica", "request_", "error"),
        [
            (leader(), RemoveVoterRequest(CLUSTER_ID, key(2)), ErrorCode.REQUEST_TIMED_OUT),
            (follower(1, 2), RemoveVoterRequest(CLUSTER_ID, key(2)), ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (committed_leader(), RemoveVoterRequest("other", key(2)), ErrorCode.INCONSISTENT_CLUSTER_ID),
            (committed_leader(), RemoveVoterRequest(CLUSTER_ID, ReplicaKey(2)), ErrorCode.INVALID_REQUEST),
            (committed_leader(), RemoveVoterRequest(CLUSTER_ID, key(9)), ErrorCode.VOTER_NOT_FOUND),
            (committed_leader(), AddVoterRequest(CLUSTER_ID, key(4), ()), ErrorCode.INVALID_REQUEST),
            (
                committed_leader(),
                AddVoterRequest(CLUSTER_ID, ReplicaKey(3, "y" * 22), endpoints(3)),
                ErrorCode.DUPLICATE_VOTER,
            ),
        ],
    )
    def test_refusals(self, replica: Replica, request_: RemoveVoterRequest, error: ErrorCode) -> None:
        assert answer_to(replica, request_, ADMIN).error is error

    def test_a_second_change_has_to_wait(self) -> None:
        replica = ask(committed_leader(), RemoveVoterRequest(CLUSTER_ID, key(3)), ADMIN).replica
        response = answer_to(replica, RemoveVoterRequest(CLUSTER_ID, key(2)), ADMIN)
        assert response.error is ErrorCode.REQUEST_TIMED_OUT

    def test_the_last_voter_stays(self) -> None:
        replica = leader(1, (1,))
        response = answer_to(replica, RemoveVoterRequest(CLUSTER_ID, key(1)), ADMIN)
        assert response.error is ErrorCode.VOTER_NOT_FOUND

    @pytest.mark.parametrize("late", [False, True])
    def test_a_leader_that_removed_itself_resigns_with_the_commit(self, late: bool) -> None:
        replica = ask(committed_leader(), RemoveVoterRequest(CLUSTER_ID, key(1)), ADMIN).replica
        replica = after(replica, Tick(150)) if late else replica
        assert replica.role is Role.LEADER
        for node in (2, 3):
            replica = ask(replica, fetch(node, 4), node).replica
        assert replica.role is Role.RESIGNED

    def test_an_update_is_answered_at_the_append(self) -> None:
        moved = (replace(endpoints(2)[0], port=1),)
        request = UpdateVoterRequest(CLUSTER_ID, 1, key(2), moved, 0, 1)
        outcome = ask(committed_leader(), request)
        assert outcome.replica.endpoints_of(2) == moved
        assert answer_to(committed_leader(), request).error is ErrorCode.NONE

    def test_an_update_of_the_leader_by_another_ends_the_process(self) -> None:
        with pytest.raises(ProtocolFault):
            ask(committed_leader(), UpdateVoterRequest(CLUSTER_ID, 1, key(1), endpoints(1), 0, 1))

    def test_an_update_with_kraft_version_0_stays_in_memory_for_the_upgrade(self) -> None:
        replica = ask(static_leader(), fetch(2, 1)).replica
        for node in (2, 3):
            request = UpdateVoterRequest(CLUSTER_ID, 1, key(node), endpoints(node), 0, 1)
            replica = ask(replica, request, node).replica
        assert replica.log.end_offset == 1
        replica = ask(replica, UpdateFeaturesRequest(1), ADMIN).replica
        values = [record.value for record in replica.log.control_records(1)]
        assert values[0] == KRaftVersion(1)
        assert replica.voters.keys == frozenset({key(1), key(2), key(3)})

    def test_an_upgrade_without_every_voter_and_a_downgrade_are_refused(self) -> None:
        refused = ErrorCode.INVALID_UPDATE_VERSION
        assert answer_to(static_leader(), UpdateFeaturesRequest(1), ADMIN).error is refused
        assert answer_to(leader(), UpdateFeaturesRequest(0), ADMIN).error is refused
        assert answer_to(leader(), UpdateFeaturesRequest(1), ADMIN).error is ErrorCode.NONE

    def test_a_controller_that_may_join_asks_to_and_removes_its_former_disk_first(self) -> None:
        joins = replace(follower(4, 2), auto_join=True)
        assert AddVoterRequest in self._asked(joins)
        former = replace(follower(1, 2), key=ReplicaKey(1, "z" * 22), auto_join=True)
        assert RemoveVoterRequest in self._asked(former)
        for silent in (follower(4, 2), replace(joins, can_become_voter=False)):
            assert not {AddVoterRequest, RemoveVoterRequest} & self._asked(silent)

    @staticmethod
    def _asked(replica: Replica) -> set[type]:
        """What it sends once the period of looking after the voters is over."""
        assert isinstance(replica.state, Follower)
        replica = replace(replica, state=replace(replica.state, update_deadline=5))
        return {type(message.body) for message in step(replica, Tick(6)).messages}


class TestDescribeQuorum:
    def test_by_a_leader_lists_voters_and_observers(self) -> None:
        replica = ask(committed_leader(), fetch(4, 3), 4).replica
        response = answer_to(replica, DescribeQuorumRequest(), ADMIN)
        assert response.high_watermark == 3
        assert [status.key.id for status in response.voters] == [1, 2, 3]
        assert [status.key.id for status in response.observers] == [4]

    def test_by_another_is_refused(self) -> None:
        response = answer_to(follower(1, 2), DescribeQuorumRequest(), ADMIN)
        assert response.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_step_leaves_the_replica_as_it_was() -> None:
    replica = committed_leader()
    again = committed_leader()
    step(replica, AppendRecords(3))
    assert replica == again
    assert isinstance(replica.state, Leader)
