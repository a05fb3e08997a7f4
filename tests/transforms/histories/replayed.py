"""Imaginary clusters as small frames of a lake, and what the pure core says of their histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from kraft_core.columnar.schema import RECORDS as RECORDS_SCHEMA
from kraft_core.columnar.schema import message_projection
from kraft_core.format.secrets import redact
from kraft_core.image.history import History, rows
from kraft_core.image.image import Image
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange, Step, first_difference, line
from kraft_core.image.tables import KINDS
from kraft_core.messages.metadata import METADATA_RECORDS
from tests.kraft_core.image.worlds import Row, replay
from transforms.histories.replay_plan import ReplayPlan, clock, on_line, transactions

MESSAGES = {message.type_name: message for message in METADATA_RECORDS}
EPOCH = datetime.fromtimestamp(0, UTC)
UNREADABLE = {"key_size_bytes": -1, "value_size_bytes": 0, "unknown_tagged_fields": 0}
SCRAM = "USER_SCRAM_CREDENTIAL_RECORD"
SAME = {"salt": b"", "storedKey": b"", "serverKey": b""}
MARKERS = ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")


@dataclass
class World:
    """A cluster: its records by offset, what was captured of them, and its checkpoints."""

    cluster_id: str
    records: list[Row]
    stretches: list[ReplayRange]
    checkpoints: dict[PathCheckpoint, Image] = field(default_factory=dict)

    @property
    def steps(self) -> list[Step]:
        return line(self.stretches, self.checkpoints)

    def on(self, stretch: ReplayRange) -> list[Row]:
        return [r for r in self.records if stretch.first_offset <= r.offset < stretch.end_offset]

    def replay(self, before: Sequence[Step] = ()) -> ReplayPlan:
        """What would be replayed by a run that finds histories of the steps before."""
        made = ReplayPlan(self.cluster_id, self.steps)
        made.start = (first_difference(before, made.steps) or 0) if before else 0
        held = [r for s in self.stretches for r in self.on(s)]
        offsets = np.array([r.offset for r in held], dtype=np.int64)
        epochs = np.array([r.leader_epoch for r in held], dtype=np.int64)
        times = np.array([r.timestamp for r in held], dtype=np.int64)
        kept = on_line(made, offsets, offsets + 1, epochs)
        made.floors = clock(made, [(offsets[kept], offsets[kept] + 1, times[kept])]).floors()
        made.transactions = transactions(made, [as_row(r) for r in held if r.type in MARKERS])
        opened = [t.begin_offset for t in made.transactions if t.begin_offset < made.start <= t.last_offset]
        made.start = min([made.start, *opened])
        return made

    def begun(self, random: Random) -> World:
        """The cluster as it was captured earlier: its log ends sooner, less of it is decided."""
        end = random.randint(0, len(self.records))
        decided = random.randint(0, end)
        stretches = [
            replace(s, first_offset=first, end_offset=last, commit_status=status)
            for s in self.stretches
            for first, last, status in (
                (s.first_offset, min(s.end_offset, decided), s.commit_status),
                (max(s.first_offset, decided), min(s.end_offset, end), "undecided"),
            )
            if first < last
        ]
        held = {c: image for c, image in self.checkpoints.items() if c.end_offset <= end}
        return World(self.cluster_id, self.records, stretches, held)

    def expected(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every history by the pure core."""
        told = History()
        for step in self.steps:
            if isinstance(step, PathCheckpoint):
                told.load(self.checkpoints[step])
            else:
                for record in self.on(step):
                    told.apply(record)
        return {kind: [self._lake_row(row) for row in rows(told.versions(kind))] for kind in KINDS}

    def _lake_row(self, row: dict[str, Any]) -> dict[str, Any]:
        known, end = row["known_from_offset"], row["valid_to_offset"]
        began = "committed" if known is not None else self._status(row["valid_from_offset"])
        ended = None if end is None else "committed" if row["ended_by"] == "snapshot" else self._status(end)
        times = {n: moment(row[n]) for n in ("valid_from_at", "valid_to_at", "appended_at")}
        return (
            row | times | {"cluster_id": self.cluster_id, "commit_status": began, "end_commit_status": ended}
        )

    def _status(self, offset: int) -> str:
        return next(s.commit_status for s in self.stretches if s.first_offset <= offset < s.end_offset)


def moment(ms: int | None) -> datetime | None:
    return None if ms is None or ms < 0 else EPOCH + timedelta(milliseconds=ms)


def as_row(record: Row) -> dict[str, Any]:
    """A record as a row of the lake's records, its secrets gone."""
    message = MESSAGES[record.type]
    value, redacted = (None, False) if record.value is None else redact(message, record.value)
    row: dict[str, Any] = {
        "offset": record.offset,
        "leader_epoch": record.leader_epoch,
        "batch_crc": record.offset,
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
    held = [(w.cluster_id, as_row(r)) for w in worlds for s in w.stretches for r in w.on(s)]
    return with_columns([row for _, row in held], {"cluster_id": [c for c, _ in held]})


def snapshot_records_table(worlds: Sequence[World]) -> pa.Table:
    """The records of their checkpoints as rows of table snapshot_records."""
    rows, keys = [], []
    for world in worlds:
        for checkpoint, image in world.checkpoints.items():
            for place, (type_, value) in enumerate(image.to_records()):
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


def unread(record: Row) -> Row:
    """The record with a value that is damaged."""
    return replace(record, value=None)


def whole(cluster_id: str, records: list[Row], random: Random) -> World:
    """A cluster of which everything was captured; from the middle on nothing is decided yet."""
    records = [replace(r, timestamp=r.timestamp + wander(r.offset)) for r in records]
    records = [unread(r) if random.random() < 0.03 and r.type not in MARKERS else r for r in records]
    middle = len(records) // 2
    stretches = []
    for epoch in sorted({r.leader_epoch for r in records}):
        own = [r.offset for r in records if r.leader_epoch == epoch]
        for status, first, end in (
            ("committed", own[0], min(own[-1] + 1, middle)),
            ("undecided", max(own[0], middle), own[-1] + 1),
        ):
            if first < end:
                stretches.append(ReplayRange(first, end, epoch, status))
    return World(cluster_id, records, stretches)


def wander(offset: int) -> int:
    """How far the clock of the leader of that time is off, ms: it goes back now and then."""
    return Random(offset // 7).choice([0, 0, 300, -200])


def gapped(cluster_id: str, records: list[Row], random: Random) -> World:
    """A cluster of which some offsets were lost, with checkpoints in or behind the gap; nothing undecided."""
    # The lake cannot tell two credentials by their secrets.
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
    world.checkpoints = {
        PathCheckpoint(p, records[p - 1].leader_epoch, f"at {p}", records[p - 1].timestamp): snapshot(
            records, p
        )
        for p in taken
        if p > 0
    }
    world.stretches = [
        replace(piece, commit_status="committed")
        for s in world.stretches
        for piece in (
            replace(s, end_offset=min(s.end_offset, first)),
            replace(s, first_offset=max(s.first_offset, end)),
        )
        if piece.first_offset < piece.end_offset
    ]
    return world


def snapshot(records: list[Row], place: int) -> Image:
    """What a checkpoint of the records below a place holds."""
    image = replay(records[:place])
    made = [Row(n, 0, 0, *record) for n, record in enumerate(image.to_records())]
    last = records[place - 1]
    return Image.of_snapshot(made, place, last.leader_epoch, last.timestamp)
