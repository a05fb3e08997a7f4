"""open_lake: registers the lake's tables and views in the session's own catalog, as database `kraft`.

dashboards.published registers them in a persistent catalog.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession

from dashboards.databases import KRAFT, Database
from dashboards.definitions import FILES, chosen, needed, over_tables, statements
from transforms.lake.lake import Lake, escape, existing_lake
from transforms.lake.tables import TABLES, Table


def open_lake(spark: SparkSession, path: Path, asked: str | None = None) -> Lake:
    """Open the lake at `path` and register its tables and views; `kraft` becomes the current database.

    `asked` is SQL: only what it needs is registered, which takes a second instead of ten. Tables that no run
    has written yet are created empty. Raises NoLakeError.
    """
    lake = existing_lake(spark, path)
    names = None if asked is None else needed(asked)
    create_tables(lake, names)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {KRAFT}")
    spark.sql(f"USE {KRAFT}")
    define(lake, names)
    return lake


def create_tables(lake: Lake, names: set[str] | None = None) -> None:
    """Create those of the named tables (None: of all) that no run has written yet, empty."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lake.create, _tables_among(names)))


def _tables_among(names: set[str] | None) -> list[Table]:
    return [table for table in TABLES if names is None or table.name in names]


def define(lake: Lake, names: set[str] | None = None, moved: bool = True) -> None:
    """Register the named tables, views and functions (None: all) in the current database.

    moved: whether tables registered there may point to another folder.
    """
    current = Database(lake.spark.catalog.currentCatalog(), lake.spark.catalog.currentDatabase())
    of_tables = chosen(over_tables(str(current)), names)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda table: _register(lake, table, moved), _tables_among(names)))
        list(threads.map(lake.spark.sql, of_tables))
    for file in FILES:
        for statement in chosen(statements(file), names):
            lake.spark.sql(statement)


def _register(lake: Lake, table: Table, moved: bool) -> None:
    """Register one external table in the current database."""
    if moved:
        lake.spark.sql(f"DROP TABLE IF EXISTS {table.name}")
    location = escape(lake.location(table))
    lake.spark.sql(f"CREATE TABLE IF NOT EXISTS {table.name} USING DELTA LOCATION '{location}'")
