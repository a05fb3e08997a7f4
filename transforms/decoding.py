"""Chosen batches to their records, secrets taken out before a row leaves the reader."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import Window

from kraft_core.columnar.reference import decode
from kraft_core.columnar.schema import RECORDS
from transforms.frames import spark_types

DECODED = pa.schema([("cluster_id", pa.string()), *RECORDS])
DECLARED = spark_types(DECODED)
IDENTITY = ("cluster_id", "base_offset", "leader_epoch", "crc", "size_bytes")
# A task reads at most about this much of a file.
RANGE_BYTES = 64 * 1024 * 1024


def one_copy(batches: DataFrame) -> DataFrame:
    """One of the copies of each distinct batch: the path and position to read it from.

    Copies are equal byte for byte, so which is taken makes no difference to the tables; taking the least path
    keeps what is read in long stretches of few files.
    """
    order = Window.partitionBy(*IDENTITY).orderBy("path", "position")
    return (
        batches.withColumn("copy", F.row_number().over(order))
        .where(F.col("copy") == 1)
        .select(*IDENTITY, "path", "position")
    )


def decode_batches(chosen: DataFrame, tasks: int) -> DataFrame:
    """The records of the chosen batches: rows of DECODED."""
    part = F.floor(F.col("position") / RANGE_BYTES)
    ordered = (
        chosen.select("cluster_id", "path", "position", "size_bytes")
        .repartition(tasks, "path", part)
        .sortWithinPartitions("path", "position")
    )
    return ordered.mapInArrow(decode_rows, from_arrow_schema(DECODED))


def decode_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of (cluster_id, path, position, size_bytes), ordered by path and position, to their records."""
    for batch in batches:
        rows = batch.to_pylist()
        for (path, cluster_id), group in groupby(rows, key=lambda r: (r["path"], r["cluster_id"])):
            positions = [(r["position"], r["position"] + r["size_bytes"]) for r in group]
            for records in decode(path, stretches(positions)):
                yield owned(cluster_id, within_batch(records, positions)).cast(DECLARED)


def stretches(positions: list[tuple[int, int]]) -> list[tuple[int, int | None]]:
    """Positions (start, end) that touch each other, joined."""
    joined: list[tuple[int, int | None]] = []
    for start, end in positions:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def within_batch(records: pa.RecordBatch, positions: list[tuple[int, int]]) -> pa.RecordBatch:
    """unread_position counted from the start of the record's batch, so that every copy has the same."""
    if pc.all(records["unread_position"].is_null()).as_py() is not False:
        return records
    starts = [start for start, _ in positions]

    def relative(position: int | None) -> int | None:
        return None if position is None else position - starts[bisect_right(starts, position) - 1]

    values = [relative(p) for p in records["unread_position"].to_pylist()]
    index = records.schema.get_field_index("unread_position")
    return records.set_column(index, records.schema.field(index), pa.array(values, pa.int64()))


def owned(cluster_id: str, records: pa.RecordBatch) -> pa.RecordBatch:
    """The records with the column of their cluster."""
    column: Any = pa.array([cluster_id] * len(records), pa.string())
    return pa.RecordBatch.from_arrays([column, *records.columns], schema=DECODED)
