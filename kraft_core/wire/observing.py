"""The bodies of an anonymous observer's requests, and what their responses say.

No request has a replica id or a directory id: an id >= 0 makes the leader list the sender as a replica, and a
voter's id commits records (KIP-595, Fetch).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraft_core.addresses import address_text
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.epochs import EpochEnd
from kraft_core.wire.apis import MAX_INT64, METADATA_TOPIC, METADATA_TOPIC_ID
from kraft_core.wire.errors import RefusedError, WireError, error_name

# The leader bounds its answer by this: a batch that is larger comes whole.
MAX_FETCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return address_text(self.host, self.port)


@dataclass(frozen=True, slots=True)
class KnownLeader:
    """The leader that a node names; leader_id None: it knows none, or not where it listens (address None)."""

    leader_id: int | None
    leader_epoch: int
    address: NodeAddress | None = None


@dataclass(frozen=True, slots=True)
class FetchAsk:
    """A Fetch. last_fetched_epoch: of the record below fetch_offset. high_watermark: the known one, or -1."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int = -1
    max_wait_ms: int = 0
    max_bytes: int = MAX_FETCH_BYTES

    def body(self, version: int, cluster_id: str | None) -> dict[str, Any]:
        partition: dict[str, Any] = {
            "partition": 0,
            "currentLeaderEpoch": self.current_leader_epoch,
            "fetchOffset": self.fetch_offset,
            "lastFetchedEpoch": self.last_fetched_epoch,
            "partitionMaxBytes": self.max_bytes,
        }
        if version >= 18:
            partition["highWatermark"] = self.high_watermark if self.high_watermark >= 0 else MAX_INT64
        return {
            "clusterId": cluster_id,
            "maxWaitMs": self.max_wait_ms,
            "maxBytes": self.max_bytes,
            "topics": [{"topicId": METADATA_TOPIC_ID, "partitions": [partition]}],
        }


# Any node answers this epoch with the leader's own.
WHO_LEADS = FetchAsk(current_leader_epoch=0, fetch_offset=0, last_fetched_epoch=0)

ANOTHER_CLUSTER = "the node belongs to another cluster than the one being followed: check the addresses"


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """What a node answered to a Fetch. high_watermark, log_start_offset: -1 for unknown.

    records: whole batches, but for the last, which may be cut.
    """

    error: int
    leader: KnownLeader
    high_watermark: int = -1
    log_start_offset: int = -1
    records: bytes = b""
    diverging: EpochEnd | None = None
    snapshot_id: EpochEnd | None = None


@dataclass(frozen=True, slots=True)
class SnapshotAsk:
    """A FetchSnapshot. position: bytes that are there already."""

    current_leader_epoch: int
    snapshot_id: EpochEnd
    position: int
    max_bytes: int = MAX_FETCH_BYTES

    def body(self, cluster_id: str | None) -> dict[str, Any]:
        snapshot_id = {"endOffset": self.snapshot_id.end_offset, "epoch": self.snapshot_id.leader_epoch}
        partition = {
            "partition": 0,
            "currentLeaderEpoch": self.current_leader_epoch,
            "snapshotId": snapshot_id,
            "position": self.position,
        }
        topic = {"name": METADATA_TOPIC, "partitions": [partition]}
        return {"clusterId": cluster_id, "maxBytes": self.max_bytes, "topics": [topic]}


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    """A piece of a snapshot of size_bytes, from `position` on; error: any but NONE says nothing more."""

    error: int
    size_bytes: int = 0
    position: int = 0
    piece: bytes = b""


QUORUM_BODY: dict[str, Any] = {
    "topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]
}


def fetch_answer(body: dict[str, Any]) -> FetchAnswer:
    """The answer in the body of a Fetch response. Raises RefusedError, WireError."""
    _must_be_allowed(body["errorCode"], "Fetch")
    partition = _only_partition(body, "responses", "Fetch")
    leader = partition["currentLeader"]
    addresses = {node["nodeId"]: NodeAddress(node["host"], node["port"]) for node in body["nodeEndpoints"]}
    leader_id = leader["leaderId"]
    diverging, snapshot_id = partition["divergingEpoch"], partition["snapshotId"]
    return FetchAnswer(
        partition["errorCode"],
        KnownLeader(leader_id if leader_id >= 0 else None, leader["leaderEpoch"], addresses.get(leader_id)),
        partition["highWatermark"],
        partition["logStartOffset"],
        partition["records"] or b"",
        _epoch_end(diverging) if diverging["endOffset"] >= 0 else None,
        _epoch_end(snapshot_id) if snapshot_id["endOffset"] >= 0 else None,
    )


def _epoch_end(value: dict[str, Any]) -> EpochEnd:
    return EpochEnd(value["endOffset"], value["epoch"])


def snapshot_answer(body: dict[str, Any]) -> SnapshotAnswer:
    """The answer in the body of a FetchSnapshot response. Raises RefusedError, WireError.

    Every released controller answers each fault with a top-level UNKNOWN_SERVER_ERROR and no partition.
    """
    code = body["errorCode"]
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        return SnapshotAnswer(code)
    _must_be_allowed(code, "FetchSnapshot")
    partition = _only_partition(body, "topics", "FetchSnapshot")
    if partition["errorCode"]:
        return SnapshotAnswer(partition["errorCode"])
    return SnapshotAnswer(
        ErrorCode.NONE, partition["size"], partition["position"], partition["unalignedRecords"]
    )


def _only_partition(body: dict[str, Any], topics: str, name: str) -> dict[str, Any]:
    partitions = [partition for topic in body[topics] for partition in topic["partitions"]]
    if len(partitions) != 1:
        raise WireError(f"the answer to {name} has {len(partitions)} partitions, not one")
    return partitions[0]


def _must_be_allowed(code: int, name: str) -> None:
    """Raises RefusedError for a top-level error that stays, WireError for another."""
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise RefusedError(
            f"the user is not authorized for {name}: it needs ClusterAction on resource Cluster "
            f"(kafka-acls --add "
            "--allow-principal User:... --operation ClusterAction --cluster); see docs/live.md"
        )
    if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
        raise RefusedError(ANOTHER_CLUSTER)
    if code:
        raise WireError(f"the node answered {name} with {error_name(code)}")
