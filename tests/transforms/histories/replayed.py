"""Imaginary clusters as small tables of a lake, and their histories by the pure core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from kraft_core.columnar.schema import RECORDS as RECORDS_SCHEMA
from kraft_core.columnar.schema import message_projection
from kraft_core.format.secrets import redact
from kraft_core.image.change import RefusedRecord
from kraft_core.image.history import History, ReplayGap, rows
from kraft_core.image.image import Image
from kraft_core.image.missing_records import MissingRecords, may_lack, missing_records
from kraft_core.image.replay_path import (
    PathCheckpoint,
    ReplayRange,
    Step,
    first_difference,
    replay_order,
    replay_path,
)
from kraft_core.image.tables import KINDS
from kraft_core.messages.metadata import METADATA_RECORDS
from tests.kraft_core.image.worlds import Made, Row, replay
from transforms.histories.clocks import clock, on_path
from transforms.histories.missing import times_of
from transforms.histories.refused_records import sure
from transforms.histories.replay_plan import ReplayPlan, gaps, transactions, undated

MESSAGES = {message.type_name: message for message in METADATA_RECORDS}
# The checksum of the batches; those that conflict have lower and higher ones.
CRC = 1_000_000
EPOCH = datetime.fromtimestamp(0, UTC)
UNREADABLE = {"key_size_bytes": -1, "value_size_bytes": 0, "unknown_tagged_fields": 0}
SCRAM = "USER_SCRAM_CREDENTIAL_RECORD"
SAME = {"salt": b"", "storedKey": b"", "serverKey": b""}
MARKERS = ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")


@dataclass
class World:
    """A cluster: its records by offset, what was captured of them, and its checkpoints.

    conflicting: records of other batches of the same epochs, by their checksum. refused_in: records that a
    checkpoint holds beside those of its image, which refused them.
    """

    cluster_id: str
    records: list[Row]
    ranges: list[ReplayRange]
    checkpoints: dict[PathCheckpoint, Image] = field(default_factory=dict)
    conflicting: list[tuple[int, Row]] = field(default_factory=list)
    refused_in: dict[PathCheckpoint, list[Made]] = field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        epochs = sorted({r.leader_epoch for r in self.ranges})
        return replay_path(self.ranges, self.checkpoints, {after: epoch for epoch, after in pairwise(epochs)})

    @property
    def missing(self) -> list[MissingRecords]:
        undecoded = [
            (record.offset, record.offset + 1)
            for step in self.steps
            if isinstance(step, ReplayRange)
            for _, record in self.on(step)
            if record.value is None
        ]
        return missing_records(self.steps, undecoded)

    def on(self, range_: ReplayRange) -> list[tuple[int, Row]]:
        """The records in a range with the checksums of their batches, in the order of replay."""
        held = [
            (crc, record)
            for crc, record in [*((CRC, record) for record in self.records), *self.conflicting]
            if range_.first_offset <= record.offset < range_.end_offset
        ]
        return sorted(held, key=lambda each: replay_order(each[1].offset, each[1].type, each[0]))

    def plan(self, before: Sequence[Step] = ()) -> ReplayPlan:
        """What a run replays that finds histories of the steps before."""
        made = ReplayPlan(self.cluster_id, self.steps)
        made.start = (first_difference(before, made.steps) or 0) if before else 0
        held = [each for r in self.ranges for each in self.on(r)]
        offsets = np.array([r.offset for _, r in held], dtype=np.int64)
        epochs = np.array([r.leader_epoch for _, r in held], dtype=np.int64)
        times = np.array([r.timestamp for _, r in held], dtype=np.int64)
        kept = on_path(made.steps, offsets, offsets + 1, epochs)
        of_path = clock(made.steps, [(offsets[kept], offsets[kept] + 1, times[kept])])
        made.floors = of_path.floors(undated(made.steps))
        made.gaps = gaps(made.steps, of_path)
        made.missing = made.unsure = self.missing
        made.missing_at = times_of(made.missing, made.steps, of_path)
        made.transactions = transactions(made, [as_row(r, crc) for crc, r in held if r.type in MARKERS])
        opened = [t.begin_offset for t in made.transactions if t.begin_offset < made.start <= t.last_offset]
        made.start = min([made.start, *opened])
        return made

    def begun(self, random: Random) -> World:
        """The cluster as it was captured earlier: its log ends sooner, less of it is decided."""
        end = random.randint(0, len(self.records))
        decided = random.randint(0, end)
        ranges = [
            replace(r, first_offset=first, end_offset=last, commit_status=status)
            for r in self.ranges
            for first, last, status in (
                (r.first_offset, min(r.end_offset, decided), r.commit_status),
                (max(r.first_offset, decided), min(r.end_offset, end), "undecided"),
            )
            if first < last
        ]
        held = {c: image for c, image in self.checkpoints.items() if c.end_offset <= end}
        return replace(self, ranges=ranges, checkpoints=held)

    def expected(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every history by the pure core."""
        history = self._replayed()
        return {kind: [self._lake_row(row) for row in rows(history.versions(kind))] for kind in KINDS}

    def refused(self) -> list[RefusedRecord]:
        """The records that the pure core refuses."""
        return sure(self._replayed().take_refused(), self.missing)

    def _replayed(self) -> History:
        history = History()
        gap, reached = None, -1
        for step in self.steps:
            if isinstance(step, PathCheckpoint):
                history.load(self.checkpoints[step], gap)
                reached = max(reached, -1 if step.timestamp is None else step.timestamp)
            else:
                for _, at_offset in groupby(self.on(step), lambda each: each[1].offset):
                    found = [record for _, record in at_offset]
                    history.apply(*found)
                    reached = max(reached, *(record.timestamp for record in found))
            gap = ReplayGap(step.end_offset, reached)
        history.end()
        return history

    def _lake_row(self, row: dict[str, Any]) -> dict[str, Any]:
        known, end = row["known_from_offset"], row["valid_to_offset"]
        began = "committed" if known is not None else self._status(row["valid_from_offset"])
        ended = None if end is None else "committed" if row["ended_by"] == "snapshot" else self._status(end)
        names = ("valid_from_at", "valid_to_at", "earliest_from_at", "earliest_to_at", "appended_at")
        times = {n: moment(row[n]) for n in names}
        since, until = may_lack(self.missing, row["valid_from_offset"], end) or (None, None)
        return (
            row
            | times
            | {"cluster_id": self.cluster_id, "commit_status": began, "end_commit_status": ended}
            | {"incomplete_from_offset": since, "incomplete_from_at": moment(self._reached_below(since))}
            | {"incomplete_to_offset": until, "incomplete_to_at": moment(self._stated_at(until))}
        )

    def _stated_at(self, offset: int | None) -> int | None:
        """When the checkpoint that is loaded at an offset takes effect."""
        loaded = [s for s in self.steps if isinstance(s, PathCheckpoint) and s.first_offset == offset]
        if not loaded or loaded[0].timestamp is None:
            return None
        return max(loaded[0].timestamp, self._reached_below(loaded[0].end_offset) or -1)

    def _reached_below(self, offset: int | None) -> int | None:
        """The latest time of what lies on the path below an offset."""
        if offset is None:
            return None
        times = [
            record.timestamp
            for step in self.steps
            if isinstance(step, ReplayRange)
            for _, record in self.on(step)
            if record.offset < offset
        ]
        loaded = [s.timestamp for s in self.steps if isinstance(s, PathCheckpoint) and s.end_offset <= offset]
        return max([*times, *(at for at in loaded if at is not None)], default=None)

    def _status(self, offset: int) -> str:
        return next(r.commit_status for r in self.ranges if r.first_offset <= offset < r.end_offset)


