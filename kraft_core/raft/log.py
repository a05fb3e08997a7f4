"""A replica's log as a value: batches, snapshots, epochs, start, high watermark, and queries on it.

Sources: KIP-595 (Fetch: is the follower's last epoch and offset a prefix of this log?), KIP-630 (an offset
below the log's start is answered with a snapshot), Kafka's RaftLog and KafkaRaftLog (order of the checks).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from kraft_core.raft.batches import Batches, ControlRecord, KRaftVersion
from kraft_core.raft.epochs import EpochCache, EpochEnd
from kraft_core.raft.history import OffsetHistory
from kraft_core.raft.voters import VoterHistory, VoterSet


class BrokenLogError(ValueError):
    """The log cannot answer: it has no epoch, and its newest snapshot does not end where the log does."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of the log: the offset it begins at, and the size of its batches."""

    base_offset: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checkpoint: `end_offset` is exclusive. With kraft.version 0 it holds neither version nor voters.

    Formatting a directory writes the snapshot 0-0, whose voters are labelled -1.
    """

    end_offset: int
    leader_epoch: int
    kraft_version: int | None = None
    voters: VoterSet | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Kafka orders snapshots by epoch, then by offset (OffsetAndEpoch)."""
        return self.leader_epoch, self.end_offset

    @property
    def id(self) -> EpochEnd:
        return EpochEnd(self.end_offset, self.leader_epoch)


class Validity(Enum):
    """The answer to a fetch offset and epoch (ValidOffsetAndEpoch.Kind)."""

    VALID = "VALID"
    DIVERGING = "DIVERGING"
    SNAPSHOT = "SNAPSHOT"


_NO_VERSIONS: OffsetHistory[int] = OffsetHistory()


