"""What controllers registered in the log: their endpoints, and the kraft.versions their software supports.

RegisterControllerRecord (KIP-919) is data, not control: it is read from captured files here, where no lake
has it decoded. Only batches in which its frame can begin are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_batch
from kraft_core.format.segment import scan
from kraft_core.raft.voters import Endpoint

TYPE = "REGISTER_CONTROLLER_RECORD"
# Frame version 1, api key 27, version 0: how the record's value begins.
_FRAME = bytes((1, 27, 0))
# A feature that controllers register since 4.1.
_SINCE_4_1 = "share.version"


@dataclass(frozen=True, slots=True)
class Registration:
    """kraft_versions: lowest and highest that the controller supports; None if it named none.

    upgrades_kraft_version: whether its software is of a release that finalizes kraft.version 1 on a static
    quorum. Kafka 4.1 is the first; 3.9 answers that it did, and leaves it at 0.
    """

    node_id: int
    offset: int
    endpoints: tuple[Endpoint, ...]
    kraft_versions: tuple[int, int] | None
    upgrades_kraft_version: bool


@dataclass(frozen=True, slots=True)
class Registrations:
    """The newest registration of each controller."""

    newest: dict[int, Registration]

    @staticmethod
    def of(found: Iterable[Registration]) -> Registrations:
        newest: dict[int, Registration] = {}
        for one in sorted(found, key=lambda one: one.offset):
            newest[one.node_id] = one
        return Registrations(newest)


def registrations(directories: Iterable[ControllerDir]) -> Registrations:
    """By offset, over the segments and checkpoints of the directories. OSError when one cannot be read."""
    return Registrations.of(one for directory in directories for one in _of_directory(directory))


def _of_directory(directory: ControllerDir) -> Iterator[Registration]:
    for file in directory.checkpoints[-1:]:
        if file.id is not None:
            for record in _records(file):
                yield registration(record.value or {}, file.id.end_offset - 1)
    for file in directory.segments:
        for record in _records(file):
            yield registration(record.value or {}, record.offset)


def _records(file: Any) -> Iterator[Record]:
    with mapped(file.path) as buf:
        for item in scan(buf, end=file.size_bytes):
            if isinstance(item, BatchHeader) and _may_hold(buf, item):
                yield from (r for r in read_batch(buf, item) if r.type == TYPE and r.value is not None)


def _may_hold(buf: Any, header: BatchHeader) -> bool:
    return not header.is_control and bool(header.codec or _FRAME in buf[header.position : header.end])


def registration(value: Mapping[str, Any], offset: int) -> Registration:
    """A decoded RegisterControllerRecord."""
    versions = [f for f in value["features"] if f["name"] == "kraft.version"]
    return Registration(
        value["controllerId"],
        offset,
        tuple(Endpoint(end["name"], end["host"], end["port"]) for end in value["endPoints"]),
        (versions[0]["minSupportedVersion"], versions[0]["maxSupportedVersion"]) if versions else None,
        any(feature["name"] == _SINCE_4_1 for feature in value["features"]),
    )
