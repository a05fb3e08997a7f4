"""What controllers and brokers registered: their endpoints, and the kraft.versions their software supports.

RegisterControllerRecord (KIP-919) and RegisterBrokerRecord are data, not control: they are read from captured
files here, where no lake has them decoded. Only batches in which such a record can begin are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from kraft_core.evidence.facts import Capture, SnapshotFacts
from kraft_core.format.batch import BatchHeader, iter_records
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile
from kraft_core.format.errors import DecodeError
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, understood
from kraft_core.format.segment import scan
from kraft_core.raft.voters import Endpoint
from kraft_core.wording import range_words

Kind = Literal["controller", "broker"]
KRAFT_VERSION = "kraft.version"
REGISTER_CONTROLLER = "REGISTER_CONTROLLER_RECORD"
REGISTER_BROKER = "REGISTER_BROKER_RECORD"
UNREGISTER_CONTROLLER = "UNREGISTER_CONTROLLER_RECORD"
UNREGISTER_BROKER = "UNREGISTER_BROKER_RECORD"
TYPES = (REGISTER_CONTROLLER, REGISTER_BROKER, UNREGISTER_CONTROLLER, UNREGISTER_BROKER)
# How the value begins: frame version 1, api key 0, 1, 27 or 29, version. Before it a null key and its length.
_BEGINNING = rb"\x01[\x00\x01\x1b\x1d][\x00-\x0f]"
_VALUE = re.compile(_BEGINNING)
_FRAME = re.compile(rb"\x01[\x80-\xff]{0,4}[\x00-\x7f]" + _BEGINNING)
# A feature that controllers register since 4.1.
_SINCE_4_1 = "share.version"


@dataclass(frozen=True, slots=True)
class Registration:
    """kraft_versions: lowest and highest that the software supports; None if it named none.

    upgrades_kraft_version: whether its software is of a release that finalizes kraft.version 1 on a static
    quorum. Kafka 4.1 is the first; 3.9 answers that it did, and leaves it at 0.
    """

    node_id: int
    offset: int
    endpoints: tuple[Endpoint, ...]
    kraft_versions: tuple[int, int] | None
    upgrades_kraft_version: bool


@dataclass(frozen=True, slots=True)
class RegistrationRecord:
    """A record of a log, or of the snapshot that ends with that offset and epoch.

    node_id: None where the record cannot be read. registration: None where it removes one.
    """

    offset: int
    leader_epoch: int
    kind: Kind
    node_id: int | None
    registration: Registration | None
    in_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Registrations:
    """What is registered at the end of one log, by node id. gap: why some may be missing, None if none is."""

    controllers: dict[int, Registration]
    brokers: dict[int, Registration]
    gap: str | None


@dataclass(frozen=True, slots=True)
class Registered:
    """Every such record that the captures hold, on any replica's log."""

    records: tuple[RegistrationRecord, ...]

    @staticmethod
    def of(found: Iterable[RegistrationRecord]) -> Registered:
        return Registered(tuple(sorted(set(found), key=_order)))

    def along(self, log: Capture, snapshots: Iterable[SnapshotFacts]) -> Registrations:
        """What a captured log puts in force at its end: its newest complete snapshot, then its records.

        A log that begins above offset 0 without a snapshot there shows some of the registrations only.
        """
        held = {
            (s.end_offset, s.leader_epoch)
            for s in snapshots
            if s.proves and log.capture_id in s.held_in and s.end_offset <= (log.log_end_offset or 0)
        }
        end, epoch = max(held, default=(0, -1))
        found = [r for r in self.records if r.in_snapshot and (r.offset + 1, r.leader_epoch) == (end, epoch)]
        above = [r for r in self.records if not r.in_snapshot and r.offset >= end and _holds(log, r)]
        in_force = [*found, *sorted(above, key=lambda r: r.offset)]
        by_kind: dict[Kind, dict[int, Registration]] = {"controller": {}, "broker": {}}
        for record in in_force:
            if record.node_id is None:
                continue
            if record.registration is None:
                by_kind[record.kind].pop(record.node_id, None)
            else:
                by_kind[record.kind][record.node_id] = record.registration
        gap = _gap(log, end)
        if gap is None and any(record.node_id is None for record in in_force):
            gap = "a registration cannot be read"
        return Registrations(by_kind["controller"], by_kind["broker"], gap)


