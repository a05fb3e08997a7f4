"""What the rules need of table batches, in bounded memory: it has millions of rows for a large cluster.

Each function reads a few columns of the batches of some clusters, a record batch or a range of offsets at a
time. Offsets named first_ are inclusive, end_ and batch_end exclusive; last_offset is inclusive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, itemgetter, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_core.findings.facts import MAX_CONFLICTS

Row = dict[str, Any]
PLACE = ("cluster_id", "leader_epoch", "base_offset")
CONTENT = ("last_offset", "crc", "size_bytes")
REPLICA = ("node_id", "directory_id")
# How many batches are compared at once, with 100 MB; one of this many base offsets is sampled to cut ranges.
COMPARED_BATCHES, SAMPLED_ONE_OF = 500_000, 1000
CHUNK_ROWS = 8192

_BATCH_ENDS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("leader_epoch", pa.int32()),
        ("end_offset", pa.int64()),
        ("batch_end", pa.int64()),
    ]
)
# Of each place the highest last offset of its batches.
_ENDS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("leader_epoch", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset_max", pa.int64()),
    ]
)
# By the base offset of a conflict the base offsets of the batches that differ there.
_Conflicts = dict[int, set[int]]
_CONFLICTS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("leader_epoch", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("crc", pa.int64()),
        ("size_bytes", pa.int64()),
        ("held_by", pa.list_(pa.struct([("node_id", pa.int32()), ("directory_id", pa.string())]))),
    ]
)


def batch_counts(batches: ds.Dataset, clusters: Iterable[str]) -> Counter[str]:
    """The rows of each cluster."""
    counts: Counter[str] = Counter()
    for rows in batches.to_batches(["cluster_id"], filter=_of(clusters)):
        for count in pc.value_counts(rows["cluster_id"]).to_pylist():
            counts[count["values"]] += count["counts"]
    return counts


def batch_ends(batches: ds.Dataset, snapshots: pa.Table) -> pa.Table:
    """For each snapshot's end the end of the batch of its epoch that holds the record below it.

    snapshots: rows with cluster_id, leader_epoch, end_offset. Returns rows with these and batch_end.
    """
    ends: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for row in snapshots.select(["cluster_id", "leader_epoch", "end_offset"]).to_pylist():
        if row["end_offset"] > 0:
            ends[row["cluster_id"], row["leader_epoch"]].add(row["end_offset"])
    if not ends:
        return _BATCH_ENDS.empty_table()
    by_epoch = {epoch: sorted(found) for epoch, found in ends.items()}
    found: list[Row] = []
    for row in _holding(batches, {cluster for cluster, _ in ends}, set().union(*ends.values())):
        of_epoch = by_epoch.get((row["cluster_id"], row["leader_epoch"]), [])
        batch_end = row["last_offset"] + 1
        held = of_epoch[bisect_right(of_epoch, row["base_offset"]) : bisect_right(of_epoch, batch_end)]
        names = {name: row[name] for name in ("cluster_id", "leader_epoch")}
        found += [names | {"end_offset": end, "batch_end": batch_end} for end in held]
    return pa.Table.from_pylist(found, schema=_BATCH_ENDS)


def _holding(batches: ds.Dataset, clusters: Iterable[str], ends: Iterable[int]) -> Iterator[Row]:
    """The batches that hold the record below one of the ends, of whatever cluster and epoch the end is."""
    sorted_ends = np.array(sorted(ends), np.int64)
    condition = _of(clusters) & (ds.field("base_offset") < int(sorted_ends[-1]))
    for rows in batches.to_batches([*PLACE, "last_offset"], filter=condition):
        above_base = np.searchsorted(sorted_ends, rows["base_offset"].to_numpy(), side="right")
        above_end = np.searchsorted(sorted_ends, rows["last_offset"].to_numpy() + 1, side="right")
        yield from rows.filter(pa.array(above_end > above_base)).to_pylist()


def batch_conflicts(
    batches: ds.Dataset, clusters: Sequence[str], compared_batches: int = COMPARED_BATCHES
) -> pa.Table:
    """Batches of one offset and epoch that differ: a row a distinct one, with the replicas that held it.

    base_offset: the higher one of two that overlap. Log matching (KIP-595) has none, so ranges of offsets are
    compared by their extremes, one at a time; the replicas are read of those alone that differ. Of each epoch
    those of the lowest MAX_CONFLICTS base offsets.
    """
    found: defaultdict[tuple[str, int], _Conflicts] = defaultdict(dict)
    before = _ENDS.empty_table()
    for condition in _offset_ranges(batches, _of(clusters), compared_batches):
        ends = _ends(batches, condition)
        ordered = pa.concat_tables([before, ends.select(_ENDS.names).cast(_ENDS)]).sort_by(
            [(n, "ascending") for n in PLACE]
        )
        for row in sorted((*_differing(ends), *_overlapping(ordered)), key=itemgetter("base_offset")):
            of_epoch, base_offset = found[row["cluster_id"], row["leader_epoch"]], row["base_offset"]
            if base_offset in of_epoch or len(of_epoch) < MAX_CONFLICTS:
                of_epoch.setdefault(base_offset, {base_offset}).add(row.get("before", base_offset))
        before = ordered.filter(pa.array(~_goes_on(ordered)))
    if not found:
        return _CONFLICTS.empty_table()
    return pa.Table.from_pylist(_distinct_batches(batches, found), schema=_CONFLICTS)


def _offset_ranges(batches: ds.Dataset, condition: ds.Expression, size: int) -> Iterator[ds.Expression]:
    """The condition cut into ranges of base offsets, rising, with about as many batches as `size` each."""
    sampled = [
        rows["base_offset"].to_numpy()[::SAMPLED_ONE_OF]
        for rows in batches.to_batches(["base_offset"], filter=condition)
    ]
    offsets = np.sort(np.concatenate(sampled)) if sampled else np.array([], np.int64)
    step = max(1, size // SAMPLED_ONE_OF)
    base = ds.field("base_offset")
    bounds = [int(bound) for bound in np.unique(offsets[step::step])]
    for first, end in zip([None, *bounds], [*bounds, None], strict=True):
        parts = [condition]
        if first is not None:
            parts.append(base >= first)
        if end is not None:
            parts.append(base < end)
        yield reduce(and_, parts)


def _ends(batches: ds.Dataset, condition: ds.Expression) -> pa.Table:
    """The extremes of the batches of a condition, by place."""
    rows = batches.to_table([*PLACE, *CONTENT], filter=condition)
    extremes = [(name, extreme) for name in CONTENT for extreme in ("min", "max")]
    return rows.group_by([*PLACE]).aggregate(extremes)


def _differing(ends: pa.Table) -> Iterator[Row]:
    """Where batches of one base offset differ."""
    differ = reduce(or_, (pc.field(f"{name}_min") != pc.field(f"{name}_max") for name in CONTENT))
    for chunk in ends.filter(differ).select(PLACE).to_batches(max_chunksize=CHUNK_ROWS):
        yield from chunk.to_pylist()


def _overlapping(ends: pa.Table) -> Iterator[Row]:
    """Where a batch begins within the one before it. ends: in the order of PLACE."""
    overlaps = _goes_on(ends)[:-1]
    bases, lasts = (ends[name].to_numpy() for name in ("base_offset", "last_offset_max"))
    (nth,) = np.nonzero(overlaps & (lasts[:-1] >= bases[1:]))
    rows = (
        ends.select(PLACE).take(pa.array(nth + 1)).append_column("before", pa.array(bases[nth], pa.int64()))
    )
    for chunk in rows.to_batches(max_chunksize=CHUNK_ROWS):
        yield from chunk.to_pylist()


def _goes_on(ends: pa.Table) -> Any:
    """Whether each row is followed by one of the same cluster and epoch."""
    if not len(ends):
        return np.zeros(0, bool)
    ids = ends["cluster_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    epochs = ends["leader_epoch"].to_numpy()
    return np.append((ids[1:] == ids[:-1]) & (epochs[1:] == epochs[:-1]), False)


def _distinct_batches(batches: ds.Dataset, conflicts: Mapping[tuple[str, int], _Conflicts]) -> list[Row]:
    """The distinct batches in these conflicts, each with the replicas that held it."""
    places: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for epoch, of_epoch in conflicts.items():
        for base_offset, bases in of_epoch.items():
            for base in bases:
                places[*epoch, base].append(base_offset)
    condition = _of({cluster for cluster, _ in conflicts})
    condition &= ds.field("base_offset").isin(sorted({base for _, _, base in places}))
    found: dict[tuple[Any, ...], Row] = {}
    for rows in batches.to_batches([*PLACE, *CONTENT, *REPLICA], filter=condition):
        for row in rows.to_pylist():
            replica = {name: row.pop(name) for name in REPLICA}
            for base_offset in places.get(tuple(row[name] for name in PLACE), ()):
                if row["last_offset"] >= base_offset:
                    copy = row | {"base_offset": base_offset}
                    one = found.setdefault((*copy.values(), row["base_offset"]), copy | {"held_by": []})
                    if replica not in one["held_by"]:
                        one["held_by"].append(replica)
    return list(found.values())


def _of(clusters: Iterable[str]) -> ds.Expression:
    return ds.field("cluster_id").isin(sorted(clusters))
