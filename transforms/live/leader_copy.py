"""A leader's log as a captured controller directory: fetched, and laid out as files."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from kraft_core.format.batch import BatchHeader
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.side_file_texts import (
    checkpoint_name,
    leader_epoch_checkpoint_text,
    meta_properties_text,
    quorum_state_text,
)
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.wire.batches import whole_batches
from kraft_core.wire.errors import WireError
from kraft_core.wire.follower import SnapshotPart
from kraft_core.wire.quorum import DescribedQuorum, DescribedReplica
from transforms.lake.arrow_rows import EPOCH
from transforms.live.log_reader import LogReader
from transforms.live.options import EARLIEST, LiveCluster
from transforms.live.quorum_asker import QuorumAsker

# Seconds for the whole copy, and records held in memory.
LONGEST, HELD = 300.0, 200_000
# Batches at the log's end whose times are told: more than what a follower in sync lacks.
MOST_DATED = 100_000
_MAX_OFFSET = 1 << 62


@dataclass(frozen=True, slots=True)
class LeaderCopy:
    """The quorum as the leader described it after its log was read, and when it appended the log's end.

    appended: the newest batches of its own epoch, each as its end offset (exclusive) and its newest timestamp
    in ms, by the leader's clock.
    """

    quorum: DescribedQuorum
    appended: tuple[tuple[int, int], ...]


def copy_leader(cluster: LiveCluster, target: Path) -> LeaderCopy:
    """Write the leader's log, with its uncommitted end, to a directory that does not exist yet.

    quorum-state states what the leader's description proves: that it leads the epoch. Raises WireError where
    another node came to lead meanwhile, RefusedError.
    """
    asker = QuorumAsker(cluster)
    before = _described(asker)
    reader = LogReader(cluster.asked_last(asker.silent), EARLIEST, fail_on_data_loss=False)
    log = _Log(target / LOG_DIR_NAME)
    try:
        log.write_committed(reader)
        log.write_end(reader)
        followed = reader.follower.leader
        if followed is None or followed.address is None:
            raise WireError(f"no leader answers: {reader.follower.why}")
        # Another address may lead to a clone of the quorum, with the same ids and epochs.
        quorum = _described(QuorumAsker(replace(cluster, addresses=(followed.address,))))
    finally:
        reader.close()
    leads = (quorum.leader_id, quorum.leader_epoch)
    if {(before.leader_id, before.leader_epoch), (followed.leader_id, followed.leader_epoch)} != {leads}:
        raise WireError(
            f"leadership changed to epoch {quorum.leader_epoch} while the log was read: try again"
        )
    leader = quorum.leader
    if leader is None or leader.last_fetch_at is None or reader.cluster_id is None:
        raise WireError("the leader does not report itself, or its time: nothing can be planned")
    log.write_epochs()
    _write_state(target, reader.cluster_id, leader, quorum)
    return LeaderCopy(quorum, log.appended_in(quorum.leader_epoch))


def _described(asker: QuorumAsker) -> DescribedQuorum:
    try:
        return asker.sample().quorum
    finally:
        asker.close()


class _Log:
    """The segment, and the snapshot where the leader's log begins with one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._segment: Path | None = None
        self._epochs: list[tuple[int, int]] = []
        self._end = (0, 0)
        self._newest: deque[BatchHeader] = deque(maxlen=MOST_DATED)

    def appended_in(self, leader_epoch: int) -> tuple[tuple[int, int], ...]:
        """As LeaderCopy.appended."""
        own = (batch for batch in self._newest if batch.leader_epoch == leader_epoch)
        return tuple((batch.next_offset, batch.max_timestamp) for batch in own)

    def write_committed(self, reader: LogReader) -> None:
        """All below the high watermark. Raises WireError where that takes too long."""
        give_up, is_behind = time.monotonic() + LONGEST, True
        while is_behind:
            if time.monotonic() > give_up:
                raise WireError(f"the log could not be read in {LONGEST:.0f} s: {reader.follower.why}")
            reader.poll(HELD, 1.0)
            parts = reader.cut_to(_MAX_OFFSET)
            for part in parts:
                if isinstance(part, SnapshotPart):
                    name = checkpoint_name(part.snapshot_id.end_offset, part.snapshot_id.leader_epoch)
                    (self._folder / name).write_bytes(part.content)
                else:
                    self._append(part.records, part.batches)
            position = reader.position
            is_behind = position is None or position.offset < reader.follower.high_watermark

    def write_end(self, reader: LogReader) -> None:
        """What the leader has from its high watermark on."""
        while records := reader.uncommitted(*self._end):
            self._append(records, tuple(whole_batches(records)))

    def write_epochs(self) -> None:
        """The file leader-epoch-checkpoint."""
        (self._folder / "leader-epoch-checkpoint").write_text(leader_epoch_checkpoint_text(self._epochs))

    def _append(self, records: bytes, batches: Sequence[BatchHeader]) -> None:
        if not batches:
            return
        if self._segment is None:
            self._segment = self._folder / f"{batches[0].base_offset:020}.log"
        for batch in batches:
            if not self._epochs or self._epochs[-1][0] != batch.leader_epoch:
                self._epochs.append((batch.leader_epoch, batch.base_offset))
        self._end = batches[-1].next_offset, batches[-1].leader_epoch
        self._newest.extend(batches)
        with self._segment.open("ab") as file:
            file.write(records[: batches[-1].end])


def _write_state(target: Path, cluster_id: str, leader: DescribedReplica, quorum: DescribedQuorum) -> None:
    """The side files. The time is the leader's own, as are the times in its log."""
    voters = [replica for replica in quorum.replicas if replica.is_voter]
    is_static = all(voter.directory_id == ZERO_UUID for voter in voters)
    identity = meta_properties_text(cluster_id, leader.node_id, None if is_static else leader.directory_id)
    state = quorum_state_text(
        leader.node_id,
        quorum.leader_epoch,
        leader.node_id,
        leader.directory_id,
        [voter.node_id for voter in voters] if is_static else None,
    )
    (target / "meta.properties").write_text(identity)
    (target / LOG_DIR_NAME / "quorum-state").write_text(state)
    at = EPOCH + timedelta(milliseconds=leader.last_fetch_at or 0)
    (target / "capture.json").write_text(json.dumps({"captured_at": at.isoformat()}))
