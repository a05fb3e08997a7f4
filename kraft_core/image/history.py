"""Validity intervals (SCD type 2) of every thing in the metadata: its values, and the records that made them.

The plain reference of the history tables: whatever computes them in another way must equal it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.image.change import Change, Key, MetadataRecord, RefusedRecord
from kraft_core.image.differences import differences
from kraft_core.image.image import AppliedChange, Image, net
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.tables import KINDS

SNAPSHOT = "snapshot"
"""Takes the place of a record type where a thing ended because a snapshot, loaded over a gap, lacked it."""


@dataclass(frozen=True, slots=True)
class Version:
    """A thing's value from valid_from_offset (inclusive) to valid_to_offset (exclusive; None: current).

    valid_from_at, valid_to_at: when it was valid, ms by the running maximum of the batches' timestamps; -1
    where no timestamp is known. record_offset, record_type, record_leader_epoch, appended_at (ms, as the
    leader stamped it): the record that made it; in a metadata transaction it lies below valid_from_offset,
    which is the transaction's end. ended_by: type of the record that ended it, or SNAPSHOT.

    known_from_offset: the last offset of the snapshot that held the version first; it began at or before,
    and its record_offset is None. earliest_from_offset, earliest_from_at: where the log before that snapshot
    ends, below which it did not begin; None and -1 where nothing bounds it. earliest_to_offset,
    earliest_to_at: the same of an end by SNAPSHOT.
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
    earliest_from_offset: int | None = None
    earliest_from_at: int = -1
    valid_to_offset: int | None = None
    valid_to_at: int | None = None
    earliest_to_offset: int | None = None
    earliest_to_at: int = -1
    ended_by: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayGap:
    """Offsets that are not replayed, from first_offset (inclusive) to a snapshot that covers them.

    begun_at: running maximum of the timestamps below first_offset, ms; -1 where none is known.
    """

    first_offset: int
    begun_at: int


class History:
    """Owns an image and the versions that led to it; `apply` and `load` move it on.

    To resume from known versions, pass those that are current to `resume` first.
    """

    def __init__(self) -> None:
        self.image = Image()
        self._effective_at = -1
        self._refused: list[RefusedRecord] = []
        self._refuses = True
        self._open: dict[str, dict[Key, Version]] = {kind: {} for kind in KINDS}
        self._closed: dict[str, list[Version]] = {kind: [] for kind in KINDS}

    def resume(self, version: Version) -> None:
        """Add a version that is current where this history begins."""
        self.image.tables.put(Change(version.kind, version.key, version.value))
        self._begin(version)

    def reach(self, time: int) -> None:
        """Raise the running maximum of timestamps to `time` (ms)."""
        self._effective_at = max(self._effective_at, time)

    def apply(self, *records: MetadataRecord) -> None:
        """Apply the next record of the log.

        Where batches conflict, pass the records of all of them at the offset: like those of a transaction,
        they take effect at once, and of what they say of one thing the last counts.
        """
        for record in records:
            self.reach(record.timestamp)
        changes = [made for record in records for made in self.image.apply(record)]
        if self.image.refusals or self.image.controller_refusals:
            self._keep_refusals(self.image.refusals + self.image.controller_refusals)
        offset = records[-1].offset
        for made in net(changes) if len(changes) > 1 else changes:
            self._end(made.change, offset, made.record.type)
            if made.change.value is not None:
                self._begin(self._of_record(made, offset))

    def load(self, snapshot: Image, gap: ReplayGap | None = None) -> None:
        """Start from a snapshot's image, or jump to it: what is equal goes on, the rest ends or begins.

        gap: over which it jumps; None: nothing before the snapshot is known.
        """
        self.reach(snapshot.timestamp)
        for difference in differences(self.image, snapshot):
            change = Change(difference.kind, difference.key, difference.after)
            self._end(change, snapshot.offset, SNAPSHOT, gap)
            if change.value is not None:
                self._begin(self._of_snapshot(change, snapshot, gap))
        self.end()
        self._refused += [
            replace(refused, offset=snapshot.offset, leader_epoch=snapshot.leader_epoch)
            for refused in snapshot.refusals + snapshot.controller_refusals
        ]
        self._refuses = not snapshot.refusals
        self.image = snapshot.copy()
        self.image.refusals.clear()
        self.image.controller_refusals.clear()

    def end(self) -> None:
        """Nothing follows what was applied: a transaction that is open stays open."""
        refused, refused_by_controllers = self.image.refused_in_open()
        self._keep_refusals(refused + refused_by_controllers)

    def _keep_refusals(self, refused: list[RefusedRecord]) -> None:
        if self._refuses:
            self._refused += refused
        self.image.refusals.clear()
        self.image.controller_refusals.clear()

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

    def _of_snapshot(self, change: Change, snapshot: Image, gap: ReplayGap | None) -> Version:
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
            earliest_from_offset=gap and gap.first_offset,
            earliest_from_at=gap.begun_at if gap else -1,
        )

    def _begin(self, version: Version) -> None:
        self._open[version.kind][version.key] = version

    def _end(self, change: Change, offset: int, ended_by: str, gap: ReplayGap | None = None) -> None:
        version = self._open[change.kind].pop(change.key, None)
        if version is not None:
            ended = replace(
                version,
                valid_to_offset=offset,
                valid_to_at=self._effective_at,
                earliest_to_offset=gap and gap.first_offset,
                earliest_to_at=gap.begun_at if gap else -1,
                ended_by=ended_by,
            )
            self._closed[change.kind].append(ended)

    def versions(self, kind: str) -> list[Version]:
        """In the order in which they began; within one offset, in the order of the records."""
        every = [*self._closed[kind], *self._open[kind].values()]
        return sorted(every, key=lambda version: (version.valid_from_offset, version.record_offset or -1))

    def current(self, kind: str) -> list[Version]:
        """The versions that have not ended."""
        return list(self._open[kind].values())

    def take_refused(self) -> list[RefusedRecord]:
        """The records that were refused since the last call, of a snapshot at its last offset; this history
        forgets them.

        None of the log after a snapshot that holds a refused record: what it lacks is not known.
        """
        refused, self._refused = self._refused, []
        return refused

    def take_ended(self, kind: str) -> list[Version]:
        """The versions that ended since the last call; this history forgets them."""
        ended, self._closed[kind] = self._closed[kind], []
        return ended


def rows(versions: Iterable[Version]) -> Iterator[dict[str, Any]]:
    """A table's rows: the columns of the thing without its secrets, then those of Version."""
    for version in versions:
        yield {
            **BY_NAME[version.kind].row(version.value),
            "valid_from_offset": version.valid_from_offset,
            "valid_to_offset": version.valid_to_offset,
            "valid_from_at": version.valid_from_at,
            "valid_to_at": version.valid_to_at,
            "valid_from_exact": version.known_from_offset is None,
            "earliest_from_offset": version.earliest_from_offset,
            "earliest_from_at": version.earliest_from_at,
            "valid_to_exact": None if version.ended_by is None else version.ended_by != SNAPSHOT,
            "earliest_to_offset": version.earliest_to_offset,
            "earliest_to_at": version.earliest_to_at,
            "known_from_offset": version.known_from_offset,
            "record_offset": version.record_offset,
            "record_type": version.record_type,
            "record_leader_epoch": version.record_leader_epoch,
            "appended_at": version.appended_at,
            "ended_by": version.ended_by,
        }
