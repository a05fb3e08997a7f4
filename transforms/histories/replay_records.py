"""Records of the log and of checkpoints, read from a lake in the order of replay, a bounded piece at a time.

Plain Arrow scans: the driver runs small ones, Spark's tasks the rest. The files of a table
are not sorted by offset, so the records of a large cluster are read by ranges of offsets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.image.from_columns import MESSAGES, StoredRecord, fields_of
from kraft_core.image.replay_path import replay_order
from transforms.lake import delta_rs
from transforms.lake.arrow_rows import of_each
from transforms.lake.row_groups import each_row_group
from transforms.lake.storage.location import Location
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS, Table

# Records that are read together: some 2 KB each as Python objects.
TOGETHER = 50_000
# The tables of a lake that are there.
Held = Mapping[Table, ds.Dataset]
END = np.iinfo(np.int64).max
WAS_READ = ds.field("unread_reason").is_null()
ENVELOPE = ("leader_epoch", "appended_at", "type", "redacted", "unread_reason")


class Range(Protocol):
    """Offsets of one epoch; end_offset is exclusive."""

    @property
    def first_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...


class Checkpoint(Protocol):
    """A checkpoint, by where it ends and the digest of its content."""

    @property
    def end_offset(self) -> int: ...
    @property
    def content_digest(self) -> str: ...


def opened(lake: Location, *tables: Table) -> Held:
    return {table: delta_rs.opened(lake, table) for table in tables if delta_rs.exists(lake, table)}


def in_memory(
    held: Held, wanted: Mapping[Table, tuple[Sequence[str], ds.Expression]], clusters: Sequence[str]
) -> dict[str, Held]:
    """By cluster the rows of some small ones, by one scan a table: each scan reads all files.

    wanted: of each table the columns, and the condition that its rows meet.
    """
    found: dict[str, dict[Table, list[pa.Table]]] = {cluster: {} for cluster in clusters}
    for table, (names, where) in wanted.items():
        for cluster, rows in scanned(held, table, names, where, clusters):
            found[cluster].setdefault(table, []).append(rows)
    return {
        cluster: {table: ds.dataset(pa.concat_tables(pieces)) for table, pieces in tables.items()}
        for cluster, tables in found.items()
    }


def log_columns(types: Sequence[str]) -> list[str]:
    """The columns of RECORDS that a replay of these types reads."""
    return ["offset", "batch_crc", *ENVELOPE, *struct_columns(types)]


def checkpoint_columns(types: Sequence[str]) -> list[str]:
    """The columns of SNAPSHOT_RECORDS by which checkpoint_records chooses rows, and those that it reads."""
    return ["end_offset", "content_digest", "position", *ENVELOPE, *struct_columns(types)]


def scanned(
    held: Held,
    table: Table,
    columns: Sequence[str],
    where: ds.Expression,
    clusters: Sequence[str],
    are_many: bool = False,
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of some clusters for which a condition holds, in pieces of one cluster each.

    are_many: of files, a row group is read at a time (row_groups.each_row_group).
    """
    if table not in held or not clusters:
        return
    wanted = where & delta_rs.among({"cluster_id": clusters})
    names = list(dict.fromkeys(["cluster_id", *columns]))
    parts = _row_groups(held[table], wanted) if are_many else [held[table]]
    # Read little ahead: rows are wide.
    ahead = {"batch_readahead": 2, "fragment_readahead": 1}
    batches = (part.to_batches(columns=names, filter=wanted, **ahead) for part in parts)
    for batch in chain.from_iterable(batches):
        yield from of_each(pa.Table.from_batches([batch]), "cluster_id")


def _row_groups(rows: ds.Dataset, where: ds.Expression) -> Iterator[ds.Dataset]:
    """The row groups of files that may have rows for which a condition holds, each as a dataset."""
    for group in each_row_group(rows.get_fragments(filter=where), where):
        yield ds.FileSystemDataset([group], rows.schema, group.format, group.filesystem)


def counted(held: Held, wanted: Mapping[Table, ds.Expression], clusters: Sequence[str]) -> Counter[str]:
    """How many rows of the tables each cluster has for which the condition of the table holds."""
    found: Counter[str] = Counter(dict.fromkeys(clusters, 0))
    for table, where in wanted.items():
        for cluster, rows in scanned(held, table, ["cluster_id"], where, clusters):
            found[cluster] += len(rows)
    return found


def ended_from(offset: int) -> ds.Expression:
    """The condition of versions that end at an offset or later, or not at all."""
    end = ds.field("valid_to_offset")
    return end.is_null() | (end >= offset)


def history_rows(held: Held, table: Table, clusters: Sequence[str], lowest: int) -> dict[str, pa.Table]:
    """By cluster the rows of a history that end at an offset or later, or not at all, in order."""
    schema = table.arrow_schema
    pieces: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for cluster, rows in scanned(held, table, table.names, ended_from(lowest), clusters):
        pieces[cluster].append(rows.select(schema.names).cast(schema))
    found = dict.fromkeys(clusters, schema.empty_table())
    return found | {cluster: in_order(table, pa.concat_tables(some)) for cluster, some in pieces.items()}


def in_order(table: Table, rows: pa.Table) -> pa.Table:
    """The rows of a history by offset, so that a reader who asks for some finds them together."""
    if len(rows) < 2:
        return rows
    names = dict.fromkeys(["cluster_id", "valid_from_offset", *table.key])
    return rows.sort_by([(name, "ascending") for name in names])