@dataclass(frozen=True, slots=True)
class Controls:
    """Voter sets and kraft.version by offset."""

    voters: VoterHistory
    kraft_versions: OffsetHistory[int] = _NO_VERSIONS

    @property
    def kraft_version(self) -> int:
        return self.kraft_versions.last[1] if self.kraft_versions.last else 0

    def kraft_version_at(self, offset: int) -> int:
        """The level that the records at or below `offset` put in force."""
        entry = self.kraft_versions.at(offset)
        return entry[1] if entry else 0

    def read(self, record: ControlRecord) -> Controls:
        """With one control record more. Raises ValueError if one at or above its offset is known."""
        if isinstance(record.value, VoterSet):
            return Controls(self.voters.add(record.offset, record.value), self.kraft_versions)
        if isinstance(record.value, KRaftVersion):
            return Controls(self.voters, self.kraft_versions.add(record.offset, record.value.level))
        return self

    def read_snapshot(self, snapshot: Snapshot) -> Controls:
        """What a snapshot holds and nothing else, labelled with the last offset it covers."""
        label = snapshot.end_offset - 1
        read = Controls(VoterHistory(self.voters.static))
        if snapshot.voters is not None:
            read = Controls(read.voters.add(label, snapshot.voters))
        if snapshot.kraft_version is not None:
            read = Controls(read.voters, read.kraft_versions.add(label, snapshot.kraft_version))
        return read

    def truncate(self, end_offset: int) -> Controls:
        return Controls(self.voters.truncate(end_offset), self.kraft_versions.truncate(end_offset))

    def prune(self, start_offset: int) -> Controls:
        return Controls(self.voters.prune(start_offset), self.kraft_versions.prune(start_offset))


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """The log of one replica. Offsets are inclusive starts and exclusive ends.

    Only whole segments are deleted, so a log whose start was raised still holds the batches of its first
    segment, and a restart takes its start from there. `high_watermark` is the log's own, at least the start;
    `known_high_watermark` is what the replica has learnt since it started or was elected, None until then.
    """

    static_voters: VoterSet | None = None
    segment_bytes: int = 1 << 30
    start_offset: int = 0
    end_offset: int = 0
    high_watermark: int = 0
    known_high_watermark: int | None = None
    epochs: EpochCache = field(default_factory=EpochCache)
    batches: Batches = field(default_factory=Batches)
    segments: tuple[Segment, ...] = (Segment(0),)
    snapshots: tuple[Snapshot, ...] = ()

    @property
    def earliest_snapshot(self) -> Snapshot | None:
        return self.snapshots[0] if self.snapshots else None

    @property
    def latest_snapshot(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def last_epoch(self) -> int:
        """The last record's epoch, or that of the snapshot an empty log starts from; 0 in a new log."""
        if self.epochs.last_epoch is not None:
            return self.epochs.last_epoch
        snapshot = self.latest_snapshot
        if snapshot is None:
            return 0
        if snapshot.end_offset == self.start_offset == self.end_offset:
            return snapshot.leader_epoch
        raise BrokenLogError(
            f"no epoch in a log from {self.start_offset} to {self.end_offset} under {snapshot.id}"
        )

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """The end of the newest epoch that is at or below `leader_epoch`."""
        end = self.epochs.end_offset_for(leader_epoch, self.end_offset)
        if end is None:
            return EpochEnd(self.end_offset, self.last_epoch)
        oldest = self.earliest_snapshot
        if oldest and end == EpochEnd(oldest.end_offset, leader_epoch):
            return (
                oldest.id
            )  # nothing of that epoch is left in the log: the snapshot has the epoch that ended there
        return end

    def validate(self, offset: int, leader_epoch: int) -> tuple[Validity, EpochEnd]:
        """Whether a log that ends at `offset` with a record of `leader_epoch` is a prefix of this one.

        DIVERGING comes with the end to truncate to, SNAPSHOT with the snapshot to fetch.
        """
        if offset == self.start_offset == 0:
            return Validity.VALID, EpochEnd(0, 0)  # nothing is a prefix of every log, whatever its epoch
        asked = EpochEnd(offset, leader_epoch)
        oldest, newest = self.earliest_snapshot, self.latest_snapshot
        if oldest and newest and self._lies_below(asked, oldest):
            return Validity.SNAPSHOT, newest.id
        end = self.end_offset_for_epoch(leader_epoch)
        if end.leader_epoch != leader_epoch or end.end_offset < offset:
            return Validity.DIVERGING, end
        return Validity.VALID, asked

    def _lies_below(self, asked: EpochEnd, oldest: Snapshot) -> bool:
        return (
            asked.end_offset < self.start_offset
            or (asked.end_offset == self.start_offset and asked.leader_epoch != oldest.leader_epoch)
            or asked.leader_epoch < oldest.leader_epoch
        )

    def truncation_offset(self, diverging: EpochEnd) -> int:
        """Where to truncate when the leader answered that its `diverging` epoch ends at that offset."""
        if diverging.leader_epoch == 0:
            return min(diverging.end_offset, self.end_offset)
        own = self.end_offset_for_epoch(diverging.leader_epoch)
        if own.leader_epoch == diverging.leader_epoch:
            return min(own.end_offset, diverging.end_offset)
        return own.end_offset

    def control_records(self, start_offset: int = 0) -> Iterator[ControlRecord]:
        """The control records of all batches that end above `start_offset`."""
        for batch in self.batches.starting_at(start_offset):
            yield from batch.control_records


def controls_of_log(log: ReplicaLog) -> Controls:
    """The log's truth: the newest snapshot, then every record behind it, as a restart reads them."""
    controls = Controls(VoterHistory(log.static_voters))
    start_offset = 0
    if log.latest_snapshot:
        controls = controls.read_snapshot(log.latest_snapshot)
        start_offset = log.latest_snapshot.end_offset
    for record in log.control_records(start_offset):
        controls = controls.read(record)
    return controls


def voters_of_log(log: ReplicaLog) -> VoterSet | None:
    """The voter set that the log puts in force; compare emulation.voters_kafka_would_use."""
    return controls_of_log(log).voters.last
