"""What a release of Kafka would make of a captured directory: each record as it reads and replays it.

A node that starts reads bootstrap.checkpoint, then its newest checkpoint and the log from there on. Its raft
layer decodes every record of these (KRaftControlRecordStateMachine): one that it cannot decode terminates
brokers, too. Then the controller replays them (QuorumController), and the metadata loader of every node
(MetadataLoader): what these refuse terminates each controller; a broker skips it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kraft_core.format.batch import BatchHeader, iter_records
from kraft_core.format.capture import CAPTURE_JSON
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir
from kraft_core.format.errors import DecodeError
from kraft_core.format.log_dirs import BOOTSTRAP_NAME, LOG_DIR_NAME
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record
from kraft_core.format.segment import Damage, scan
from kraft_core.format.snapshot import SnapshotId, read_snapshot
from kraft_core.format.varint import Buffer
from kraft_core.image.change import RefusedRecord
from kraft_core.image.image import Image
from kraft_core.messages.releases import METADATA_VERSION, Release
from kraft_core.plan.load_records import Obstacle, ReadRecord, RecordPlace, read_record
from kraft_core.plan.load_replay import (
    ReleaseRefusal,
    RemovedTopics,
    WrittenLevels,
    bootstrap_level,
    bootstrap_refusal,
    end_refusal,
    open_transaction_refusal,
    replay_refusal,
)
from kraft_core.storage.log_dirs import META_PROPERTIES, is_reserved
from kraft_core.wire.apis import METADATA_TOPIC_ID
from kraft_core.wording import missing_offsets

PARTITION_METADATA = f"{LOG_DIR_NAME}/partition.metadata"
_NEWEST_META_PROPERTIES = 1  # MetaPropertiesVersion


@dataclass(slots=True)
class LoadedEnds:
    """Where a log may end that is loaded, and what is refused for ending there.

    examined, refused: how many ends. obstacles: at the first of the ends in a row that are refused alike.
    doubts: why it is not known at an end whether it is refused.
    """

    examined: int = 0
    refused: int = 0
    obstacles: list[Obstacle] = field(default_factory=list[Obstacle])
    doubts: list[str] = field(default_factory=list[str])
    _before: list[Obstacle] = field(default_factory=list[Obstacle])

    def add(self, found: list[Obstacle]) -> None:
        """What is refused at the next end."""
        known = {(each.words, each.kafka) for each in self._before}
        self.obstacles += [each for each in found if (each.words, each.kafka) not in known]
        self.examined += 1
        self.refused += bool(found)
        self._before = found


@dataclass(slots=True)
class ReplicaLoad:
    """obstacles: in what a start of the node loads. below: in what its newest checkpoint replaces.

    ends: the captured end, and those below it that were asked for.
    left_out: records of versions that the release does not know, whose new fields it leaves out. gaps: what
    of the log is missing or unreadable. torn: that its last batch is incomplete: a start removes it,
    and a copy of a running node may have one. start, end_offset: of the log that is loaded.
    """

    replica: str
    obstacles: list[Obstacle] = field(default_factory=list[Obstacle])
    ends: LoadedEnds = field(default_factory=LoadedEnds)
    below: list[Obstacle] = field(default_factory=list[Obstacle])
    left_out: list[str] = field(default_factory=list[str])
    gaps: list[str] = field(default_factory=list[str])
    torn: str | None = None
    records: int = 0
    checkpoints: int = 0
    start: int = 0
    end_offset: int = 0


def load_of(
    directory: ControllerDir, replica: str, release: Release, ends_from: int | None = None
) -> ReplicaLoad:
    """What a start of that release on the directory meets. Raises OSError.

    ends_from: the log may end at any batch from this offset on; None: only where it was captured to end.
    """
    return _Loading(directory, replica, release, ends_from).run()


class _Loading:
    def __init__(
        self, directory: ControllerDir, replica: str, release: Release, ends_from: int | None
    ) -> None:
        self._directory = directory
        self._release = release
        self._ends_from = ends_from
        self._found = ReplicaLoad(replica)
        self._file = ""
        self._last: RecordPlace | None = None  # of the metadata records that were replayed
        self._begun: RecordPlace | None = None  # where the open transaction began
        self._written = WrittenLevels()
        self._removed = RemovedTopics(release)

    def run(self) -> ReplicaLoad:
        found = self._found
        # A start reads the files beside the log, too, and fails on one that is not valid.
        faults = [fault for fault in self._directory.faults if fault.file != CAPTURE_JSON]
        found.gaps += [f"{fault.file}: {fault.reason}" for fault in faults]
        found.gaps += self._meta_gaps()
        self._topic_id()
        image = Image()
        for nth, checkpoint in enumerate(self._directory.checkpoints, start=1):
            is_newest = nth == len(self._directory.checkpoints)
            loaded = self._checkpoint(checkpoint, found.obstacles if is_newest else found.below)
            if is_newest:
                image, found.start = loaded, _id(checkpoint).end_offset
        self._log(image)
        if image.in_transaction:
            self._refused_in_open(image.with_open())
        self._may_end(image)
        if self._directory.bootstrap is not None:
            self._bootstrap(self._directory.bootstrap)
        return found

    def _meta_gaps(self) -> Iterator[str]:
        """Why the node may not start with its meta.properties, which every start reads first."""
        meta = self._directory.meta
        if meta is None:
            if not any(fault.file.endswith(META_PROPERTIES) for fault in self._directory.faults):
                yield f"{META_PROPERTIES} was not captured: nor is {BOOTSTRAP_NAME}, then, known to be absent"
        elif meta.version > _NEWEST_META_PROPERTIES:
            yield f"{META_PROPERTIES}: no release until 4.4 knows version {meta.version}"
        elif meta.directory_id is not None and is_reserved(meta.directory_id):
            yield f"{META_PROPERTIES}: no release starts with the reserved directory id {meta.directory_id}"

    def _topic_id(self) -> None:
        """UnifiedLog.initializeTopicId: a log of another topic id is refused at every start."""
        topic_id = self._directory.topic_id
        if topic_id in (None, METADATA_TOPIC_ID):
            return
        kafka = (
            "org.apache.kafka.common.errors.InconsistentTopicIdException: Tried to assign topic ID "
            f"Optional[{METADATA_TOPIC_ID}] to log for topic partition {LOG_DIR_NAME},but log already "
            f"contained topic ID {topic_id}"
        )
        place = RecordPlace(PARTITION_METADATA, None, None, None, f"topic id {topic_id}")
        self._found.obstacles.append(Obstacle(*place, "nodes", "it is not the metadata topic's", kafka))

    def _may_end(self, image: Image) -> None:
        """The log may end here. A controller has the effect of a transaction that is open."""
        if self._last is not None and not self._found.gaps:
            there = image.with_open() if image.in_transaction else image
            self._found.ends.add(list(self._refused_at_end(there, self._last)))
            doubt = self._written.doubt(image)
            if doubt is not None and doubt not in self._found.ends.doubts:
                self._found.ends.doubts.append(doubt)

    def _refused_at_end(self, image: Image, last: RecordPlace) -> Iterator[Obstacle]:
        if self._begun is not None and self._begun.offset is not None:
            refusal = open_transaction_refusal(image, self._begun.offset)
            if refusal is not None:
                yield refusal.at(self._begun)
        refusal = end_refusal(image, self._release)
        if refusal is not None:
            yield refusal.at(last)

    def _bootstrap(self, checkpoint: CheckpointFile) -> None:
        """Every start reads it, also where the log is not empty (BootstrapDirectory)."""
        found, self._file = self._found, self._directory.relative(checkpoint.path)
        counted, known, level = found.records, (len(found.gaps), len(found.obstacles)), None
        with mapped(checkpoint.path) as buf:
            for item in scan(buf):
                if isinstance(item, Damage):
                    found.gaps.append(f"{self._file}: it cannot be read: {item.reason} at {item.position}")
                    continue
                for read in self._batch(buf, item):
                    if read.obstacle is not None:
                        found.obstacles.append(read.obstacle)
                    if read.record is not None:
                        level = bootstrap_level(read.record, level)
        found.records = counted
        if (len(found.gaps), len(found.obstacles)) == known:
            refusal = bootstrap_refusal(level, self._release)
            if isinstance(refusal, str):
                found.gaps.append(f"{self._file}: {refusal}")
            elif refusal is not None:
                place = RecordPlace(self._file, None, None, None, f"the level of {METADATA_VERSION}")
                found.obstacles.append(refusal.at(place))

    def _checkpoint(self, checkpoint: CheckpointFile, into: list[Obstacle]) -> Image:
        self._file = self._directory.relative(checkpoint.path)
        self._found.checkpoints += 1
        image = Image()
        with mapped(checkpoint.path) as buf:
            incomplete = read_snapshot(buf).incomplete
            if incomplete:
                self._found.gaps.append(f"{self._file} is not complete: {incomplete}")
            for item in scan(buf, next_offset=0):
                for read in () if isinstance(item, Damage) else self._batch(buf, item):
                    into += self._replayed(image, read)
        image.offset, image.leader_epoch = _id(checkpoint).end_offset - 1, _id(checkpoint).leader_epoch
        return image

    def _log(self, image: Image) -> None:
        """Replay the log from the newest checkpoint on; what lies below it is read only."""
        found, expected = self._found, None
        segments = self._directory.segments
        for segment in segments:
            self._file = self._directory.relative(segment.path)
            with mapped(segment.path) as buf:
                for item in scan(buf, next_offset=segment.base_offset):
                    if isinstance(item, Damage):
                        self._damage(item, is_last=segment is segments[-1])
                        continue
                    self._follows(item, expected)
                    if self._ends_from is not None and max(self._ends_from, found.start) <= item.base_offset:
                        self._may_end(image)
                    expected = item.next_offset
                    self._replay_batch(buf, item, image)
        found.end_offset = max(found.start, expected or 0)
        if expected is not None and expected < found.start:
            found.gaps.append(f"the log ends at {expected}, below its newest checkpoint ({found.start})")
        if not found.records:
            found.gaps.append("it contains no record")

    def _follows(self, header: BatchHeader, expected: int | None) -> None:
        first = self._found.start if expected is None else expected
        if header.base_offset > first:
            missing = missing_offsets(first, header.base_offset)
            covered = ", and no checkpoint covers them" if expected is None else ""
            self._found.gaps.append(f"{self._file}: {missing}{covered}")
        elif expected is not None and header.base_offset < expected:
            self._found.gaps.append(f"{self._file}: offset {header.base_offset} is repeated")

    def _replay_batch(self, buf: Buffer, header: BatchHeader, image: Image) -> None:
        for read in self._batch(buf, header):
            if header.base_offset < self._found.start:
                self._found.below += self._read_only(read)
            else:
                self._clears_removed(read.record, image)
                self._found.obstacles += self._replayed(image, read)

    def _clears_removed(self, record: Record | None, image: Image) -> None:
        doubt = None if record is None else self._removed.doubt(record, self._file, image)
        self._found.ends.doubts += [] if doubt is None else [doubt]

    def _damage(self, damage: Damage, *, is_last: bool) -> None:
        where = f"{self._file}: {damage.size_bytes} bytes at {damage.position}"
        words = f"{where} cannot be read: {damage.reason}"
        if damage.reason == "torn_tail" and is_last:
            self._found.torn = words
        else:
            self._found.gaps.append(words)

    def _batch(self, buf: Buffer, header: BatchHeader) -> Iterator[ReadRecord]:
        try:
            for nth, raw in enumerate(iter_records(buf, header)):
                self._found.records += 1
                read = read_record(self._release, self._file, header, nth, raw)
                if read.unread is not None:
                    self._found.gaps.append(read.unread)
                if read.left_out is not None:
                    self._found.left_out.append(read.left_out)
                yield read
        except DecodeError as error:
            self._found.gaps.append(f"{self._file}: the batch at {header.position} cannot be read: {error}")

    # --- replay

    def _read_only(self, read: ReadRecord) -> Iterator[Obstacle]:
        """Why the record is not taken, by itself."""
        if read.obstacle is not None:
            yield read.obstacle
        if read.record is not None:
            refusal = self._refusal(read.record)
            if refusal is not None:
                yield refusal.at(RecordPlace.of(self._file, read.record))

    def _refusal(self, record: Record) -> ReleaseRefusal | None:
        return replay_refusal(record, self._release, in_checkpoint=self._file.endswith(".checkpoint"))

    def _replayed(self, image: Image, read: ReadRecord) -> Iterator[Obstacle]:
        """Why the record is not taken; then its effect on the image."""
        if read.obstacle is not None:
            yield read.obstacle
        record = read.record
        if record is None:
            return
        place = RecordPlace.of(self._file, record)
        self._last = self._last if record.batch.is_control else place
        self._written.add(record, place)
        refusal = self._refusal(record)
        if refusal is not None:
            yield refusal.at(place)
        image.apply(record)
        self._begun = (self._begun or place) if image.in_transaction else None
        yield from self._proven((*image.refusals, *image.controller_refusals), place)
        image.refusals.clear()
        image.controller_refusals.clear()

    def _refused_in_open(self, image: Image) -> None:
        """What is refused of a transaction that is open at the end, of which the image has the effect."""
        for refused in (*image.refusals, *image.controller_refusals):
            place = RecordPlace(self._file, None, refused.offset, refused.leader_epoch, refused.type)
            self._found.obstacles += self._proven([refused], place)

    def _proven(self, refused: Sequence[RefusedRecord], place: RecordPlace) -> Iterator[Obstacle]:
        """What is refused for what lies below it: nothing is proven where some of that is missing."""
        if self._found.gaps:
            return
        for one in refused:
            if one.cause is not None:
                yield _obstacle_of(one, place)


def _id(checkpoint: CheckpointFile) -> SnapshotId:
    return checkpoint.id or SnapshotId(0, 0, "")


def _obstacle_of(refused: RefusedRecord, place: RecordPlace) -> Obstacle:
    """The refusal of the record that was read last, or of one that waited for the end of its transaction."""
    if place.offset not in (None, refused.offset):
        place = RecordPlace(place.file, None, refused.offset, refused.leader_epoch, refused.type)
    return Obstacle(*place, "controllers", refused.reason)
