"""A record as a release of Kafka reads it, or why it cannot.

Sources: RecordsIterator, MetadataRecordSerde and KRaftControlRecordStateMachine: these run on every node, so
a record that they cannot read terminates brokers, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kraft_core.format import compression
from kraft_core.format.batch import BatchHeader, RawRecord
from kraft_core.format.record import Record, understood
from kraft_core.format.release_reader import ReleaseRefusesError, read_as
from kraft_core.messages.control import ABORT, COMMIT
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.releases import RELEASES, Release

# Who ends: every node that reads it, or every controller that replays it.
Ends = Literal["nodes", "controllers"]
# A record below this size holds neither more elements nor more tagged fields than a release reads.
_LIMITED_BYTES = 20_000
_LOG_APPEND_TIME = 0x08


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A record that a release does not take.

    file: relative to the directory; position: of the batch in it, None where only the offset is known.
    offset, leader_epoch: of the log; None in a checkpoint. record: type and version. words: why. kafka: what
    Kafka throws, None where its words are not known. takers: the releases that take it by itself.
    """

    file: str
    position: int | None
    offset: int | None
    leader_epoch: int | None
    record: str
    ends: Ends
    words: str
    kafka: str | None = None
    takers: tuple[str, ...] = ()


class RecordPlace(NamedTuple):
    """Where a record is: the first fields of its Obstacle."""

    file: str
    position: int | None
    offset: int | None
    leader_epoch: int | None
    record: str

    @property
    def where(self) -> str:
        at = f"position {self.position}" if self.offset is None else f"offset {self.offset}"
        return f"{self.file}, {at}"

    @classmethod
    def of(cls, file: str, record: Record) -> RecordPlace:
        if file.endswith(".checkpoint"):
            return cls(file, record.batch.position, None, None, _name(record))
        return cls(file, record.batch.position, record.offset, record.leader_epoch, _name(record))


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """record: as the release reads it, None where it throws. obstacle: why it throws.

    unread: why it is not known what it reads, in words. left_out: that it knows an older version only.
    """

    record: Record | None = None
    obstacle: Obstacle | None = None
    unread: str | None = None
    left_out: str | None = None


def read_record(release: Release, file: str, header: BatchHeader, nth: int, raw: RawRecord) -> ReadRecord:
    """The nth record (from 0) of a batch. file: relative to the directory."""
    record = understood(header, nth, raw)
    place = RecordPlace.of(file, record)
    words = _framing(header, raw)
    if words is not None:
        return ReadRecord(obstacle=Obstacle(*place, "nodes", "it cannot be read", words))
    if header.is_control:
        return _control(record, place)
    try:
        return _data(release, raw, record, place)
    except ReleaseRefusesError as refused:
        readers = tuple(_readers(raw))
        return ReadRecord(obstacle=Obstacle(*place, "nodes", "it cannot be read", str(refused), readers))


def _data(release: Release, raw: RawRecord, record: Record, place: RecordPlace) -> ReadRecord:
    """Raises ReleaseRefusesError."""
    known = release.records.get(-1 if record.api_key is None else record.api_key, -1)
    if (
        record.reason is None
        and record.message is by_api_key.get(record.api_key or 0)
        and record.version == known  # an older one may hold a tagged field that it must not have
        and record.size_bytes < _LIMITED_BYTES
    ):
        return ReadRecord(record)
    message, version, value = read_as(release, raw.value or b"")
    read = record._replace(type=message.type_name, version=version, value=value, reason=None)
    if version <= known:
        return ReadRecord(read)
    newer = f"{message.type_name} version {version}, read as version {known}"
    return ReadRecord(read, left_out=f"{place.where}: {newer}")


def _readers(raw: RawRecord) -> Iterator[str]:
    """The releases whose classes read the record as a whole."""
    for release in RELEASES.values():
        try:
            message, version, _ = read_as(release, raw.value or b"")
        except ReleaseRefusesError:
            continue
        if version <= release.records.get(message.api_key or 0, -1):
            yield release.name


def _control(record: Record, place: RecordPlace) -> ReadRecord:
    if record.reason == "unknown_control_type" or record.api_key in (ABORT, COMMIT):
        name = "UNKNOWN" if record.reason == "unknown_control_type" else record.type
        words = f"java.lang.IllegalArgumentException: Unknown control record type {name}"
        return ReadRecord(obstacle=Obstacle(*place, "nodes", "it cannot be read", words))
    if record.reason is None:
        return ReadRecord(record)
    return ReadRecord(unread=f"{place.where}: the control record cannot be read: {record.detail}")


def _framing(header: BatchHeader, raw: RawRecord) -> str | None:
    """What RecordsIterator throws of the record's envelope, None if nothing."""
    named = "java.lang.IllegalArgumentException: "
    delta = raw.timestamp - header.base_timestamp
    if header.codec != compression.NONE and raw.size_bytes - 5 > header.size_bytes:
        return "java.lang.RuntimeException: Specified frame size is larger than the entire size of the batch"
    if delta and not header.attributes & _LOG_APPEND_TIME:
        return f"{named}Got timestamp delta of {delta}, but this is invalid because it is not 0 as expected."
    if raw.headers:
        return f"{named}Got numHeaders of ..., but this is invalid because it is not 0 as expected."
    if header.is_control:
        return None
    if raw.key is not None:
        return f"{named}Got key in the record when no key was expected"
    if raw.value is None:
        return f"{named}Missing value in the record when a value was expected"
    return None if raw.value else f"{named}Got an unexpected empty value in the record"


def _name(record: Record) -> str:
    name = record.type if record.message is not None or record.api_key is None else f"record {record.api_key}"
    version = "" if record.version is None else f" version {record.version}"
    return f"{name}{version}"
