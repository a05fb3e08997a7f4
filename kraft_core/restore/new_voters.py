"""The voters of a restored quorum: their directories, their listener, and how they are recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kraft_core.evidence.facts import Capture
from kraft_core.image.brokers import Broker
from kraft_core.image.controllers import Controller
from kraft_core.image.tables import BROKERS, CONTROLLERS
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kraft_core.restore.checkpoint import UnwritableError, level_of
from kraft_core.restore.replay import ReplayedLog
from kraft_core.restore.request import NewVoter, RestoreRequest

KRAFT_VERSION_FEATURE = "kraft.version"
# metadata.version 3.9-IV0.
KRAFT_VERSION_LEVEL = 21


def kraft_version(log: ReplayedLog, request: RestoreRequest) -> int:
    """The level that is asked for, where every registered broker supports it. Raises UnwritableError."""
    asked = log.kraft_version if request.kraft_version is None else request.kraft_version
    if asked == log.kraft_version:
        return asked
    if asked < log.kraft_version:
        raise UnwritableError(f"kraft.version is {log.kraft_version} and never decreases")
    if level_of(log.image) < KRAFT_VERSION_LEVEL:
        raise UnwritableError(f"kraft.version {asked} needs metadata.version {KRAFT_VERSION_LEVEL} (3.9-IV0)")
    brokers: list[Broker] = [broker for _, broker in log.image.tables.items(BROKERS)]
    for broker in brokers:
        ranges = [f for f in broker.features if f.name == KRAFT_VERSION_FEATURE]
        if not any(f.min_supported_version <= asked <= f.max_supported_version for f in ranges):
            raise UnwritableError(f"broker {broker.broker_id} does not support kraft.version {asked}")
    return asked


def listener(log: ReplayedLog) -> str:
    """The name of the controllers' listener by the voters, else by the registrations of controllers."""
    names = {e.name for voter in log.voters or () for e in voter.endpoints}
    if not names:
        controllers: list[Controller] = [c for _, c in log.image.tables.items(CONTROLLERS)]
        names = {point.name for controller in controllers for point in controller.endpoints}
    if len(names) != 1:
        found = f"it may be {' or '.join(sorted(names))}" if names else "the captures do not show it"
        raise UnwritableError(f"give the controllers' listener (--listener NAME): {found}")
    return names.pop()


def registered(log: ReplayedLog, node: int) -> Broker | None:
    return log.image.tables.get(BROKERS, (node,))


def placed_voter(
    voter: NewVoter, request: RestoreRequest, log: ReplayedLog, captures: Iterable[Capture]
) -> NewVoter:
    """The voter with its directory id: of a node that is a broker, too, that of its metadata.log.dir.

    With another id its partitions would stay without a leader, as they name the old directory. On a new disk
    that bears the old id, a broker would lead without its messages. So its directory must be captured. Raises
    UnwritableError.
    """
    broker = registered(log, voter.id)
    if broker is None:
        return voter
    if voter.id in request.gone | request.lost_brokers:
        raise UnwritableError(f"the disk of node {voter.id} is gone: give the controller another id")
    held = {c.directory_id for c in captures if c.node_id == voter.id} & set(broker.log_dirs)
    if len(held) != 1:
        raise UnwritableError(
            f"node {voter.id} is registered as a broker, and which of its directories holds the metadata log "
            "is not known: capture it, or give the controller another id"
        )
    return replace(voter, directory_id=held.pop())


def voters_of(voters: Iterable[NewVoter], listener: str) -> VoterSet:
    return VoterSet.of(
        Voter(
            ReplicaKey(voter.id, voter.directory_id),
            (Endpoint(listener, voter.host, voter.port),),
            min_supported_version=0,
            max_supported_version=1,
        )
        for voter in voters
    )
