"""What a replica does as time passes: timeouts first, then the requests of its role.

KIP-595, Leader Election (timeouts), check-quorum; KIP-853, Leader's endpoint discovery and automatic joining.
Sources of the finer points: KafkaRaftClient's poll methods.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.epochs import send_begin_quorum_epoch, send_end_quorum_epoch
from kraft_core.protocol.fetching import fetch
from kraft_core.protocol.leading import check_quorum_deadline, leader_of
from kraft_core.protocol.membership import expire_change
from kraft_core.protocol.messages import AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest
from kraft_core.protocol.records import needs_update
from kraft_core.protocol.replica import (
    Candidate,
    Follower,
    Leader,
    ParkedFetch,
    Prospective,
    Replica,
    Resigned,
    Step,
    Unattached,
    answer,
    random_below,
    send,
)
from kraft_core.protocol.snapshots import fetch_snapshot
from kraft_core.protocol.transitions import reset_update_timer, to_resigned, to_unattached
from kraft_core.protocol.voting import begin_election, lose_pre_vote, send_vote_requests


def poll(replica: Replica, now: int) -> Step:
    """Do what is due at `now`. The clock does not go back."""
    sent = tuple(request for request in replica.sent if now < request.deadline)
    timed_out = frozenset(request.destination for request in replica.sent if now >= request.deadline)
    replica = replace(replica, now=max(now, replica.now), sent=sent)
    match replica.state:
        case Unattached():
            return _poll_unattached(replica, replica.state)
        case Prospective():
            return _poll_prospective(replica, replica.state)
        case Candidate():
            return _poll_candidate(replica, replica.state)
        case Follower():
            return _poll_follower(replica, replica.state, timed_out)
        case Leader():
            return _poll_leader(replica, replica.state)
        case Resigned():
            return _poll_resigned(replica, replica.state)


def _poll_unattached(replica: Replica, state: Unattached) -> Step:
    if replica.is_voter and replica.now >= state.election_deadline:
        return begin_election(replica).then(send_vote_requests)
    return _find_leader(replica)


def _find_leader(replica: Replica) -> Step:
    """Fetch from a random bootstrap server or voter: any response names the leader."""
    candidates = sorted({*replica.bootstrap, *replica.voters.ids} - {replica.key.id})
    if not candidates or replica.sent:
        return Step(replica)
    replica, chosen = random_below(replica, len(candidates))
    return fetch(replica, candidates[chosen])


def _poll_prospective(replica: Replica, state: Prospective) -> Step:
    if replica.now >= state.election_deadline:
        return lose_pre_vote(replica)
    return send_vote_requests(replica)


def _poll_candidate(replica: Replica, state: Candidate) -> Step:
    if replica.now < state.election_deadline:
        return send_vote_requests(replica)
    if not replica.is_voter:
        return to_unattached(replica, replica.epoch + 1)
    return begin_election(replica).then(send_vote_requests)


def _poll_follower(replica: Replica, state: Follower, timed_out: frozenset[int]) -> Step:
    if replica.now >= state.fetch_deadline:
        if replica.is_voter:
            return begin_election(replica).then(send_vote_requests)
        return to_unattached(replica, state.epoch, state.leader_id)
    if replica.now >= state.update_deadline:
        step = _update_membership(replica, state)
        if step.messages:
            return step
        replica = step.replica
    if state.leader_id in timed_out:
        return _find_leader(replica)
    if replica.sent:
        return Step(replica)
    if state.fetching_snapshot is not None:
        return fetch_snapshot(replica, state)
    return fetch(replica, state.leader_id)


def _update_membership(replica: Replica, state: Follower) -> Step:
    """Send the leader what its voter set lacks of this replica, if anything."""
    request: UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest | None = None
    if replica.is_voter:
        request = _update_request(replica, state)
    elif replica.auto_join and replica.can_become_voter and replica.kraft_version > 0:
        request = _join_request(replica)
    step = Step(reset_update_timer(replica))
    return step if request is None else step.then(send, state.leader_id, request)


def _update_request(replica: Replica, state: Follower) -> UpdateVoterRequest | None:
    """With kraft.version 0 each new leader is updated once, as it keeps the entries in memory only."""
    is_due = not state.has_updated_leader
    if replica.kraft_version:
        is_due = needs_update(replica.voters, replica.as_voter)
    if not is_due:
        return None
    low, high = replica.min_supported_version, replica.max_supported_version
    return UpdateVoterRequest(replica.cluster_id, replica.epoch, replica.key, replica.endpoints, low, high)


def _join_request(replica: Replica) -> AddVoterRequest | RemoveVoterRequest:
    """Remove the entry of this id's former directory first. A response at the append is enough."""
    former = next((voter.key for voter in replica.voters if voter.key.id == replica.key.id), None)
    if former is not None:
        return RemoveVoterRequest(replica.cluster_id, former)
    timeout = replica.settings.request_timeout
    return AddVoterRequest(
        replica.cluster_id, replica.key, replica.endpoints, timeout, ack_when_committed=False
    )


def _poll_leader(replica: Replica, state: Leader) -> Step:
    """A leader resigns if no majority fetches from it (check-quorum). A sole voter is exempt."""
    is_alone = len(replica.voters) == 1 and replica.is_voter
    if not is_alone and replica.now >= state.check_quorum_deadline:
        return to_resigned(replica)
    step = expire_change(replica).then(_expire_fetches)
    if replica.now < state.begin_epoch_deadline:
        return step
    deadline = replica.now + replica.settings.fetch_timeout // 2
    later = replace(leader_of(step.replica), begin_epoch_deadline=deadline)
    if is_alone:
        later = replace(later, check_quorum_deadline=check_quorum_deadline(replica))
    step = Step(replace(step.replica, state=later), step.operations, step.messages)
    return step.then(send_begin_quorum_epoch, later)


def _expire_fetches(replica: Replica) -> Step:
    state = leader_of(replica)
    expired = [fetch for fetch in state.parked if replica.now >= fetch.deadline]
    if not expired:
        return Step(replica)
    parked = tuple(fetch for fetch in state.parked if replica.now < fetch.deadline)
    step = Step(replace(replica, state=replace(state, parked=parked)))
    for one in expired:
        step = step.then(_answer_empty, one)
    return step


def _answer_empty(replica: Replica, parked: ParkedFetch) -> Step:
    return answer(replica, parked.requester, parked.correlation_id, parked.empty)


def _poll_resigned(replica: Replica, state: Resigned) -> Step:
    """Enter the next epoch as unattached, so that no replica takes this one for its leader any longer.

    A sole voter starts an election at once.
    """
    if replica.is_voter and len(replica.voters) == 1:
        return begin_election(replica).then(send_vote_requests)
    if replica.now >= state.election_deadline:
        return to_unattached(replica, state.epoch + 1)
    return send_end_quorum_epoch(replica, state)


def resign_if_asked(replica: Replica) -> Step:
    """A leader whose own removal has committed resigns."""
    if isinstance(replica.state, Leader) and replica.state.resign_requested:
        return to_resigned(replica)
    return Step(replica)


def shut_down(replica: Replica) -> Step:
    """A leader resigns before it stops, and sends EndQuorumEpoch."""
    if not isinstance(replica.state, Leader):
        return Step(replica)
    return to_resigned(replica).then(_send_end_quorum_epoch)


def _send_end_quorum_epoch(replica: Replica) -> Step:
    return (
        send_end_quorum_epoch(replica, replica.state)
        if isinstance(replica.state, Resigned)
        else Step(replica)
    )
