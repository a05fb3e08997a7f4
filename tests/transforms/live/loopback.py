"""Nodes on loopback in Kafka's frames; a simulated quorum, every node of which answers by the engine."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from kraft_core.format.codec import read_message, write_message
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.replica import FetchTimes, Leader
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.voters import Endpoint
from kraft_core.simulation.directories import START_TIME
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.wire.apis import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FETCH,
    FETCH_SNAPSHOT,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
)
from kraft_core.wire.observing import FetchAsk, SnapshotAsk
from tests.kraft_core.wire.simulated import APIS, fetch_answer, snapshot_answer

_BY_KEY = {api.key: api for api in APIS}


class LoopbackQuorum:
    """A quorum whose nodes' endpoints are ports of this machine. Hold `lock` to act on it.

    asked: what came, as (API name, version). without: keys of APIs that the nodes do not serve. starting: the
    nodes that have not read their metadata yet.
    """

    def __init__(self, quorum: SimulatedQuorum) -> None:
        self.quorum = quorum
        self.lock = threading.Lock()
        self.asked: list[tuple[str, int]] = []
        self.without: set[int] = set()
        self.starting: set[int] = set()
        self.fetch_versions = (0, 18)
        self.connections: set[socket.socket] = set()

    def hang_up(self) -> None:
        """Every node closes its connections."""
        with self.lock:
            for connection in self.connections:
                connection.shutdown(socket.SHUT_RDWR)
            self.connections.clear()

    def serves(self, node: int, key: int) -> bool:
        """A node that is down has closed its connections."""
        return node not in self.quorum.down and key not in self.without

    def answer(self, node: int, key: int, body: dict[str, Any]) -> dict[str, Any]:
        if key == API_VERSIONS.key:
            return served_versions(self.fetch_versions, self.without)
        if key == DESCRIBE_CLUSTER.key:
            # A broker, which is asked for brokers' endpoints.
            if FETCH_SNAPSHOT.key in self.without and body["endpointType"] == 1:
                return {"clusterId": self.quorum.setup.cluster_id}
            if FETCH_SNAPSHOT.key in self.without:
                return {"errorCode": ErrorCode.MISMATCHED_ENDPOINT_TYPE, "clusterId": ""}
            if node in self.starting:
                return {"errorCode": ErrorCode.UNSUPPORTED_VERSION, "clusterId": ""}
            return {"clusterId": self.quorum.setup.cluster_id}
        replica = self.quorum.replicas[node]
        if key == DESCRIBE_QUORUM.key:
            return self._described(replica)
        partition = body["topics"][0]["partitions"][0]
        if key == FETCH.key:
            if body["clusterId"] not in (None, self.quorum.setup.cluster_id):
                return {"errorCode": ErrorCode.INCONSISTENT_CLUSTER_ID, "responses": [], "nodeEndpoints": []}
            return self._fetched(replica, partition)
        assert key == FETCH_SNAPSHOT.key
        snapshot_id = EpochEnd(partition["snapshotId"]["endOffset"], partition["snapshotId"]["epoch"])
        found = snapshot_answer(
            replica, SnapshotAsk(partition["currentLeaderEpoch"], snapshot_id, partition["position"])
        )
        if found.error:
            return {"errorCode": found.error}
        one = {
            "snapshotId": partition["snapshotId"],
            "size": found.size_bytes,
            "position": found.position,
            "unalignedRecords": found.piece,
        }
        return {"topics": [{"name": METADATA_TOPIC, "partitions": [one]}]}

    def _fetched(self, replica: Any, partition: dict[str, Any]) -> dict[str, Any]:
        ask = FetchAsk(
            partition["currentLeaderEpoch"], partition["fetchOffset"], partition["lastFetchedEpoch"]
        )
        found = fetch_answer(self.quorum, replica, ask)
        leader = found.leader
        one: dict[str, Any] = {
            "errorCode": int(found.error),
            "highWatermark": found.high_watermark,
            "logStartOffset": found.log_start_offset,
            "currentLeader": {
                "leaderId": -1 if leader.leader_id is None else leader.leader_id,
                "leaderEpoch": leader.leader_epoch,
            },
            "records": found.records,
            "abortedTransactions": None,
        }
        for name, end in (("divergingEpoch", found.diverging), ("snapshotId", found.snapshot_id)):
            if end is not None:
                one[name] = {"endOffset": end.end_offset, "epoch": end.leader_epoch}
        nodes = []
        if leader.address is not None and leader.leader_id is not None:
            nodes = [{"nodeId": leader.leader_id, "host": leader.address.host, "port": leader.address.port}]
        topic = {"topicId": METADATA_TOPIC_ID, "partitions": [one]}
        return {"responses": [topic], "nodeEndpoints": nodes}

    def _described(self, replica: Any) -> dict[str, Any]:
        """As Kafka's LeaderState: the leader itself has no progress but its log."""
        if not isinstance(replica.state, Leader):
            one: dict[str, Any] = {"errorCode": ErrorCode.NOT_LEADER_OR_FOLLOWER, "currentVoters": []}
            return {"topics": [{"topicName": METADATA_TOPIC, "partitions": [one]}], "nodes": []}
        progress = replica.state.progress
        one = {
            "leaderId": replica.key.id,
            "leaderEpoch": replica.epoch,
            "highWatermark": -1 if progress.high_watermark is None else progress.high_watermark,
            "currentVoters": [self._described_as(replica, each) for each in progress.voters],
            "observers": [self._described_as(replica, each) for each in progress.observers],
        }
        nodes = [
            {
                "nodeId": node,
                "listeners": [{"name": each.name, "host": each.host, "port": each.port}],
            }
            for node, voter in self.quorum.replicas.items()
            for each in voter.endpoints
        ]
        return {"topics": [{"topicName": METADATA_TOPIC, "partitions": [one]}], "nodes": nodes}

    def _described_as(self, leader: Any, progress: Any) -> dict[str, Any]:
        """Of the leader itself both times are now."""
        key, now = progress.key, self.quorum.now
        times = dict(leader.state.fetch_times).get(key, FetchTimes())
        end = progress.end_offset
        if key.id == leader.key.id:
            times, end = FetchTimes(now, now), leader.log.end_offset
        return {
            "replicaId": key.id,
            "replicaDirectoryId": key.directory_id or ZERO_UUID,
            "logEndOffset": -1 if end is None else end,
            "lastFetchTimestamp": _time(times.last_fetch_at),
            "lastCaughtUpTimestamp": _time(times.last_caught_up_at),
        }