def moment(ms: int | None) -> datetime | None:
    return None if ms is None or ms < 0 else EPOCH + timedelta(milliseconds=ms)


def as_row(record: Row, batch_crc: int = 0) -> dict[str, Any]:
    """A record as a row of the lake's records, its secrets gone."""
    message = MESSAGES[record.type]
    value, redacted = (None, False) if record.value is None else redact(message, record.value)
    row: dict[str, Any] = {
        "offset": record.offset,
        "leader_epoch": record.leader_epoch,
        "batch_crc": batch_crc,
        "position_in_batch": 0,
        "batch_base_offset": record.offset,
        "appended_at": moment(record.timestamp),
        "type": record.type,
        "is_control": False,
        "redacted": redacted,
        "unread_reason": "malformed_value" if value is None else None,
        "begin_transaction": None,
        "abort_transaction": None,
    }
    return row | UNREADABLE | {message.column: None if value is None else message_projection(message)(value)}


def records_table(worlds: Sequence[World]) -> pa.Table:
    """The captured records of all of them as rows of table records."""
    held = [(w.cluster_id, as_row(r, crc)) for w in worlds for s in w.ranges for crc, r in w.on(s)]
    return with_columns([row for _, row in held], {"cluster_id": [c for c, _ in held]})


def snapshot_records_table(worlds: Sequence[World]) -> pa.Table:
    """The records of their checkpoints as rows of table snapshot_records."""
    rows, keys = [], []
    for world in worlds:
        for checkpoint, image in world.checkpoints.items():
            held = [*image.to_records(), *world.refused_in.get(checkpoint, ())]
            for place, (type_, value) in enumerate(held):
                rows.append(as_row(Row(0, checkpoint.leader_epoch, 0, type_, value)))
                keys.append((world.cluster_id, checkpoint.content_digest, checkpoint.end_offset, place))
    names = ("cluster_id", "content_digest", "end_offset", "position")
    columns = {name: [key[n] for key in keys] for n, name in enumerate(names)}
    numbers = {name: pa.array(columns[name], pa.int64()) for name in names[2:]}
    return with_columns(rows, columns | numbers)


