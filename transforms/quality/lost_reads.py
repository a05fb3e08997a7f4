"""Whether the ingested tables contain what the captures of a cluster state that they showed.

A capture states the epoch ranges of its log and its checkpoints; batches, records, snapshots and
snapshot_records must contain all of that, apart from what the capture lost itself, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kraft_core.wording import count, offset_words
from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import BATCHES, CAPTURES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, Table

Row = dict[str, Any]
# First offset inclusive, end exclusive.
Range = tuple[int, int]
# node_id, directory_id, leader_epoch.
EpochOf = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class LostReads:
    """What a table lacks of a cluster, or holds of no capture (`unclaimed`), in words."""

    cluster_id: str
    table: str
    words: str
    unclaimed: bool = False


def lost_reads(lake: Location, cluster: str) -> Iterator[LostReads]:
    """Compare the captures of a cluster with the tables of what was read from them."""
    columns = ("capture_id", "node_id", "directory_id", "epoch_ranges", "damage", "snapshots")
    captures = rows_with(lake, CAPTURES, columns, cluster_id=[cluster])
    batch_columns = (
        "node_id",
        "directory_id",
        "leader_epoch",
        "base_offset",
        "last_offset",
        "crc",
        "record_count",
    )
    batches = _rows(lake, BATCHES, batch_columns, cluster)
    lost = [_lost_range(damage) for capture in captures for damage in capture["damage"] or ()]
    yield from _compare_batches(cluster, captures, batches)
    yield from _compare_records(lake, cluster, batches, lost)
    yield from _compare_snapshots(lake, cluster, captures)


def _rows(lake: Location, table: Table, columns: Iterable[str], cluster: str) -> list[Row]:
    return rows_with(lake, table, list(columns), cluster_id=[cluster])


def _lost_range(damage: Row) -> Range:
    """The offsets that a damage may have cost; open ends reach as far as offsets do."""
    start, end = damage["lost_from_offset"], damage["lost_to_offset"]
    return (0 if start is None else start, 2**63 - 1 if end is None else end)


def _compare_batches(cluster: str, captures: list[Row], batches: list[Row]) -> Iterator[LostReads]:
    shown: defaultdict[EpochOf, list[Range]] = defaultdict(list)
    held: defaultdict[EpochOf, list[Range]] = defaultdict(list)
    for capture in captures:
        for run in capture["epoch_ranges"] or ():
            key = (capture["node_id"], capture["directory_id"], run["leader_epoch"])
            shown[key].append((run["first_offset"], run["end_offset"]))
    for batch in batches:
        key = (batch["node_id"], batch["directory_id"], batch["leader_epoch"])
        held[key].append((batch["base_offset"], batch["last_offset"] + 1))
    for key in sorted({*shown, *held}):
        captured, stored = _union(shown[key]), _union(held[key])
        of = f"epoch {key[2]} of node {key[0]}"
        for first, end in _without(captured, stored):
            yield LostReads(
                cluster, BATCHES.name, f"{offset_words(first, end)}, {of}, {_are(first, end)} gone"
            )
        for first, end in _without(stored, captured):
            words = f"{offset_words(first, end)}, {of}, {_are(first, end)} in no capture"
            yield LostReads(cluster, BATCHES.name, words, unclaimed=True)


def _are(first: int, end: int) -> str:
    return "is" if end == first + 1 else "are"


def _union(ranges: Iterable[Range]) -> list[Range]:
    """The same offsets as disjoint ranges in order."""
    found: list[Range] = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    return found


def _without(ranges: list[Range], others: list[Range]) -> Iterator[Range]:
    """The parts of disjoint ranges in order that none of the others covers."""
    for first, end in ranges:
        for start, stop in others:
            if stop <= first or start >= end:
                continue
            if start > first:
                yield first, start
            first = max(first, stop)
        if first < end:
            yield first, end


def _compare_records(
    lake: Location, cluster: str, batches: list[Row], lost: list[Range]
) -> Iterator[LostReads]:
    """Each batch has as many records as its header says; fewer where values were lost."""
    wanted = {(b["base_offset"], b["leader_epoch"], b["crc"]): b for b in batches}
    held = _records_by_batch(lake, cluster)
    short = [
        (batch["base_offset"], batch["last_offset"] + 1)
        for key, batch in wanted.items()
        if held.get(key, 0) < batch["record_count"]
        and not any(start <= batch["last_offset"] and batch["base_offset"] < end for start, end in lost)
    ]
    for first, end in _union(short):
        yield LostReads(cluster, RECORDS.name, f"of {offset_words(first, end)}, some or all are gone")
    unclaimed = sorted(key[0] for key in held.keys() - wanted.keys())
    if unclaimed:
        batches_from = f"{count(len(unclaimed), 'batch', 'batches')} from offset {unclaimed[0]}"
        words = f"{batches_from} {'is' if len(unclaimed) == 1 else 'are'} of no row of batches"
        yield LostReads(cluster, RECORDS.name, words, unclaimed=True)


def _records_by_batch(lake: Location, cluster: str) -> dict[tuple[int, int, int], int]:
    """How many records each batch has, by base offset, epoch and CRC."""
    if not exists(lake, RECORDS):
        return {}
    key = ["batch_base_offset", "leader_epoch", "batch_crc"]
    records: pa.Table = arrow_with(lake, RECORDS, key, cluster_id=[cluster])
    counted = records.group_by(key).aggregate([([], "count_all")]).to_pylist()
    return {tuple(row[name] for name in key): row["count_all"] for row in counted}


def _compare_snapshots(lake: Location, cluster: str, captures: list[Row]) -> Iterator[LostReads]:
    key = ("end_offset", "leader_epoch", "content_digest")
    wanted = {tuple(held[name] for name in key) for c in captures for held in c["snapshots"] or ()}
    stored = {tuple(row[n] for n in key): row for row in _rows(lake, SNAPSHOTS, (*key, "complete"), cluster)}
    columns = (*key, "position", "type")
    records: defaultdict[tuple[Any, ...], dict[int, str]] = defaultdict(dict)
    for row in _rows(lake, SNAPSHOT_RECORDS, columns, cluster):
        records[tuple(row[n] for n in key)][row["position"]] = row["type"]
    for snapshot in sorted(wanted - stored.keys()):
        yield LostReads(cluster, SNAPSHOTS.name, f"the snapshot at {snapshot[0]} is gone")
    for snapshot in sorted(stored.keys() - wanted):
        words = f"the snapshot at {snapshot[0]} is of no capture"
        yield LostReads(cluster, SNAPSHOTS.name, words, unclaimed=True)
    for snapshot, row in sorted(stored.items()):
        if row["complete"] and not _is_whole(records[snapshot]):
            words = f"records of the snapshot at {snapshot[0]} are gone"
            yield LostReads(cluster, SNAPSHOT_RECORDS.name, words)


def _is_whole(types: dict[int, str]) -> bool:
    """Whether records of a checkpoint, by position, are all from its header to its footer."""
    last = max(types, default=-1)
    return len(types) == last + 1 and types.get(0) == "SnapshotHeader" and types[last] == "SnapshotFooter"
