"""A simulated quorum that answers an observer, by the engine and with real bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.messages import FetchRequest, FetchResponse, RaftMessage
from kraft_core.protocol.replica import Leader, Replica
from kraft_core.protocol.step import Received, step
from kraft_core.raft.batches import Batch
from kraft_core.raft.voters import ReplicaKey
from kraft_core.simulation.directories import START_TIME, batch_bytes, snapshot_bytes
from kraft_core.simulation.network import ADMIN
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.wire import apis
from kraft_core.wire.apis import Api
from kraft_core.wire.errors import WireError
from kraft_core.wire.follower import LogFollower, Part
from kraft_core.wire.observing import (
    FetchAnswer,
    FetchAsk,
    KnownLeader,
    NodeAddress,
    SnapshotAnswer,
    SnapshotAsk,
)

# Every request that an observer sends, with its response.
APIS = tuple(held for held in vars(apis).values() if isinstance(held, Api))

ANONYMOUS = ReplicaKey(-1)


def address_of(replica: Replica) -> NodeAddress:
    endpoint = replica.endpoints[0]
    return NodeAddress(endpoint.host, endpoint.port)


def bootstrap(quorum: SimulatedQuorum) -> list[NodeAddress]:
    return [address_of(replica) for replica in quorum.replicas.values()]


def node_at(quorum: SimulatedQuorum, address: NodeAddress) -> Replica:
    """Raises WireError where nobody listens."""
    for node, replica in quorum.replicas.items():
        if address_of(replica) == address and node not in quorum.down:
            return replica
    raise WireError(f"{address}: nobody listens")


def answer(
    quorum: SimulatedQuorum, address: NodeAddress, ask: FetchAsk | SnapshotAsk
) -> FetchAnswer | SnapshotAnswer:
    replica = node_at(quorum, address)
    if isinstance(ask, SnapshotAsk):
        return snapshot_answer(replica, ask)
    return fetch_answer(quorum, replica, ask)


def fetch_answer(quorum: SimulatedQuorum, replica: Replica, ask: FetchAsk) -> FetchAnswer:
    request = FetchRequest(
        quorum.setup.cluster_id,
        ANONYMOUS,
        ask.current_leader_epoch,
        ask.fetch_offset,
        ask.last_fetched_epoch,
        ask.high_watermark,
    )
    outcome = step(replica, Received(RaftMessage(ADMIN, replica.key.id, 1, request)))
    # An anonymous Fetch leaves no trace.
    assert outcome.replica == replace(replica, next_correlation_id=outcome.replica.next_correlation_id)
    (message,) = outcome.messages
    body = message.body
    assert isinstance(body, FetchResponse)
    return FetchAnswer(
        body.error,
        known_leader(quorum, body),
        body.high_watermark,
        body.log_start_offset,
        b"".join(batch_bytes(batch, START_TIME + _tick(quorum, batch)) for batch in body.batches),
        body.diverging_epoch,
        body.snapshot_id,
    )


def _tick(quorum: SimulatedQuorum, batch: Batch) -> int:
    return quorum.appended_at.get((batch.base_offset, batch.leader_epoch), 0)


def known_leader(quorum: SimulatedQuorum, body: FetchResponse) -> KnownLeader:
    leader = body.leader
    if leader is None or leader.leader_id is None:
        return KnownLeader(None, leader.leader_epoch if leader else 0)
    replica = quorum.replicas[leader.leader_id]
    return KnownLeader(leader.leader_id, leader.leader_epoch, address_of(replica))


def snapshot_answer(replica: Replica, ask: SnapshotAsk) -> SnapshotAnswer:
    """As a released controller: every fault is the same error."""
    held = {snapshot.id: snapshot for snapshot in replica.log.snapshots}
    leads = isinstance(replica.state, Leader) and replica.epoch == ask.current_leader_epoch
    if not leads or ask.snapshot_id not in held:
        return SnapshotAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
    content = snapshot_bytes(held[ask.snapshot_id], START_TIME, START_TIME)
    piece = content[ask.position : ask.position + 70]
    return SnapshotAnswer(ErrorCode.NONE, len(content), ask.position, piece)


def poll(quorum: SimulatedQuorum, follower: LogFollower, asks: int) -> Iterator[Part]:
    """What a follower reads with so many requests."""
    for _ in range(asks):
        address, ask = follower.ask()
        try:
            part = follower.take(ask, answer(quorum, address, ask))
        except WireError as error:
            if type(error) is not WireError:
                raise
            follower.failed(str(error))
            continue
        if part is not None:
            yield part
