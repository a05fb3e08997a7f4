"""The records of a log and of checkpoints, from whichever captured directories hold them."""

from __future__ import annotations

import errno
import hashlib
import os
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kraft_core.evidence.facts import Capture, SnapshotFacts
from kraft_core.findings.facts import UnreadableBytes
from kraft_core.findings.snapshot_replays import CheckpointKey, Log, Part
from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch, read_log
from kraft_core.format.segment import scan
from kraft_core.format.varint import Buffer


@dataclass(frozen=True, slots=True)
class CheckpointRecords:
    """The records of a checkpoint. timestamp: its last contained one (ms), -1 where it states none."""

    timestamp: int
    records: tuple[Record, ...]


class LogRecords:
    """Reads captured directories, and keeps in mind what was read. directories: by the ids of their captures.

    contested: the epochs in which captures hold different batches. All methods raise OSError for a file that
    can no longer be read.
    """

    def __init__(
        self,
        captures: Sequence[Capture],
        snapshots: Sequence[SnapshotFacts],
        directories: Mapping[str, ControllerDir],
        contested: Collection[int] = (),
    ) -> None:
        self._held: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)
        for capture in captures:
            for each in capture.epoch_ranges if capture.capture_id in directories else ():
                self._held[each.leader_epoch].append((each.first_offset, each.end_offset, capture.capture_id))
        self._snapshots = {key_of(s): s for s in snapshots if s.proves and s.held_in}
        self._directories = directories
        self._contested = contested
        self._was_read: set[Part] = set()
        self._lost: set[Part] = set()
        self._lost_of_checkpoints: dict[CheckpointKey, tuple[Record, ...]] = {}

    def of_log(self, log: Log) -> Iterator[Record]:
        """The records of a log in order, up to the first offset that no directory holds, or holds twice."""
        expected = log[0].first_offset if log else 0
        for capture_id, parts in self._divided(log):
            for record in self._records_in(capture_id, parts):
                if record.offset != expected:
                    return
                yield record
                expected += 1
            if expected < parts[-1].end_offset:
                return
            self._was_read.update(parts)

    def of_checkpoint(self, key: CheckpointKey) -> CheckpointRecords:
        """The records of a checkpoint that proves what lies below it; notes those that lost their values."""
        snapshot = self._snapshots[key]
        with _opened(self._directories[snapshot.held_in[0]], key) as (_, buf):
            records = tuple(record for record in read_log(buf) if isinstance(record, Record))
        self._lost_of_checkpoints[key] = tuple(record for record in records if record.is_lost)
        timestamp = snapshot.last_contained_log_timestamp
        return CheckpointRecords(-1 if timestamp is None else timestamp, records)

    def lost_values(self) -> Iterator[UnreadableBytes]:
        """The values of records in batches of the logs, and of checkpoints that prove what lies below them,
        that cannot be decoded, but those of a newer Kafka: in each capture that holds them. Reads what was
        not read yet.
        """
        yield from self._lost_of_logs()
        for key, snapshot in self._snapshots.items():
            if key not in self._lost_of_checkpoints:
                self.of_checkpoint(key)
            lost = self._lost_of_checkpoints[key]
            for capture_id in snapshot.held_in if lost else ():
                directory = self._directories[capture_id]
                with _opened(directory, key) as (checkpoint, _):
                    file = directory.relative(checkpoint.path)
                for record in lost:
                    yield _unreadable(capture_id, file, record, None)

    def _lost_of_logs(self) -> Iterator[UnreadableBytes]:
        for capture_id, parts in _by_capture(self._unread()):
            for _ in self._records_in(capture_id, parts):
                pass
        for capture_id, parts in _by_capture(self._holding_lost()):
            directory = self._directories[capture_id]
            for segment, record in _read(directory, parts):
                if record.is_lost:
                    file = directory.relative(segment.path)
                    yield _unreadable(capture_id, file, record, record.lost_offsets)

    def _holding_lost(self) -> Iterator[tuple[str, Part]]:
        """The batches that lost values, with each capture that holds them."""
        for part in self._lost:
            for first, end, capture_id in self._held[part.leader_epoch]:
                if first <= part.first_offset < end:
                    yield capture_id, part

    def _unread(self) -> Iterator[tuple[str, Part]]:
        """What captures hold and was not read: once, but of a contested epoch as each of them holds it."""
        was_read: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for part in self._was_read:
            was_read[part.leader_epoch].append((part.first_offset, part.end_offset))
        for epoch in sorted(self._held):
            spans = was_read[epoch]
            for first, end, capture_id in sorted(self._held[epoch]):
                if epoch in self._contested:
                    yield capture_id, Part(epoch, first, end)
                    continue
                for low, high in sorted(spans):
                    first = max(first, high) if low <= first else first
                    if first < low < end:
                        yield capture_id, Part(epoch, first, low)
                        first = max(first, high)
                if first < end:
                    yield capture_id, Part(epoch, first, end)
                    spans.append((first, end))

    def _records_in(self, capture_id: str, parts: Sequence[Part]) -> Iterator[Record]:
        """The records of a captured log in parts of it, which rise; notes their batches that lost values."""
        for _, record in _read(self._directories[capture_id], parts):
            if record.reason is not None and record.is_lost:
                batch = record.batch
                self._lost.add(Part(batch.leader_epoch, batch.base_offset, batch.next_offset))
            yield record

    def _divided(self, log: Log) -> list[tuple[str, list[Part]]]:
        """The parts of a log that directories hold, by the directory: the same one as long as it goes on.

        Ends at the first offset that none of them holds.
        """
        found: list[tuple[str, list[Part]]] = []
        for part in log:
            first = part.first_offset
            while first < part.end_offset:
                held = self._holder(part.leader_epoch, first, found[-1][0] if found else None)
                if held is None:
                    return found
                capture_id, end = held
                piece = Part(part.leader_epoch, first, min(end, part.end_offset))
                if not found or found[-1][0] != capture_id:
                    found.append((capture_id, []))
                found[-1][1].append(piece)
                first = piece.end_offset
        return found

    def _holder(self, leader_epoch: int, offset: int, preferred: str | None) -> tuple[str, int] | None:
        """The preferred capture, else the one that holds most of an epoch from an offset on; and to where
        (exclusive). None: none holds it.
        """
        held = [
            (capture_id == preferred, end, capture_id)
            for first, end, capture_id in self._held[leader_epoch]
            if first <= offset < end
        ]
        if not held:
            return None
        _, end, capture_id = max(held)
        return capture_id, end


