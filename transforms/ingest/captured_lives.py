"""The life of each capture of a cluster id: by the captures in the lake, and by those that a scan found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraft_core.evidence.life_lines import (
    BatchPlace,
    FoundBatches,
    LoggedCapture,
    LoggedCheckpoint,
    LoggedRange,
)
from kraft_core.evidence.lives import ClusterLife, lives_of
from transforms.ingest.captured_files import CapturedSegment
from transforms.ingest.epoch_ranges import FileEpochRange, join_ranges
from transforms.ingest.held_captures import (
    CAPTURED,
    checkpoint_of,
    directory_of,
    held_captures,
    ms_of,
)
from transforms.ingest.id_groups import id_groups
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.spark_frames import good_batches
from transforms.lake.arrow_rows import Row, moment, python_rows
from transforms.lake.delta_rs import by_cluster, exists, rows_with
from transforms.lake.lives import cluster_ids_of, life_id
from transforms.lake.spark_rows import to_rows
from transforms.lake.storage.location import Location
from transforms.lake.tables import BATCHES, CAPTURES, SNAPSHOTS

SegmentRanges = Sequence[tuple[CapturedSegment, list[FileEpochRange]]]


@dataclass(frozen=True, slots=True)
class CapturedLives:
    """The lives of one cluster id of meta.properties, the newest last.

    stored_ids: the ids under which the lake holds captures of it. is_settled: whether the lake holds every
    capture under the id of its life. new_nodes: by capture id the node id of new ones.
    """

    lake: Location
    kafka_cluster_id: str
    lives: Sequence[ClusterLife]
    stored_ids: Sequence[str]
    is_settled: bool
    new_nodes: Mapping[str, int]

    def held(self) -> list[Row]:
        """The rows (CAPTURED) of the captures that the lake holds.

        They are read again: few cluster ids need them, and those of a fleet are large.
        """
        return [row for rows in _stored(self.lake, self.stored_ids).values() for row in python_rows(rows)]

    @property
    def targets(self) -> dict[str, tuple[str, str | None]]:
        """By capture id the columns cluster_id and life."""
        return _targets(self.kafka_cluster_id, self.lives)

    @property
    def is_plain(self) -> bool:
        """Whether the cluster id has one life, as the lake has it."""
        return len(self.lives) < 2 and self.is_settled

    def rows(self, held: Iterable[Row]) -> list[Row]:
        """Rows of LIVES, also of the only life of a cluster id. held: as `held` returns them."""
        targets = self.targets
        nodes = {**{row["capture_id"]: row["node_id"] for row in held}, **self.new_nodes}
        return [
            {
                "cluster_id": targets[life.capture_ids[0]][0],
                "kafka_cluster_id": self.kafka_cluster_id,
                "life": life.name,
                "is_newest": life is self.lives[-1],
                "first_offset": life.first_offset,
                "first_appended_at": moment(life.first_appended_at),
                "last_appended_at": moment(life.last_appended_at),
                "nodes": sorted({nodes[capture_id] for capture_id in life.capture_ids}),
                "capture_ids": list(life.capture_ids),
            }
            for life in self.lives
        ]


def _targets(name: str, lives: Sequence[ClusterLife]) -> dict[str, tuple[str, str | None]]:
    """By capture id the columns cluster_id and life, of the lives of a cluster id."""
    several = len(lives) > 1
    return {
        capture_id: (life_id(name, shown), shown)
        for life in lives
        for shown in [life.name if several else None]
        for capture_id in life.capture_ids
    }


class ScannedLogs:
    """The logs of the copies of an ingest, as far as they were scanned or known before."""

    def __init__(
        self, files: IngestFiles, ranges: SegmentRanges, checkpoints: Iterable[Row], pieces: DataFrame
    ) -> None:
        """ranges: of every segment. checkpoints: rows with `copy`. pieces: of what was scanned."""
        self._files = files
        self._pieces = pieces
        self._segments: defaultdict[str, list[CapturedSegment]] = defaultdict(list)
        parts: defaultdict[str, list[FileEpochRange]] = defaultdict(list)
        for segment, found in ranges:
            self._segments[segment.capture.capture_id].append(segment)
            parts[segment.capture.capture_id] += found
        complete: defaultdict[str, set[LoggedCheckpoint]] = defaultdict(set)
        for row in checkpoints:
            if row["complete"] and row["end_offset"]:
                complete[files.copies[row["copy"]].capture_id].add(checkpoint_of(row))
        self.captures: defaultdict[str, dict[str, LoggedCapture]] = defaultdict(dict)
        self.nodes = {copy.capture_id: copy.who.node_id for copy in files.copies}
        for copy in files.copies:
            id_ = copy.capture_id
            self.captures[copy.who.cluster_id][id_] = LoggedCapture(
                id_,
                tuple(map(_range_of, join_ranges(parts[id_]))),
                batches=frozenset(_first_batches(parts[id_])),
                checkpoints=frozenset(complete[id_]),
                directory=directory_of(copy.who.node_id, copy.who.directory_id),
                continues=frozenset(s.known.capture_id for s in self._segments[id_] if s.known.ranges),
            )

    def known_places(self, place: BatchPlace) -> Iterator[BatchPlace]:
        """Where the lake holds a place of a new capture, if its segment was not read there."""
        for segment in self._segments[place.owner]:
            known = segment.known.ranges
            if known and segment.file.base_offset <= place.base_offset < known[-1].end_offset:
                yield place._replace(owner=segment.known.cluster_id)

    def batches(self, places: Collection[BatchPlace]) -> dict[BatchPlace, set[int]]:
        """The CRCs of the scanned batches that begin at the places."""
        owners = {place.owner for place in places}
        opened = self._files.opened
        numbers = {n: s.capture.capture_id for n, s in enumerate(opened) if s.capture.capture_id in owners}
        found: dict[BatchPlace, set[int]] = {place: set() for place in places}
        if numbers:
            offsets = sorted({place.base_offset for place in places})
            wanted = F.col("file_number").isin(list(numbers)) & F.col("base_offset").isin(offsets)
            rows = good_batches(self._pieces).where(wanted)
            for row in to_rows(rows.select("file_number", "leader_epoch", "base_offset", "crc")):
                place = BatchPlace(numbers[row["file_number"]], row["leader_epoch"], row["base_offset"])
                if place in found:
                    found[place].add(row["crc"])
        return found


def captured_lives(
    lake: Location, kafka_ids: Collection[str], logs: ScannedLogs | None
) -> list[CapturedLives]:
    """The lives of the cluster ids by the captures that the lake holds and, if given, those of new logs."""
    groups = id_groups(lake, CAPTURES, cluster_ids_of(lake, kafka_ids))
    return [lives for some in groups for lives in _lives_of_some(lake, some, logs)]


def _lives_of_some(
    lake: Location, ids: Mapping[str, Sequence[str]], logs: ScannedLogs | None
) -> Iterator[CapturedLives]:
    """ids: by cluster id of meta.properties those of its lives. The captures of all are in memory."""
    every = [name for names in ids.values() for name in names]
    stored = _stored(lake, every)
    complete = _complete_checkpoints(lake, every)
    for name, names in ids.items():
        yield _lives(lake, name, {each: stored[each] for each in names}, complete, logs)


def _stored(lake: Location, clusters: Collection[str]) -> dict[str, pa.Table]:
    """By cluster_id the rows (CAPTURED) of its captures, which as Python values take ten times the memory."""
    return by_cluster(lake, CAPTURES, CAPTURED, clusters)


def _complete_checkpoints(lake: Location, clusters: Collection[str]) -> Mapping[str, set[LoggedCheckpoint]]:
    """The complete checkpoints above offset 0, by cluster_id."""
    found: defaultdict[str, set[LoggedCheckpoint]] = defaultdict(set)
    columns = ["cluster_id", *LoggedCheckpoint._fields]
    for row in rows_with(lake, SNAPSHOTS, columns, ds.field("complete"), cluster_id=clusters):
        if row["end_offset"]:
            found[row["cluster_id"]].add(checkpoint_of(row))
    return found


def _lives(
    lake: Location,
    name: str,
    stored: Mapping[str, pa.Table],
    complete: Mapping[str, set[LoggedCheckpoint]],
    logs: ScannedLogs | None,
) -> CapturedLives:
    new = logs.captures[name] if logs else {}
    captures = [
        capture
        for cluster, rows in stored.items()
        for capture in held_captures(rows, complete.get(cluster, set()))
    ]
    held = list(captures)
    captures += new.values()

    def read(places: Set[BatchPlace]) -> FoundBatches:
        of_new = [place for place in places if place.owner in new]
        found = logs.batches(of_new) if logs and of_new else {}
        of_lake = {place: [place] for place in places if place not in found}
        if logs:
            of_lake |= {place: list(logs.known_places(place)) for place in found}
        of_batches = _stored_batches(lake, {place for each in of_lake.values() for place in each})
        for place, each in of_lake.items():
            found.setdefault(place, set()).update(*(of_batches.get(at, ()) for at in each))
        return {place: frozenset(crcs) for place, crcs in found.items()}

    lives = lives_of(captures, read)
    # Copies are of the life of what they are copies of.
    targets = _targets(name, lives) if len(lives) > 1 else {}
    is_settled = all(one.known_life == targets.get(one.capture_id, (name, None))[0] for one in held)
    return CapturedLives(lake, name, lives, tuple(stored), is_settled, logs.nodes if logs else {})


def _stored_batches(lake: Location, places: Collection[BatchPlace]) -> dict[BatchPlace, set[int]]:
    """The CRCs of the batches that table batches has at the places."""
    found: defaultdict[BatchPlace, set[int]] = defaultdict(set)
    if not places or not exists(lake, BATCHES):
        return found
    offsets = sorted({place.base_offset for place in places})
    rows = rows_with(
        lake,
        BATCHES,
        ["cluster_id", "leader_epoch", "base_offset", "crc"],
        ds.field("base_offset").isin(offsets),
        cluster_id={place.owner for place in places},
    )
    for row in rows:
        found[BatchPlace(row["cluster_id"], row["leader_epoch"], row["base_offset"])].add(row["crc"])
    return found


def _range_of(held: FileEpochRange) -> LoggedRange:
    return LoggedRange(
        held.leader_epoch,
        held.first_offset,
        held.end_offset,
        ms_of(held.first_appended_at),
        ms_of(held.last_appended_at),
        held.first_batch_crc,
    )


def _first_batches(ranges: Iterable[FileEpochRange]) -> Iterator[tuple[int, int, int]]:
    """(epoch, base offset, CRC) of the first batch of each range."""
    for held in ranges:
        yield held.leader_epoch, held.first_offset, held.first_batch_crc