def _holds(log: Capture, record: RegistrationRecord) -> bool:
    return any(
        epoch_range.leader_epoch == record.leader_epoch
        and epoch_range.first_offset <= record.offset < epoch_range.end_offset
        for epoch_range in log.epoch_ranges
    )


def _gap(log: Capture, offset: int) -> str | None:
    """Why a captured log does not hold every record from an offset to its end, None if it does."""
    reached = offset
    for epoch_range in log.epoch_ranges:
        if epoch_range.first_offset > reached:
            lacks = range_words(reached, epoch_range.first_offset)
            return f"the captured log of {log.node_id} lacks {lacks}, and no snapshot covers that"
        reached = max(reached, epoch_range.end_offset)
    return None if log.known_end is not None else f"the log end of {log.node_id} cannot be read"


def registered(directories: Iterable[ControllerDir]) -> Registered:
    """The records of the directories' segments and snapshots, as far as their files can be read."""
    return Registered.of(record for directory in directories for record in _of_directory(directory))


def _order(record: RegistrationRecord) -> tuple[int, int, bool, Kind, int]:
    node_id = -1 if record.node_id is None else record.node_id
    return record.offset, record.leader_epoch, record.in_snapshot, record.kind, node_id


def _of_directory(directory: ControllerDir) -> Iterator[RegistrationRecord]:
    for file in directory.checkpoints:
        if file.id is not None:
            for record in _records(file):
                last = file.id.end_offset - 1
                yield registration_record(record, last, file.id.leader_epoch, in_snapshot=True)
    for file in directory.segments:
        for record in _records(file):
            yield registration_record(record, record.offset, record.leader_epoch)


def _records(file: CheckpointFile | SegmentFile) -> Iterator[Record]:
    """Of a file that cannot be read none: its capture is not readable then, so that none of it counts."""
    try:
        with mapped(file.path) as buf:
            for item in scan(buf, end=file.size_bytes):
                if isinstance(item, BatchHeader) and _may_hold(buf, item):
                    yield from _of_batch(buf, item)
    except OSError:
        return


def _of_batch(buf: Any, header: BatchHeader) -> Iterator[Record]:
    """The registrations in a batch, up to where its records cannot be separated."""
    with suppress(DecodeError):
        for nth, raw in enumerate(iter_records(buf, header)):
            if _VALUE.match(raw.value or b""):
                yield understood(header, nth, raw)


def _may_hold(buf: Any, header: BatchHeader) -> bool:
    if header.is_control:
        return False
    return bool(header.codec) or _FRAME.search(buf, header.position, header.end) is not None


def registration_record(
    record: Record, offset: int, leader_epoch: int, *, in_snapshot: bool = False
) -> RegistrationRecord:
    """A decoded record of TYPES."""
    return record_of(record.type, record.value, offset, leader_epoch, in_snapshot=in_snapshot)


def record_of(
    type_name: str,
    value: Mapping[str, Any] | None,
    offset: int,
    leader_epoch: int,
    *,
    in_snapshot: bool = False,
) -> RegistrationRecord:
    """The value of a record of TYPES, in Kafka's names; None if it cannot be read."""
    kind: Kind = "controller" if type_name in (REGISTER_CONTROLLER, UNREGISTER_CONTROLLER) else "broker"
    if value is None:
        return RegistrationRecord(offset, leader_epoch, kind, None, None, in_snapshot)
    node_id = value["controllerId" if kind == "controller" else "brokerId"]
    is_removal = type_name in (UNREGISTER_CONTROLLER, UNREGISTER_BROKER)
    registration = None if is_removal else _registration(value, node_id, offset)
    return RegistrationRecord(offset, leader_epoch, kind, node_id, registration, in_snapshot)


def _registration(value: Mapping[str, Any], node_id: int, offset: int) -> Registration:
    versions = [feature for feature in value["features"] if feature["name"] == KRAFT_VERSION]
    return Registration(
        node_id,
        offset,
        tuple(Endpoint(end["name"], end["host"], end["port"]) for end in value["endPoints"]),
        (versions[0]["minSupportedVersion"], versions[0]["maxSupportedVersion"]) if versions else None,
        any(feature["name"] == _SINCE_4_1 for feature in value["features"]),
    )
