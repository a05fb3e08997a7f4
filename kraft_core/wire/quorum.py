"""What a DescribeQuorum response says of a quorum (KIP-836, KIP-853)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kraft_core.columnar.timestamps import representable
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import Endpoint
from kraft_core.wire.errors import RefusedError, WireError, error_name


@dataclass(frozen=True, slots=True)
class DescribedReplica:
    """A replica as its leader knows it.

    directory_id: the zero uuid where the leader knows none. log_end_offset: exclusive; None if it has not
    fetched from this leader. last_fetch_at, last_caught_up_at: ms since the epoch, by the leader's clock;
    None if never, or if the node does not tell. Of the leader itself both are the time of the answer.
    """

    node_id: int
    directory_id: str
    is_voter: bool
    log_end_offset: int | None
    last_fetch_at: int | None
    last_caught_up_at: int | None


@dataclass(frozen=True, slots=True)
class DescribedQuorum:
    """A leader's answer. high_watermark: None while it knows none. endpoints: of the voters, by node id."""

    leader_id: int
    leader_epoch: int
    high_watermark: int | None
    replicas: tuple[DescribedReplica, ...]
    endpoints: dict[int, tuple[Endpoint, ...]]

    @property
    def leader(self) -> DescribedReplica | None:
        """Among the observers, where it has removed itself from the voters and that is not committed yet.

        Its time of the last Fetch is that of the answer: no other directory of its id has a later one.
        """
        found = (replica for replica in self.replicas if replica.node_id == self.leader_id)
        return max(found, key=lambda replica: (replica.is_voter, replica.last_fetch_at or -1), default=None)

    def lag_of(self, replica: DescribedReplica) -> int | None:
        """How many records of the leader's log a replica lacks; None where either end is not known."""
        end = None if self.leader is None else self.leader.log_end_offset
        if end is None or replica.log_end_offset is None:
            return None
        return max(0, end - replica.log_end_offset)


def described_quorum(body: dict[str, Any]) -> DescribedQuorum:
    """The quorum in the body of a DescribeQuorum response.

    Raises RefusedError where the user may not ask, WireError where the node does not lead: it then names
    leader and high watermark 0, which are none.
    """
    _must_be_answered(body["errorCode"])
    partitions = [partition for topic in body["topics"] for partition in topic["partitions"]]
    if len(partitions) != 1:
        raise WireError(f"the answer to DescribeQuorum has {len(partitions)} partitions, not one")
    (found,) = partitions
    _must_be_answered(found["errorCode"])
    replicas = [
        *(_replica(each, is_voter=True) for each in found["currentVoters"]),
        *(_replica(each, is_voter=False) for each in found["observers"]),
    ]
    endpoints = {
        node["nodeId"]: tuple(Endpoint(end["name"], end["host"], end["port"]) for end in node["listeners"])
        for node in body.get("nodes") or ()
    }
    watermark = found["highWatermark"]
    return DescribedQuorum(
        found["leaderId"],
        found["leaderEpoch"],
        watermark if watermark >= 0 else None,
        tuple(replicas),
        endpoints,
    )


def _replica(found: dict[str, Any], *, is_voter: bool) -> DescribedReplica:
    # Versions below 1 have no times, below 2 no directory ids.
    end, fetched, caught_up = (
        found.get(name, -1) for name in ("logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp")
    )
    return DescribedReplica(
        found["replicaId"],
        found.get("replicaDirectoryId") or ZERO_UUID,
        is_voter,
        end if end >= 0 else None,
        representable(fetched) if fetched >= 0 else None,
        representable(caught_up) if caught_up >= 0 else None,
    )


def _must_be_answered(code: int) -> None:
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise RefusedError(
            "the user is not authorized for DescribeQuorum: it needs Describe on resource Cluster "
            "(kafka-acls --add "
            "--allow-principal User:... --operation Describe --cluster)"
        )
    if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise WireError("the node is not the leader of the quorum")
    if code:
        raise WireError(f"the node answered DescribeQuorum with {error_name(code)}")
