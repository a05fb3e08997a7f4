"""The metadata at an offset or a time, from one replica's log and checkpoints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby, takewhile
from operator import attrgetter
from pathlib import Path

from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile, is_of_log
from kraft_core.format.log_files import parse_segment_name
from kraft_core.format.mapped_file import mapped
from kraft_core.format.message_reader import has_unknown_fields
from kraft_core.format.record import OF_NO_HISTORY, Record, read_batch, read_log
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.format.segment import scan
from kraft_core.format.snapshot import SnapshotId, parse_name, read_snapshot
from kraft_core.image import configs
from kraft_core.image.captured_batches import CapturedBatch, batches_of
from kraft_core.image.change import Change
from kraft_core.image.image import Image
from kraft_core.wording import missing_offsets


class OutOfReachError(ValueError):
    """The offset or time is not in the replica; the message states what is."""


@dataclass(frozen=True, slots=True)
class _Append:
    """Offsets that took effect at a time (ms): the running maximum of the timestamps up to there."""

    first_offset: int
    last_offset: int
    effective_at: int


@dataclass(frozen=True, slots=True)
class _Searched:
    """Offsets (both inclusive) that were searched for unreadable records; lost: the end of the last one."""

    first: int
    last: int
    lost: int


def lost_between(reached: int, following: int) -> OutOfReachError:
    """Of a time between those of two known states, after these offsets, of which records are missing."""
    return OutOfReachError(
        f"undecided: offset {reached + 1} is missing, and may have been appended by that time; the nearest "
        f"known states are those after offset {reached} and after offset {following}"
    )


class CapturedReplica:
    """The cluster's metadata by a controller directory or a single file of one.

    allowed: configs to show although Kafka does not define them (secrets.is_secret_config).
    notes: what is unreadable or missing, as text; the rest is used all the same. unused: those of them about
    files beside the log, and checkpoints that are incomplete: if they are needed, another one says so.
    cluster_id: None of a single file, or where meta.properties has none.
    """

    def __init__(self, allowed: Set[str] = NONE_ALLOWED) -> None:
        self.notes: list[str] = []
        self.unused: list[str] = []
        self.cluster_id: str | None = None
        self._allowed = allowed
        self._images: dict[SnapshotId, Image] = {}
        self._batches: list[CapturedBatch] = []
        self._searched = _Searched(0, -1, 0)
        self._checkpoints: list[CheckpointFile] = []
        self._formatted_with: list[CheckpointFile] = []
        self._is_of_newer_kafka = False

    @classmethod
    def of_directory(cls, directory: ControllerDir, allowed: Set[str] = NONE_ALLOWED) -> CapturedReplica:
        replica = cls(allowed)
        replica.cluster_id = None if directory.meta is None else directory.meta.cluster_id
        replica._batches = list(batches_of(directory.segments, replica._note))
        whole = [checkpoint for checkpoint in directory.checkpoints if replica._is_whole(checkpoint)]
        # The 0-0 checkpoint is from formatting: the log repeats the relevant part of it.
        replica._checkpoints = [checkpoint for checkpoint in whole if _end(checkpoint) > 0]
        replica._formatted_with = [checkpoint for checkpoint in whole if _end(checkpoint) == 0]
        replica._note_cut_off()
        for fault in directory.faults:
            is_log = is_of_log(fault) and fault in directory.unreadable
            replica._note(f"{fault.file}: {fault.reason}", unused=not is_log)
        return replica

    @classmethod
    def of_file(cls, path: Path, allowed: Set[str] = NONE_ALLOWED) -> CapturedReplica:
        """A segment by its name, else a checkpoint; one without an offset in its name ends at 0.

        An incomplete checkpoint is read as far as possible. Raises OSError.
        """
        replica = cls(allowed)
        size = path.stat().st_size
        base_offset = parse_segment_name(path.name)
        if base_offset is not None:
            replica._batches = list(batches_of([SegmentFile(path, base_offset, size)], replica._note))
        else:
            checkpoint = CheckpointFile(path, parse_name(path.name) or SnapshotId(0, 0, ""), size)
            if replica._is_whole(checkpoint) or _holds_batches(path):
                replica._checkpoints = [checkpoint]
        return replica

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a batch nor a complete checkpoint."""
        return not self._batches and not self._checkpoints

    @property
    def last_offset(self) -> int:
        """The newest known offset, -1: none."""
        of_log = self._batches[-1].header.last_offset if self._batches else -1
        return max([of_log, *(_end(checkpoint) - 1 for checkpoint in self._checkpoints)])

    @property
    def oldest_known(self) -> tuple[int, int | None]:
        """The offset whose record the oldest known state includes, and its time (ms) if that is known."""
        image = self._oldest()
        if image.timestamp >= 0 or not self._batches:
            return image.offset, image.timestamp if image.timestamp >= 0 else None
        header = self._batches[0].header
        return header.base_offset, header.max_timestamp

    def image_at(self, offset: int | None = None) -> Image:
        """The metadata after the record at an offset (inclusive; None: the newest).

        Replayed from the newest checkpoint at or below it, as in Kafka, so it agrees with that checkpoint.
        Raises OutOfReachError for an offset beyond the log or below the oldest known state.
        """
        wanted = self.last_offset if offset is None else offset
        if wanted > self.last_offset:
            raise OutOfReachError(
                f"offset {wanted} is beyond the end of the log; its last offset is {self.last_offset}"
            )
        # Of a long log it takes as long as reading the log, and verbs ask for it before another moment.
        return self._newest.copy() if wanted == self.last_offset else self._replayed(wanted)

    @cached_property
    def _newest(self) -> Image:
        return self._replayed(self.last_offset)

    def _replayed(self, wanted: int) -> Image:
        image = self._start(wanted)
        reached = image.offset
        for record in self._records(image.offset + 1):
            if record.offset > wanted:
                break
            self._understand(record)
            image.pass_over(record)
            reached = record.offset
        if reached < wanted:
            raise OutOfReachError(f"offset {wanted} is missing; the last one before it is {reached}")
        return image

    def offset_at(self, time: int) -> int:
        """The last offset appended at or before a time (ms).

        By the running maximum of the timestamps of batches and checkpoints, as leaders' clocks may go back.
        Raises OutOfReachError, also for a time at which missing offsets may have been appended.
        """
        count = bisect_right(self._appends, time, key=attrgetter("effective_at"))
        if count:
            reached = self._appends[count - 1].last_offset
            if count < len(self._appends) and self._appends[count].first_offset > reached + 1:
                raise lost_between(reached, self._appends[count].first_offset)
            return reached
        if not self._begins_at_zero:
            raise OutOfReachError(
                "undecided: that time is before the oldest known state, which is the one after offset "
                f"{self._oldest().offset}"
            )
        return -1

    def steps(self) -> Iterator[Image | Record]:
        """The whole history from the oldest known state: an image, then records.

        After a gap in the offsets, the image of a checkpoint beyond the gap follows.
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
            self._understand(record)
            yield record
        last = self._newest_checkpoint(expected + 1, self.last_offset + 1)
        if last is not None:
            yield self._image(last)

    def control_records(self) -> Iterator[Record]:
        """The log's control records, in order."""
        for record in self._records(0, control_only=True):
            if record.value is not None:
                yield record

    def records_of(self, kinds: Collection[tuple[str, int]]) -> Iterator[tuple[tuple[str, int], int]]:
        """(type, version) and offset of the log's records of some types and versions, in order."""
        for record in self._records(0):
            if record.version is not None and (record.type, record.version) in kinds:
                yield (record.type, record.version), record.offset

    def changes_from(self, image: Image, first: int, last: int) -> Iterator[list[Change]]:
        """What each batch between two offsets (both inclusive) changes in the image before them."""
        state = image.copy()
        records = takewhile(lambda record: record.offset <= last, self._records(first))
        for _, batch in groupby(records, key=lambda record: record.batch.base_offset):
            yield [made.change for record in batch for made in state.apply(record)]

    def checkpoint_controls(self) -> Iterator[tuple[SnapshotId, Record]]:
        """The control records of each checkpoint, oldest checkpoint first."""
        for checkpoint in [*self._formatted_with, *self._checkpoints]:
            with mapped(checkpoint.path) as buf:
                for record in read_snapshot(buf).control_records:
                    if checkpoint.id is not None and record.value is not None:
                        yield checkpoint.id, record

    def append_before(self, offset: int) -> int | None:
        """The timestamp (ms) of the batch just below an offset; None if it is not in the log."""
        count = bisect_right(self._batches, offset - 1, key=lambda batch: batch.header.base_offset)
        header = self._batches[count - 1].header if count else None
        return None if header is None or header.last_offset < offset - 1 else header.max_timestamp

    def known_from(self, offset: int) -> int:
        """The end of the last offsets up to this one that are missing or unreadable; 0: nothing is.

        What lies below the end of a checkpoint is not: it states what they changed.
        """
        below = bisect_right(self._gap_ends, offset)
        missing = self._gap_ends[below - 1] if below else 0
        checkpoint = self._newest_checkpoint(missing, offset + 1)
        lost = self._lost(max(missing, _end(checkpoint) if checkpoint else 0), offset)
        return lost or (0 if checkpoint else missing)

    def _lost(self, first: int, last: int) -> int:
        """The end of the last unreadable records between two offsets (both inclusive); 0: there are none.

        One that goes on from where the last one ended reads only what is new.
        """
        if self._searched.first != first or last < self._searched.last:
            self._searched = _Searched(first, first - 1, 0)
        lost = self._searched.lost
        for record in self._records(self._searched.last + 1):
            if record.offset > last:
                break
            if record.reason not in OF_NO_HISTORY and record.lost_offsets is not None:
                lost = record.lost_offsets[1]
        self._searched = _Searched(first, last, lost)
        return lost

    @cached_property
    def _gap_ends(self) -> list[int]:
        """Where the log begins above 0, or goes on above missing offsets."""
        headers = [batch.header for batch in self._batches]
        ends = [0, *(header.next_offset for header in headers)]
        return [h.base_offset for h, end in zip(headers, ends, strict=False) if h.base_offset > end]

    @cached_property
    def _appends(self) -> list[_Append]:
        """The batches by offset, and the checkpoints by the last one that they cover, if they have a time."""
        headers = (batch.header for batch in self._batches)
        found = [(header.last_offset, header.base_offset, header.max_timestamp) for header in headers]
        for checkpoint in self._checkpoints:
            last, at = _end(checkpoint) - 1, self._image(checkpoint).timestamp
            found += [(last, last, at)] if at >= 0 else []
        found.sort()
        highest = accumulate((at for *_, at in found), max)
        return [_Append(first, last, at) for (last, first, _), at in zip(found, highest, strict=True)]

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
                f"undecided: offset {wanted} is gone; the oldest known state is the one after offset "
                f"{oldest.offset}"
            )
        return oldest

    def _oldest(self) -> Image:
        """The empty image before offset 0, else the oldest checkpoint that the log continues."""
        if self._begins_at_zero and self._batches:
            return Image()
        base_offset = self._batches[0].header.base_offset if self._batches else 0
        for checkpoint in self._checkpoints:
            if self._goes_on_from(checkpoint):
                return self._image(checkpoint).copy()
        self._note(f"no checkpoint covers the log before offset {base_offset}")
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
        """A checkpoint's image, read once; callers copy it before they apply records."""
        snapshot_id = checkpoint.id or SnapshotId(0, 0, "")
        if snapshot_id not in self._images:
            with mapped(checkpoint.path) as buf:
                timestamp = read_snapshot(buf).last_contained_log_timestamp
                records = [self._marked(record) for record in read_log(buf) if isinstance(record, Record)]
            for record in records:
                self._understand(record, checkpoint.path.name)
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
            is_covered = bool(self._batches) and _end(checkpoint) <= self._batches[-1].header.next_offset
            words = f"{checkpoint.path.name} is not a complete checkpoint: {incomplete}"
            self._note(words, unused=is_covered)
        return not incomplete

    def _note_cut_off(self) -> None:
        """Kafka's log ends at its checkpoints or above: else a part of it was not copied."""
        end = self._batches[-1].header.next_offset if self._batches else None
        reached = max(map(_end, self._checkpoints), default=0)
        if end is not None and end < reached:
            self._note(missing_offsets(end, reached))

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
                                yield self._marked(record)

    def _understand(self, record: Record, file: str = "the log") -> None:
        """Notes the first record with fields that are not known: what else it changed is not, either."""
        if not self._is_of_newer_kafka and has_unknown_fields(record.value):
            self._is_of_newer_kafka = True
            self._note(f"{file}: {record.type} at offset {record.offset} has fields of a newer Kafka")

    def _marked(self, record: Record) -> Record:
        if not self._allowed or record.value is None or record.type != "CONFIG_RECORD":
            return record
        return record._replace(value=configs.marked(record.value, self._allowed))

    def _note(self, note: str, *, unused: bool = False) -> None:
        if note not in self.notes:
            self.notes.append(note)
            self.unused += [note] if unused else []


def _holds_batches(path: Path) -> bool:
    with mapped(path) as buf:
        return any(isinstance(item, BatchHeader) for item in scan(buf))


def _end(checkpoint: CheckpointFile) -> int:
    return 0 if checkpoint.id is None else checkpoint.id.end_offset
