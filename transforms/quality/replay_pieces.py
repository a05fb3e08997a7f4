"""Records of a log or of a checkpoint as columns, in the order of replay, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.findings.snapshot_replays import CheckpointKey
from kraft_core.image.from_columns import MESSAGES
from transforms.histories import replay_records
from transforms.histories.partition_events import CHANGE, REGISTRATION
from transforms.histories.replay_plan import MARKERS
from transforms.histories.replay_records import (
    END,
    ENVELOPE,
    WAS_READ,
    Held,
    Range,
    checkpoint_columns,
    in_ranges,
    log_columns,
    scanned,
    struct_columns,
)
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS, Table

TYPES = tuple(MESSAGES)
OF_PARTITIONS = (REGISTRATION, CHANGE)
STRUCTS = struct_columns(OF_PARTITIONS)
# Records that count, and those of which nothing is known.
MEANT = ds.field("type").isin([*TYPES, *MARKERS]) | ~WAS_READ
# What is read of the tables: columns and condition.
READ = {
    RECORDS: (log_columns(TYPES), MEANT),
    SNAPSHOT_RECORDS: (checkpoint_columns(TYPES), MEANT),
}
KEY = ["end_offset", "leader_epoch", "content_digest"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Records in their order: those of partitions, and all others; `offset` is the place of each."""

    partitions: pa.Table
    others: pa.Table

    def __len__(self) -> int:
        return len(self.partitions) + len(self.others)

    @property
    def first(self) -> int:
        """The least place; there is a record."""
        return min(int(offsets(rows)[0]) for rows in (self.partitions, self.others) if len(rows))

    @property
    def end(self) -> int:
        """Above the greatest place; there is a record."""
        return 1 + max(int(offsets(rows)[-1]) for rows in (self.partitions, self.others) if len(rows))

    def markers(self) -> list[tuple[int, str]]:
        """The records that begin and end transactions, with their types."""
        rows = self.others.select(["offset", "type"])
        rows = rows.filter(pc.is_in(rows["type"], pa.array(MARKERS)))
        return list(zip(rows["offset"].to_pylist(), rows["type"].to_pylist(), strict=True))

    def below(self, place: int) -> Piece:
        return Piece(
            *(r.slice(0, np.searchsorted(offsets(r), place)) for r in (self.partitions, self.others))
        )

    def from_(self, place: int) -> Piece:
        return Piece(*(r.slice(np.searchsorted(offsets(r), place)) for r in (self.partitions, self.others)))

    def without(self, spans: Sequence[tuple[int, int]]) -> Piece:
        """The piece without spans, which follow each other: first and last place of each."""
        if not spans:
            return self
        firsts, lasts = np.array(spans, dtype=np.int64).T

        def kept(rows: pa.Table) -> pa.Table:
            nth = np.searchsorted(firsts, offsets(rows), side="right") - 1
            return rows.filter(pa.array((nth < 0) | (offsets(rows) > lasts[nth])))

        return Piece(kept(self.partitions), kept(self.others))


def offsets(rows: pa.Table) -> Any:
    """The places of the rows."""
    return rows["offset"].to_numpy()


def joined(pieces: Iterable[Piece]) -> Piece:
    """One piece of several that follow each other; there is at least one."""
    every = list(pieces)
    others = pa.concat_tables([piece.others for piece in every], promote_options="default")
    return Piece(pa.concat_tables([piece.partitions for piece in every]), others)


class Source(Protocol):
    """Records of a log or of a checkpoint that count, and those of which nothing is known."""

    def read(self, columns: Sequence[str], low: int = 0, high: int = END) -> Iterator[pa.Table]:
        """The columns of those in places from `low` to `high`, exclusive, in any order.

        Their places are the first column, offset.
        """
        ...


class Records(Protocol):
    """The records of a cluster in its logs and checkpoints."""

    def log(self, ranges: Sequence[Range]) -> Source:
        """The records in these ranges; the place of one is its offset."""
        ...

    def checkpoint(self, checkpoint: CheckpointKey) -> Source:
        """The records of a checkpoint; the place of one is its position."""
        ...


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """Records that are read from the tables whenever they are asked for."""

    held: Held
    cluster: str

    def log(self, ranges: Sequence[Range]) -> Source:
        first = min((part.first_offset for part in ranges), default=0)
        return _Stored(self, RECORDS, "offset", MEANT & (ds.field("offset") >= first), ranges)

    def checkpoint(self, checkpoint: CheckpointKey) -> Source:
        where = MEANT & (ds.field("leader_epoch") == checkpoint.leader_epoch)
        where &= ds.field("content_digest") == checkpoint.content_digest
        where &= ds.field("end_offset") == checkpoint.end_offset
        return _Stored(self, SNAPSHOT_RECORDS, "position", where, None)


@dataclass(frozen=True, slots=True)
class _Stored:
    """place: the column of places. ranges: of the log in which the records lie, None: of a checkpoint."""

    records: StoredRecords
    table: Table
    place: str
    where: ds.Expression
    ranges: Sequence[Range] | None

    def read(self, columns: Sequence[str], low: int = 0, high: int = END) -> Iterator[pa.Table]:
        named, place = [self.place, *columns], ds.field(self.place)
        within = self.where & (place >= low) & (place < high)
        for _, rows in scanned(self.records.held, self.table, named, within, [self.records.cluster]):
            rows = rows.select(named).rename_columns(["offset", *columns])
            yield rows if self.ranges is None else in_ranges(rows, self.ranges)


