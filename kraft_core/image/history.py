"""Every version of every thing: from which offset it stood, until which, and which record made it.

The slow and plain way to the history tables, by which faster ones are tested.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.image.change import Change, Key, MetadataRecord
from kraft_core.image.differences import differences
from kraft_core.image.image import AppliedChange, Image
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.tables import KINDS

SNAPSHOT = "snapshot"
"""Stands for a record type where a thing ended because a snapshot, loaded over a gap, no longer had it."""


@dataclass(frozen=True, slots=True)
class Version:
    """A thing's value from valid_from_offset (inclusive) to valid_to_offset (exclusive; None: still).

    valid_from_at, valid_to_at: the same in time, ms by the running maximum of the batches' timestamps.
    record_offset, record_type, record_leader_epoch, appended_at (ms, as the leader stamped it): the record
    that made it; in a metadata transaction it lies below valid_from_offset, which is the transaction's end.
    ended_by: type of the record that ended it. known_from_offset: set where the version was first seen in a
    snapshot, whose last offset it then is and the version may be older; record_offset is None for these.
    """

    kind: str
    key: Key
    value: Any
    valid_from_offset: int
    valid_from_at: int
    record_offset: int | None
    record_type: str
    record_leader_epoch: int
    appended_at: int
    known_from_offset: int | None = None
    valid_to_offset: int | None = None
    valid_to_at: int | None = None
    ended_by: str | None = None


class History:
    """Owns an image and the versions that led to it; `apply` and `load` move it on.

    One that goes on from versions told before is given them first, by `stand`.
    """

    def __init__(self) -> None:
        self.image = Image()
        self._effective_at = -1
        self._open: dict[str, dict[Key, Version]] = {kind: {} for kind in KINDS}
        self._closed: dict[str, list[Version]] = {kind: [] for kind in KINDS}

    def stand(self, version: Version) -> None:
        """A version that stands where this history begins."""
        self.image.tables.put(Change(version.kind, version.key, version.value))
        self._begin(version)

    def reach(self, time: int) -> None:
        """Batches before the next record were written as late as `time` (ms), whatever they held."""
        self._effective_at = max(self._effective_at, time)

    def apply(self, record: MetadataRecord) -> None:
        """The next record of the log."""
        self._effective_at = max(self._effective_at, record.timestamp)
        for made in self.image.apply(record):
            self._end(made.change, record.offset, made.record.type)
            if made.change.value is not None:
                self._begin(self._of_record(made, record.offset))

    def load(self, snapshot: Image) -> None:
        """Starts from a snapshot's image, or jumps to it: equal things go on, the rest ends or begins."""
        self._effective_at = max(self._effective_at, snapshot.timestamp)
        for difference in differences(self.image, snapshot):
            change = Change(difference.kind, difference.key, difference.after)
            self._end(change, snapshot.offset, SNAPSHOT)
            if change.value is not None:
                self._begin(self._of_snapshot(change, snapshot))
        self.image = snapshot.copy()

    def _of_record(self, made: AppliedChange, visible_from: int) -> Version:
        return Version(
            kind=made.change.kind,
            key=made.change.key,
            value=made.change.value,
            valid_from_offset=visible_from,
            valid_from_at=self._effective_at,
            record_offset=made.record.offset,
            record_type=made.record.type,
            record_leader_epoch=made.record.leader_epoch,
            appended_at=made.record.timestamp,
        )

    def _of_snapshot(self, change: Change, snapshot: Image) -> Version:
        record_type, _ = BY_NAME[change.kind].to_record(change.value)
        return Version(
            kind=change.kind,
            key=change.key,
            value=change.value,
            valid_from_offset=snapshot.offset,
            valid_from_at=self._effective_at,
            record_offset=None,
            record_type=record_type,
            record_leader_epoch=snapshot.leader_epoch,
            appended_at=snapshot.timestamp,
            known_from_offset=snapshot.offset,
        )

    def _begin(self, version: Version) -> None:
        self._open[version.kind][version.key] = version

    def _end(self, change: Change, offset: int, ended_by: str) -> None:
        version = self._open[change.kind].pop(change.key, None)
        if version is not None:
            ended = replace(
                version, valid_to_offset=offset, valid_to_at=self._effective_at, ended_by=ended_by
            )
            self._closed[change.kind].append(ended)

    def versions(self, kind: str) -> list[Version]:
        """In the order in which they began; within one offset, in the order of the records."""
        every = [*self._closed[kind], *self._open[kind].values()]
        return sorted(every, key=lambda version: (version.valid_from_offset, version.record_offset or -1))


def history(records: Iterable[MetadataRecord], snapshot: Image | None = None) -> dict[str, list[Version]]:
    """The versions of every kind by the records that follow the snapshot, or that begin the log."""
    told = History()
    if snapshot is not None:
        told.load(snapshot)
    for record in records:
        told.apply(record)
    return {kind: told.versions(kind) for kind in KINDS}


def rows(versions: Iterable[Version]) -> Iterator[dict[str, Any]]:
    """A table's rows: the columns of the thing without its secrets, then those of Version."""
    for version in versions:
        yield {
            **BY_NAME[version.kind].row(version.value),
            "valid_from_offset": version.valid_from_offset,
            "valid_to_offset": version.valid_to_offset,
            "valid_from_at": version.valid_from_at,
            "valid_to_at": version.valid_to_at,
            "known_from_offset": version.known_from_offset,
            "record_offset": version.record_offset,
            "record_type": version.record_type,
            "record_leader_epoch": version.record_leader_epoch,
            "appended_at": version.appended_at,
            "ended_by": version.ended_by,
        }
