"""The metadata of one captured directory, read strictly: every byte and record, or none.

What a report may leave out with a note, a restored quorum would lose for good. So a byte that cannot be read,
a gap, a record that Kafka's replay refuses and a field that this reader does not know all make the directory
unusable as a source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile
from kraft_core.format.mapped_file import mapped
from kraft_core.format.message_reader import has_unknown_fields
from kraft_core.format.record import Record, read_batch, read_log
from kraft_core.format.segment import Damage, scan
from kraft_core.format.side_file_texts import checkpoint_name
from kraft_core.format.snapshot import read_snapshot
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import deviations
from kraft_core.image.tables import PARTITIONS
from kraft_core.raft.voters import VoterSet

# A topic's id and a partition of it; a leader epoch and a partition epoch.
PartitionKey = tuple[str, int]
PartitionEpochs = tuple[int, int]


class UnusableLogError(ValueError):
    """A directory whose metadata cannot be restored as it was; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A moment before the end of a log: an end offset (exclusive), or a time (ms) and all that was appended
    by then.
    """

    end_offset: int | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """The checkpoint that a log begins with: where it ends (exclusive), its epoch, its voters, if any."""

    end_offset: int
    leader_epoch: int
    voters: VoterSet | None


@dataclass(slots=True)
class ReplayedLog:
    """The metadata at the end of a captured log.

    end_offset: exclusive, of the last whole batch; leader_epoch: of that batch, or of the checkpoint that the
    log begins under; both 0 for an empty log. kraft_version, voters: the newest that the log holds, committed
    or not; voters None with kraft.version 0. open_transaction: the offset at which a metadata transaction
    began that has not ended; its records are not in the image. deviations: where its newest checkpoint is
    not what the log below it leads to, by a known fault of Kafka, in words. beginning: of all that the
    directory holds, None: offset 0.
    """

    image: Image
    end_offset: int = 0
    leader_epoch: int = 0
    kraft_version: int = 0
    voters: VoterSet | None = None
    open_transaction: int | None = None
    deviations: tuple[str, ...] = ()
    beginning: Beginning | None = None
    partitions_seen: dict[PartitionKey, PartitionEpochs] = field(
        default_factory=dict[PartitionKey, PartitionEpochs]
    )

    def see(self, key: PartitionKey, epochs: PartitionEpochs) -> None:
        known = self.partitions_seen.get(key, epochs)
        self.partitions_seen[key] = max(known[0], epochs[0]), max(known[1], epochs[1])


def replayed(directory: ControllerDir) -> ReplayedLog:
    """The metadata from the newest checkpoint on, as Kafka loads it. Raises UnusableLogError, OSError.

    Where the directory holds an older state too, the log between them must lead to the same metadata.
    """
    _check_readable(directory)
    starts = _starts(directory)
    log = _replayed_from(directory, starts[-1])
    if len(starts) > 1:
        whole = _replayed_from(directory, starts[0])
        log.deviations = tuple(_deviations(whole.image, log.image, starts[-1]))
        log.beginning = whole.beginning
        for key, epochs in whole.partitions_seen.items():
            log.see(key, epochs)
    return log


def replayed_until(directory: ControllerDir, cut: Cut) -> ReplayedLog:
    """The metadata at a moment, from the newest checkpoint below it.

    Raises UnusableLogError, also where the log does not reach back so far, or the moment is inside a batch:
    what is written in one batch takes effect at once. OSError.
    """
    _check_readable(directory)
    end = cut.end_offset if cut.time is None else _end_at(directory, cut.time)
    assert end is not None
    starts = [start for start in _starts(directory) if (0 if start is None else _end(start)) <= end]
    if not starts:
        raise UnusableLogError(f"its log does not reach back to offset {end}")
    log = _replayed_from(directory, starts[-1], end)
    if log.end_offset != end:
        raise UnusableLogError(f"its log ends at {log.end_offset}, before offset {end}")
    if cut.time is not None and log.image.timestamp > cut.time:
        raise UnusableLogError("its log does not reach back to that time")
    return log


def _check_readable(directory: ControllerDir) -> None:
    if directory.unreadable:
        lost = directory.unreadable[0]
        raise UnusableLogError(f"{lost.file} cannot be read: {lost.reason}")


def _end_at(directory: ControllerDir, time: int) -> int:
    """The end offset (exclusive) before the first batch that was appended after a time (ms)."""
    end = max((c.id.end_offset for c in directory.checkpoints if c.id is not None), default=0)
    for segment in directory.segments:
        end = segment.base_offset
        with mapped(segment.path) as buf:
            for item in scan(buf, end=segment.size_bytes, next_offset=end):
                if isinstance(item, Damage):
                    break
                if item.max_timestamp > time:
                    return end
                end = item.next_offset
    return end


def _starts(directory: ControllerDir) -> list[CheckpointFile | None]:
    """Where a replay may start, oldest first; None: the empty log at offset 0."""
    base = directory.segments[0].base_offset if directory.segments else None
    held = [c for c in directory.checkpoints if c.id is not None and c.id.end_offset > 0]
    starts: list[CheckpointFile | None] = [c for c in held if base is None or base <= _end(c)]
    if base == 0 or (base is None and not held):
        starts.insert(0, None)
    if not starts:
        raise UnusableLogError(f"its log begins at {base}, and no checkpoint covers what is below")
    return starts


def _deviations(by_log: Image, by_checkpoint: Image, checkpoint: CheckpointFile | None) -> Iterator[str]:
    """Where a checkpoint is not what the log below it leads to (rule 22). Kafka loads the checkpoint.

    Raises UnusableLogError where no known fault of Kafka explains it.
    """
    assert checkpoint is not None
    assert checkpoint.id is not None
    for each in deviations(by_log, by_checkpoint):
        for found in unlawful_deviations([each], checkpoint.id.end_offset, checkpoint.id.leader_epoch, ""):
            if not found.explanation:
                raise UnusableLogError(_differs(found))
            yield forgotten(found)


def forgotten(found: SnapshotDeviation) -> str:
    """What a checkpoint lacks by a known fault of Kafka, as a sentence."""
    return f"{_differs(found)}: {found.explanation}. The checkpoint is restored."


def _differs(found: SnapshotDeviation) -> str:
    name = checkpoint_name(found.end_offset, found.leader_epoch)
    return f"{name} and the log below it differ in {found.kind} {found.subject}"


def _replayed_from(
    directory: ControllerDir, start: CheckpointFile | None, until: int | None = None
) -> ReplayedLog:
    """until: an end offset (exclusive) above which no batch may reach."""
    log = ReplayedLog(Image())
    for formatted in (c for c in directory.checkpoints if c.id is not None and c.id.end_offset == 0):
        for record in _checkpoint_records(formatted):
            _take_control(log, record)
    if start is not None and start.id is not None:
        log.image = _checkpoint_image(start, log)
        log.end_offset, log.leader_epoch = start.id.end_offset, start.id.leader_epoch
        log.beginning = Beginning(log.end_offset, log.leader_epoch, log.voters)
        for key, partition in log.image.tables.items(PARTITIONS):
            log.see((key[0], key[1]), (partition.leader_epoch, partition.partition_epoch))
    for nth, segment in enumerate(directory.segments, start=1):
        for record in _segment_records(segment, log, is_last=nth == len(directory.segments), until=until):
            _take_control(log, record)
            _apply(log, record)
    return log


def _checkpoint_image(checkpoint: CheckpointFile, log: ReplayedLog) -> Image:
    assert checkpoint.id is not None
    with mapped(checkpoint.path) as buf:
        content = read_snapshot(buf)
    if content.incomplete or content.last_contained_log_timestamp is None:
        raise UnusableLogError(f"{checkpoint.path.name} is not complete: {content.incomplete}")
    records = list(_checkpoint_records(checkpoint))
    for record in records:
        _take_control(log, record)
    image = Image.of_snapshot(
        records, checkpoint.id.end_offset, checkpoint.id.leader_epoch, content.last_contained_log_timestamp
    )
    _check_refusals(image)
    return image


def _checkpoint_records(checkpoint: CheckpointFile) -> Iterator[Record]:
    with mapped(checkpoint.path) as buf:
        if len(buf) != checkpoint.size_bytes:
            raise UnusableLogError(f"{checkpoint.path.name} changed while it was read")
        for item in read_log(buf, next_offset=0):
            if isinstance(item, Damage):
                raise UnusableLogError(f"{checkpoint.path.name} is damaged at byte {item.position}")
            yield _known(item, checkpoint.path.name)


def _segment_records(
    segment: SegmentFile, log: ReplayedLog, is_last: bool, until: int | None
) -> Iterator[Record]:
    """The records above what the log holds so far; log.end_offset and leader_epoch follow them."""
    name, expected = segment.path.name, segment.base_offset
    with mapped(segment.path) as buf:
        for item in scan(buf, end=segment.size_bytes, next_offset=expected):
            if isinstance(item, Damage):
                if is_last and item.reason == "torn_tail":
                    return  # where the copy ended, or where the controller was killed
                raise UnusableLogError(f"{name} is damaged at byte {item.position}: {item.reason}")
            if until is not None and item.next_offset > until:
                _check_between_batches(item, until)
                return
            if item.base_offset != expected or expected > log.end_offset:
                missing = min(expected, log.end_offset)
                raise UnusableLogError(f"{name} continues at {item.base_offset}, but {missing} comes next")
            expected = item.next_offset
            if expected > log.end_offset:
                yield from _batch_records(buf, item, log, name)


def _check_between_batches(header: BatchHeader, until: int) -> None:
    if header.base_offset < until:
        raise UnusableLogError(
            f"offset {until - 1} is inside the batch of {header.base_offset} to {header.last_offset}, "
            f"which takes effect as a whole: give {header.base_offset - 1} or {header.last_offset}"
        )


def _batch_records(buf: Any, header: BatchHeader, log: ReplayedLog, name: str) -> Iterator[Record]:
    if header.leader_epoch < log.leader_epoch:
        raise UnusableLogError(f"{name} goes back to epoch {header.leader_epoch} at {header.base_offset}")
    first = log.end_offset
    for record in read_batch(buf, header):
        if record.offset >= first:
            yield _known(record, name)
    log.end_offset, log.leader_epoch = header.next_offset, header.leader_epoch


def _apply(log: ReplayedLog, record: Record) -> None:
    was_open = log.image.in_transaction
    for made in log.image.apply(record):
        change = made.change
        if change.kind == PARTITIONS and change.value is not None:
            log.see((change.key[0], change.key[1]), (change.value.leader_epoch, change.value.partition_epoch))
    if not was_open and log.image.in_transaction:
        log.open_transaction = record.offset
    elif not log.image.in_transaction:
        log.open_transaction = None
    _check_refusals(log.image)


def _check_refusals(image: Image) -> None:
    for refused in (*image.refusals, *image.controller_refusals):
        raise UnusableLogError(f"Kafka refuses the {refused.type} at {refused.offset}: {refused.reason}")


def _take_control(log: ReplayedLog, record: Record) -> None:
    value = record.value or {}
    if record.type == "KRaftVersion":
        log.kraft_version = value["kRaftVersion"]
    elif record.type == "KRaftVoters":
        log.voters = VoterSet.from_record(value)


def _known(record: Record, file: str) -> Record:
    """The record, if every field of it was understood."""
    if record.reason is not None:
        raise UnusableLogError(f"{file}: the record at {record.offset} cannot be read: {record.reason}")
    if has_unknown_fields(record.value):
        raise UnusableLogError(f"{file}: the {record.type} at {record.offset} has fields of a newer Kafka")
    return record


def _end(checkpoint: CheckpointFile) -> int:
    return 0 if checkpoint.id is None else checkpoint.id.end_offset


def without_transaction(log: ReplayedLog) -> ReplayedLog:
    """The log without the records of an open metadata transaction: a new leader aborts it (KIP-868)."""
    if not log.image.in_transaction:
        return log
    image = Image()
    image.tables = log.image.tables.copy()
    image.offset, image.leader_epoch = log.image.offset, log.image.leader_epoch
    image.timestamp = log.image.timestamp
    return replace(log, image=image)
