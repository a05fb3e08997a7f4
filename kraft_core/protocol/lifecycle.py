"""How a replica begins: formatted, started for the first time, restarted.

KIP-853, Bootstrapping (the bootstrap checkpoint 0-0 or static voters); KIP-595, Quorum state. The epoch, the
vote and the leader are durable before any message reveals them; a replica that led its epoch restarts as
resigned in it.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.messages import Endpoints
from kraft_core.protocol.replica import (
    NO_VOTERS,
    Candidate,
    Follower,
    Leader,
    Replica,
    ReplicaConfig,
    Resigned,
    State,
    Step,
    Unattached,
    Votes,
    operate,
    random_election_deadline,
    written,
)
from kraft_core.protocol.voting import has_voted_for
from kraft_core.raft.emulation import EmulatedReplica, emulate, read_anew, start
from kraft_core.raft.log import ReplicaLog, Snapshot
from kraft_core.raft.replay import CreateSnapshot, Restart
from kraft_core.raft.voters import ReplicaKey, VoterSet


def formatted_store(
    *,
    bootstrap_voters: VoterSet | None = None,
    static_voters: VoterSet | None = None,
    stale_voters: bool = False,
) -> EmulatedReplica:
    """An empty log, with the bootstrap checkpoint of a dynamic quorum or under a static one.

    stale_voters: of a Kafka since 3.9, which keeps a stale voter set after some truncations.
    """
    store = start(ReplicaLog(static_voters=static_voters), rewinds=not stale_voters, forgets=stale_voters)
    if bootstrap_voters is None:
        return store
    return read_anew(emulate(store, CreateSnapshot(Snapshot(0, 0, 1, bootstrap_voters))))


def first_start(
    cluster_id: str,
    key: ReplicaKey,
    endpoints: Endpoints,
    store: EmulatedReplica,
    settings: ReplicaConfig,
    *,
    seed: int,
) -> Replica:
    """A replica in epoch 0, unattached. A sole voter is elected with its first tick.

    With static voters these are its bootstrap servers, until the caller names others.
    """
    static = (store.log.static_voters or NO_VOTERS).ids
    replica = Replica(
        cluster_id, key, endpoints, store, Unattached(0, 0), settings, bootstrap=static, random=seed
    )
    replica, deadline = _first_deadline(replica)
    return written(replace(replica, state=Unattached(0, deadline)))


def _first_deadline(replica: Replica) -> tuple[Replica, int]:
    """A sole voter does not wait for others when it starts."""
    after, deadline = random_election_deadline(replica)
    return after, replica.now if replica.is_only_voter else deadline


def restart(replica: Replica, lost_from: int | None) -> Step:
    """Stop and start. Offsets from `lost_from` on were not flushed and are lost (None: nothing is)."""
    epoch, voted, leader = replica.epoch, durable_vote(replica), replica.leader
    led = isinstance(replica.state, Leader | Resigned)
    stopped = replace(replica, sent=(), parked=(), next_correlation_id=replica.next_correlation_id + 1)
    step = operate(stopped, Restart(lost_from))
    begun, deadline = _first_deadline(step.replica)
    state = _initial_state(begun, epoch, voted, leader.leader_id, deadline, led=led)
    return Step(written(replace(begun, state=state)), step.operations)


def durable_vote(replica: Replica) -> ReplicaKey | None:
    """The vote as quorum-state has it: version 0 knows no directory ids (KIP-853, Quorum state)."""
    voted = replica.voted
    if voted is None or replica.quorum_state_voters is None:
        return voted
    return ReplicaKey(voted.id)


def _initial_state(
    replica: Replica, epoch: int, voted: ReplicaKey | None, leader_id: int | None, deadline: int, *, led: bool
) -> State:
    """Kafka's QuorumState.initialize.

    A sole voter that led becomes a candidate before it does anything else, so it is not a resigned leader.
    """
    if epoch < replica.log.last_epoch:
        return Unattached(replica.log.last_epoch, deadline)
    if led and replica.is_only_voter:
        return Unattached(epoch, deadline, replica.key.id)
    if led:
        return Resigned(epoch, deadline, frozenset(replica.voters.ids) - {replica.key.id})
    if voted is not None and has_voted_for(voted, replica.key):
        votes = Votes(replica.voters).record(replica.key.id, granted=True)
        return Candidate(epoch, deadline, votes)
    endpoints = replica.endpoints_of(leader_id) if leader_id is not None else ()
    if leader_id is None or not endpoints or leader_id == replica.key.id:
        return Unattached(epoch, deadline, leader_id, voted)
    update_deadline = replica.now + replica.settings.fetch_timeout
    fetch_deadline = deadline if replica.is_only_voter else update_deadline
    return Follower(epoch, leader_id, endpoints, fetch_deadline, update_deadline, voted)