class SmallRecords:
    """The same in memory, in order: a scan takes longer than it takes to read what is small as a whole.

    held: of the cluster alone, with the columns of READ.
    """

    def __init__(self, held: Held) -> None:
        self._log = _sorted(held, RECORDS, ["offset"])
        rows = _sorted(held, SNAPSHOT_RECORDS, [*KEY, "position"])
        self._checkpoints = rows.rename_columns({"position": "offset"})
        self._spans = _spans(rows.select(KEY))

    def log(self, ranges: Sequence[Range]) -> Source:
        return _Small(in_ranges(self._log, ranges))

    def checkpoint(self, checkpoint: CheckpointKey) -> Source:
        first, end = self._spans.get(checkpoint, (0, 0))
        return _Small(self._checkpoints.slice(first, end - first))


@dataclass(frozen=True, slots=True)
class _Small:
    """rows: in the order of their places."""

    rows: pa.Table

    def read(self, columns: Sequence[str], low: int = 0, high: int = END) -> Iterator[pa.Table]:
        first, end = np.searchsorted(offsets(self.rows), [low, high])
        yield self.rows.select(["offset", *columns]).slice(first, end - first)


def _sorted(held: Held, table: Table, by: Sequence[str]) -> pa.Table:
    """All rows of a table, none of one that is not there."""
    names, _ = READ[table]
    if table not in held:
        return pa.schema([table.arrow_schema.field(name) for name in names]).empty_table()
    return held[table].to_table(names).sort_by([(name, "ascending") for name in by])


def _spans(keys: pa.Table) -> dict[CheckpointKey, tuple[int, int]]:
    """Of sorted keys of checkpoints the first row of each, and the end of its rows."""
    runs = keys.append_column("row", pa.array(np.arange(len(keys))))
    found = runs.group_by(KEY, use_threads=False).aggregate([("row", "min"), ("row", "max")])
    spans = zip(found["row_min"].to_pylist(), found["row_max"].to_pylist(), strict=True)
    return {
        CheckpointKey(**key): (first, last + 1)
        for key, (first, last) in zip(found.select(KEY).to_pylist(), spans, strict=True)
    }


@dataclass(frozen=True, slots=True)
class RecordPlaces:
    """Where records lie, in order, and the number of each one's type among names: ten bytes a record.

    unread: the first place of one that cannot be read; repeated: the first at which there are several.
    END: there is none.
    """

    offsets: Any
    types: Any
    names: list[str]
    unread: int
    repeated: int

    @classmethod
    def of(cls, source: Source) -> RecordPlaces:
        names: dict[str, int] = {}
        found, types, unread = [np.array([], dtype=np.int64)], [np.array([], dtype=np.int16)], END
        for rows in source.read(["leader_epoch", "type", "unread_reason"]):
            coded = rows["type"].combine_chunks().dictionary_encode()
            codes = [names.setdefault(name, len(names)) for name in coded.dictionary.to_pylist()]
            found.append(offsets(rows))
            types.append(np.array(codes, dtype=np.int16)[coded.indices.to_numpy()])
            torn = rows.filter(pc.is_valid(rows["unread_reason"]))
            unread = min([unread, *torn["offset"].to_pylist()])
        places, kinds = np.concatenate(found), np.concatenate(types)
        order = np.argsort(places, kind="stable")
        places, kinds = places[order], kinds[order]
        twice = places[1:][places[1:] == places[:-1]]
        return cls(places, kinds, list(names), unread, int(twice[0]) if len(twice) else END)


def pieces(source: Source, places: RecordPlaces, below: int) -> Iterator[Piece]:
    """The records below a place, about twice TOGETHER at a time: as columns they are smaller."""
    known = places.offsets[: np.searchsorted(places.offsets, below)]
    lows = np.unique(known[:: 2 * replay_records.TOGETHER]).tolist()
    for low, high in pairwise([*lows, below]):
        first, end = np.searchsorted(known, [low, high])
        types = sorted(places.names[n] for n in np.unique(places.types[first:end]))
        yield divided(read_in_order(source, low, high, types))


def read_in_order(source: Source, low: int, high: int, types: Sequence[str]) -> pa.Table:
    """The records in places from `low` to `high` in order, with the structs of their types and partitions."""
    columns = [*ENVELOPE, *dict.fromkeys([*STRUCTS, *struct_columns(types)])]
    rows = pa.concat_tables(list(source.read(columns, low, high)))
    ascends = (np.diff(offsets(rows)) >= 0).all()
    return rows if ascends else rows.take(pa.array(np.argsort(offsets(rows), kind="stable")))


def divided(rows: pa.Table) -> Piece:
    """The records of partitions, and the others without the structs of these."""
    of_partitions = pc.is_in(rows["type"], pa.array(OF_PARTITIONS))
    others = rows.drop_columns(STRUCTS).filter(pc.invert(of_partitions))
    return Piece(rows.select(["offset", "type", *STRUCTS]).filter(of_partitions), others)