def with_columns(rows: list[dict[str, Any]], columns: dict[str, Any]) -> pa.Table:
    schema = pa.schema([f.with_nullable(True) for f in RECORDS_SCHEMA])
    table = pa.Table.from_pylist(rows, schema=schema)
    for name, values in columns.items():
        kind = pa.string() if isinstance(values, list) else values.type
        table = table.append_column(name, pa.array(values, kind))
    return table


def damaged(record: Row) -> Row:
    """The record with a value that is damaged."""
    return replace(record, value=None)


def whole(cluster_id: str, records: list[Row], random: Random, unread: float = 0.03) -> World:
    """A cluster of which everything was captured; from the middle on nothing is decided yet.

    unread: how likely a record cannot be read.
    """
    records = [replace(r, timestamp=r.timestamp + wander(r.offset)) for r in records]
    records = [damaged(r) if random.random() < unread and r.type not in MARKERS else r for r in records]
    middle = len(records) // 2
    ranges = []
    for epoch in sorted({r.leader_epoch for r in records}):
        own = [r.offset for r in records if r.leader_epoch == epoch]
        for status, first, end in (
            ("committed", own[0], min(own[-1] + 1, middle)),
            ("undecided", max(own[0], middle), own[-1] + 1),
        ):
            if first < end:
                ranges.append(ReplayRange(first, end, epoch, status))
    return World(cluster_id, records, ranges)


def forgetful(cluster_id: str, records: list[Row], random: Random) -> World:
    """A cluster whose leaders never wrote every tenth record: what follows refers to what is not there."""
    kept = [record for record in records if random.random() > 0.1]
    return whole(cluster_id, [replace(record, offset=n) for n, record in enumerate(kept)], random, unread=0)


def wander(offset: int) -> int:
    """How far the clock of the leader of that time is off, ms: it goes back now and then."""
    return Random(offset // 7).choice([0, 0, 300, -200])


def gapped(cluster_id: str, records: list[Row], random: Random) -> World:
    """A cluster of which some offsets were lost, with checkpoints in or behind the gap; nothing undecided."""
    # In the lake credentials that differ in their secrets alone are equal.
    records = [replace(r, value=r.value | SAME) if r.type == SCRAM and r.value else r for r in records]
    world = whole(cluster_id, records, random)
    world.records = records
    places = [0]
    image = Image()
    for record in records:
        image.apply(record)
        if not image.in_transaction:
            places.append(record.offset + 1)
    first, end = sorted(random.sample(range(len(records) + 1), 2)) if len(records) > 1 else (0, 1)
    taken = random.sample(places, min(len(places), 3))
    for place in taken:
        if place > 0:
            # Every other header lacks LastContainedLogTimestamp.
            at = records[place - 1].timestamp if place % 2 else None
            checkpoint = PathCheckpoint(place, records[place - 1].leader_epoch, f"at {place}", at)
            world.checkpoints[checkpoint] = loaded(checkpoint, [*replay(records[:place]).to_records()])
    world.ranges = [
        replace(piece, commit_status="committed")
        for s in world.ranges
        for piece in (
            replace(s, end_offset=min(s.end_offset, first)),
            replace(s, first_offset=max(s.first_offset, end)),
        )
        if piece.first_offset < piece.end_offset
    ]
    return world


def with_refused(world: World, made: Sequence[Made]) -> World:
    """The cluster where every other checkpoint holds records, too, that are refused there."""
    refused_in = {checkpoint: list(made) for checkpoint in [*world.checkpoints][::2]}
    checkpoints = {
        checkpoint: loaded(checkpoint, [*image.to_records(), *refused_in.get(checkpoint, ())])
        for checkpoint, image in world.checkpoints.items()
    }
    return replace(world, checkpoints=checkpoints, refused_in=refused_in)


def loaded(checkpoint: PathCheckpoint, held: Sequence[Made]) -> Image:
    """The image that a checkpoint of these records makes."""
    records = [Row(n, 0, 0, *record) for n, record in enumerate(held)]
    at = -1 if checkpoint.timestamp is None else checkpoint.timestamp
    return Image.of_snapshot(records, checkpoint.end_offset, checkpoint.leader_epoch, at)


def in_conflict(world: World, random: Random) -> World:
    """The cluster where several batches of its epochs conflict: each with another record of the same log."""
    found = [
        (random.choice([CRC - 1, CRC + 1]), replace(at, type=other.type, value=other.value, timestamp=time))
        for at in random.sample(world.records, len(world.records) // 5)
        for other in [random.choice(world.records[max(0, at.offset - 10) : at.offset + 10])]
        for time in [at.timestamp + random.choice([-500, 0, 500])]
    ]
    return replace(world, conflicting=found)
