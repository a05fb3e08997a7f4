"""format("kraft_quorum") with both its sides: captured directories, and running quorums as a stream.

An offset has, for each cluster by its name, the rows of its last sample: an earlier state of a quorum cannot
be queried again, and a batch that is run again must have the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kraft_core.wire.errors import RefusedError, WireError
from transforms.live.options import LiveCluster, is_live, quorum_options
from transforms.live.quorum_asker import QuorumAsker
from transforms.live.quorum_rows import error_rows, sample_rows, samples_schema, spark_row
from transforms.source.errors import SourceError
from transforms.source.quorum import KraftQuorumDataSource, checked_against
from transforms.source.rows import shown

Rows = list[dict[str, Any]]
Offset = dict[str, Rows]
THREADS = 16
# Seconds. A trigger takes no new sample sooner; it waits so long for one; a cluster that answers later is in
# the next trigger.
LEAST_INTERVAL, PATIENCE = 0.5, 2.0


class KraftQuorumSource(KraftQuorumDataSource):
    """Options: docs/format.md for directories, docs/live.md for quorums. Raises SourceError."""

    def schema(self) -> StructType:
        if is_live(self.options):
            quorum_options(self.options)
            return samples_schema()
        return super().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        if is_live(self.options):
            raise SourceError(
                'a running quorum is queried by a stream: spark.readStream.format("kraft_quorum"), with '
                "trigger(availableNow=True) for its current state"
            )
        return super().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        if not is_live(self.options):
            raise SourceError(
                "a stream queries a running quorum: give controllers in option bootstrap.controllers, or "
                "brokers in bootstrap.servers; captured directories are read by "
                'spark.read.format("kraft_quorum").load(PATH)'
            )
        return QuorumStreamReader(self.options, schema)


class QuorumStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Asks every quorum once a trigger. Raises SourceError where a single quorum refuses."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._clusters = quorum_options(options)
        self._schema = checked_against(schema, samples_schema())
        self._askers: dict[str, QuorumAsker] = {}
        self._asked: dict[str, Future[Rows]] = {}
        self._next_at = 0.0
        self._only: Offset | None = None
        self._pool: ThreadPoolExecutor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get the schema alone, no address and no password."""
        return {"_schema": self._schema}

    # Spark's names
    def initialOffset(self) -> Offset:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """One sample of each quorum is all that is available."""
        self._only = self._sampled({}, None)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802, ARG002
        if self._only is not None:
            return self._only
        if time.monotonic() < self._next_at:
            return start
        self._next_at = time.monotonic() + LEAST_INTERVAL
        return self._sampled(start, PATIENCE)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        rows = [row for name, held in end.items() if held != start.get(name) for row in held]
        return [InputPartition(rows)] if rows else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield shown(map(spark_row, partition.value), self._schema)

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for asker in self._askers.values():
            asker.close()

    def _sampled(self, start: Offset, patience: float | None) -> Offset:
        """The newest sample of each cluster, that of start where none has come in time."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="kraftlake-live")
        for cluster in self._clusters:
            if cluster.name not in self._asked:
                self._asked[cluster.name] = self._pool.submit(self._ask, cluster)
        done, _ = wait(self._asked.values(), patience)
        found = {cluster.name: start[cluster.name] for cluster in self._clusters if cluster.name in start}
        for name, asked in list(self._asked.items()):
            if asked in done:
                del self._asked[name]
                found[name] = asked.result()
        return found

    def _ask(self, cluster: LiveCluster) -> Rows:
        asker = self._askers.setdefault(cluster.name, QuorumAsker(cluster))
        try:
            return sample_rows(asker.sample())
        except RefusedError as error:
            if len(self._clusters) == 1:
                raise SourceError(f"{cluster.name}: {error}") from None
            why = str(error)
        except WireError as error:
            why = str(error)
        return error_rows(asker.cluster_id, time.time_ns() // 1_000_000, why)
