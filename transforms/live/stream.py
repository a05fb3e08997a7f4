"""format("kraft") as a stream: what running quorums commit.

An offset is, of each cluster by its name, where it begins ({"at": "earliest"}) or {"offset", "epoch", "crc",
"ledIn", "clusterId"}: the next offset to read, the epoch of the record below it, the CRC of the batch that
ends there, and the newest epoch of a leader that had all below; where only a snapshot was read its end, too
("snapshotEnd"). A query that starts again goes on upon the same history of the same cluster only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kraft_core.wire.errors import LostHistoryError, RecordsGoneError, RefusedError, WireError
from kraft_core.wire.follower import LogPart, Part, Position, SnapshotPart
from transforms.live.log_reader import LogReader
from transforms.live.options import LATEST, LiveCluster, live_options
from transforms.live.parts import LivePartition, end_within, packed, pieces
from transforms.live.rows import piece_rows
from transforms.source.columns import checked
from transforms.source.errors import SourceError

log = logging.getLogger("kraftlake.live")
# Clusters asked at the same time.
THREADS = 16
# Seconds that a trigger waits for a cluster that does not answer, and reads of one that has much.
PATIENCE, READING = 2.0, 8.0
# Seconds that a batch is waited for that has to be read again, and a cluster of a trigger that ends.
LONG_PATIENCE = 300.0
# Seconds after which a cluster that refused is asked again, where others are followed beside it.
SET_ASIDE = 60.0
# A leader with nothing new answers after so long; at once where many clusters wait for each other.
MAX_WAIT_MS, FEW_CLUSTERS = 100, 8
# Fetched at once, of all clusters.
FETCHED_BYTES = 32 * 1024 * 1024
_EVERYTHING = 1 << 62
SNAPSHOT_END = "snapshotEnd"

Offset = dict[str, Any]


class KraftStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads each committed batch once, in the driver; tasks decode. Raises SourceError."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._options = live_options(options)
        self._schema = checked(schema)
        self._readers: dict[str, LogReader] = {}
        # From where on a reader holds parts.
        self._held_from: dict[str, Offset] = {}
        self._planned: dict[str, tuple[Offset, Offset, list[Part]]] = {}
        self._polls: dict[str, Future[None]] = {}
        self._set_aside: dict[str, float] = {}
        self._targets: dict[str, int] | None = None
        self._pool: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get the schema alone, no address and no password."""
        return {"_schema": self._schema}

    # Spark's names
    def initialOffset(self) -> dict[str, Offset]:  # noqa: N802
        return {cluster.name: {"at": cluster.start} for cluster in self._options.clusters}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note the high watermarks of now. Raises SourceError where a quorum does not tell."""
        self._targets = {}
        for cluster in self._options.clusters:
            reader = LogReader(cluster, "latest", fail_on_data_loss=True)
            try:
                self._wait_for(reader, 0)
                self._targets[cluster.name] = reader.follower.high_watermark
            finally:
                reader.close()

    def latestOffset(self, start: dict[str, Offset], limit: ReadLimit) -> dict[str, Offset]:  # noqa: N802
        wanted = limit.max_rows if isinstance(limit, ReadMaxRows) else _EVERYTHING
        share = max(1, wanted // len(self._options.clusters))
        for cluster in self._options.clusters:
            self._begin_poll(cluster, self._start(start, cluster), share)
        patience = PATIENCE if self._targets is None else LONG_PATIENCE
        wait(self._polls.values(), patience)
        ends = {cluster.name: self._start(start, cluster) for cluster in self._options.clusters}
        answered = [name for name in ends if self._has_answered(name)]
        left = wanted
        for count, name in enumerate(sorted(answered, key=lambda each: self._readers[each].held)):
            reader = self._readers[name]
            end, taken = self._end(name, reader, ends[name], max(1, left // (len(answered) - count)))
            ends[name] = end
            left = max(0, left - taken)
        return ends

    def reportLatestOffset(self) -> dict[str, Offset] | None:  # noqa: N802
        known = {name: reader.follower.high_watermark for name, reader in self._readers.items()}
        return {name: {"offset": watermark} for name, watermark in known.items() if watermark >= 0} or None

    def partitions(self, start: dict[str, Offset], end: dict[str, Offset]) -> list[InputPartition]:
        made = []
        for cluster in self._options.clusters:
            begin, until = self._start(start, cluster), end.get(cluster.name)
            if until is None or until == begin or "offset" not in until:
                continue
            for part in self._parts(cluster, begin, until):
                made += pieces(until["clusterId"], part)
        return list(packed(made))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LivePartition)
        for piece in partition.pieces:
            yield from piece_rows(piece, self._schema)

    def commit(self, end: dict[str, Offset]) -> None:
        """A batch is done: its parts are not needed again."""
        done = [name for name, planned in self._planned.items() if planned[1] == end.get(name)]
        for name in done:
            del self._planned[name]

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for reader in self._readers.values():
            reader.close()

    # The readers
    @staticmethod
    def _start(start: dict[str, Offset], cluster: LiveCluster) -> Offset:
        """Where a cluster continues; one that is not in the checkpoint begins."""
        return start.get(cluster.name) or {"at": cluster.start}

    def _reader(self, cluster: LiveCluster, start: Offset) -> LogReader:
        """The reader that holds the parts from there on."""
        reader = self._readers.get(cluster.name)
        if reader is None or self._held_from[cluster.name] != start:
            if reader is not None:
                reader.close()
            where, cluster_id = start_of(start, cluster)
            count = len(self._options.clusters)
            reader = LogReader(
                cluster,
                where,
                self._options.fail_on_data_loss,
                cluster_id=cluster_id,
                max_bytes=FETCHED_BYTES // count,
                max_wait_ms=MAX_WAIT_MS if count <= FEW_CLUSTERS and self._targets is None else 0,
            )
            self._readers[cluster.name], self._held_from[cluster.name] = reader, start
        return reader

    def _begin_poll(self, cluster: LiveCluster, start: Offset, share: int) -> None:
        if cluster.name in self._polls or self._set_aside.get(cluster.name, 0.0) > time.monotonic():
            return
        reader = self._reader(cluster, start)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="kraftlake-live")
        if self._targets is None:
            self._polls[cluster.name] = self._pool.submit(reader.poll, share, READING)
        elif not reader.held:
            self._polls[cluster.name] = self._pool.submit(self._wait_for, reader, self._targets[cluster.name])

    def _wait_for(self, reader: LogReader, offset: int) -> None:
        """Poll until something is held, or an offset is reached. Raises SourceError after LONG_PATIENCE."""
        give_up = time.monotonic() + LONG_PATIENCE
        while not reader.held and (reader.position is None or reader.position.offset < offset):
            if time.monotonic() > give_up:
                raise SourceError(
                    f"{reader.cluster.name}: no answer for {LONG_PATIENCE:.0f} s: {reader.follower.why}"
                )
            reader.poll(1, 1.0)

    def _has_answered(self, name: str) -> bool:
        """Whether a cluster's poll is over, well. Raises SourceError."""
        poll = self._polls.get(name)
        if poll is None:
            return name in self._readers and name not in self._set_aside
        if not poll.done():
            return False
        del self._polls[name]
        self._set_aside.pop(name, None)
        try:
            poll.result()
        except (RefusedError, SourceError) as error:
            self._refused(name, error)
            return False
        return True

    def _refused(self, name: str, error: WireError | SourceError) -> None:
        """Ends the query, unless other clusters are followed beside one that does not let itself be read."""
        alone = len(self._options.clusters) == 1 or self._targets is not None
        if alone or isinstance(error, LostHistoryError | RecordsGoneError):
            raise SourceError(_with_advice(name, error)) from None
        log.error(
            "%s; retrying in %.0f s; other clusters are still read",
            _with_advice(name, error),
            SET_ASIDE,
        )
        self._set_aside[name] = time.monotonic() + SET_ASIDE
        reader = self._readers.pop(name)
        reader.close()

    def _end(self, name: str, reader: LogReader, start: Offset, share: int) -> tuple[Offset, int]:
        """Where a cluster's next batch ends, and how many records it has."""
        target = None if self._targets is None else self._targets[name]
        if start.get("at") == LATEST:
            # Where that is differs if it is asked again: the first batch is empty, and settles it.
            return (start if reader.position is None else _offset(reader.position, reader)), 0
        first = start.get("offset", 0)
        end = end_within(reader.parts, first, share, target)
        if end is None and "offset" not in start:
            end = reader.position if reader.position and not reader.held else None
        if end is None:
            return start, 0
        return _offset(end, reader), max(0, end.offset - first)

    def _parts(self, cluster: LiveCluster, start: Offset, end: Offset) -> list[Part]:
        """What was read between two offsets; it is read again if this process did not. Raises SourceError."""
        if start.get("at") == LATEST:
            return []
        planned = self._planned.get(cluster.name)
        if planned is not None and planned[:2] == (start, end):
            return planned[2]
        poll = self._polls.pop(cluster.name, None)
        if poll is not None:
            wait([poll])
        reader = self._reader(cluster, start)
        try:
            self._read_to(reader, end)
        except RefusedError as error:
            raise SourceError(_with_advice(cluster.name, error)) from None
        parts = reader.cut_to(end["offset"]) or self._newer_snapshot(reader, end)
        self._must_be_whole(reader, start)
        if parts and (isinstance(parts[-1], LogPart) or parts[-1].end.offset == end["offset"]):
            _must_be_same(cluster.name, parts[-1].end, end)
        self._held_from[cluster.name] = end
        self._planned[cluster.name] = (start, end, parts)
        return parts

    @staticmethod
    def _newer_snapshot(reader: LogReader, end: Offset) -> list[Part]:
        """What a snapshot's batch that is run again has, where the log begins later now.

        Of the records that were deleted since, the first snapshot has the state, too.
        """
        beyond = reader.parts[0] if reader.parts else None
        if isinstance(beyond, SnapshotPart) and beyond.end.offset <= end.get(SNAPSHOT_END, 0):
            return [reader.parts.popleft()]
        return []

    def _must_be_whole(self, reader: LogReader, start: Offset) -> None:
        """Raises SourceError where a snapshot has replaced records of a batch that is read again."""
        beyond = reader.parts[0] if reader.parts else None
        if self._options.fail_on_data_loss and isinstance(beyond, SnapshotPart):
            gone = RecordsGoneError(max(start.get("offset", 0), beyond.wanted), beyond.end.offset)
            raise SourceError(_with_advice(reader.cluster.name, gone))

    def _read_to(self, reader: LogReader, end: Offset) -> None:
        give_up = time.monotonic() + LONG_PATIENCE
        while reader.position is None or reader.position.offset < end["offset"]:
            if time.monotonic() > give_up:
                raise SourceError(
                    f"{reader.cluster.name}: the records up to {end['offset']} could not be read again for "
                    f"{LONG_PATIENCE:.0f} s: {reader.follower.why}"
                )
            reader.poll(reader.held + 1, 1.0)


