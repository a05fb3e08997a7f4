"""The log of one running quorum: sends its follower's requests, and holds what was read."""

from __future__ import annotations

import logging
import time
from collections import deque

from kraft_core.wire.errors import RefusedError, WireError
from kraft_core.wire.follower import LogFollower, LogPart, Part, Position
from kraft_core.wire.observing import MAX_FETCH_BYTES, FetchAnswer, FetchAsk, NodeAddress
from transforms.live.connection import NodeConnection
from transforms.live.options import EARLIEST, LATEST, LiveCluster
from transforms.live.parts import cut, records_in

log = logging.getLogger("kraftlake.live")
# Seconds between requests while there is no leader, at first and at most.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
# The log line about a quorum without a leader is repeated after this many seconds.
REPEATED_AFTER = 60.0


class LogReader:
    """Follows one quorum from a position. Raises RefusedError for what asking again does not change."""

    def __init__(
        self,
        cluster: LiveCluster,
        start: Position | str,
        fail_on_data_loss: bool,
        *,
        cluster_id: str | None = None,
        max_bytes: int = MAX_FETCH_BYTES,
        max_wait_ms: int = 0,
    ) -> None:
        self.cluster = cluster
        self.cluster_id = cluster_id or cluster.cluster_id
        self._max_bytes = min(max_bytes, MAX_FETCH_BYTES)
        self._max_wait_ms = max_wait_ms
        edge: Position | str = Position(int(start)) if isinstance(start, str) and start.isdecimal() else start
        assert isinstance(edge, Position) or edge in (EARLIEST, LATEST)
        self.follower = LogFollower(
            cluster.addresses,
            edge,  # pyright: ignore[reportArgumentType]
            fail_on_data_loss=fail_on_data_loss,
        )
        self.parts: deque[Part] = deque()
        self._connections: dict[NodeAddress, NodeConnection] = {}
        self._ask_again_at = 0.0
        self._said: dict[str, float] = {}

    @property
    def position(self) -> Position | None:
        """Up to where was read; None until the quorum has said where the log begins."""
        return self.follower.position if self.follower.is_located else None

    @property
    def held(self) -> int:
        """Records that were read and not passed on yet."""
        return sum(map(records_in, self.parts))

    def poll(self, wanted: int, seconds: float) -> None:
        """Read until this many records are held, or all that is committed, or the time is over."""
        give_up = time.monotonic() + seconds
        while self.held < wanted and time.monotonic() < give_up:
            now = time.monotonic()
            if now < self._ask_again_at:
                time.sleep(min(self._ask_again_at, give_up) - now)
                continue
            before = self.follower.position
            if not self._ask() and self.follower.misses == 0 and self._is_up_to_date(before):
                return

    def _is_up_to_date(self, before: Position | None) -> bool:
        position = self.follower.position
        return (
            position is not None
            and position == before
            and self.follower.leader is not None
            and (position.offset >= self.follower.high_watermark)
        )

    def _ask(self) -> bool:
        """One question and its answer. Returns whether anything was read."""
        address, ask = self.follower.ask(self._max_wait_ms, self._max_bytes)
        misses = self.follower.misses
        try:
            connection = self._connection(address)
            part = self.follower.take(ask, connection.ask(ask, self.cluster_id))
        except RefusedError:
            self.close()
            raise
        except WireError as error:
            self._drop(address)
            self.follower.failed(str(error))
            part = None
        if self.follower.misses > misses:
            self._pause()
        elif part is not None:
            self.parts.append(part)
        return part is not None

    def _connection(self, address: NodeAddress) -> NodeConnection:
        held = self._connections.get(address)
        if held is None:
            held = self._connections[address] = NodeConnection(address, self.cluster.security)
            if self.cluster_id is None:
                held.must_be_controller()
                self.cluster_id = held.cluster_id()
        return held

    def _pause(self) -> None:
        """Each node is asked at once; then the pause grows."""
        rounds = self.follower.misses // len(self.cluster.addresses)
        if rounds:
            self._ask_again_at = time.monotonic() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(rounds, 10))
            self._say(self.follower.why)

    def _say(self, why: str) -> None:
        now = time.monotonic()
        if now - self._said.get(why, -REPEATED_AFTER) >= REPEATED_AFTER:
            self._said = {why: now}
            log.warning("%s: no leader answers, retrying: %s", self.cluster.name, why)

    def cut_to(self, offset: int) -> list[Part]:
        """Take the parts up to an offset; one that goes beyond is cut at a batch's end."""
        taken: list[Part] = []
        while self.parts:
            part = self.parts[0]
            if part.end.offset <= offset:
                taken.append(self.parts.popleft())
                continue
            if isinstance(part, LogPart):
                below, above = cut(part, offset)
                if below is not None:
                    taken.append(below)
                self.parts[0] = above
            break
        return taken

    def uncommitted(self, offset: int, leader_epoch: int) -> bytes:
        """The leader's batches from an offset on, committed or not, whole except the last.

        leader_epoch: of the record below the offset. Raises WireError where it leads no more.
        """
        leader = self.follower.leader
        if leader is None or leader.address is None:
            raise WireError(f"no leader answers: {self.follower.why}")
        ask = FetchAsk(leader.leader_epoch, offset, leader_epoch, max_bytes=self._max_bytes)
        answer = self._connection(leader.address).ask(ask, self.cluster_id)
        assert isinstance(answer, FetchAnswer)
        if answer.error or answer.diverging is not None or answer.snapshot_id is not None:
            raise WireError(f"{leader.address}: node {leader.leader_id} is no longer the leader: try again")
        return answer.records

    def close(self) -> None:
        for address in list(self._connections):
            self._drop(address)

    def _drop(self, address: NodeAddress) -> None:
        held = self._connections.pop(address, None)
        if held is not None:
            held.close()
