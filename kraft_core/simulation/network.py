"""The network between simulated replicas: it delays, loses, doubles and reorders messages, and partitions."""

from __future__ import annotations

import zlib
from heapq import heappop, heappush

from kraft_core.protocol.messages import RaftMessage
from kraft_core.simulation.actions import Loss, NetworkPartition

ADMIN = -1  # the source of requests that an operator's tool sends; always reachable


class Network:
    """Messages in flight. Each one's fate follows from the seed and its number in the run."""

    def __init__(self, seed: int) -> None:
        self.partition = NetworkPartition(0)
        self.loss = Loss(0, 0)
        self.number = 0  # of the last message, admin request or replaced disk
        self._seed = seed
        self._in_flight: list[tuple[int, int, RaftMessage]] = []

    def next_number(self) -> int:
        self.number += 1
        return self.number

    @property
    def next_arrival(self) -> int | None:
        """The tick at which the next message arrives."""
        return self._in_flight[0][0] if self._in_flight else None

    def send(self, message: RaftMessage, now: int) -> None:
        if message.destination == ADMIN:
            return
        for copy in range(2):
            number = self.next_number()
            chance = zlib.crc32(f"{self._seed} {number}".encode())
            lost, doubled, delay = chance % 100, chance // 100 % 100, 1 + chance // 10_000 % 12
            if chance // 1_000_000 % 50 == 0:
                delay *= 10
            if lost >= self.loss.lost:
                heappush(self._in_flight, (now + delay, number, message))
            if copy or doubled >= self.loss.doubled:
                return

    def receive(self) -> RaftMessage | None:
        """Take the next message; None if a partition separates its source from its destination."""
        message = heappop(self._in_flight)[2]
        return None if self._are_separated(message.source, message.destination) else message

    def _are_separated(self, one: int, other: int) -> bool:
        if ADMIN in (one, other):
            return False
        mask = self.partition.mask
        return (mask >> one & 1) != (mask >> other & 1)
