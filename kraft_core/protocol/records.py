"""The batches that a leader writes: its epoch's control records, voter changes, and data.

KIP-595, LeaderChangeMessage; KIP-853, VotersRecord and KRaftVersionRecord. Kafka writes LEADER_CHANGE version
0, without directory ids, also where kraft.version is 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from kraft_core.protocol.replica import Replica
from kraft_core.raft.batches import Batch, ControlRecord, KRaftVersion, LeaderChange
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet

BATCH_HEADER_BYTES = 61
RECORD_BYTES = 20


def control_batch(replica: Replica, values: Iterable[LeaderChange | KRaftVersion | VoterSet]) -> Batch:
    """One batch of control records at the log end, in the replica's epoch."""
    start = replica.log.end_offset
    records = tuple(ControlRecord(start + index, value) for index, value in enumerate(values))
    return _batch(replica, len(records), records)


def data_batch(replica: Replica, record_count: int) -> Batch:
    """A batch of metadata records at the log end."""
    return _batch(replica, record_count, ())


def _batch(replica: Replica, record_count: int, records: tuple[ControlRecord, ...]) -> Batch:
    """The CRC represents the content: equal only for the same writer, epoch and position."""
    start = replica.log.end_offset
    size_bytes = BATCH_HEADER_BYTES + RECORD_BYTES * record_count
    identity = repr((replica.key, replica.epoch, start, record_count, len(records))).encode()
    return Batch(start, start + record_count - 1, replica.epoch, size_bytes, zlib.crc32(identity), records)


def start_of_epoch(replica: Replica, granting_voters: Iterable[int]) -> tuple[Batch, ...]:
    """LEADER_CHANGE; then version and voters, if the log lacks them or the leader's entry is outdated.

    A set at offset -1 is the bootstrap checkpoint's: the first leader copies it to the log, from which the
    others read it.
    """
    voters = replica.voters
    change = LeaderChange(
        replica.key.id,
        tuple(ReplicaKey(voter_id) for voter_id in voters.ids),
        tuple(ReplicaKey(voter_id) for voter_id in sorted(granting_voters)),
    )
    values: list[LeaderChange | KRaftVersion | VoterSet] = [change]
    if replica.kraft_version > 0 and (replica.voters_offset == -1 or needs_update(voters, replica.as_voter)):
        values += [KRaftVersion(replica.kraft_version), with_updated(voters, replica.as_voter)]
    return (control_batch(replica, values),)


def needs_update(voters: VoterSet, own: Voter) -> bool:
    """Whether the set has this voter with other endpoints or versions."""
    entry = voters.voter_for(own.key)
    return entry is not None and entry != own


def with_updated(voters: VoterSet, changed: Voter) -> VoterSet:
    """The set with the entry of that voter's id replaced."""
    return VoterSet.of(changed if voter.key.id == changed.key.id else voter for voter in voters)
