"""Python work spread over Spark's tasks, each of which reads the lake's files itself."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transforms.lake.table_files import Task

# From a piece of work to rows.
Make = Callable[[Any], Iterator[pa.RecordBatch]]
WORK = pa.schema([("task", pa.int32()), ("work", pa.binary())])
Piece = TypeVar("Piece")
# Rows that go to Spark at once.
ROWS = 10_000
# Objects that are made between two collections of garbage: Python's own number takes a quarter of the CPU
# seconds of a task that holds thousands of rows.
MOST_GARBAGE = 100_000


_frozen_modules = 0


def map_in_arrow(frame: DataFrame, task: Task, schema: pa.Schema) -> DataFrame:
    """What a function makes of a frame's rows: rows of the schema.

    Spark's workers look for garbage after each task, which takes 50 ms where the kernel is loaded: what
    importing made is left out from the end of the first task on.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)
        _freeze_modules()

    return frame.mapInArrow(run, from_arrow_schema(schema))


def _freeze_modules() -> None:
    """Leave all objects out of later collections, if modules have been imported since the last time."""
    global _frozen_modules
    if len(sys.modules) > _frozen_modules:
        gc.freeze()
        _frozen_modules = len(sys.modules)


def in_groups(pieces: Sequence[Piece], size: Callable[[Piece], int], most: int) -> list[list[Piece]]:
    """Pieces in groups of `most` rows, or of one piece more; the largest first, each of `most` rows alone."""
    groups: list[list[Piece]] = []
    room = 0
    for piece in sorted(pieces, key=size, reverse=True):
        if room <= 0:
            groups.append([])
            room = most
        groups[-1].append(piece)
        room -= size(piece)
    return groups


def in_tasks(
    spark: SparkSession,
    work: Sequence[Any],
    make: Make,
    schema: pa.Schema,
    write: Callable[[Task], Task] | None = None,
) -> DataFrame:
    """What a function makes of each piece of work, a value that can be pickled, spread over tasks.

    write: what else each task does with all that it makes; the schema is that of the result.
    """
    tasks = max(1, min(len(work), 4 * spark.sparkContext.defaultParallelism))
    rows = [{"task": n % tasks, "work": pickle.dumps(piece)} for n, piece in enumerate(work)]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.set_threshold(MOST_GARBAGE)
        for batch in batches:
            for piece in batch["work"].to_pylist():
                for made in make(pickle.loads(piece)):
                    yield from pa.Table.from_batches([made]).to_batches(max_chunksize=ROWS)

    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=WORK))
    task = run if write is None else write(run)
    return map_in_arrow(frame.repartitionById(tasks, F.col("task")), task, schema)
