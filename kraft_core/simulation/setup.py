"""What a simulated quorum starts from: its nodes, freshly formatted, and their settings."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace

from kraft_core.messages.uuid_text import uuid_text
from kraft_core.protocol.lifecycle import first_start, formatted_store
from kraft_core.protocol.messages import Endpoints
from kraft_core.protocol.replica import Replica, ReplicaConfig
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

SETTINGS = ReplicaConfig(
    election_timeout=100,
    fetch_timeout=200,
    request_timeout=100,
    fetch_max_wait=30,
    election_backoff_max=100,
    caught_up_for=10_000,
    observer_session=3_000,
    max_fetch_bytes=400,
    max_snapshot_fetch_bytes=256,
)


@dataclass(frozen=True, slots=True)
class Setup:
    """A quorum's nodes, numbered from 1: voters, observers (controllers), then brokers.

    static: kraft.version 0, the voters come from controller.quorum.voters. auto_join: an observer asks to
    become a voter. stale_voters: replicas keep a stale voter set after a truncation, as Kafka 3.9 and later
    do.
    """

    seed: int
    voters: int = 3
    observers: int = 1
    brokers: int = 0
    static: bool = False
    auto_join: bool = False
    stale_voters: bool = False

    @property
    def size(self) -> int:
        return self.voters + self.observers + self.brokers

    @property
    def cluster_id(self) -> str:
        return uuid_text(random.Random(f"{self.seed} cluster").randbytes(16))


def formatted_replica(setup: Setup, node: int, generation: int, now: int) -> Replica:
    """A node with an empty disk. generation: 0 at first, another number for each replaced disk.

    An initial voter knows the first voter set; every other node knows only its bootstrap servers.
    """
    is_first_voter = node <= setup.voters and generation == 0
    voters = _first_voters(setup)
    store = formatted_store(
        bootstrap_voters=voters if is_first_voter and not setup.static else None,
        static_voters=voters if setup.static else None,
        stale_voters=setup.stale_voters,
    )
    key = ReplicaKey(node, _directory_id(setup, node, generation))
    seed = zlib.crc32(f"{setup.seed} {node} {generation}".encode())
    replica = first_start(setup.cluster_id, key, endpoints_of(node), store, SETTINGS, seed=seed)
    return replace(
        replica,
        can_become_voter=node <= setup.voters + setup.observers,
        auto_join=setup.auto_join,
        bootstrap=tuple(range(1, setup.voters + 1)),
        now=now,
    )


def endpoints_of(node: int, port_offset: int = 0) -> Endpoints:
    return (Endpoint("CONTROLLER", f"host-{node}", 9000 + node + port_offset),)


def _first_voters(setup: Setup) -> VoterSet:
    """A static set has no directory ids, and Kafka does not know its voters' versions."""
    nodes = range(1, setup.voters + 1)
    if setup.static:
        return VoterSet.of(Voter(ReplicaKey(node), endpoints_of(node)) for node in nodes)
    return VoterSet.of(
        Voter(ReplicaKey(node, _directory_id(setup, node, 0)), endpoints_of(node), 0, 1) for node in nodes
    )


def _directory_id(setup: Setup, node: int, generation: int) -> str:
    return uuid_text(random.Random(f"{setup.seed} {node} {generation}").randbytes(16))
