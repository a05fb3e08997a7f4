"""Checks that several requests share, and the leader that requests and responses name.

Kafka's validateVoterOnlyRequest, validateLeaderOnlyRequest, isValidVoterKey, maybeTransition and
maybeHandleCommonResponse.
"""

from __future__ import annotations

from kraft_core.protocol.errors import ErrorCode, ProtocolFault
from kraft_core.protocol.messages import CurrentLeader, Endpoints
from kraft_core.protocol.replica import Follower, Leader, Replica, Step
from kraft_core.protocol.transitions import to_follower, to_unattached
from kraft_core.raft.voters import ReplicaKey


def has_cluster_id(replica: Replica, cluster_id: str | None) -> bool:
    """A request without a cluster id passes."""
    return cluster_id is None or cluster_id == replica.cluster_id


def voter_request_error(replica: Replica, remote_id: int, epoch: int) -> ErrorCode:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch: of this epoch or a later one, from a valid replica id."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if remote_id < 0 else ErrorCode.NONE


def leader_request_error(replica: Replica, epoch: int) -> ErrorCode:
    """Fetch, FetchSnapshot, UpdateRaftVoter: of exactly the epoch that this replica leads."""
    if epoch < replica.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > replica.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(replica.state, Leader) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def is_meant_for(replica: Replica, voter: ReplicaKey | None) -> bool:
    """KIP-853: whether the request names this replica; without a directory id any of its id is meant."""
    return voter is None or (
        voter.id == replica.key.id and voter.directory_id in (None, replica.key.directory_id)
    )


def learn_leader(replica: Replica, leader_id: int | None, epoch: int, endpoints: Endpoints) -> Step:
    """Follow the leader that a message names if its epoch is later, or it or its endpoints are new.

    Raises ProtocolFault if another replica leads this epoch.
    """
    if not has_consistent_leader(replica, leader_id, epoch):
        detail = f"leader {leader_id} in epoch {epoch}, but {replica.key.id} knows {replica.leader}"
        raise ProtocolFault(detail)
    known = replica.leader
    if epoch > replica.epoch:
        if leader_id is None:
            return to_unattached(replica, epoch)
        return to_follower(replica, epoch, leader_id, endpoints)
    if leader_id is not None and (known.leader_id is None or len(endpoints) > len(known.endpoints)):
        return to_follower(replica, epoch, leader_id, endpoints)
    return Step(replica)


def has_consistent_leader(replica: Replica, leader_id: int | None, epoch: int) -> bool:
    """One leader per epoch: what a message says of the leader does not contradict what is known.

    Kafka's KafkaRaftClient.hasConsistentLeader.
    """
    if leader_id is not None and leader_id == replica.key.id:
        return isinstance(replica.state, Leader)
    known = replica.leader.leader_id
    return epoch != replica.epoch or None in (leader_id, known) or leader_id == known


def common_response(replica: Replica, error: ErrorCode, leader: CurrentLeader | None) -> tuple[Step, bool]:
    """The handling common to all responses, and whether the response's own handler has nothing left to do.

    A top-level error, without a leader, and a response of an older epoch are ignored. Of one of a later
    epoch, or one that calls this replica's epoch stale, only the leader is read. One that names the leader of
    this epoch makes this replica its follower.
    """
    if leader is None:
        return Step(replica), True
    epoch, leader_id = leader.leader_epoch, leader.leader_id
    endpoints = leader.endpoints or (replica.endpoints_of(leader_id) if leader_id is not None else ())
    stale = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if epoch < replica.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return Step(replica), True
    if epoch > replica.epoch or error in stale:
        return learn_leader(replica, leader_id, epoch, endpoints), True
    if leader_id is not None and replica.leader.leader_id is None:
        return to_follower(replica, epoch, leader_id, endpoints), error is not ErrorCode.NONE
    if error is ErrorCode.INVALID_REQUEST:
        raise ProtocolFault(f"{leader_id} called a request of {replica.key.id} invalid")
    return Step(replica), error is ErrorCode.INVALID_VOTER_KEY


def followed(replica: Replica) -> Follower | None:
    """The state of a follower or observer, None for any other role."""
    return replica.state if isinstance(replica.state, Follower) else None
