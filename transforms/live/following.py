"""Running quorums read into spools concurrently."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kraft_core.wire.errors import LostHistoryError, RefusedError, WireError
from kraft_core.wire.observing import NodeAddress
from transforms.live.connection import NodeConnection
from transforms.live.log_reader import LogReader
from transforms.live.options import EARLIEST, LiveCluster
from transforms.live.quorum_asker import QuorumAsker
from transforms.live.spool import Spool

log = logging.getLogger("kraftlake.live")
# Clusters that are read at the same time.
THREADS = 16
# Seconds that a cluster without a leader is waited for.
PATIENCE = 5.0
_EVERYTHING = 1 << 62


class FollowedCluster:
    """One quorum, and its folder below `root`. refused: what a person has to change, None for nothing.

    is_behind: whether there is more to read at once.
    """

    def __init__(self, cluster: LiveCluster, root: Path) -> None:
        self.cluster = cluster
        self.refused: str | None = None
        self.is_behind = False
        self._root = root
        self._asker = QuorumAsker(cluster)
        self._reader: LogReader | None = None
        self._spool: Spool | None = None
        self._said: str | None = None

    def read(self, seconds: float) -> None:
        """Ask for the quorum once, and read all that it has committed, or for so long. Raises OSError."""
        self.is_behind = False
        try:
            self._read(time.monotonic() + seconds)
        except RefusedError as error:
            self.close()
            self.refused = f"{error}{self._advice(error)}"
            self._say(f"refused, retrying: {self.refused}")
        except WireError as error:
            self._say(f"no leader answers, retrying: {error}")
        else:
            self.refused = self._said = None

    def _read(self, give_up: float) -> None:
        sample = self._asker.sample()
        if self._spool is None:
            self._spool = Spool(self._root, sample.cluster_id or self._told_id(sample.answered_by))
        reader = self._reader or self._opened(self._spool)
        self._reader = reader
        answers_until = min(give_up, time.monotonic() + PATIENCE)
        while True:
            reader.poll(1, 1.0)
            parts = reader.cut_to(_EVERYTHING)
            for part in parts:
                self._spool.add(part)
            position, follower = reader.position, reader.follower
            if follower.leader is None or follower.high_watermark < 0 or position is None:
                if time.monotonic() > answers_until:
                    raise WireError(follower.why)
            elif position.offset >= follower.high_watermark:
                break
            if time.monotonic() > give_up:
                self.is_behind = True
                break
        # Only now is it certain that the quorum is the one that was read before.
        self._spool.add_sample(sample)
        self._spool.note()

    def _told_id(self, address: NodeAddress) -> str:
        """The cluster's id, which the sample did not tell. Raises RefusedError, which says why."""
        connection = NodeConnection(address, self.cluster.security)
        try:
            connection.must_be_controller()
            return connection.cluster_id()
        finally:
            connection.close()

    def _opened(self, spool: Spool) -> LogReader:
        start, cluster = spool.position or EARLIEST, self.cluster.asked_last(self._asker.silent)
        return LogReader(cluster, start, fail_on_data_loss=False, cluster_id=spool.cluster_id)

    def outputs(self) -> list[Path]:
        """The describe outputs that it has written."""
        return [] if self._spool is None else self._spool.outputs()

    def prune(self, before: float, loaded: Mapping[str, Collection[range]]) -> None:
        """Remove copies that have not grown since a time (seconds) and are loaded.

        loaded: by directory id the offsets that the lake has of a followed log.
        """
        if self._spool is not None:
            self._spool.prune(before, loaded)

    def close(self) -> None:
        """Close the connections; reading opens them again, and goes on where the spool ends."""
        self._asker.close()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _advice(self, error: RefusedError) -> str:
        if self._spool is None or not isinstance(error, LostHistoryError):
            return ""
        return f"; then move {self._spool.folder} out of the spool, to follow the quorum from its start again"

    def _say(self, line: str) -> None:
        """A line of log, unless it was the last one, too."""
        if line != self._said:
            log.warning("%s: %s", self.cluster.name, line)
            self._said = line


def read_all(clusters: Sequence[FollowedCluster], seconds: float) -> None:
    """Read every cluster, each for so long at most. Raises OSError."""
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(lambda cluster: cluster.read(seconds), clusters):
            pass
