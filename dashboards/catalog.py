"""The lake's tables and views in the session's own catalog, as database `kraft`.

open_lake registers all of them, AskedLake those that statements name, when they are first named.
dashboards.published registers them in a persistent catalog.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from dashboards.databases import KRAFT, Database
from dashboards.definitions import (
    chosen,
    commented,
    defined,
    every_definition,
    needed,
    of_files,
    over_tables,
    tables_among,
)
from dashboards.evaluated_views import drop_evaluated, show_evaluated
from transforms.lake.delta_rs import newest_version
from transforms.lake.lake import Lake, escape, existing_lake, stored_schema
from transforms.lake.storage.location import Location
from transforms.lake.tables import Table

# What is asked of Delta itself: earlier versions, and how they came to be.
_OF_DELTA = re.compile(r"\b(AS\s+OF|HISTORY|DETAIL|EXTENDED|FORMATTED)\b|@", re.IGNORECASE)


def open_lake(spark: SparkSession, path: Location) -> Lake:
    """Open the lake at `path` and register its tables and views; `kraft` becomes the current database.

    Tables that no run has written yet are created empty. Raises NoLakeError.
    """
    lake = existing_lake(spark, path)
    create_tables(lake)
    _use_database(spark)
    define(lake)
    return lake


class AskedLake:
    """A lake that is only read, of which the session's catalog gets what statements name.

    Small tables are registered as the files of their newest version, which takes Spark a tenth of the time
    that Delta's own take it, views of them as their rows, and both again when a run has written them.
    """

    def __init__(self, spark: SparkSession, path: Location) -> None:
        """Make `kraft` the current database. Raises NoLakeError."""
        self._lake = existing_lake(spark, path)
        self._versions: dict[Table, int | None] = {}
        self._defined: set[str] = set()
        _use_database(spark)

    def register(self, asked: str, session: SparkSession | None = None) -> None:
        """Register what SQL needs and the catalog lacks; tables that no run has written are created empty.

        session: where it will be asked, unless in the lake's own: temporary views are one session's alone.
        """
        names = needed(asked, show_evaluated(session or self._lake.spark, self._lake.path, asked))
        of_delta = names is None or bool(_OF_DELTA.search(asked))
        tables = tables_among(names)
        create_tables(self._lake, names)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda table: self._register(table, of_delta), tables))
        for definition in chosen(every_definition(), names):
            if defined(definition) not in self._defined:
                self._lake.spark.sql(commented(definition))
                self._defined.add(defined(definition))

    def _register(self, table: Table, of_delta: bool) -> None:
        known = self._versions.get(table, -1)
        # Before its files: what is committed in between is seen the next time.
        newest = newest_version(self._lake.path, table)
        files = None if of_delta else self._lake.plain_files(table)
        # Delta's tables show each version as it is committed.
        version = None if files is None else newest
        if known is None or known == version:
            return
        if files is None:
            _register(self._lake, table, moved=True)
        else:
            self._register_files(table, files)
        self._versions[table] = version

    def _register_files(self, table: Table, files: Sequence[str]) -> None:
        """Register a table of the session's catalog over files of one folder."""
        spark = self._lake.spark
        spark.sql(f"DROP TABLE IF EXISTS {table.name}")
        folder = files[0].rpartition("/")[0]
        names = ",".join(file.rpartition("/")[2] for file in files)
        schema = stored_schema(self._lake.path, table)
        spark.catalog.createTable(
            table.name,
            path=f"{folder}/{{{names}}}",
            source="parquet",
            schema=schema,
            description=table.comment,
        )


def _use_database(spark: SparkSession) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {KRAFT}")
    spark.sql(f"USE {KRAFT}")


def create_tables(lake: Lake, names: set[str] | None = None) -> None:
    """Create those of the named tables (None: of all) that no run has written yet, empty."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lake.create, tables_among(names)))


def define(lake: Lake, names: set[str] | None = None, moved: bool = True) -> None:
    """Register the named tables, views and functions (None: all) in the current database.

    moved: whether tables registered there may point to another folder.
    """
    drop_evaluated(lake.spark)  # Spark refuses to define a view over a temporary one
    current = Database(lake.spark.catalog.currentCatalog(), lake.spark.catalog.currentDatabase())
    of_tables = chosen(over_tables(str(current)), names)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda table: _register(lake, table, moved), tables_among(names)))
        list(threads.map(lake.spark.sql, map(commented, of_tables)))
    for statement in chosen(of_files(), names):
        lake.spark.sql(commented(statement))


def _register(lake: Lake, table: Table, moved: bool) -> None:
    """Register one external table in the current database."""
    if moved:
        lake.spark.sql(f"DROP TABLE IF EXISTS {table.name}")
    location = escape(lake.location(table))
    lake.spark.sql(f"CREATE TABLE IF NOT EXISTS {table.name} USING DELTA LOCATION '{location}'")
