"""Workers of a local session find imported what their tasks need."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from transforms.lake.spark_tasks import map_in_arrow

FOUND = pa.schema([("modules", pa.list_(pa.string())), ("frozen", pa.int64())])
NEEDED = ("pandas", "kraft_core.columnar.kernel", "transforms.histories.replay_tasks")


def test_workers_import_nothing_and_look_for_no_garbage_among_modules(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            row = {
                "modules": [name for name in NEEDED if name in sys.modules],
                "frozen": gc.get_freeze_count(),
            }
            yield pa.RecordBatch.from_pylist([row], FOUND)

    tasks = spark.range(0, 4, 1, 4)
    for row in map_in_arrow(tasks, look, FOUND).toArrow().to_pylist():
        assert row["modules"] == list(NEEDED)
        assert row["frozen"] > 100_000
