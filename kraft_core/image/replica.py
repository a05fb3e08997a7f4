"""One replica's log and checkpoints, asked what the metadata was at an offset or at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile, parse_segment_name
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch, read_log
from kraft_core.format.segment import Damage, scan
from kraft_core.format.snapshot import SnapshotId, parse_name, read_snapshot
from kraft_core.image.image import Image


class OutOfReachError(ValueError):
    """The replica does not hold what was asked for; the message says what it holds."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """effective_at: the running maximum of the batches' timestamps, ms."""

    segment: SegmentFile
    header: BatchHeader
    effective_at: int


class CapturedReplica:
    """What a controller directory, or a single file of one, tells about the cluster's metadata.

    notes: in words, what could not be read or is not there; the rest is told all the same.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._images: dict[SnapshotId, Image] = {}
        self._batches: list[_Batch] = []
        self._checkpoints: list[CheckpointFile] = []
        self._formatted_with: list[CheckpointFile] = []

    @classmethod
    def of_directory(cls, directory: ControllerDir) -> CapturedReplica:
        replica = cls()
        replica._batches = list(replica._index(directory.segments))
        whole = [checkpoint for checkpoint in directory.checkpoints if replica._is_whole(checkpoint)]
        # The 0-0 checkpoint is what a directory was formatted with: the log repeats what counts of it.
        replica._checkpoints = [checkpoint for checkpoint in whole if _end(checkpoint) > 0]
        replica._formatted_with = [checkpoint for checkpoint in whole if _end(checkpoint) == 0]
        replica.notes += [f"{fault.file}: {fault.reason}" for fault in directory.faults]
        return replica

    @classmethod
    def of_file(cls, path: Path) -> CapturedReplica:
        """A segment if it is named as one, else a checkpoint; one without an offset in its name ends at 0.

        A checkpoint that is named is read as far as it goes. Raises OSError.
        """
        replica = cls()
        size = path.stat().st_size
        base_offset = parse_segment_name(path.name)
        if base_offset is not None:
            replica._batches = list(replica._index([SegmentFile(path, base_offset, size)]))
        else:
            checkpoint = CheckpointFile(path, parse_name(path.name) or SnapshotId(0, 0, ""), size)
            if replica._is_whole(checkpoint) or _holds_batches(path):
                replica._checkpoints = [checkpoint]
        return replica

    @property
    def is_empty(self) -> bool:
        """Whether neither a batch nor a whole checkpoint was found."""
        return not self._batches and not self._checkpoints

    @property
    def last_offset(self) -> int:
        """The newest offset that it knows of, -1 for none."""
        of_log = self._batches[-1].header.last_offset if self._batches else -1
        return max([of_log, *(_end(checkpoint) - 1 for checkpoint in self._checkpoints)])

    def image_at(self, offset: int | None = None) -> Image:
        """The metadata after the record at an offset (inclusive; None: the newest).

        Replayed from the newest checkpoint at or below it, as Kafka would, so it holds what that one says.
        Raises OutOfReachError for an offset beyond the log or below everything that is held.
        """
        wanted = self.last_offset if offset is None else offset
        if wanted > self.last_offset:
            raise OutOfReachError(f"offset {wanted} is not written yet: the last one is {self.last_offset}")
        image = self._start(wanted)
        reached = image.offset
        for record in self._records(image.offset + 1):
            if record.offset > wanted:
                break
            image.apply(record)
            reached = record.offset
        if reached < wanted:
            raise OutOfReachError(f"offset {wanted} is not held: the one held before it is {reached}")
        return image

    def offset_at(self, time: int) -> int:
        """The last offset written by a time (ms, inclusive) by the leaders' clocks, which may go back.

        A time counts from the running maximum of the batches' timestamps. Raises OutOfReachError.
        """
        count = bisect_right(self._batches, time, key=lambda batch: batch.effective_at)
        known = [_end(c) - 1 for c in self._checkpoints if self._image(c).timestamp <= time]
        if count:
            known.append(self._batches[count - 1].header.last_offset)
        if not known and not self._begins_at_zero:
            raise OutOfReachError("that time is before everything that is held here")
        return max(known, default=-1)

    def steps(self) -> Iterator[Image | Record]:
        """The whole way from the oldest known state on: an image to begin with, then records.

        Another image follows where offsets are missing in between and a checkpoint lies beyond the gap.
        """
        image = self._oldest()
        yield image
        expected = image.offset + 1
        for record in self._records(expected):
            if record.offset > expected:
                beyond = self._newest_checkpoint(expected + 1, record.offset)
                if beyond is not None:
                    yield self._image(beyond)
            expected = record.offset + 1
            yield record
        last = self._newest_checkpoint(expected + 1, self.last_offset + 1)
        if last is not None:
            yield self._image(last)

    def control_records(self) -> Iterator[Record]:
        """Those of the log, in its order."""
        for record in self._records(0, control_only=True):
            if record.value is not None:
                yield record

    def checkpoint_controls(self) -> Iterator[tuple[SnapshotId, Record]]:
        """The control records of each checkpoint, oldest checkpoint first."""
        for checkpoint in [*self._formatted_with, *self._checkpoints]:
            with mapped(checkpoint.path) as buf:
                for record in read_snapshot(buf).control_records:
                    if checkpoint.id is not None and record.value is not None:
                        yield checkpoint.id, record

    def append_before(self, offset: int) -> int | None:
        """The timestamp (ms) of the batch that lies just below an offset, None where it is not held."""
        count = bisect_right(self._batches, offset - 1, key=lambda batch: batch.header.base_offset)
        return self._batches[count - 1].header.max_timestamp if count else None

    @property
    def _begins_at_zero(self) -> bool:
        return not self._batches or self._batches[0].header.base_offset == 0

    def _start(self, wanted: int) -> Image:
        checkpoint = self._newest_checkpoint(0, wanted + 1)
        if checkpoint is not None and (self._goes_on_from(checkpoint) or _end(checkpoint) == wanted + 1):
            return self._image(checkpoint).copy()
        oldest = self._oldest()
        if oldest.offset > wanted:
            raise OutOfReachError(
                f"offset {wanted} is gone: the oldest state held is that after offset {oldest.offset}"
            )
        return oldest

    def _oldest(self) -> Image:
        """The empty image before offset 0, else the oldest checkpoint from which the log goes on."""
        if self._begins_at_zero and self._batches:
            return Image()
        base_offset = self._batches[0].header.base_offset if self._batches else 0
        for checkpoint in self._checkpoints:
            if self._goes_on_from(checkpoint):
                return self._image(checkpoint).copy()
        self._note(f"no checkpoint holds what was before offset {base_offset}")
        image = Image()
        image.offset = base_offset - 1
        return image

    def _goes_on_from(self, checkpoint: CheckpointFile) -> bool:
        return not self._batches or self._batches[0].header.base_offset <= _end(checkpoint)

    def _newest_checkpoint(self, low: int, high: int) -> CheckpointFile | None:
        """The newest with low <= end offset <= high."""
        within = [c for c in self._checkpoints if low <= _end(c) <= high]
        return within[-1] if within else None

    def _image(self, checkpoint: CheckpointFile) -> Image:
        """Its image, read once; callers that move it on copy it."""
        snapshot_id = checkpoint.id or SnapshotId(0, 0, "")
        if snapshot_id not in self._images:
            with mapped(checkpoint.path) as buf:
                timestamp = read_snapshot(buf).last_contained_log_timestamp
                records = [record for record in read_log(buf) if isinstance(record, Record)]
            image = Image.of_snapshot(
                records,
                snapshot_id.end_offset,
                snapshot_id.leader_epoch,
                -1 if timestamp is None else timestamp,
            )
            self._images[snapshot_id] = image
        return self._images[snapshot_id]

    def _is_whole(self, checkpoint: CheckpointFile) -> bool:
        with mapped(checkpoint.path) as buf:
            incomplete = read_snapshot(buf).incomplete
        if incomplete:
            self._note(f"{checkpoint.path.name} is no whole checkpoint: {incomplete}")
        return not incomplete

    def _index(self, segments: Iterable[SegmentFile]) -> Iterator[_Batch]:
        """Every batch that goes on from the one before; overlaps are left out, gaps and damage are noted."""
        expected, effective_at = None, -1
        for segment in segments:
            with mapped(segment.path) as buf:
                for item in scan(buf, next_offset=segment.base_offset):
                    if isinstance(item, Damage):
                        where = f"{segment.path.name}: {item.size_bytes} bytes at {item.position}"
                        self._note(f"{where} cannot be read: {item.reason}")
                        continue
                    if expected is not None and item.base_offset < expected:
                        self._note(f"{segment.path.name}: offset {item.base_offset} again, left out")
                        continue
                    if expected is not None and item.base_offset > expected:
                        self._note(f"offsets {expected} to {item.base_offset - 1} are missing")
                    expected = item.next_offset
                    effective_at = max(effective_at, item.max_timestamp)
                    yield _Batch(segment, item, effective_at)

    def _records(self, first: int, control_only: bool = False) -> Iterator[Record]:
        """The log's records from an offset (inclusive) on."""
        start = bisect_right(self._batches, first, key=lambda batch: batch.header.last_offset + 1)
        at = start
        while at < len(self._batches):
            segment = self._batches[at].segment
            with mapped(segment.path) as buf:
                while at < len(self._batches) and self._batches[at].segment is segment:
                    header = self._batches[at].header
                    at += 1
                    if header.is_control or not control_only:
                        for record in read_batch(buf, header):
                            if record.offset >= first:
                                yield record

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _holds_batches(path: Path) -> bool:
    with mapped(path) as buf:
        return any(isinstance(item, BatchHeader) for item in scan(buf))


def _end(checkpoint: CheckpointFile) -> int:
    return 0 if checkpoint.id is None else checkpoint.id.end_offset
