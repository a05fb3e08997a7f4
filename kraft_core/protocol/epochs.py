"""BeginQuorumEpoch and EndQuorumEpoch: new leaders announce themselves, resigning ones name successors.

KIP-595, BeginQuorumEpoch and EndQuorumEpoch; KIP-853 adds the voter's key, directory ids and endpoints.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.checks import (
    common_response,
    followed,
    has_cluster_id,
    is_meant_for,
    learn_leader,
    voter_request_error,
)
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.leading import acknowledged, times_of
from kraft_core.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    RaftMessage,
)
from kraft_core.protocol.replica import Leader, Replica, Resigned, Step, respond, send
from kraft_core.raft.voters import ReplicaKey


def handle_begin_quorum_epoch(
    replica: Replica, message: RaftMessage, request: BeginQuorumEpochRequest
) -> Step:
    """Follow the new leader, even if the request meant another directory of this id."""
    if not has_cluster_id(replica, request.cluster_id):
        return respond(replica, message, BeginQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID))
    error = voter_request_error(replica, request.leader_id, request.leader_epoch)
    if error is not ErrorCode.NONE:
        return respond(replica, message, BeginQuorumEpochResponse(error, replica.leader))
    endpoints = request.leader_endpoints or replica.endpoints_of(request.leader_id)
    step = learn_leader(replica, request.leader_id, request.leader_epoch, endpoints)
    if not is_meant_for(replica, request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    return step.then(respond, message, BeginQuorumEpochResponse(error, step.replica.leader))


def begin_epoch_period(replica: Replica) -> int:
    """Ticks between two rounds of BeginQuorumEpoch: half a fetch timeout (Kafka's LeaderState)."""
    return replica.settings.fetch_timeout // 2


def send_begin_quorum_epoch(replica: Replica, state: Leader) -> Step:
    """To every other voter that has not fetched within the period: it may have been isolated or replaced."""
    step = Step(replica)
    for voter in replica.voters:
        fetched_at = times_of(state, voter.key).last_fetch_at
        if fetched_at >= 0 and replica.now - fetched_at < begin_epoch_period(replica):
            continue
        request = BeginQuorumEpochRequest(
            replica.cluster_id, voter.key, replica.key.id, state.epoch, replica.endpoints
        )
        step = step.then(send, voter.key.id, request)
    return step


def handle_begin_quorum_epoch_response(
    replica: Replica, message: RaftMessage, response: BeginQuorumEpochResponse
) -> Step:
    step, done = common_response(replica, response.error, response.leader)
    if done or response.error is not ErrorCode.NONE or not isinstance(step.replica.state, Leader):
        return step
    return step.leaving(acknowledged(step.replica, message.source))


def handle_end_quorum_epoch(replica: Replica, message: RaftMessage, request: EndQuorumEpochRequest) -> Step:
    """A follower of that leader starts an election, sooner or later by its rank among the successors."""
    if not has_cluster_id(replica, request.cluster_id):
        return respond(replica, message, EndQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID))
    error = voter_request_error(replica, request.leader_id, request.leader_epoch)
    if error is not ErrorCode.NONE:
        return respond(replica, message, EndQuorumEpochResponse(error, replica.leader))
    endpoints = request.leader_endpoints or replica.endpoints_of(request.leader_id)
    step = learn_leader(replica, request.leader_id, request.leader_epoch, endpoints)
    state = followed(step.replica)
    if state and state.leader_id == request.leader_id:
        deadline = replica.now + _backoff(replica, request.preferred_candidates)
        step = step.leaving(replace(step.replica, state=replace(state, fetch_deadline=deadline)))
    return step.then(respond, message, EndQuorumEpochResponse(ErrorCode.NONE, step.replica.leader))


def _backoff(replica: Replica, candidates: tuple[ReplicaKey, ...]) -> int:
    """0 for the first successor, then doubling; a replica that is not named waits longest."""
    longest = replica.settings.election_backoff_max
    places = [place for place, candidate in enumerate(candidates) if is_meant_for(replica, candidate)]
    if not places:
        return longest if candidates else 0
    if places[0] == 0:
        return 0
    return min(longest, (longest >> (len(candidates) - 1)) << (places[0] - 1))


def send_end_quorum_epoch(replica: Replica, state: Resigned) -> Step:
    """To the voters that have not acknowledged the resignation."""
    step = Step(replica)
    for voter_id in sorted(state.unacknowledged & frozenset(replica.voters.ids)):
        request = EndQuorumEpochRequest(
            replica.cluster_id, replica.key.id, state.epoch, state.preferred_successors
        )
        step = step.then(send, voter_id, request)
    return step


def handle_end_quorum_epoch_response(
    replica: Replica, message: RaftMessage, response: EndQuorumEpochResponse
) -> Step:
    step, done = common_response(replica, response.error, response.leader)
    state = step.replica.state
    if done or response.error is not ErrorCode.NONE or not isinstance(state, Resigned):
        return step
    state = replace(state, unacknowledged=state.unacknowledged - {message.source})
    return step.leaving(replace(step.replica, state=state))