def served_versions(fetch: tuple[int, int], without: Collection[int] = ()) -> dict[str, Any]:
    """The answer to ApiVersions of a node that serves these versions of Fetch, and is without some APIs."""
    limits = {FETCH.key: fetch, DESCRIBE_QUORUM.key: (0, 2)}
    versions = {key: limits.get(key, (0, 4)) for key in _BY_KEY if key not in without}
    return {
        "apiKeys": [
            {"apiKey": key, "minVersion": least, "maxVersion": most}
            for key, (least, most) in versions.items()
        ]
    }


def _time(tick: int) -> int:
    return START_TIME + tick if tick >= 0 else -1


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        served: Any = self.server
        held = served.held
        with held.lock:
            served.connections.add(self.request)
        while prefix := self._bytes(4):
            frame = self._bytes(*struct.unpack(">i", prefix))
            key, version, correlation_id, size = struct.unpack_from(">hhih", frame)
            api = _BY_KEY[key]
            start = 10 + size + (1 if api.request.flexible else 0)
            body, end = read_message(api.request, version, frame, start)
            assert end == len(frame)
            with held.lock:
                held.asked.append((api.name, version))
                if not held.serves(served.node, key):
                    return
                answer = held.answer(served.node, key, body)
            header = struct.pack(">i", correlation_id)
            header += b"\0" if api.response.flexible and not api.bare_header else b""
            content = header + write_message(api.response, version, answer)
            self.request.sendall(struct.pack(">i", len(content)) + content)

    def _bytes(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self.request.recv(size - len(found))
            if not more:
                return b""
            found += more
        return found


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    held: Any
    node: int
    connections: set[socket.socket]


@contextmanager
def listening(held: Any, node: int, connections: set[socket.socket] | None = None) -> Iterator[int]:
    """A node that answers by held.answer() if held.serves() what it is asked. Gives its port.

    connections: to which those that are opened are added.
    """
    server = _Server(("127.0.0.1", 0), _Handler)
    server.held, server.node = held, node
    server.connections = set() if connections is None else connections
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def loopback(quorum: SimulatedQuorum) -> Iterator[LoopbackQuorum]:
    """The quorum's nodes listen until the end."""
    held = LoopbackQuorum(quorum)
    with ExitStack() as stack:
        for node in list(quorum.replicas):
            port = stack.enter_context(listening(held, node, held.connections))
            endpoint = Endpoint("CONTROLLER", "127.0.0.1", port)
            quorum.replicas[node] = replace(quorum.replicas[node], endpoints=(endpoint,))
        yield held


def controllers(held: LoopbackQuorum) -> str:
    endpoints = [replica.endpoints[0] for replica in held.quorum.replicas.values()]
    return ",".join(f"{endpoint.host}:{endpoint.port}" for endpoint in endpoints)
