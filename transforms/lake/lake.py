"""The lake on disk: a folder of Delta tables and lake.json; moved or copied it works unchanged.

Writers go through here: append new keys, merge small tables, replace what is derived for touched clusters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from transforms.lake import delta_rs
from transforms.lake.arrow_rows import arrow_schema, from_arrow, to_frame, to_rows
from transforms.lake.storage import check_lake, generation
from transforms.lake.tables import Table

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake at `path`, opened in `spark`."""

    spark: SparkSession
    path: Path

    def location(self, table: Table) -> str:
        return str(self.path / table.name)

    def exists(self, table: Table) -> bool:
        return delta_rs.exists(self.path, table)

    def read(self, table: Table) -> DataFrame:
        """All rows of a table; an empty frame of its schema where nothing was written yet."""
        if self.exists(table):
            return self.spark.read.format("delta").load(self.location(table))
        return self.spark.createDataFrame([], table.schema)

    def read_at_hand(self, table: Table) -> DataFrame:
        """All rows of a table that exists, read by delta-rs: for small ones, and queries of many tables.

        Planning a query costs Spark a second for each Delta table in it. Every column may be null, whatever
        is declared: else Spark would take it for granted that none is.
        """
        fields = [StructField(field.name, field.dataType) for field in table.schema]
        rows = delta_rs.arrow_with(self.path, table, table.names)
        schema = StructType(fields)
        return from_arrow(self.spark, rows.cast(arrow_schema(schema)), schema)

    def create(self, table: Table) -> None:
        """The Delta table with its comments, if it is not there."""
        delta_rs.create(self.path, table)

    def append(self, table: Table, rows: DataFrame, load_id: str) -> int:
        """Append rows once: the same load repeated after a kill is dropped by Delta itself.

        Returns how many rows there were. Not to be called where there are none: even an empty append makes a
        new version.
        """
        self.create(table)
        counted = Observation()
        (
            rows.select(table.names)
            .observe(counted, F.count("*").alias("rows"))
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self.application(table, load_id))
            .option("txnVersion", "0")
            .option("mergeSchema", "true")
            .save(self.location(table))
        )
        return counted.get["rows"]

    def append_files(self, table: Table, files: DataFrame, load_id: str) -> int:
        """Append once, as `append` does, what tasks write to files of the table: rows of table_files.FILES.

        The table must exist. Returns how many rows there were.
        """
        self.widen(table)
        application = self.application(table, load_id)
        if delta_rs.is_loaded(self.path, table, application):
            return 0
        written = to_rows(files)
        if not written:
            return 0
        if not delta_rs.is_written_here(self.path, table):
            return self.append_rows_of(table, written, load_id)
        delta_rs.add_files(self.path, table, written, application)
        return sum(file["row_count"] for file in written)

    def append_rows_of(self, table: Table, files: Sequence[Row], load_id: str) -> int:
        """Append the rows of files by Spark, which writes them again; maintain removes those files."""
        paths = [f"{self.location(table)}/{file['path']}" for file in files]
        return self.append(table, self.spark.read.schema(table.schema).parquet(*paths), load_id)

    def application(self, table: Table, load_id: str) -> str:
        """What a load is called in the table's log."""
        load = f"{table.name}:{load_id}:{generation(self.path)}"
        return hashlib.sha256(load.encode()).hexdigest()

    def widen(self, table: Table) -> None:
        """Add to a table that exists what its structs lack, as those of an earlier version do."""
        if lacks(delta_rs.schema(self.path, table), table.schema):
            nothing = self.spark.createDataFrame([], table.schema).write.format("delta")
            nothing.mode("append").option("mergeSchema", "true").save(self.location(table))

    def put(self, table: Table, rows: Sequence[Row], by: str) -> None:
        """Insert or update a few rows by the table's key, of which `by` tells most rows apart."""
        if delta_rs.is_written_here(self.path, table):
            delta_rs.put_rows(self.path, table, rows, by)
            return
        target = DeltaTable.forPath(self.spark, self.location(table)).alias("target")
        same = " AND ".join(f"target.{k} = source.{k}" for k in table.key)
        target.merge(
            to_frame(self.spark, rows, table.schema).alias("source"), same
        ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def replace(self, table: Table, rows: DataFrame, clusters: Sequence[str]) -> None:
        """Replace all rows of the named clusters."""
        self.replace_where(table, rows, of_clusters(clusters))

    def replace_few(self, table: Table, rows: pa.Table, clusters: Sequence[str]) -> None:
        """The same for rows at hand, of the table's columns and types; none is written if they are there."""
        if not delta_rs.is_written_here(self.path, table):
            self.replace(table, from_arrow(self.spark, rows, table.schema), clusters)
        elif not self.exists(table) or not self.holds(table, rows, clusters):
            delta_rs.replace_where(self.path, table, rows, delta_rs.among_texts("cluster_id", clusters))

    def holds(self, table: Table, rows: pa.Table, clusters: Sequence[str]) -> bool:
        """Whether the table, which exists, holds these rows of the clusters and no others."""
        held = delta_rs.arrow_with(self.path, table, table.names, cluster_id=clusters)
        by_key = [(name, "ascending") for name in table.key]
        return len(held) == len(rows) and held.sort_by(by_key).to_pylist() == rows.sort_by(by_key).to_pylist()

    def replace_where(self, table: Table, rows: DataFrame, condition: str) -> None:
        """Replace all rows of which a condition in SQL holds; it must hold of the new ones."""
        fresh = not self.exists(table)
        self.create(table)
        writer = rows.select(table.names).write.format("delta")
        if fresh:
            writer.mode("append").save(self.location(table))
            return
        writer.mode("overwrite").option("replaceWhere", condition).save(self.location(table))

    def delete(self, table: Table, rows: DataFrame, key: Sequence[str]) -> None:
        """Delete the rows of the table that agree with one of `rows`, all different, in the columns `key`."""
        target = DeltaTable.forPath(self.spark, self.location(table)).alias("target")
        same = " AND ".join(f"target.{k} = source.{k}" for k in key)
        target.merge(rows.select(*key).alias("source"), same).whenMatchedDelete().execute()

    def delete_where(self, table: Table, condition: Column) -> None:
        """Delete the rows of which a condition holds."""
        DeltaTable.forPath(self.spark, self.location(table)).delete(condition)


def lacks(held: DataType, wanted: DataType) -> bool:
    """Whether a type lacks a field of another, at any depth."""
    if isinstance(held, ArrayType) and isinstance(wanted, ArrayType):
        return lacks(held.elementType, wanted.elementType)
    if isinstance(held, StructType) and isinstance(wanted, StructType):
        return any(f.name not in held.names or lacks(held[f.name].dataType, f.dataType) for f in wanted)
    return False


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
