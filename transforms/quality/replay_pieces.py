"""Records of a log or of a checkpoint as columns, in the order of replay, a bounded piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

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
    in_ranges,
    scanned,
    struct_columns,
)
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS, Table

TYPES = tuple(MESSAGES)
OF_PARTITIONS = (REGISTRATION, CHANGE)
STRUCTS = struct_columns(OF_PARTITIONS)
# Records that count, and those of which nothing is known.
MEANT = ds.field("type").isin([*TYPES, *MARKERS]) | ~WAS_READ


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


@dataclass(frozen=True, slots=True)
class Source:
    """Records of a cluster in a table, by their places in the column `place`.

    where: the condition of those that are meant. ranges: of the log in which they lie, None: of a checkpoint.
    """

    held: Held
    table: Table
    cluster: str
    place: str
    where: ds.Expression
    ranges: Sequence[Range] | None

    @classmethod
    def of_log(cls, held: Held, cluster: str, log: Sequence[Range]) -> Source:
        first = min((part.first_offset for part in log), default=0)
        return cls(held, RECORDS, cluster, "offset", MEANT & (ds.field("offset") >= first), log)

    @classmethod
    def of_checkpoint(cls, held: Held, cluster: str, checkpoint: CheckpointKey) -> Source:
        where = MEANT & (ds.field("leader_epoch") == checkpoint.leader_epoch)
        where &= ds.field("content_digest") == checkpoint.content_digest
        where &= ds.field("end_offset") == checkpoint.end_offset
        return cls(held, SNAPSHOT_RECORDS, cluster, "position", where, None)

    def read(self, columns: Sequence[str], where: ds.Expression) -> Iterator[pa.Table]:
        """The columns of rows for which a condition holds, in any order; the place is named offset."""
        named = [self.place, *columns]
        for _, rows in scanned(self.held, self.table, named, self.where & where, [self.cluster]):
            rows = rows.select(named).rename_columns(["offset", *columns])
            yield rows if self.ranges is None else in_ranges(rows, self.ranges)


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
        for rows in source.read(["leader_epoch", "type", "unread_reason"], ds.scalar(True)):
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
        within = (ds.field(source.place) >= low) & (ds.field(source.place) < high)
        yield divided(read_in_order(source, within, types))


def read_in_order(source: Source, within: ds.Expression, types: Sequence[str]) -> pa.Table:
    """The records of some types in their order, with the structs of these and of partitions."""
    columns = [*ENVELOPE, *dict.fromkeys([*STRUCTS, *struct_columns(types)])]
    found = list(source.read(columns, within & ds.field("type").isin(types)))
    rows = pa.concat_tables(found)
    ascends = (np.diff(offsets(rows)) >= 0).all()
    return rows if ascends else rows.take(pa.array(np.argsort(offsets(rows), kind="stable")))


def divided(rows: pa.Table) -> Piece:
    """The records of partitions, and the others without the structs of these."""
    of_partitions = pc.is_in(rows["type"], pa.array(OF_PARTITIONS))
    others = rows.drop_columns(STRUCTS).filter(pc.invert(of_partitions))
    return Piece(rows.select(["offset", "type", *STRUCTS]).filter(of_partitions), others)
