"""The lake on disk: a folder of Delta tables and lake.json; moved or copied it works unchanged.

Large tables are read and written by Spark, small ones by delta-rs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from transforms.lake import delta_rs
from transforms.lake.arrow_rows import Row, arrow_schema, from_arrow, to_rows
from transforms.lake.storage import check_lake, generation
from transforms.lake.tables import Table


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake at `path`, opened in `spark`."""

    spark: SparkSession
    path: Path

    def location(self, table: Table) -> str:
        """The table's folder, as Spark takes it."""
        return str(self.path / table.name)

    def exists(self, table: Table) -> bool:
        return delta_rs.exists(self.path, table)

    def read(self, table: Table) -> DataFrame:
        """All rows of a table; an empty frame of its schema where it does not exist."""
        if self.exists(table):
            return self.spark.read.format("delta").load(self.location(table))
        return self.spark.createDataFrame([], table.schema)

    def read_at_hand(self, table: Table) -> DataFrame:
        """All rows of a table that exists, read by delta-rs: for small tables, and queries of many.

        Planning a query costs Spark a second for each Delta table in it. Every column is nullable here,
        whatever is declared: Spark would otherwise drop checks for null.
        """
        fields = [StructField(field.name, field.dataType) for field in table.schema]
        rows = delta_rs.arrow_with(self.path, table, table.names)
        schema = StructType(fields)
        return from_arrow(self.spark, rows.cast(arrow_schema(schema)), schema)

    def create(self, table: Table) -> None:
        """Create the Delta table with its comments, if it does not exist."""
        delta_rs.create(self.path, table)

    def append(self, table: Table, rows: DataFrame, load_id: str) -> int:
        """Append rows once: Delta drops a load that is repeated after a kill.

        Returns how many rows there were. Not to be called without rows: an empty append makes a version, too.
        """
        self.create(table)
        counted = Observation()
        (
            rows.select(table.names)
            .observe(counted, F.count("*").alias("rows"))
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self._application(table, load_id))
            .option("txnVersion", "0")
            .save(self.location(table))
        )
        return counted.get["rows"]

    def written_files(self, table: Table, files: DataFrame, load_id: str) -> list[Row]:
        """Let tasks write files (rows of table_files.FILES) for append_files. The table must exist.

        None are written where the load has been committed before.
        """
        is_loaded = delta_rs.is_loaded(self.path, table, self._application(table, load_id))
        return [] if is_loaded else to_rows(files)

    def append_files(self, table: Table, written: Sequence[Row], load_id: str) -> int:
        """Append once, as `append` does, files that tasks have written. Returns how many rows there are."""
        if written:
            delta_rs.add_files(self.path, table, written, self._application(table, load_id))
        return sum(file["row_count"] for file in written)

    def _application(self, table: Table, load_id: str) -> str:
        """The id of a load in the table's log."""
        load = f"{table.name}:{load_id}:{generation(self.path)}"
        return hashlib.sha256(load.encode()).hexdigest()

    def put(self, table: Table, rows: Sequence[Row], by: str) -> None:
        """Insert or update a few rows by the table's key, of which `by` is a selective string column."""
        self.create(table)
        delta_rs.put_rows(self.path, table, rows, by)

    def replace(self, table: Table, rows: DataFrame, clusters: Sequence[str]) -> None:
        """Replace all rows of the clusters."""
        self.replace_where(table, rows, of_clusters(clusters))

    def replace_few(self, table: Table, rows: pa.Table, clusters: Sequence[str]) -> None:
        """Replace all rows of the clusters by an Arrow table, unless the table holds just these rows."""
        if not self.exists(table) or not self.holds(table, rows, clusters):
            delta_rs.replace_where(self.path, table, rows, delta_rs.among_texts("cluster_id", clusters))

    def holds(self, table: Table, rows: pa.Table, clusters: Sequence[str]) -> bool:
        """Whether the table, which exists, holds these rows of the clusters and no others."""
        held = delta_rs.arrow_with(self.path, table, table.names, cluster_id=clusters)
        by_key = [(name, "ascending") for name in table.key]
        return len(held) == len(rows) and held.sort_by(by_key).to_pylist() == rows.sort_by(by_key).to_pylist()

    def replace_where(self, table: Table, rows: DataFrame, condition: str) -> None:
        """Replace all rows that meet a SQL condition, as the new rows must."""
        fresh = not self.exists(table)
        self.create(table)
        writer = rows.select(table.names).write.format("delta")
        if fresh:
            writer.mode("append").save(self.location(table))
            return
        writer.mode("overwrite").option("replaceWhere", condition).save(self.location(table))

    def delete(self, table: Table, rows: DataFrame, key: Sequence[str]) -> None:
        """Delete the rows that equal one of `rows` (distinct) in the columns `key`."""
        target = DeltaTable.forPath(self.spark, self.location(table)).alias("target")
        same = " AND ".join(f"target.{k} = source.{k}" for k in key)
        target.merge(rows.select(*key).alias("source"), same).whenMatchedDelete().execute()

    def delete_where(self, table: Table, condition: Column) -> None:
        """Delete the rows that meet a condition."""
        DeltaTable.forPath(self.spark, self.location(table)).delete(condition)


def in_clusters(clusters: Iterable[str]) -> Column:
    """The condition that a row belongs to one of the clusters."""
    return F.col("cluster_id").isin(sorted(clusters))


def of_clusters(clusters: Iterable[str]) -> str:
    """The same condition in Spark's SQL."""
    names = ", ".join(f"'{escape(c)}'" for c in sorted(clusters))
    return f"cluster_id IN ({names})"


def escape(text: str) -> str:
    """Text inside a SQL literal."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def existing_lake(spark: SparkSession, path: Path) -> Lake:
    """The lake at `path`. Raises NoLakeError."""
    check_lake(path)
    return Lake(spark, path.resolve())