def _must_be_same(name: str, read: Position, end: Offset) -> None:
    """Raises SourceError where what was read again ends in another batch than the first time."""
    was, now = (end.get("epoch"), end.get("crc")), (read.leader_epoch, read.crc)
    known = [(one, other) for one, other in zip(was, now, strict=True) if None not in (one, other)]
    if read.offset != end["offset"] or any(one != other for one, other in known):
        raise SourceError(
            f"{name}: the quorum lost committed records: the batch below offset {end['offset']} was read in "
            f"epoch {was[0]}, and is another one now; capture every controller's directory"
        )


def _offset(position: Position, reader: LogReader) -> Offset:
    assert reader.cluster_id is not None  # each connection learns it
    return offset_of(position, reader.cluster_id)


def _with_advice(name: str, error: Exception) -> str:
    advice = ""
    if isinstance(error, RecordsGoneError):
        advice = "; with option failOnDataLoss=false the stream continues with that snapshot's records"
    elif isinstance(error, LostHistoryError):
        advice = "; then stream the quorum from earliest with a new checkpoint"
    return f"{name}: {error}{advice}"


def offset_of(position: Position, cluster_id: str) -> Offset:
    epoch = {} if position.leader_epoch is None else {"epoch": position.leader_epoch}
    crc = {} if position.crc is None else {"crc": position.crc}
    covered = {SNAPSHOT_END: position.snapshot_end} if position.snapshot_end else {}
    return {
        "offset": position.offset,
        **epoch,
        **crc,
        "ledIn": position.led_in,
        **covered,
        "clusterId": cluster_id,
    }


def start_of(offset: Offset, cluster: LiveCluster) -> tuple[Position | str, str | None]:
    """Where to begin, and the id of the cluster, None if it is not known. Raises SourceError."""
    if "offset" not in offset:
        return offset["at"], cluster.cluster_id
    if cluster.cluster_id not in (None, offset["clusterId"]):
        raise SourceError(
            f"{cluster.name}: the checkpoint is of cluster {offset['clusterId']}, not of "
            f"{cluster.cluster_id}: use a checkpoint of its own for each cluster"
        )
    covered, crc = offset.get(SNAPSHOT_END, 0), offset.get("crc")
    position = Position(offset["offset"], offset.get("epoch"), offset["ledIn"], covered, crc)
    return position, offset["clusterId"]