def log_records(
    held: Held, ranges: Mapping[str, Sequence[Range]], types: Sequence[str], where: ds.Expression
) -> Iterator[tuple[str, list[StoredRecord]]]:
    """The records of each cluster in its ranges for which the condition holds, in the order of replay.

    Cluster by cluster, one with many in several pieces, one with none in one that is empty. types: of the
    records that are wanted. The value of one that could not be read is None.
    """
    inside = where & (
        ds.field("offset") >= min((r.first_offset for of in ranges.values() for r in of), default=0)
    )
    offsets: dict[str, list[Any]] = {cluster: [] for cluster in ranges}
    for cluster, rows in scanned(held, RECORDS, ["offset"], inside, list(ranges)):
        offsets[cluster].append(rows["offset"].to_numpy())
    columns = log_columns(types)
    for clusters, low, high in pieces(offsets):
        found: dict[str, list[pa.Table]] = {cluster: [] for cluster in clusters}
        piece = inside & (ds.field("offset") >= low) & (ds.field("offset") < high)
        for cluster, rows in scanned(held, RECORDS, columns, piece, clusters):
            found[cluster].append(in_ranges(rows, ranges[cluster]))
        for cluster, of_cluster in found.items():
            yield cluster, in_replay_order(pa.concat_tables(of_cluster)) if of_cluster else []


def pieces(offsets: Mapping[str, Sequence[Any]]) -> Iterator[tuple[list[str], int, int]]:
    """Clusters, first and end offset of what is read at once: about TOGETHER records.

    offsets: of each cluster's records, in numpy arrays. Records at one offset stay together.
    """
    small: list[str] = []
    count = 0
    for cluster, arrays in offsets.items():
        size = sum(map(len, arrays))
        if size > TOGETHER:
            firsts = np.unique(np.sort(np.concatenate(arrays))[::TOGETHER]).tolist()
            yield from (([cluster], low, high) for low, high in pairwise([*firsts, END]))
            continue
        if count + size > TOGETHER:
            yield small, 0, END
            small, count = [], 0
        small.append(cluster)
        count += size
    if small:
        yield small, 0, END


def in_ranges(rows: pa.Table, ranges: Sequence[Range]) -> pa.Table:
    """The rows of records that lie in one of the ranges, and are of its epoch."""
    if not ranges:
        return rows.slice(0, 0)
    firsts, ends, epochs = np.array(
        sorted((r.first_offset, r.end_offset, r.leader_epoch) for r in ranges), dtype=np.int64
    ).T
    offset, epoch = rows["offset"].to_numpy(), rows["leader_epoch"].to_numpy()
    place = np.searchsorted(firsts, offset, side="right") - 1
    inside = (place >= 0) & (offset < ends[place]) & (epoch == epochs[place])
    return rows if inside.all() else rows.filter(pa.array(inside))


def in_replay_order(rows: pa.Table) -> list[StoredRecord]:
    records = stored_records(rows, "offset")
    offsets = rows["offset"].to_numpy()
    order = np.argsort(offsets, kind="stable")
    if (np.diff(offsets[order]) == 0).any():
        keys = map(replay_order, offsets.tolist(), rows["type"].to_pylist(), rows["batch_crc"].to_pylist())
        order = np.array([place for place, _ in sorted(enumerate(keys), key=lambda each: each[1])])
    return [records[place] for place in order]


def checkpoint_records(
    held: Held, cluster: str, checkpoint: Checkpoint, types: Sequence[str], where: ds.Expression
) -> Iterator[StoredRecord]:
    """The records of a checkpoint for which the condition holds, in order; the position is the offset."""
    of_it = where & (ds.field("content_digest") == checkpoint.content_digest)
    of_it &= ds.field("end_offset") == checkpoint.end_offset
    places = [
        r["position"].to_numpy() for _, r in scanned(held, SNAPSHOT_RECORDS, ["position"], of_it, [cluster])
    ]
    columns = ["position", *ENVELOPE, *struct_columns(types)]
    for _, low, high in pieces({cluster: places}):
        piece = of_it & (ds.field("position") >= low) & (ds.field("position") < high)
        found = scanned(held, SNAPSHOT_RECORDS, columns, piece, [cluster])
        records = [record for _, rows in found for record in stored_records(rows, "position")]
        yield from sorted(records, key=attrgetter("offset"))


def struct_columns(types: Sequence[str]) -> list[str]:
    """The columns that hold the values of records of the types."""
    return list(dict.fromkeys(MESSAGES[type_].column for type_ in types if type_ in MESSAGES))


def stored_records(rows: pa.Table, place: str) -> list[StoredRecord]:
    """The rows as records, in their order; place: the column that becomes the offset."""
    readable = pc.is_null(rows["unread_reason"])
    values: list[Any] = [{} if was_read else None for was_read in readable.to_pylist()]
    for type_ in pc.unique(rows["type"]).to_pylist():
        message = MESSAGES.get(type_)
        if message is None or message.column not in rows.column_names:
            continue
        places = np.flatnonzero(pc.and_(pc.equal(rows["type"], type_), readable).to_numpy())
        held = rows[message.column].take(pa.array(places)).to_pylist()
        redacted = rows["redacted"].take(pa.array(places)).to_pylist()
        for n, value, without_secrets in zip(places, held, redacted, strict=True):
            values[n] = fields_of(message, value, without_secrets)
    times = rows["appended_at"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).fill_null(-1)
    columns = (rows[place], rows["leader_epoch"], times, rows["type"])
    return list(map(StoredRecord, *(column.to_pylist() for column in columns), values))