def key_of(snapshot: SnapshotFacts) -> CheckpointKey:
    return CheckpointKey(snapshot.end_offset, snapshot.leader_epoch, snapshot.content_digest)


def _by_capture(found: Iterable[tuple[str, Part]]) -> Iterator[tuple[str, list[Part]]]:
    """By capture what is read of it in one pass: parts that rise. Those that overlap need another pass."""
    passes: defaultdict[str, list[list[Part]]] = defaultdict(list)
    for capture_id, part in sorted(found, key=lambda each: (each[0], each[1].first_offset, each[1])):
        below = (parts for parts in passes[capture_id] if parts[-1].end_offset <= part.first_offset)
        parts = next(below, None)
        if parts is None:
            passes[capture_id].append([part])
        else:
            parts.append(part)
    return ((capture_id, parts) for capture_id, every in passes.items() for parts in every)


def _read(directory: ControllerDir, parts: Sequence[Part]) -> Iterator[tuple[SegmentFile, Record]]:
    """The records of a directory in some parts of its log, which rise."""
    ends = [segment.base_offset for segment in directory.segments[1:]]
    nth = 0
    for segment, end in zip(directory.segments, [*ends, parts[-1].end_offset], strict=True):
        while nth < len(parts) and parts[nth].end_offset <= segment.base_offset:
            nth += 1
        if nth == len(parts):
            return
        if end <= parts[nth].first_offset:
            continue  # perhaps it cannot be opened
        with mapped(segment.path) as buf:
            for item in scan(buf, next_offset=segment.base_offset):
                if not isinstance(item, BatchHeader):
                    continue
                while parts[nth].end_offset <= item.base_offset:
                    nth += 1
                    if nth == len(parts):
                        return
                part = parts[nth]
                if item.leader_epoch == part.leader_epoch and item.next_offset > part.first_offset:
                    first, end = part.first_offset, part.end_offset
                    for record in read_batch(buf, item):
                        if first <= record.offset < end or record.is_rest_of_batch:
                            yield segment, record


@contextmanager
def _opened(directory: ControllerDir, key: CheckpointKey) -> Generator[tuple[CheckpointFile, Buffer]]:
    """A checkpoint of a directory, and its bytes."""
    # A name may go on behind the epoch: several files can be of one id.
    for checkpoint in directory.checkpoints:
        if checkpoint.id is None or checkpoint.id[:2] != (key.end_offset, key.leader_epoch):
            continue
        with mapped(checkpoint.path) as buf:
            if hashlib.sha256(buf).hexdigest() == key.content_digest:
                yield checkpoint, buf
                return
    gone = directory.log_dir / f"{key.end_offset:020}-{key.leader_epoch:010}.checkpoint"
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(gone))


def _unreadable(
    capture_id: str, file: str, record: Record, lost_offsets: tuple[int, int] | None
) -> UnreadableBytes:
    """lost_offsets: of the log, None where none are."""
    damage = record.damage
    assert damage is not None, "the record is one that cannot be read"
    first, end = lost_offsets or (None, None)
    return UnreadableBytes(capture_id, file, damage.position, damage.size_bytes, damage.reason, first, end)
