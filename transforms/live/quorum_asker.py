"""The state of one running quorum, as reported by its leader or a broker that asks it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from kraft_core.wire.errors import ClosedError, NoClusterIdError, RefusedError, SilentError, WireError
from kraft_core.wire.observing import NodeAddress
from kraft_core.wire.quorum import DescribedQuorum
from transforms.live.connection import NodeConnection
from transforms.live.options import LiveCluster


@dataclass(frozen=True, slots=True)
class QuorumSample:
    """What the leader answered. asked_at, answered_at: ms since the epoch, by this machine's clock.

    cluster_id: None if it was not given and the node does not tell it.
    """

    cluster_id: str | None
    answered_by: NodeAddress
    asked_at: int
    answered_at: int
    quorum: DescribedQuorum


class QuorumAsker:
    """Asks one address after another, first the one that answered last; its connection stays open.

    silent: those that did not answer in time when they were asked last.
    """

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster
        self.cluster_id = cluster.cluster_id
        self._addresses = list(cluster.addresses)
        self._connection: NodeConnection | None = None
        self._may_ask_id = True
        self.silent: set[NodeAddress] = set()

    def sample(self) -> QuorumSample:
        """The quorum now. Raises RefusedError; WireError where no address has an answer of a leader."""
        why: list[str] = []
        for address in list(self._addresses):
            self.silent.discard(address)
            try:
                found = self._sample(address)
            except RefusedError:
                self.close()
                raise
            except WireError as error:
                self.close()
                why.append(str(error))
                self.silent |= {address} if isinstance(error, SilentError) else set()
            else:
                self._addresses.remove(address)
                self._addresses.insert(0, address)
                return found
        raise WireError("no leader answers: " + "; ".join(why))

    def _sample(self, address: NodeAddress) -> QuorumSample:
        """Ask one node, once more if it had closed the connection: a restarted or an idle one's is closed."""
        held = self._connection
        if held is not None and held.address == address:
            try:
                return self._asked(held)
            except ClosedError:
                pass
        self.close()
        self._connection = NodeConnection(address, self.cluster.security)
        if self.cluster_id is not None:
            self._connection.must_be_of(self.cluster_id)
        return self._asked(self._connection)

    def _asked(self, connection: NodeConnection) -> QuorumSample:
        self._learn_id(connection)
        asked_at = _now_ms()
        quorum = connection.describe_quorum()
        return QuorumSample(self.cluster_id, connection.address, asked_at, _now_ms(), quorum)

    def _learn_id(self, connection: NodeConnection) -> None:
        if self.cluster_id is None and self._may_ask_id:
            try:
                self.cluster_id = connection.cluster_id()
            except NoClusterIdError:
                return
            except RefusedError:
                self._may_ask_id = False

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
