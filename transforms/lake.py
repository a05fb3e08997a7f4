"""The lake on disk: a folder of Delta tables and lake.json; moved or copied it works unchanged.

Writers go through here: append new keys, merge small tables, replace what is derived for touched clusters.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from transforms import delta_rs
from transforms.lake_files import check_lake, generation
from transforms.tables import Table


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

    def create(self, table: Table) -> None:
        """The Delta table with its comments, clustering and checks, if it is not there.

        It is made aside and then renamed, so that a killed run leaves no half of one, and of two runs that
        make it at once one does.
        """
        if self.exists(table):
            return
        aside = self.path / f".{table.name}-{uuid.uuid4().hex}"
        columns = ", ".join(c.ddl for c in table.columns)
        layout = f"CLUSTER BY ({', '.join(table.clustering)})" if table.clustering else ""
        self.spark.sql(
            f"CREATE TABLE delta.`{aside}` ({columns}) USING DELTA {layout} COMMENT '{escape(table.comment)}'"
        )
        for name, condition in table.checks.items():
            self.spark.sql(f"ALTER TABLE delta.`{aside}` ADD CONSTRAINT {name} CHECK ({condition})")
        try:
            aside.rename(self.location(table))
        except OSError:
            if not self.exists(table):
                raise
            shutil.rmtree(aside)

    def append(self, table: Table, rows: DataFrame, load_id: str) -> int:
        """Append rows once: the same load repeated after a kill is dropped by Delta itself.

        Returns how many rows there were. Not to be called where there are none: even an empty append makes a
        new version.
        """
        self.create(table)
        load = f"{table.name}:{load_id}:{generation(self.path)}"
        app = hashlib.sha256(load.encode()).hexdigest()
        counted = Observation()
        (
            rows.select(table.names)
            .observe(counted, F.count("*").alias("rows"))
            .write.format("delta")
            .mode("append")
            .option("txnAppId", app)
            .option("txnVersion", "0")
            .option("mergeSchema", "true")
            .save(self.location(table))
        )
        return counted.get["rows"]

    def merge(self, table: Table, rows: DataFrame) -> None:
        """Insert or update rows of a small table by its key."""
        self.create(table)
        target = DeltaTable.forPath(self.spark, self.location(table)).alias("target")
        same = " AND ".join(f"target.{k} = source.{k}" for k in table.key)
        target.merge(
            rows.select(table.names).alias("source"), same
        ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def replace(self, table: Table, rows: DataFrame, clusters: Sequence[str]) -> None:
        """Replace all rows of the named clusters."""
        names = ", ".join(f"'{escape(c)}'" for c in sorted(clusters))
        self.replace_where(table, rows, f"cluster_id IN ({names})")

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


def in_clusters(clusters: Iterable[str]) -> Column:
    """The condition that a row belongs to one of the clusters."""
    return F.col("cluster_id").isin(sorted(clusters))


def escape(text: str) -> str:
    """Text inside a SQL literal."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def existing_lake(spark: SparkSession, path: Path) -> Lake:
    """The lake at `path`. Raises NoLakeError."""
    check_lake(path)
    return Lake(spark, path.resolve())
