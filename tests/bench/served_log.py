"""A log as a leader serves it to observers: whole, or committed at a steady rate."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import Any

from kraft_core.format.batch import read_header
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.protocol.errors import ErrorCode
from kraft_core.wire.apis import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FETCH,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
)
from tests.transforms.live.loopback import served_versions

LEADER = 1
SERVED = (API_VERSIONS.key, DESCRIBE_CLUSTER.key, FETCH.key, DESCRIBE_QUORUM.key)
NEWEST_FETCH = (0, 18)


class ServedLog:
    """A segment from offset 0 on, as the only controller of a quorum answers; for transforms.live.loopback.

    a_second: records committed in a second since the start, by whole batches; None: all are committed.
    """

    def __init__(self, segment: Path, cluster_id: str, a_second: float | None = None) -> None:
        self.cluster_id = cluster_id
        self.lock = threading.Lock()
        self.asked: list[tuple[str, int]] = []
        self.port = 0
        self._content = segment.read_bytes()
        self._a_second = a_second
        self.began = time.time()
        # Of each batch where it begins in the segment and its end offset, exclusive.
        self._starts: list[int] = []
        self.ends: list[int] = []
        position = 0
        while position < len(self._content):
            header = read_header(self._content, position)
            self._starts.append(position)
            self.ends.append(header.next_offset)
            self.epoch = header.leader_epoch
            position = header.end

    def begin(self, port: int) -> None:
        """From now on records are committed."""
        self.port, self.began = port, time.time()

    def committed_at(self, offset: int) -> float:
        """When the batch of an offset was committed, in seconds since the epoch."""
        end = self.ends[bisect_right(self.ends, offset)]
        return self.began if self._a_second is None else self.began + end / self._a_second

    def serves(self, node: int, key: int) -> bool:
        return node == LEADER and key in SERVED

    def answer(self, node: int, key: int, body: dict[str, Any]) -> dict[str, Any]:
        if key == API_VERSIONS.key:
            return served_versions(NEWEST_FETCH)
        if key == DESCRIBE_CLUSTER.key:
            return {"clusterId": self.cluster_id}
        return self._described(node) if key == DESCRIBE_QUORUM.key else self._fetched(body)

    def _committed(self) -> int:
        """How many batches are."""
        if self._a_second is None:
            return len(self.ends)
        return bisect_right(self.ends, (time.time() - self.began) * self._a_second)

    def _watermark(self, batches: int) -> int:
        return self.ends[batches - 1] if batches else 0

    def _fetched(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["topics"][0]["partitions"][0]
        one: dict[str, Any] = {
            "currentLeader": {"leaderId": LEADER, "leaderEpoch": self.epoch},
            "logStartOffset": 0,
            "abortedTransactions": None,
        }
        if asked["currentLeaderEpoch"] != self.epoch:
            one["errorCode"] = int(ErrorCode.FENCED_LEADER_EPOCH)
        else:
            first = bisect_right(self.ends, asked["fetchOffset"])
            last = self._batches_up_to(first, asked["partitionMaxBytes"], body["maxWaitMs"])
            one["highWatermark"] = self._watermark(self._committed())
            starts = [*self._starts[first : last + 1], len(self._content)]
            one["records"] = self._content[starts[0] : starts[last - first]]
        topic = {"topicId": METADATA_TOPIC_ID, "partitions": [one]}
        node = {"nodeId": LEADER, "host": "127.0.0.1", "port": self.port}
        return {"responses": [topic], "nodeEndpoints": [node]}

    def _batches_up_to(self, first: int, most_bytes: int, wait_ms: int) -> int:
        """The end of the batches to send, waited for: at least one, if one is committed."""
        give_up = time.monotonic() + wait_ms / 1000
        while (committed := self._committed()) <= first and time.monotonic() < give_up:
            time.sleep(0.001)
        if committed <= first:
            return first
        fitting = bisect_right(self._starts, self._starts[first] + most_bytes) - 1
        return max(first + 1, min(fitting, committed))

    def _described(self, node: int) -> dict[str, Any]:
        end = self._watermark(self._committed())
        now = time.time_ns() // 1_000_000
        replica = {
            "replicaId": LEADER,
            "replicaDirectoryId": ZERO_UUID,
            "logEndOffset": end,
            "lastFetchTimestamp": now,
            "lastCaughtUpTimestamp": now,
        }
        one = {
            "leaderId": LEADER,
            "leaderEpoch": self.epoch,
            "highWatermark": end,
            "currentVoters": [replica],
            "observers": [],
        }
        listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": self.port}
        nodes = [{"nodeId": node, "listeners": [listener]}]
        return {"topics": [{"topicName": METADATA_TOPIC, "partitions": [one]}], "nodes": nodes}
