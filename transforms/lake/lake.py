"""The lake for Spark: a folder of Delta tables and lake.json, which can be moved or copied.

Large tables are read by Spark, whose tasks also write their files; small ones by delta-rs. Every commit is
made by transforms.lake.commits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from transforms.lake import delta_rs
from transforms.lake.arrow_rows import Row
from transforms.lake.commits import TableWriter
from transforms.lake.spark_rows import arrow_schema, from_arrow, to_rows
from transforms.lake.spark_tasks import map_in_arrow
from transforms.lake.storage import check_lake
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import count_written, read_table, spark_location, table_folder
from transforms.lake.table_files import FILES, Task, writing
from transforms.lake.tables import Table

# What Spark takes for a pattern in the path of a file.
_PATTERN = re.compile(r"[*?{}\[\]\\]")


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake at `path`, opened in `spark`. lease: the number under which it is written; None: of none."""

    spark: SparkSession
    path: Location
    lease: int | None = None

    def location(self, table: Table) -> str:
        """The table's folder, as Spark takes it."""
        return spark_location(self.folder(table))

    def folder(self, table: Table) -> Location:
        """The table's folder, in which tasks write files."""
        return table_folder(self.path, table)

    def exists(self, table: Table) -> bool:
        return delta_rs.exists(self.path, table)

    def read(self, table: Table) -> DataFrame:
        """All rows of a table's newest version; an empty frame of its schema where it does not exist.

        Spark reads the files of a small table themselves: planning a query costs it a second or more for each
        version of a Delta table that it has not seen yet, and nearly every run makes one.
        """
        if not self.exists(table):
            return self.spark.createDataFrame([], table.schema)
        if (files := self.plain_files(table)) is not None:
            return self.spark.read.schema(stored_schema(self.path, table)).parquet(*files)
        return self.spark.read.format("delta").load(self.location(table))

    def plain_files(self, table: Table) -> list[str] | None:
        """The files of delta_rs.plain_files, as Spark takes them; None also if there are none."""
        location = self.location(table)
        if _PATTERN.search(location):
            return None
        names = delta_rs.plain_files(self.path, table)
        return [f"{location}/{name}" for name in names] if names else None

    def read_at_hand(self, table: Table) -> DataFrame:
        """All rows of a table that exists, read by delta-rs: for small tables, and queries of many.

        Planning a query costs Spark a second for each Delta table in it. Every column is nullable here,
        whatever is declared: Spark would otherwise drop checks for null.
        """
        fields = [StructField(field.name, field.dataType) for field in table.schema]
        rows = delta_rs.arrow_with(self.path, table, table.names)
        schema = StructType(fields)
        return from_arrow(self.spark, rows.cast(arrow_schema(schema)), schema)

    @property
    def writer(self) -> TableWriter:
        """The tables as this run may write them."""
        return TableWriter(self.path, self.lease)

    def create(self, table: Table) -> None:
        """Create the Delta table with its comments, if it does not exist."""
        self.writer.create(table)

    def written_files(self, table: Table, files: DataFrame, load_id: str) -> list[Row]:
        """Let tasks write files (rows of table_files.FILES) for append_files. The table must exist.

        None are written where the load has been committed before.
        """
        return [] if self.writer.is_loaded(table, load_id) else self._counted(table, files)

    def append_files(self, table: Table, written: Sequence[Row], load_id: str) -> int:
        """Append files that tasks have written, once: a load that is repeated after a kill is dropped.

        Returns how many rows there are.
        """
        if written:
            self.writer.add_files(table, written, load_id)
        return sum(file["row_count"] for file in written)

    def put(
        self, table: Table, rows: Sequence[Row], by: str, clusters: Collection[str] | None = None
    ) -> None:
        """Insert or update a few rows by the table's key, as TableWriter.put does."""
        self.create(table)
        self.writer.put(table, rows, by, clusters)

    def replace(self, table: Table, rows: DataFrame, clusters: Sequence[str]) -> None:
        """Replace all rows of the clusters."""
        self.replace_where(table, rows, delta_rs.among({"cluster_id": clusters}))

    def replace_few(self, table: Table, rows: pa.Table, clusters: Sequence[str]) -> bool:
        """Replace all rows of the clusters by an Arrow table; False if the table holds just these rows."""
        if self.exists(table) and self.holds(table, rows, clusters):
            return False
        self.writer.replace_where(table, delta_rs.among({"cluster_id": clusters}), rows)
        return True

    def holds(self, table: Table, rows: pa.Table, clusters: Sequence[str]) -> bool:
        """Whether the table, which exists, holds these rows of the clusters and no others."""
        held = delta_rs.arrow_with(self.path, table, table.names, cluster_id=clusters)
        by_key = [(name, "ascending") for name in table.key]
        return len(held) == len(rows) and held.sort_by(by_key).to_pylist() == rows.sort_by(by_key).to_pylist()

    def replace_where(self, table: Table, rows: DataFrame, where: ds.Expression) -> None:
        """Replace all rows that meet a condition (never null), as the new rows must. Tasks write them."""
        self.writer.replace_where(table, where, files=self._files(table, rows))

    def replace_by_files(self, table: Table, files: DataFrame, where: ds.Expression) -> None:
        """The same by the files (rows of table_files.FILES) that tasks write with task_writer."""
        self.writer.replace_where(table, where, files=self._counted(table, files))

    def task_writer(self, table: Table, constants: Mapping[str, Any] | None = None) -> Callable[[Task], Task]:
        """How a task writes what it makes to files of the table, created here; no commit has them yet.

        constants: columns that the task does not make. That rows need not pass through Spark's JVM saves more
        than the task takes to write them.
        """
        self.create(table)
        return partial(
            writing, folder=self.folder(table), schema=table.arrow_schema, constants=constants or {}
        )

    def keep(self, table: Table, rows: DataFrame, clusters: Sequence[str]) -> None:
        """Remove the rows of the clusters but `rows`, for good. The table must exist."""
        self.writer.remove_where(table, delta_rs.among({"cluster_id": clusters}), self._files(table, rows))

    def _files(self, table: Table, rows: DataFrame) -> list[Row]:
        """Let tasks write rows to files (rows of table_files.FILES), which no commit has yet."""
        write = self.task_writer(table)
        return self._counted(table, map_in_arrow(rows.select(table.names), write(iter), FILES))

    def _counted(self, table: Table, files: DataFrame) -> list[Row]:
        """Let tasks write files, whose requests are counted."""
        written = to_rows(files)
        count_written(self.folder(table), (file["size_bytes"] for file in written))
        return written


def stored_schema(lake: Location, table: Table) -> StructType:
    """The schema of a table that exists, with its comments; every column may be null."""
    with read_table(lake, table) as held:
        stored = StructType.fromJson(json.loads(held.schema().to_json()))
    return StructType([StructField(f.name, f.dataType, metadata=f.metadata) for f in stored])


def in_clusters(clusters: Iterable[str]) -> Column:
    """The condition that a row belongs to one of the clusters, for Spark."""
    return F.col("cluster_id").isin(sorted(clusters))


def escape(text: str) -> str:
    """Text inside a SQL literal."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def existing_lake(spark: SparkSession, path: Location) -> Lake:
    """The lake at `path`, to be read. Raises NoLakeError."""
    check_lake(path)
    return Lake(spark, path.resolve())
