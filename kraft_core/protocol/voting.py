"""Vote and elections: who is granted a vote, and who has won.

KIP-595, Vote; KIP-996, pre-vote; KIP-853, Vote (directory ids; only the addressed voter grants).
In Kafka's code, unlike the KIPs: a replica that is not a voter grants votes, too, as it may have missed the
VotersRecord that made it one; a follower refuses every vote but a pre-vote before its first successful fetch.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.checks import (
    common_response,
    has_cluster_id,
    is_meant_for,
    voter_request_error,
)
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.leading import become_leader
from kraft_core.protocol.messages import RaftMessage, VoteRequest, VoteResponse
from kraft_core.protocol.replica import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Replica,
    Resigned,
    Step,
    Unattached,
    respond,
    send,
)
from kraft_core.protocol.transitions import (
    to_candidate,
    to_follower,
    to_prospective,
    to_unattached,
    vote_for,
)
from kraft_core.raft.voters import ReplicaKey


def handle_vote(replica: Replica, message: RaftMessage, request: VoteRequest) -> Step:
    """Answer a nominee. A vote is durable before the response is sent."""
    if not has_cluster_id(replica, request.cluster_id):
        return respond(replica, message, VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID))
    error = _request_error(replica, request)
    if error is not ErrorCode.NONE:
        return respond(replica, message, VoteResponse(error, replica.leader))
    step = Step(replica)
    if request.replica_epoch > replica.epoch:
        step = to_unattached(replica, request.replica_epoch)
    if not is_meant_for(replica, request.voter):
        return _answer(step, message, ErrorCode.INVALID_VOTER_KEY, granted=False)
    granted = can_grant(step.replica, request)
    if granted and not request.pre_vote and step.replica.voted is None:
        step = step.then(vote_for, request.replica)
    return _answer(step, message, ErrorCode.NONE, granted=granted)


def _answer(step: Step, message: RaftMessage, error: ErrorCode, *, granted: bool) -> Step:
    return step.then(respond, message, VoteResponse(error, step.replica.leader, granted))


def _request_error(replica: Replica, request: VoteRequest) -> ErrorCode:
    """A candidate's epoch is above its log's; a prospective replica has not raised its own yet."""
    ahead = request.last_epoch - request.replica_epoch
    if (
        request.last_offset < 0
        or request.last_epoch < 0
        or ahead > 0
        or (ahead == 0 and not request.pre_vote)
    ):
        return ErrorCode.INVALID_REQUEST
    return voter_request_error(replica, request.replica.id, request.replica_epoch)


def can_grant(replica: Replica, request: VoteRequest) -> bool:
    """Whether a replica in this role and epoch grants the vote or pre-vote (EpochState.canGrantVote)."""
    up_to_date = log_is_up_to_date(replica, request)
    match replica.state:
        case Leader():
            return False
        case Follower():
            return request.pre_vote and up_to_date and not replica.state.has_fetched
        case Candidate() | Resigned():
            return request.pre_vote and up_to_date
        case Unattached() | Prospective():
            if request.pre_vote:
                return up_to_date
            if replica.state.voted is not None:
                return has_voted_for(replica.state.voted, request.replica)
            return replica.state.leader_id is None and up_to_date


def log_is_up_to_date(replica: Replica, request: VoteRequest) -> bool:
    """Whether the nominee's log is at least as up to date as this replica's (Raft, election restriction).

    The later last epoch wins; of equal epochs, the greater log end offset.
    """
    own = replica.log_end
    return (request.last_epoch, request.last_offset) >= (own.leader_epoch, own.end_offset)


def has_voted_for(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    """One vote per epoch: a replica that has voted grants its vote to the same candidate only, again."""
    return voted.id == candidate.id and voted.directory_id in (None, candidate.directory_id)


def handle_vote_response(replica: Replica, message: RaftMessage, response: VoteResponse) -> Step:
    """Count a response. UNSUPPORTED_VERSION is a Kafka without pre-vote: become a candidate."""
    if response.error is ErrorCode.UNSUPPORTED_VERSION and isinstance(replica.state, Prospective):
        return _become_candidate(replica)
    step, done = common_response(replica, response.error, response.leader)
    state = step.replica.state
    if done or response.error is not ErrorCode.NONE or not isinstance(state, Prospective | Candidate):
        return step
    votes = state.votes.record(message.source, granted=response.vote_granted)
    counted = replace(step.replica, state=replace(state, votes=votes))
    return step.leaving(counted).then(advance_election)


def begin_election(replica: Replica) -> Step:
    """A timeout has passed without a leader: become prospective."""
    return to_prospective(replica).then(advance_election)


def _become_candidate(replica: Replica) -> Step:
    return to_candidate(replica).then(advance_election)


def advance_election(replica: Replica) -> Step:
    """Advance with a granted majority; a prospective replica that cannot win steps back at once."""
    state = replica.state
    if isinstance(state, Prospective) and state.votes.has_granted_majority:
        return _become_candidate(replica)
    if isinstance(state, Candidate) and state.votes.has_granted_majority:
        return become_leader(replica, state.votes.granted)
    if isinstance(state, Prospective) and state.votes.is_rejected:
        return lose_pre_vote(replica)
    return Step(replica)


def lose_pre_vote(replica: Replica) -> Step:
    """Follow the known leader again, else become unattached."""
    leader = replica.leader
    if leader.leader_id is not None and leader.endpoints:
        return to_follower(replica, replica.epoch, leader.leader_id, leader.endpoints)
    return to_unattached(replica, replica.epoch, leader.leader_id)


def send_vote_requests(replica: Replica) -> Step:
    """To every voter that has not answered, as long as the election can be won."""
    step = Step(replica)
    state = replica.state
    if not isinstance(state, Prospective | Candidate) or state.votes.is_rejected:
        return step
    end = replica.log_end
    for voter in state.votes.outstanding:
        request = VoteRequest(
            replica.cluster_id,
            voter,
            replica.key,
            replica.epoch,
            end.leader_epoch,
            end.end_offset,
            isinstance(state, Prospective),
        )
        step = step.then(send, voter.id, request)
    return step
