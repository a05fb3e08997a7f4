"""How a replica begins: formatted, started for the first time, restarted.

KIP-853, Bootstrapping (the bootstrap checkpoint 0-0 or static voters); KIP-595, Quorum state. The epoch, the
vote and the leader are durable before any message reveals them; a replica that led its epoch restarts as
resigned in it.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.messages import Endpoints
from kraft_core.protocol.replica import (
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
)
from kraft_core.raft.emulation import EmulatedReplica, emulate, start
from kraft_core.raft.log import ReplicaLog, Snapshot
from kraft_core.raft.replay import CreateSnapshot, Restart
from kraft_core.raft.voters import ReplicaKey, VoterSet


def formatted_store(
    *, bootstrap_voters: VoterSet | None = None, static_voters: VoterSet | None = None, rewinds: bool = True
) -> EmulatedReplica:
    """An empty log, with the bootstrap checkpoint of a dynamic quorum or under a static one.

    `rewinds` False: a Kafka since 3.9, which keeps a stale voter set after some truncations.
    """
    store = start(ReplicaLog(static_voters=static_voters), rewinds=rewinds)
    if bootstrap_voters is None:
        return store
    store = emulate(store, CreateSnapshot(Snapshot(0, 0, 1, bootstrap_voters)))
    return start(store.log, rewinds=rewinds)


def first_start(
    cluster_id: str,
    key: ReplicaKey,
    endpoints: Endpoints,
    store: EmulatedReplica,
    settings: ReplicaConfig,
    *,
    seed: int,
) -> Replica:
    """A replica in epoch 0, unattached."""
    replica = Replica(cluster_id, key, endpoints, store, Unattached(0, 0), settings, random=seed)
    replica, deadline = random_election_deadline(replica)
    return replace(replica, state=Unattached(0, deadline))


def restart(replica: Replica, lost_from: int | None) -> Step:
    """Stop and start. Offsets from `lost_from` on were not flushed and are lost (None: nothing is)."""
    epoch, voted, leader = replica.epoch, replica.voted, replica.leader
    led = isinstance(replica.state, Leader | Resigned)
    stopped = replace(replica, sent=(), next_correlation_id=replica.next_correlation_id + 1)
    step = operate(stopped, Restart(lost_from))
    begun, deadline = random_election_deadline(step.replica)
    state = _initial_state(begun, epoch, voted, leader.leader_id, deadline, led=led)
    return Step(replace(begun, state=state), step.operations)


def _initial_state(
    replica: Replica, epoch: int, voted: ReplicaKey | None, leader_id: int | None, deadline: int, *, led: bool
) -> State:
    """Kafka's QuorumState.initialize."""
    if epoch < replica.log.last_epoch:
        return Unattached(replica.log.last_epoch, deadline)
    if led:
        return Resigned(epoch, deadline, frozenset(replica.voters.ids) - {replica.key.id})
    if voted == replica.key:
        votes = Votes(replica.voters).record(replica.key.id, granted=True)
        return Candidate(epoch, deadline, votes)
    endpoints = replica.endpoints_of(leader_id) if leader_id is not None else ()
    if leader_id is None or not endpoints or leader_id == replica.key.id:
        return Unattached(epoch, deadline, leader_id, voted)
    fetch_timeout = replica.settings.fetch_timeout
    return Follower(
        epoch, leader_id, endpoints, replica.now + fetch_timeout, replica.now + 3 * fetch_timeout, voted
    )
