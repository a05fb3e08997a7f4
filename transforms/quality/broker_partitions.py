"""Copies of brokers' log directories, compared with the metadata of their time (rule 52).

Of each directory, the newest copy counts whose time the captured metadata covers: what it shows is not
refuted by a newer one that can be compared with nothing. Without such a copy, the newest is undecided.

A copy is compared with the metadata from a minute before it was complete to ten seconds after it. What
changed meanwhile is undecided, and so is what the captured logs do not reach: clocks differ, a copy takes
time, and a broker follows the metadata with a delay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kraft_core.image.from_rows import change_of
from kraft_core.image.image import Image
from kraft_core.image.missing_records import MissingRecords
from kraft_core.image.replay_path import ReplayRange, Step
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.plan.held_partitions import STRAY, held_state, topic_ids
from kraft_core.restore.broker_dirs import HeldPartition
from transforms.evidence.fact_values import known_ms
from transforms.histories.clocks import Clock, clocks
from transforms.histories.missing import lacking_by_cluster
from transforms.histories.replay_steps import known_paths
from transforms.lake.arrow_rows import Row, python_rows
from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import BROKERS, METADATA_TRANSACTIONS, PARTITIONS, TOPICS, Table

BEFORE_MS, AFTER_MS = 60_000, 10_000
# Indices of rows by the values of their keys.
_Places = Mapping[tuple[Any, ...], Sequence[int]]
COPY = ("capture_id", "broker_id", "directory_id", "captured_at")
NOT_REPLAYED = "no captured log of the cluster can be replayed"
NOT_REACHED = "the captured logs end before this copy, or within 10 s after it"
NOT_COVERED = "no captured log has the metadata of that time"
NOT_COMMITTED = "the metadata of that time is not proven committed"
CHANGED = "the metadata of this partition changed at about that time"


def broker_partition_rows(
    lake: Location, clusters: Sequence[str], directories: Iterable[Row]
) -> dict[str, list[Row]]:
    """By cluster the rows of table broker_partitions. directories: rows of broker_directories.

    Reads what the histories of the clusters were made from, and of those only with directories.
    """
    by_cluster: defaultdict[str, list[Row]] = defaultdict(list)
    for row in directories:
        by_cluster[row["cluster_id"]].append(row)
    found: dict[str, list[Row]] = {cluster: [] for cluster in clusters}
    of_dirs = [cluster for cluster in clusters if by_cluster[cluster]]
    if of_dirs:
        paths = known_paths(lake, of_dirs)
        times, lacking = clocks(lake, paths), lacking_by_cluster(lake, paths)
        for cluster in of_dirs:
            path = paths.get(cluster)
            replayed = None
            if path:
                transactions = rows_with(lake, METADATA_TRANSACTIONS, cluster_id=[cluster])
                unsure = lacking[cluster].unsure
                replayed = _Replayed(lake, cluster, path, times[cluster], unsure, transactions)
            found[cluster] = list(_rows(cluster, replayed, _that_count(by_cluster[cluster], replayed)))
    return found


def _that_count(rows: Iterable[Row], replayed: _Replayed | None) -> list[Row]:
    """Of each directory of a broker the rows of the copy that counts, each once.

    Several directories without an id have one: all that were copied at that time.
    """
    copies: defaultdict[tuple[int, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        copies[row["broker_id"], row["directory_id"]][row["capture_id"]] = row
    counting: list[Row] = []
    for same in copies.values():
        times = sorted({row["captured_at"] for row in same.values()}, reverse=True)
        covered = (time for time in times if replayed is not None and replayed.covers(known_ms(time)))
        counts = next(covered, times[0])
        counting += [row for row in same.values() if row["captured_at"] == counts]
    return counting


def _rows(cluster: str, replayed: _Replayed | None, copies: Sequence[Row]) -> Iterator[Row]:
    known = [(copy, NOT_REPLAYED) for copy in copies] if replayed is None else replayed.around(copies)
    for copy, found in known:
        for row in copy["partitions"]:
            state, reason = _state(found, copy, row)
            yield {
                "cluster_id": cluster,
                **{name: copy[name] for name in COPY},
                **row,
                "state": state,
                "reason": reason,
                "offset": None if isinstance(found, str) else found.offset,
            }


def _joined(ranges: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, int, list[int]]]:
    """Ranges of offsets that overlap as one each: first, last, and the keys of those in it.

    Copies of one night share what is read; a copy of a year before costs no year in memory.
    """
    together: list[int] = []
    start = end = 0
    for key in sorted(ranges, key=lambda key: ranges[key]):
        first, last = ranges[key]
        if together and first > end:
            yield start, end, together
            together = []
        if not together:
            start, end = first, last
        together.append(key)
        end = max(end, last)
    if together:
        yield start, end, together


def _state(found: _Metadata | str, copy: Row, row: Row) -> tuple[str, str | None]:
    """The state of a partition in a copy, and why it is undecided. found: a str says why it is not known."""
    if row["kind"] == "stray":
        return "marked_stray", None
    return ("undecided", found) if isinstance(found, str) else found.state_of(copy, row)


@dataclass(frozen=True, slots=True)
class _Metadata:
    """The metadata around the time of a copy, as far as it is about what the copy holds.

    ends: the images at both ends, each with its topic_ids; offset: of the latter. assigned: the partitions of
    which the broker was a replica at any moment between.
    """

    ends: Sequence[tuple[Image, Mapping[str, str]]]
    offset: int
    assigned: Collection[tuple[str, int]]

    def state_of(self, copy: Row, row: Row) -> tuple[str, str | None]:
        """The state of a partition in the copy, and why it is undecided."""
        held = HeldPartition(
            broker_id=copy["broker_id"],
            topic_id=row["topic_id"],
            topic_name=row["topic_name"],
            partition_id=row["partition_id"],
            leader_epoch=row["leader_epoch"],
            is_future=row["kind"] == "future",
        )
        directory = None if copy["directory_id"] == ZERO_UUID else copy["directory_id"]
        before, after = (held_state(held, directory, image, ids) for image, ids in self.ends)
        if after == "assigned":
            return after, None
        if before != after or (after in STRAY and held.key in self.assigned):
            return "undecided", CHANGED
        return after, None


@dataclass(frozen=True, slots=True)
class _Replayed:
    """The metadata of a cluster by its histories. lacking: what the replay path does not have. transactions:
    rows of metadata_transactions.
    """

    lake: Location
    cluster: str
    path: Sequence[Step]
    clock: Clock
    lacking: Sequence[MissingRecords]
    transactions: Sequence[Row]

    def around(self, copies: Sequence[Row]) -> Iterator[tuple[Row, _Metadata | str]]:
        """Each copy with the metadata around its time, or with why that is not known."""
        ranges = {}
        for index, copy in enumerate(copies):
            offsets = self._offsets(known_ms(copy["captured_at"]))
            if isinstance(offsets, str):
                yield copy, offsets
            else:
                ranges[index] = offsets
        for first, last, together in _joined(ranges):
            versions = self._versions(first, last)
            for index in together:
                yield copies[index], versions.metadata(copies[index], *ranges[index])

    def covers(self, time: int) -> bool:
        """Whether the metadata around a time (ms) is known."""
        return not isinstance(self._offsets(time), str)

    def _offsets(self, time: int) -> tuple[int, int] | str:
        """The first and the last offset of the metadata around a time, or why it is not known."""
        end = self.path[-1].end_offset
        if self.clock.highest_below(end) < time + AFTER_MS:
            return NOT_REACHED
        first, last = self._offset_at(time - BEFORE_MS), self._offset_at(time + AFTER_MS)
        if first is None or last is None:
            return NOT_COVERED
        if self._status(last) != "committed":
            return NOT_COMMITTED
        for offset in (first, last):
            for reason in self._doubts(offset):
                return reason
        return first, last

    def _offset_at(self, time: int) -> int | None:
        """The last offset that took effect by a time; -1 before a whole log, None if not known."""
        offset = self.clock.offset_at(time)
        if offset is None:
            return -1 if self.path[0].first_offset == 0 else None
        return offset if any(step.first_offset <= offset < step.end_offset for step in self.path) else None

    def _status(self, offset: int) -> str:
        steps = (step for step in self.path if step.first_offset <= offset < step.end_offset)
        return next((s.commit_status for s in steps if isinstance(s, ReplayRange)), "committed")

    def _doubts(self, offset: int) -> Iterator[str]:
        """Why brokers may have seen other metadata at an offset."""
        yield from (missing.sentence for missing in self.lacking if missing.concerns(offset))
        for transaction in self.transactions:
            if transaction["begun_offset"] <= offset < (transaction["ended_offset"] or offset + 1):
                yield "the metadata of that time is that of an open metadata transaction"

    def _versions(self, first: int, last: int) -> _Versions:
        """The versions of topics, partitions and brokers that were valid at any offset from first to last."""

        def read(table: Table) -> pa.Table:
            if not exists(self.lake, table):
                return table.arrow_schema.empty_table()
            return arrow_with(self.lake, table, table.names, _valid(first, last), cluster_id=[self.cluster])

        return _Versions(read(TOPICS), read(PARTITIONS), read(BROKERS))


@dataclass(frozen=True)
class _Versions:
    """Versions of a cluster's topics, partitions and brokers. A copy needs few of them as rows."""

    topics: pa.Table
    partitions: pa.Table
    brokers: pa.Table

    def metadata(self, copy: Row, first: int, last: int) -> _Metadata:
        """The metadata that a copy is compared with: that from first to last."""
        broker, held = copy["broker_id"], copy["partitions"]
        named = {((row["topic_id"],), (row["topic_name"],)) for row in held}
        topics = _at(self._by_topic_id, (key for key, _ in named))
        # A topic that took the name of a removed one.
        topics |= _at(self._by_topic_name, (key for _, key in named))
        partitions = _at(self._by_partition, ((row["topic_id"], row["partition_id"]) for row in held))
        found = {
            TOPICS: _taken(self.topics, topics),
            PARTITIONS: _taken(self.partitions, partitions),
            BROKERS: self.brokers.filter(ds.field("broker_id") == broker),
        }
        versions = {table: python_rows(rows.filter(_valid(first, last))) for table, rows in found.items()}
        assigned = {
            (row["topic_id"], row["partition_id"])
            for row in versions[PARTITIONS]
            if broker in row["replicas"]
        }
        images = (_image(versions, first), _image(versions, last))
        return _Metadata([(image, topic_ids(image)) for image in images], last, assigned)

    @cached_property
    def _by_topic_id(self) -> _Places:
        return _places(self.topics, "topic_id")

    @cached_property
    def _by_topic_name(self) -> _Places:
        return _places(self.topics, "topic_name")

    @cached_property
    def _by_partition(self) -> _Places:
        return _places(self.partitions, "topic_id", "partition_id")


def _places(table: pa.Table, *columns: str) -> _Places:
    """The indices of the rows by their values of some columns."""
    found: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, key in enumerate(zip(*(table[name].to_pylist() for name in columns), strict=True)):
        found[key].append(index)
    return found


def _at(places: _Places, keys: Iterable[tuple[Any, ...]]) -> set[int]:
    """The indices of the rows with any of the keys."""
    return {index for key in keys for index in places.get(key, ())}


def _taken(table: pa.Table, indices: Iterable[int]) -> pa.Table:
    return table.take(pa.array(sorted(indices), pa.int64()))


def _valid(first: int, last: int) -> ds.Expression:
    """Which versions were valid at any offset from first to last."""
    end = ds.field("valid_to_offset")
    return (ds.field("valid_from_offset") <= last) & (end.is_null() | (end > first))


def _image(versions: Mapping[Table, Iterable[Row]], offset: int) -> Image:
    image = Image()
    for table, rows in versions.items():
        for row in rows:
            end = row["valid_to_offset"]
            if row["valid_from_offset"] <= offset and (end is None or end > offset):
                image.tables.put(change_of(table.name, row))
    return image
