"""Replicas for tests: a quorum of voters 1 to n in a given role, and what a step answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kraft_core.protocol.leading import become_leader
from kraft_core.protocol.lifecycle import first_start, formatted_store
from kraft_core.protocol.messages import Endpoints, FetchRequest, RaftMessage, Request
from kraft_core.protocol.replica import Replica, ReplicaConfig, Step
from kraft_core.protocol.step import Event, Received, step
from kraft_core.protocol.transitions import to_candidate, to_follower, to_prospective, to_unattached
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

CLUSTER_ID = "cluster-of-the-test-00"
SETTINGS = ReplicaConfig(election_timeout=100, fetch_timeout=200, request_timeout=100, fetch_max_wait=30)
ADMIN = -1


def key(node: int) -> ReplicaKey:
    return ReplicaKey(node, f"directory-of-node-{node:04}"[:22])


def endpoints(node: int) -> Endpoints:
    return (Endpoint("CONTROLLER", f"host-{node}", 9000 + node),)


def voter_set(*nodes: int) -> VoterSet:
    return VoterSet.of(Voter(key(node), endpoints(node), 0, 1) for node in nodes)


def unattached(node: int, voters: tuple[int, ...] = (1, 2, 3), epoch: int = 0) -> Replica:
    store = formatted_store(bootstrap_voters=voter_set(*voters))
    replica = first_start(CLUSTER_ID, key(node), endpoints(node), store, SETTINGS, seed=node)
    replica = replace(replica, now=1, bootstrap=voters)
    return to_unattached(replica, epoch).replica if epoch else replica


def prospective(node: int) -> Replica:
    return to_prospective(unattached(node, epoch=1)).replica


def candidate(node: int, voters: tuple[int, ...] = (1, 2, 3)) -> Replica:
    return to_candidate(to_prospective(unattached(node, voters)).replica).replica


def follower(node: int, leader_id: int, voters: tuple[int, ...] = (1, 2, 3)) -> Replica:
    return to_follower(unattached(node, voters), 1, leader_id, endpoints(leader_id)).replica


def leader(node: int = 1, voters: tuple[int, ...] = (1, 2, 3)) -> Replica:
    return become_leader(candidate(node, voters), frozenset(voters[:2])).replica


def static_leader(node: int = 1) -> Replica:
    """Leads a quorum with kraft.version 0."""
    voters = VoterSet.of(Voter(ReplicaKey(one), endpoints(one)) for one in (1, 2, 3))
    store = formatted_store(static_voters=voters)
    replica = replace(first_start(CLUSTER_ID, key(node), endpoints(node), store, SETTINGS, seed=node), now=1)
    return become_leader(to_candidate(replica).replica, frozenset({1, 2})).replica


def ask(replica: Replica, request: Request, source: int = 2) -> Step:
    return step(replica, Received(RaftMessage(source, replica.key.id, 7, request)))


def answer_to(replica: Replica, request: Request, source: int = 2) -> Any:
    """The response that leaves at once."""
    bodies = [
        message.body for message in ask(replica, request, source).messages if message.destination == source
    ]
    assert len(bodies) == 1
    return bodies[0]


def after(replica: Replica, *events: Event) -> Replica:
    for event in events:
        replica = step(replica, event).replica
    return replica


def fetch(of: int, offset: int, last_epoch: int = 1, epoch: int = 1, **more: int) -> FetchRequest:
    return FetchRequest(CLUSTER_ID, key(of), epoch, offset, last_epoch, **more)


def committed_leader(voters: tuple[int, ...] = (1, 2, 3)) -> Replica:
    """A leader of epoch 1 whose start of epoch, offsets 0 to 2, has committed."""
    replica = leader(1, voters)
    for node in voters[1:]:
        replica = ask(replica, fetch(node, 3), node).replica
    assert replica.log.known_high_watermark == 3
    return replica
