"""Transitions between roles: what a replica keeps and what it drops.

KIP-595, Leader Election, and Kafka's QuorumState. roles.TRANSITIONS lists the transitions. Each
drops the requests in flight, as their responses concern the previous role.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.errors import ErrorCode, ProtocolFault, UnknownEndpoints
from kraft_core.protocol.messages import AddVoterResponse, Endpoints, FetchResponse, RemoveVoterResponse
from kraft_core.protocol.replica import (
    Candidate,
    Follower,
    Leader,
    PendingAdd,
    Prospective,
    Replica,
    Resigned,
    State,
    Step,
    Unattached,
    Votes,
    answer,
    operate,
    random_election_deadline,
    written,
)
from kraft_core.raft.replay import Resign
from kraft_core.raft.voters import ReplicaKey

NEVER = 1 << 62


def to_unattached(replica: Replica, epoch: int, leader_id: int | None = None) -> Step:
    """Keeps the vote within the epoch, and a running election timeout."""
    if epoch < replica.epoch:
        raise ProtocolFault(f"epoch {epoch} is behind {replica.epoch}")
    voted = replica.voted if epoch == replica.epoch else None
    replica, deadline = _unattached_deadline(replica)
    return _leave(written(replica), Unattached(epoch, deadline, leader_id, voted))


def _unattached_deadline(replica: Replica) -> tuple[Replica, int]:
    state = replica.state
    if not replica.is_voter:
        return replica, NEVER
    if isinstance(state, Candidate | Resigned) or (
        isinstance(state, Unattached) and state.election_deadline != NEVER
    ):
        return replica, state.election_deadline
    if isinstance(state, Prospective) and not state.votes.is_rejected:
        return replica, state.election_deadline
    return random_election_deadline(replica)


def to_follower(replica: Replica, epoch: int, leader_id: int, endpoints: Endpoints) -> Step:
    """Raises ProtocolFault if the epoch is behind, or this replica itself leads it."""
    if not endpoints:
        raise UnknownEndpoints(f"the endpoints of leader {leader_id} in epoch {epoch} are not known")
    if leader_id == replica.key.id:
        raise ProtocolFault(f"{leader_id} is named as its own leader in epoch {epoch}")
    if epoch < replica.epoch or (epoch == replica.epoch and isinstance(replica.state, Leader)):
        raise ProtocolFault(f"leader {leader_id} in epoch {epoch}, but this is {replica.role} in it")
    voted = replica.voted if epoch == replica.epoch else None
    fetch_deadline = replica.now + replica.settings.fetch_timeout
    update_deadline = replica.now + _update_period(replica)
    state = Follower(epoch, leader_id, endpoints, fetch_deadline, update_deadline, voted)
    return _leave(written(replica), state).then(refuse_parked_fetches)


def _update_period(replica: Replica) -> int:
    """How often a follower checks its entry in the voter set: each fetch timeout (FollowerState)."""
    return replica.settings.fetch_timeout


def reset_update_timer(replica: Replica) -> Replica:
    """The follower checks its entry in the voter set again after the update period."""
    if not isinstance(replica.state, Follower):
        return replica
    deadline = replica.now + _update_period(replica)
    return replace(replica, state=replace(replica.state, update_deadline=deadline))


def to_prospective(replica: Replica) -> Step:
    """Nothing durable changes. The replica grants itself the pre-vote."""
    voted, leader = replica.voted, replica.leader
    replica, deadline = random_election_deadline(replica)
    votes = Votes(replica.voters).record(replica.key.id, granted=True)
    return _leave(
        replica, Prospective(replica.epoch, deadline, votes, leader.leader_id, leader.endpoints, voted)
    )


def to_candidate(replica: Replica) -> Step:
    """KIP-595, Vote: the epoch rises, and the replica votes for itself."""
    replica, deadline = random_election_deadline(replica)
    votes = Votes(replica.voters).record(replica.key.id, granted=True)
    return _leave(written(replica), Candidate(replica.epoch + 1, deadline, votes))


def to_resigned(replica: Replica) -> Step:
    """The leader will ask the other voters to elect a successor, preferably the one furthest ahead."""
    if not isinstance(replica.state, Leader):
        raise ProtocolFault("only a leader resigns")
    successors = replica.state.progress.followers_by_end_offset()
    epoch = replica.epoch
    others = frozenset(replica.voters.ids) - {replica.key.id}
    replica, deadline = random_election_deadline(replica)
    return refuse_parked_fetches(replica).then(_leave, Resigned(epoch, deadline, others, successors))


def vote_for(replica: Replica, candidate: ReplicaKey) -> Step:
    """The vote is durable before it is sent; the election timeout restarts.

    Raises ProtocolFault for a candidate with the replica's own id: another directory of it (QuorumState).
    """
    if not isinstance(replica.state, Unattached | Prospective):
        raise ProtocolFault(f"a {replica.role} does not vote")
    if candidate.id == replica.key.id:
        raise ProtocolFault(f"{replica.key} is asked to vote for {candidate}, which has its id")
    voter, deadline = random_election_deadline(written(replica))
    if isinstance(replica.state, Prospective):
        votes = Votes(replica.voters).record(replica.key.id, granted=True)
        state = replace(replica.state, voted=candidate, election_deadline=deadline, votes=votes)
        return Step(replace(voter, state=state))
    return Step(replace(voter, state=replace(replica.state, voted=candidate, election_deadline=deadline)))


def _leave(replica: Replica, state: State) -> Step:
    """Enter a role other than leader; a leader fails a pending voter change first.

    A leader that resigns drops the high watermark; one superseded by another leader keeps it.
    """
    step = Step(replica)
    if isinstance(replica.state, Leader):
        step = _fail_pending_change(replica, replica.state)
        if isinstance(state, Resigned):
            step = step.then(operate, Resign())
    return step.leaving(replace(step.replica, state=state, sent=()))


def refuse_parked_fetches(replica: Replica) -> Step:
    """Answer the parked fetches NOT_LEADER_OR_FOLLOWER, with the leader that the replica names now.

    A leader that resigns still names itself, one that follows another names that one; one that is unattached
    first lets them wait for a leader or for their deadline.
    """
    step = Step(replace(replica, parked=()))
    for parked in replica.parked:
        response = FetchResponse(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, replica.leader, log_start_offset=replica.log.start_offset
        )
        step = step.then(answer, parked.requester, parked.correlation_id, response)
    return step


def _fail_pending_change(replica: Replica, leader: Leader) -> Step:
    """Answer its requester NOT_LEADER_OR_FOLLOWER.

    The change itself may be in the log, and may commit under a later leader.
    """
    step = Step(replica)
    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    pending = leader.pending
    if pending is None or (isinstance(pending, PendingAdd) and pending.is_answered):
        return step
    response = (
        AddVoterResponse(error, "") if isinstance(pending, PendingAdd) else RemoveVoterResponse(error, "")
    )
    return step.then(answer, pending.requester, pending.correlation_id, response)
