"""DescribeQuorum's answers in each version; the error is read before the fields."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_core.format.codec import read_message, write_message
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import Endpoint
from kraft_core.wire.apis import DESCRIBE_QUORUM
from kraft_core.wire.errors import RefusedError, WireError
from kraft_core.wire.quorum import DescribedReplica, described_quorum

DIRECTORY = "W2N5H0bZRWKUKp1L8lnoTA"


def body(version: int, top: int = 0, **partition: Any) -> dict[str, Any]:
    """As it comes from the wire."""
    voter: dict[str, Any] = {"replicaId": 1, "logEndOffset": 9}
    silent = {"replicaId": 2, "logEndOffset": -1}
    one = {"leaderId": 1, "leaderEpoch": 4, "highWatermark": 8, "currentVoters": [voter, silent]} | partition
    made: dict[str, Any] = {"errorCode": top, "topics": [{"topicName": "t", "partitions": [one]}]}
    if version >= 1:
        voter |= {"lastFetchTimestamp": 1000, "lastCaughtUpTimestamp": 900}
    if version >= 2:
        voter["replicaDirectoryId"] = DIRECTORY
        listeners = [{"name": "CONTROLLER", "host": "h1", "port": 40_000}]
        made["nodes"] = [{"nodeId": 1, "listeners": listeners}]
    written = write_message(DESCRIBE_QUORUM.response, version, made)
    found, end = read_message(DESCRIBE_QUORUM.response, version, written)
    assert end == len(written)
    return found


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version(version: int) -> None:
    found = described_quorum(body(version))
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 4, 8)
    times = (1000, 900) if version else (None, None)
    directory = DIRECTORY if version == 2 else ZERO_UUID
    assert found.replicas == (
        DescribedReplica(1, directory, True, 9, *times),
        DescribedReplica(2, ZERO_UUID, True, None, None, None),
    )
    assert found.leader == found.replicas[0]
    assert found.endpoints == ({1: (Endpoint("CONTROLLER", "h1", 40_000),)} if version == 2 else {})


def test_a_leader_that_removed_itself_is_an_observer() -> None:
    """It leads until that is committed. Its time is the answer's; another directory of its id fetches."""
    voter = {"replicaId": 2, "logEndOffset": 5}
    other, leader = ({"replicaId": 1, "logEndOffset": 9, "lastFetchTimestamp": at} for at in (900, 1000))
    found = described_quorum(body(2, currentVoters=[voter], observers=[other, leader]))
    assert found.leader == found.replicas[2]
    assert found.lag_of(found.replicas[0]) == 4


def test_a_leader_that_knows_no_high_watermark() -> None:
    assert described_quorum(body(2, highWatermark=-1)).high_watermark is None


@pytest.mark.parametrize("version", [0, 2])
def test_errors_come_first(version: int) -> None:
    """A node that does not lead names leader and high watermark 0, which are none."""
    with pytest.raises(WireError, match="is not the leader of the quorum"):
        described_quorum(body(version, errorCode=ErrorCode.NOT_LEADER_OR_FOLLOWER, highWatermark=0))
    with pytest.raises(WireError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        described_quorum(body(version, errorCode=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with pytest.raises(RefusedError, match="it needs Describe on resource Cluster"):
        described_quorum(body(version, top=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


def test_an_absurd_clock_is_within_the_tables() -> None:
    voter = {"replicaId": 1, "logEndOffset": 9, "lastFetchTimestamp": (1 << 63) - 1}
    (found,) = described_quorum(body(2, currentVoters=[voter])).replicas
    assert found.last_fetch_at == 253_402_300_799_999
