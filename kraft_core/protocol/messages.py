"""The raft requests and responses as values, each with the KIP section that defines it.

A response without a `leader` is a top-level error: the receiver did not process the partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.batches import Batch
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import Endpoint, ReplicaKey

Endpoints = tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class CurrentLeader:
    """The leader that the sender of a response knows; `endpoints` is empty if it knows none."""

    leader_id: int | None
    leader_epoch: int
    endpoints: Endpoints = ()


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """KIP-595, Vote; KIP-853 adds both directory ids, KIP-996 `pre_vote`. `voter` None: unknown."""

    cluster_id: str | None
    voter: ReplicaKey | None
    replica: ReplicaKey
    replica_epoch: int
    last_epoch: int
    last_offset: int
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class VoteResponse:
    error: ErrorCode
    leader: CurrentLeader | None = None
    vote_granted: bool = False


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    """KIP-595, BeginQuorumEpoch; KIP-853 adds the voter's key and the leader's endpoints."""

    cluster_id: str | None
    voter: ReplicaKey | None
    leader_id: int
    leader_epoch: int
    leader_endpoints: Endpoints = ()


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochResponse:
    error: ErrorCode
    leader: CurrentLeader | None = None


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    """KIP-595, EndQuorumEpoch; `preferred_candidates` best first, with directory ids since KIP-853."""

    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaKey, ...] = ()
    leader_endpoints: Endpoints = ()


@dataclass(frozen=True, slots=True)
class EndQuorumEpochResponse:
    error: ErrorCode
    leader: CurrentLeader | None = None


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """KIP-595, Fetch; KIP-853 adds the directory id. A negative replica id is a consumer.

    `high_watermark` is the one the sender knows (-1: none): a leader with a higher one answers at once
    (KIP-1166).
    """

    cluster_id: str | None
    replica: ReplicaKey
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    high_watermark: int = -1
    max_wait: int = 0
    max_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """`diverging_epoch`: truncate to it first; `snapshot_id`: fetch that snapshot first."""

    error: ErrorCode
    leader: CurrentLeader | None = None
    high_watermark: int = -1
    log_start_offset: int = -1
    batches: tuple[Batch, ...] = ()
    diverging_epoch: EpochEnd | None = None
    snapshot_id: EpochEnd | None = None


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest:
    """KIP-630, FetchSnapshot; KIP-853 adds the directory id. `position`: bytes already fetched."""

    cluster_id: str | None
    replica: ReplicaKey
    current_leader_epoch: int
    snapshot_id: EpochEnd
    position: int
    max_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse:
    """`slice_bytes` from `position` of a snapshot of `size_bytes`; `snapshot`: its content."""

    error: ErrorCode
    leader: CurrentLeader | None = None
    snapshot_id: EpochEnd | None = None
    size_bytes: int = 0
    position: int = 0
    slice_bytes: int = 0
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class AddVoterRequest:
    """KIP-853, AddRaftVoter. `ack_when_committed` false (version 1): the response follows the append."""

    cluster_id: str | None
    voter: ReplicaKey
    endpoints: Endpoints
    timeout: int = 0
    ack_when_committed: bool = True


@dataclass(frozen=True, slots=True)
class AddVoterResponse:
    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveVoterRequest:
    """KIP-853, RemoveRaftVoter."""

    cluster_id: str | None
    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class RemoveVoterResponse:
    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateVoterRequest:
    """KIP-853, UpdateRaftVoter: a voter sends the leader its endpoints and kraft.versions (inclusive)."""

    cluster_id: str | None
    current_leader_epoch: int
    voter: ReplicaKey
    endpoints: Endpoints
    min_supported_version: int
    max_supported_version: int


@dataclass(frozen=True, slots=True)
class UpdateVoterResponse:
    error: ErrorCode
    leader: CurrentLeader | None = None


@dataclass(frozen=True, slots=True)
class DescribeQuorumRequest:
    """KIP-595, DescribeQuorum; version 2 by KIP-853."""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """One row of DescribeQuorum; ticks of the leader's clock, -1: unknown."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_at: int
    last_caught_up_at: int


@dataclass(frozen=True, slots=True)
class DescribeQuorumResponse:
    """Kafka's response has no list of committed voters (KIP-853 has one)."""

    error: ErrorCode
    leader: CurrentLeader | None = None
    high_watermark: int = -1
    voters: tuple[ReplicaStatus, ...] = ()
    observers: tuple[ReplicaStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateFeaturesRequest:
    """KIP-853, UpdateFeatures: finalize a level of kraft.version."""

    kraft_version: int
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class UpdateFeaturesResponse:
    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest:
    """KIP-853, AddRaftVoter, step 4: the leader asks the new voter for its kraft.versions."""


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse:
    error: ErrorCode
    min_supported_version: int = 0
    max_supported_version: int = 0


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | DescribeQuorumRequest
    | UpdateFeaturesRequest
    | ApiVersionsRequest
)
Response = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | AddVoterResponse
    | RemoveVoterResponse
    | UpdateVoterResponse
    | DescribeQuorumResponse
    | UpdateFeaturesResponse
    | ApiVersionsResponse
)


@dataclass(frozen=True, slots=True)
class RaftMessage:
    """A request or response in flight. A response has the `correlation_id` of its request."""

    source: int
    destination: int
    correlation_id: int
    body: Request | Response
