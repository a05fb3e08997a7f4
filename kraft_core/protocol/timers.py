"""What a replica does as time passes: timeouts first, then the requests of its role.

KIP-595, Leader Election (timeouts), check-quorum; KIP-853, Leader's endpoint discovery and automatic joining.
Sources of the finer points: KafkaRaftClient's poll methods.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.epochs import (
    begin_epoch_period,
    send_begin_quorum_epoch,
    send_end_quorum_epoch,
)
from kraft_core.protocol.fetching import fetch
from kraft_core.protocol.leading import leader_of
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
    is_in_flight,
    random_below,
    send,
)
from kraft_core.protocol.snapshots import fetch_snapshot
from kraft_core.protocol.transitions import reset_update_timer, to_resigned, to_unattached
from kraft_core.protocol.voting import (
    advance_election,
    begin_election,
    lose_pre_vote,
    send_vote_requests,
)


def poll(replica: Replica, now: int) -> Step:
    """Do what is due at `now`. The clock does not go back."""
    sent = tuple(request for request in replica.sent if now < request.deadline)
    timed_out = frozenset(request.destination for request in replica.sent if now >= request.deadline)
    replica = replace(replica, now=max(now, replica.now), sent=sent)
    return _poll_role(replica, timed_out).then(_expire_fetches)


def _poll_role(replica: Replica, timed_out: frozenset[int]) -> Step:
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
    """Fetch from a random bootstrap server: any response names the leader. It does not ask itself."""
    candidates = sorted({*replica.bootstrap} - {replica.key.id})
    if not candidates or replica.sent:
        return Step(replica)
    replica, chosen = random_below(replica, len(candidates))
    return fetch(replica, candidates[chosen])


def _poll_prospective(replica: Replica, state: Prospective) -> Step:
    if replica.now >= state.election_deadline:
        return lose_pre_vote(replica)
    return send_vote_requests(replica)


def _poll_candidate(replica: Replica, state: Candidate) -> Step:
    if state.votes.has_granted_majority:  # a sole voter that voted for itself, restarted
        return advance_election(replica)
    if replica.now < state.election_deadline:
        return send_vote_requests(replica)
    if not replica.is_voter:
        return to_unattached(replica, replica.epoch + 1)
    return begin_election(replica).then(send_vote_requests)


def _poll_follower(replica: Replica, state: Follower, timed_out: frozenset[int]) -> Step:
    if replica.is_voter and replica.now >= state.fetch_deadline:
        return begin_election(replica).then(send_vote_requests)
    if replica.now >= state.update_deadline:
        request = _membership_request(replica, state)
        if request is not None:
            return _send_membership_request(replica, state.leader_id, request)
        if replica.is_voter:
            replica = reset_update_timer(replica)
    if state.leader_id in timed_out:
        return _find_leader(replica)
    if replica.sent:
        return Step(replica)
    if state.fetching_snapshot is not None:
        return fetch_snapshot(replica, state)
    return fetch(replica, state.leader_id)


def _membership_request(
    replica: Replica, state: Follower
) -> UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest | None:
    """What the leader's voter set lacks of this replica, if anything."""
    if replica.is_voter:
        return _update_request(replica, state)
    if replica.auto_join and replica.can_become_voter and replica.kraft_version > 0:
        return _join_request(replica)
    return None


def _send_membership_request(
    replica: Replica, leader_id: int, request: UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest
) -> Step:
    """Once the leader has answered what is in flight; until then nothing else is sent to it."""
    if is_in_flight(replica, leader_id):
        return Step(replica)
    return send(reset_update_timer(replica), leader_id, request)


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
    """A leader resigns if no majority fetches from it (check-quorum).

    A set of one voter is exempt, also where the leader was removed from it.
    """
    if len(replica.voters) > 1 and replica.now >= state.check_quorum_deadline:
        return to_resigned(replica)
    step = expire_change(replica)
    if replica.now < state.begin_epoch_deadline:
        return step
    deadline = replica.now + begin_epoch_period(replica)
    later = replace(leader_of(step.replica), begin_epoch_deadline=deadline)
    return step.leaving(replace(step.replica, state=later)).then(send_begin_quorum_epoch, later)


def _expire_fetches(replica: Replica) -> Step:
    """In any role: what a leader parked and no leader has refused since gets its empty response."""
    expired = [fetch for fetch in replica.parked if replica.now >= fetch.deadline]
    parked = tuple(fetch for fetch in replica.parked if replica.now < fetch.deadline)
    step = Step(replace(replica, parked=parked))
    for one in expired:
        step = step.then(_answer_empty, one)
    return step


def _answer_empty(replica: Replica, parked: ParkedFetch) -> Step:
    return answer(replica, parked.requester, parked.correlation_id, parked.empty)


def _poll_resigned(replica: Replica, state: Resigned) -> Step:
    """Enter the next epoch as unattached, so that no replica takes this one for its leader any longer."""
    if replica.now >= state.election_deadline:
        return to_unattached(replica, state.epoch + 1)
    return send_end_quorum_epoch(replica, state)


def request_resignation(replica: Replica, epoch: int) -> Step:
    """The controller gives up leading `epoch`; an epoch that it led before is ignored.

    Raises ValueError for an epoch that is negative, later than the replica's, or led by another (Kafka's
    RaftClient.resign).
    """
    if epoch < 0 or epoch > replica.epoch:
        raise ValueError(f"{replica.key.id} cannot resign from epoch {epoch}, it is in epoch {replica.epoch}")
    if epoch < replica.epoch:
        return Step(replica)
    if replica.leader.leader_id != replica.key.id:
        raise ValueError(f"{replica.key.id} cannot resign from epoch {epoch}, which it does not lead")
    if not isinstance(replica.state, Leader):
        return Step(replica)
    return Step(replace(replica, state=replace(replica.state, resign_requested=True)))


def resign_if_asked(replica: Replica) -> Step:
    """A leader resigns if its controller asked for it, or if its own removal has committed."""
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
