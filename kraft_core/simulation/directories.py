"""Simulated replicas as controller directories: segments, checkpoints and side files as Kafka writes them.

The layout is Kafka's metadata.log.dir (KafkaRaftLog, FileQuorumStateStore). Data batches hold NoOpRecords. A
tick is a millisecond after START_TIME (ms since the epoch).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.side_file_texts import (
    checkpoint_name,
    leader_epoch_checkpoint_text,
    meta_properties_text,
    quorum_state_text,
)
from kraft_core.messages.control import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
)
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.protocol.lifecycle import durable_vote
from kraft_core.protocol.replica import Replica
from kraft_core.raft.batches import Batch, KRaftVersion, LeaderChange
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import VoterSet
from kraft_core.simulation.quorum import SimulatedQuorum

START_TIME = 1_700_000_000_000
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
LOG_DIR = "__cluster_metadata-0"

Ticks = Mapping[tuple[int, int], int]

_NO_OP = next(message for message in METADATA_RECORDS if message.name == "NoOpRecord")


def write_directories(quorum: SimulatedQuorum, path: Path) -> None:
    """Write every replica as it is now to `path`/node-N, with a capture.json of the present tick."""
    captured_at = datetime.fromtimestamp((START_TIME + quorum.now) / 1000, UTC)
    for node, replica in quorum.replicas.items():
        directory = path / f"node-{node}"
        write_directory(replica, quorum.appended_at, quorum.snapshotted_at, directory)
        (directory / "capture.json").write_text(json.dumps({"captured_at": captured_at.isoformat()}))


def write_directory(replica: Replica, appended_at: Ticks, snapshotted_at: Ticks, path: Path) -> None:
    """Write the replica to `path`, which must not hold a log yet (FileExistsError).

    appended_at: the tick of each batch by (base offset, leader epoch); snapshotted_at: of each snapshot by
    (end offset, leader epoch).
    """
    log_dir = path / LOG_DIR
    log_dir.mkdir(parents=True)
    identity = meta_properties_text(replica.cluster_id, replica.key.id, replica.key.directory_id)
    (path / "meta.properties").write_text(identity)
    (log_dir / "quorum-state").write_text(_quorum_state(replica))
    epochs = leader_epoch_checkpoint_text(replica.log.epochs.entries)
    (log_dir / "leader-epoch-checkpoint").write_text(epochs)
    (log_dir / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    for base_offset, buf in _segments(replica, appended_at):
        (log_dir / f"{base_offset:020}.log").write_bytes(buf)
    for snapshot in replica.log.snapshots:
        name = checkpoint_name(snapshot.end_offset, snapshot.leader_epoch)
        written_at = START_TIME + snapshotted_at.get((snapshot.end_offset, snapshot.leader_epoch), 0)
        content = snapshot_bytes(snapshot, _last_contained_time(snapshot, appended_at), written_at)
        (log_dir / name).write_bytes(content)


def _quorum_state(replica: Replica) -> str:
    """As last written."""
    leader_id, voted = replica.leader.leader_id, durable_vote(replica)
    return quorum_state_text(
        -1 if leader_id is None else leader_id,
        replica.epoch,
        voted.id if voted else -1,
        voted.directory_id if voted else None,
        replica.quorum_state_voters,
    )


def _segments(replica: Replica, appended_at: Ticks) -> list[tuple[int, bytes]]:
    bases = [segment.base_offset for segment in replica.log.segments]
    written: list[tuple[int, bytes]] = []
    for base, end in pairwise([*bases, replica.log.end_offset]):
        batches = replica.log.batches.starting_at(base).truncated(end)
        written.append(
            (base, b"".join(batch_bytes(batch, _append_time(batch, appended_at)) for batch in batches))
        )
    return written


def _append_time(batch: Batch, appended_at: Ticks) -> int:
    return START_TIME + appended_at[batch.base_offset, batch.leader_epoch]


def _last_contained_time(snapshot: Snapshot, appended_at: Ticks) -> int:
    """When the last record under the snapshot was appended; 0 for the bootstrap checkpoint."""
    times = [
        tick
        for (base, epoch), tick in appended_at.items()
        if base < snapshot.end_offset and epoch <= snapshot.leader_epoch
    ]
    return START_TIME + max(times) if times else 0


def batch_bytes(batch: Batch, timestamp: int) -> bytes:
    """The batch as the leader writes it: its control records, or a NoOpRecord for each of its offsets."""
    if batch.control_records:
        records = [
            _control(record.offset, timestamp, *_control_value(record.value))
            for record in batch.control_records
        ]
        return write_batch(batch.base_offset, batch.leader_epoch, records, is_control=True)
    value = write_metadata_value(_NO_OP, 0, {})
    offsets = range(batch.base_offset, batch.end_offset)
    records = [RawRecord(offset, timestamp, None, value) for offset in offsets]
    return write_batch(batch.base_offset, batch.leader_epoch, records)


def snapshot_bytes(snapshot: Snapshot, last_contained_log_timestamp: int, timestamp: int) -> bytes:
    """A checkpoint: header, kraft.version and voters in one control batch, the footer in another.

    timestamp: when it is written. Both times in ms since the epoch.
    """
    header = {"version": 0, "lastContainedLogTimestamp": last_contained_log_timestamp}
    values: list[tuple[int, dict[str, Any]]] = [(SNAPSHOT_HEADER, header)]
    if snapshot.kraft_version is not None:
        values.append(_control_value(KRaftVersion(snapshot.kraft_version)))
    if snapshot.voters is not None:
        values.append(_control_value(snapshot.voters))
    first = [_control(offset, timestamp, *value) for offset, value in enumerate(values)]
    footer = [_control(len(first), timestamp, SNAPSHOT_FOOTER, {"version": 0})]
    epoch = snapshot.leader_epoch
    return write_batch(0, epoch, first, is_control=True) + write_batch(
        len(first), epoch, footer, is_control=True
    )


def _control(offset: int, timestamp: int, control_type: int, value: Mapping[str, Any]) -> RawRecord:
    key = (0).to_bytes(2, "big") + control_type.to_bytes(2, "big")
    return RawRecord(offset, timestamp, key, write_control_value(control_type, value))


def _control_value(value: LeaderChange | KRaftVersion | VoterSet) -> tuple[int, dict[str, Any]]:
    """LEADER_CHANGE is version 0, without directory ids, as released Kafka writes it."""
    match value:
        case LeaderChange():
            return LEADER_CHANGE, {
                "version": 0,
                "leaderId": value.leader_id,
                "voters": [{"voterId": voter.id} for voter in value.voters],
                "grantingVoters": [{"voterId": voter.id} for voter in value.granting_voters],
            }
        case KRaftVersion():
            return KRAFT_VERSION, {"version": 0, "kRaftVersion": value.level}
        case VoterSet():
            return KRAFT_VOTERS, value.to_record()
