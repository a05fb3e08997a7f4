"""Facts from controller directories on disk, without Spark.

Reads every batch once; decodes control batches and those that can set metadata.version. Directories whose
cluster or node is unknown are left out.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kraft_core.columnar.timestamps import representable
from kraft_core.evidence.collected_lives import collected_lives
from kraft_core.evidence.compared_batches import RangeBatches, contested_epochs
from kraft_core.evidence.elsewhere import captured_elsewhere
from kraft_core.evidence.facts import (
    Capture,
    CapturedControlRecord,
    ClusterFacts,
    EpochRange,
    FeatureLevel,
    SnapshotFacts,
    copied_between,
)
from kraft_core.format.batch import BatchHeader
from kraft_core.format.capture import (
    CapturedAtSource,
    FileIdentity,
    Identity,
    capture_id,
    captured_at,
    file_identity,
    identity,
)
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch
from kraft_core.format.segment import Damage, scan
from kraft_core.format.snapshot import read_snapshot
from kraft_core.format.varint import Buffer

_CONTROL_TYPES = ("LeaderChange", "KRaftVersion", "KRaftVoters")
_METADATA_VERSION = "metadata.version"
_BATCH_IDENTITY = struct.Struct(">qiIi")


@dataclass(frozen=True, slots=True)
class CollectedCluster:
    """The facts of a cluster, or of one life of a cluster id that names several, and its directories.

    kafka_cluster_id: of meta.properties; that of the facts is followed by /life where it names several.
    """

    kafka_cluster_id: str
    facts: ClusterFacts
    directories: tuple[ControllerDir, ...]


def collect(directories: Iterable[ControllerDir], captured_at_ms: int | None = None) -> list[ClusterFacts]:
    """The facts of each cluster or life. Parameters, order and errors as of collect_lives."""
    return [each.facts for each in collect_lives(directories, captured_at_ms)]


def _none_given(path: Path) -> None:
    """No path has a cluster id of its own."""


def collect_lives(
    directories: Iterable[ControllerDir],
    captured_at_ms: int | None = None,
    cluster_id: str | None = None,
    node_id: int | None = None,
    given: Callable[[Path], str | None] = _none_given,
) -> list[CollectedCluster]:
    """The facts of each cluster, by cluster id, of several lives the newest last.

    What was followed is left out: it is not a replica's log, and says nothing about one.

    captured_at_ms: when all were copied, if known. cluster_id, node_id: of directories that contain none.
    given: the cluster id of a path, whatever it contains. What cannot be read raises nothing: its capture is
    not readable.
    """
    of_cluster: defaultdict[str, list[tuple[Identity, ControllerDir]]] = defaultdict(list)
    for directory in directories:
        who = identity(directory, cluster_id, node_id, given(directory.path))
        if who is not None and not directory.followed:
            of_cluster[who.cluster_id].append((who, directory))
    return [life for key in sorted(of_cluster) for life in _collect_id(key, of_cluster[key], captured_at_ms)]


def _collect_id(
    cluster_id: str, directories: list[tuple[Identity, ControllerDir]], captured_at_ms: int | None
) -> Iterator[CollectedCluster]:
    """The lives of a cluster id."""
    facts, batches = _collect_cluster(cluster_id, directories, captured_at_ms)
    lives = collected_lives(facts.captures, batches, facts.snapshots)
    if len(lives) < 2:
        yield CollectedCluster(cluster_id, facts, tuple(directory for _, directory in directories))
        return
    found: list[CollectedCluster] = []
    for life in lives:
        pairs = zip(facts.captures, directories, strict=True)
        held = [pair for capture, pair in pairs if capture.capture_id in life.capture_ids]
        of_life, _ = _collect_cluster(f"{cluster_id}/{life.name}", held, captured_at_ms)
        found.append(CollectedCluster(cluster_id, of_life, tuple(directory for _, directory in held)))
    elsewhere = captured_elsewhere({each.facts.cluster_id: each.facts.captures for each in found})
    for each in found:
        yield replace(each, facts=replace(each.facts, elsewhere=elsewhere[each.facts.cluster_id]))


def _collect_cluster(
    cluster_id: str, directories: list[tuple[Identity, ControllerDir]], captured_at_ms: int | None
) -> tuple[ClusterFacts, list[RangeBatches]]:
    """The facts of directories of one cluster, and the batches of each epoch range of its captures."""
    found = _ClusterRecords(_snapshot_ends(directory for _, directory in directories))
    captures: list[Capture] = []
    for who, directory in directories:
        at = captured_at(directory, captured_at_ms)
        snapshots = list(_snapshots(who, directory, at[0]))
        capture = _capture(who, directory, at, found, snapshots)
        captures.append(capture)
        found.snapshots += [replace(s, held_in=(capture.capture_id,)) for s in snapshots]
    facts = ClusterFacts(
        cluster_id,
        tuple(captures),
        tuple(found.control_records),
        tuple(found.rounded_snapshots()),
        tuple(found.feature_levels),
        tuple(contested_epochs(found.batches)),
    )
    return facts, found.batches


@dataclass(slots=True)
class _ClusterRecords:
    """What the directories of one cluster hold, gathered directory by directory.

    snapshot_ends: end offsets of all snapshots, rising; batch_ends: the end of the batch that holds the
    record below such an end, by (epoch, snapshot end); batches: those of each epoch range, to be compared.
    """

    snapshot_ends: list[int]
    batch_ends: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    control_records: list[CapturedControlRecord] = field(default_factory=list[CapturedControlRecord])
    feature_levels: list[FeatureLevel] = field(default_factory=list[FeatureLevel])
    snapshots: list[SnapshotFacts] = field(default_factory=list[SnapshotFacts])
    batches: list[RangeBatches] = field(default_factory=list[RangeBatches])

    def note_batch(self, header: BatchHeader) -> None:
        for nth in range(bisect_right(self.snapshot_ends, header.base_offset), len(self.snapshot_ends)):
            if self.snapshot_ends[nth] > header.next_offset:
                break
            self.batch_ends[header.leader_epoch, self.snapshot_ends[nth]] = header.next_offset

    def rounded_snapshots(self) -> Iterator[SnapshotFacts]:
        for s in self.snapshots:
            yield replace(s, batch_end=self.batch_ends.get((s.leader_epoch, s.end_offset)))


def _snapshot_ends(directories: Iterable[ControllerDir]) -> list[int]:
    return sorted(
        {c.id.end_offset for d in directories for c in d.checkpoints if c.id and c.id.end_offset > 0}
    )


def _capture(
    who: Identity,
    directory: ControllerDir,
    at: tuple[int, CapturedAtSource],
    found: _ClusterRecords,
    snapshots: list[SnapshotFacts],
) -> Capture:
    identities = [_identity(file) for file in (*directory.segments, *directory.checkpoints)]
    log = _scan_log(directory, found)
    epoch_ranges = tuple(run.epoch_range() for run in log.runs)
    state = directory.quorum_state
    ends = [s.end_offset for s in snapshots if s.proves]
    if directory.segments:
        ends += [
            directory.segments[-1].base_offset,
            *(epoch_range.end_offset for epoch_range in epoch_ranges),
        ]
    headers = [s.header_timestamp for s in snapshots if s.proves and s.header_timestamp is not None]
    captured_from, captured_until, time_source = copied_between(*at, epoch_ranges, headers)
    return Capture(
        capture_id=capture_id(who, directory, [file for file in identities if file is not None]),
        node_id=who.node_id,
        directory_id=who.directory_id,
        captured_at=at[0],
        log_start_offset=directory.segments[0].base_offset if directory.segments else None,
        log_end_offset=max(ends, default=None),
        epoch_ranges=epoch_ranges,
        quorum_state_epoch=state.leader_epoch if state else None,
        quorum_state_leader_id=state.leader_id if state else None,
        voted_id=state.voted_id if state else None,
        voted_directory_id=state.voted_directory_id if state else None,
        current_voters=state.current_voters if state else None,
        leader_epoch_checkpoint=directory.leader_epoch_checkpoint,
        tail_damaged=log.tail_damaged,
        ends_inside_batch=log.ends_inside_batch,
        readable=directory.log_readable and log.readable and None not in identities,
        captured_from=captured_from,
        captured_until=captured_until,
        time_source=time_source,
        captured_at_source=at[1],
    )


def _identity(file: SegmentFile | CheckpointFile) -> FileIdentity | None:
    """None where the file cannot be read."""
    try:
        return file_identity(file.path, file.size_bytes)
    except OSError:
        return None


@dataclass(slots=True)
class _OpenRun:
    """An epoch range, to which batches may still be added."""

    first: BatchHeader
    last: BatchHeader
    begins_epoch: bool
    last_appended_at: int
    batches: RangeBatches
    first_data: BatchHeader | None = None
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, header: BatchHeader) -> None:
        self.batches.add(header)
        self.last = header
        self.last_appended_at = max(self.last_appended_at, representable(header.max_timestamp))
        if self.first_data is None and not header.is_control:
            self.first_data = header
        self.digest.update(
            _BATCH_IDENTITY.pack(header.base_offset, header.leader_epoch, header.crc, header.size_bytes)
        )

    def epoch_range(self) -> EpochRange:
        data = self.first_data if self.begins_epoch else None
        return EpochRange(
            self.first.leader_epoch,
            self.first.base_offset,
            self.last.next_offset,
            self.digest.hexdigest(),
            representable(self.first.max_timestamp),
            self.last_appended_at,
            self.first.next_offset if self.begins_epoch else None,
            data.next_offset if data else None,
            representable(data.max_timestamp) if data else None,
        )


@dataclass(slots=True)
class _Log:
    """A captured log as it is read: its epoch ranges, the last one open, and whether all could be read."""

    runs: list[_OpenRun] = field(default_factory=list[_OpenRun])
    tail_damaged: bool = False
    ends_inside_batch: bool = False
    readable: bool = True

    def add(self, header: BatchHeader, begins_epoch: bool) -> None:
        if not self.runs or not _follows(self.runs[-1].last, header):
            batches = RangeBatches(header.leader_epoch)
            self.runs.append(
                _OpenRun(header, header, begins_epoch, representable(header.max_timestamp), batches)
            )
        self.runs[-1].add(header)


def _scan_log(directory: ControllerDir, found: _ClusterRecords) -> _Log:
    """A captured log; its control records and feature levels into `found`."""
    log = _Log()
    for segment in directory.segments:
        try:
            with mapped(segment.path) as buf:
                log.readable = log.readable and len(buf) >= segment.size_bytes
                _scan_segment(buf, segment, log, found)
        except OSError:
            log.readable = False
    # A damaged log may hold batches twice, or in another order.
    log.runs.sort(key=lambda run: (run.first.base_offset, run.first.leader_epoch, run.last.next_offset))
    found.batches += [run.batches for run in log.runs]
    return log


def _scan_segment(buf: Buffer, segment: SegmentFile, log: _Log, found: _ClusterRecords) -> None:
    end = min(segment.size_bytes, len(buf))
    for item in scan(buf, end=end, next_offset=segment.base_offset):
        if isinstance(item, Damage):
            log.ends_inside_batch |= item.reason == "torn_tail"
            log.tail_damaged |= item.reason != "torn_tail"
            continue
        log.tail_damaged = log.ends_inside_batch = False
        records = _records(buf, item, found)
        log.add(item, begins_epoch=bool(records) and records[0].type == "LeaderChange")
        found.note_batch(item)


def _follows(last: BatchHeader, header: BatchHeader) -> bool:
    return header.leader_epoch == last.leader_epoch and header.base_offset == last.next_offset


def _records(buf: Buffer, header: BatchHeader, found: _ClusterRecords) -> list[Record]:
    """The control records of a batch, noted with what else of it changes a state."""
    if header.is_control:
        records = list(read_batch(buf, header))
        found.control_records += _control_records(records)
        return records
    found.feature_levels += _levels(buf, header)
    return []


def _levels(buf: Buffer, header: BatchHeader) -> Iterator[FeatureLevel]:
    """The levels of metadata.version that a batch sets: few batches hold its name."""
    if header.codec or _METADATA_VERSION.encode() in buf[header.position : header.end]:
        for record in read_batch(buf, header):
            level = _metadata_version(record)
            if level is not None:
                yield FeatureLevel(record.offset, record.leader_epoch, level)


def _control_records(records: Iterable[Record]) -> Iterator[CapturedControlRecord]:
    for record in records:
        if record.type in _CONTROL_TYPES:
            yield CapturedControlRecord(
                record.offset,
                record.leader_epoch,
                record.batch.base_offset,
                record.batch.next_offset,
                record.batch.crc,
                representable(record.timestamp),
                record.type,
                record.value,
            )


def _metadata_version(record: Record) -> int | None:
    if record.type != "FEATURE_LEVEL_RECORD" or record.value is None:
        return None
    return record.value["featureLevel"] if record.value["name"] == _METADATA_VERSION else None


def _snapshots(who: Identity, directory: ControllerDir, at: int) -> Iterator[SnapshotFacts]:
    for unfinished, files in ((False, directory.checkpoints), (True, directory.unfinished)):
        for file in files:
            try:
                yield _snapshot(who, file, unfinished, at)
            except OSError:
                continue  # its capture is not readable


def _snapshot(who: Identity, file: CheckpointFile, unfinished: bool, at: int) -> SnapshotFacts:
    assert file.id is not None  # only bootstrap.checkpoint has none
    with mapped(file.path) as buf:
        snapshot = read_snapshot(buf)
        values = {
            record.type: record.value for record in snapshot.control_records if record.value is not None
        }
        levels = [
            level for item in scan(buf) if isinstance(item, BatchHeader) for level in _levels(buf, item)
        ]
        digest = hashlib.sha256(buf).hexdigest()
    version, voters = values.get("KRaftVersion"), values.get("KRaftVoters")
    contained = snapshot.last_contained_log_timestamp
    return SnapshotFacts(
        end_offset=file.id.end_offset,
        leader_epoch=file.id.leader_epoch,
        content_digest=digest,
        complete=snapshot.complete,
        unfinished=unfinished,
        header_timestamp=representable(snapshot.header.timestamp) if snapshot.header else None,
        last_contained_log_timestamp=None if contained is None else representable(contained),
        kraft_version=version["kRaftVersion"] if version else None,
        voters=voters["voters"] if voters else None,
        metadata_version=levels[-1].level if levels else None,
        batch_end=None,
        held_by=((who.node_id, who.directory_id),),
        first_captured_at=at,
    )
