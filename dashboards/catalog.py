"""open_lake: the lake's tables and views registered in the session's own catalog, as database `kraft`.

dashboards.published registers them in a catalog that lasts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

from pyspark.sql import SparkSession

from dashboards import history_views
from dashboards.databases import KRAFT, Database
from transforms.lake.lake import Lake, escape, existing_lake
from transforms.lake.tables import TABLES, Table

# Views over tables and over what history_views makes, in the order in which they build on each other.
FILES = ("views.sql", "histories.sql")
# Statements that ask nothing but what they name.
QUERIES = {"select", "with", "from", "values", "describe", "desc", "explain"}


def open_lake(spark: SparkSession, path: Path, asked: str | None = None) -> Lake:
    """The lake at `path`, its tables and views registered; unqualified names then mean database `kraft`.

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
    """Those of the named tables that no run has written yet, empty; of all, if None."""
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lake.create, tables_among(names)))


def tables_among(names: set[str] | None) -> list[Table]:
    return [table for table in TABLES if names is None or table.name in names]


def define(lake: Lake, names: set[str] | None = None, moved: bool = True) -> None:
    """Register tables, views and functions in the current database: those named, all if None.

    moved: whether tables registered there may show another folder.
    """
    current = Database(lake.spark.catalog.currentCatalog(), lake.spark.catalog.currentDatabase())
    of_histories = chosen(history_views.statements(str(current)), names)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda table: register(lake, table, moved), tables_among(names)))
        list(threads.map(lake.spark.sql, of_histories))
    for file in FILES:
        for statement in chosen(statements(file), names):
            lake.spark.sql(statement)


def needed(asked: str) -> set[str] | None:
    """The tables, views and functions that SQL asks, and those that they are made of.

    None where that cannot be told: SHOW, for one, asks for all of them.
    """
    queries = re.findall(r"(?:^|;)\s*(\w+)", asked)
    if not queries or {word.lower() for word in queries} - QUERIES:
        return None
    definitions = {defined(statement): statement for statement in every_definition()}
    found: set[str] = set()
    mentioned = words(asked)
    while mentioned:
        name = mentioned.pop()
        found.add(name)
        mentioned |= words(definitions.get(name, "")) - found
    return found


def every_definition() -> list[str]:
    """The definitions of all views and functions."""
    return [*history_views.statements(KRAFT), *(s for file in FILES for s in statements(file))]


def chosen(definitions: Iterable[str], names: set[str] | None) -> list[str]:
    """The definitions of the named views and functions; all, if None."""
    return [d for d in definitions if names is None or defined(d) in names]


def defined(statement: str) -> str:
    """The view or function that a CREATE OR REPLACE statement defines."""
    return re.split(r"\W+", statement, maxsplit=5)[4]


def words(sql: str) -> set[str]:
    return set(re.findall(r"\w+", sql.lower()))


def register(lake: Lake, table: Table, moved: bool) -> None:
    """One external table of the current database."""
    if moved:
        lake.spark.sql(f"DROP TABLE IF EXISTS {table.name}")
    location = escape(lake.location(table))
    lake.spark.sql(f"CREATE TABLE IF NOT EXISTS {table.name} USING DELTA LOCATION '{location}'")


def statements(file: str) -> Iterator[str]:
    """The statements of a packaged SQL file, comments left out."""
    text = resources.files("dashboards").joinpath(file).read_text()
    text = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    return (s.strip() for s in text.split(";") if s.strip())
