"""open_lake: the lake's tables and views registered in the session's own catalog, as database `kraft`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

from pyspark.sql import SparkSession

from dashboards import history_views
from transforms.lake import Lake, existing_lake
from transforms.tables import TABLES, Table

DATABASE = "kraft"


def open_lake(spark: SparkSession, path: Path) -> Lake:
    """The lake at `path`, its tables and views registered; unqualified names then mean database `kraft`.

    Tables that no run has written yet are created empty. Raises NoLakeError.
    """
    lake = existing_lake(spark, path)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    spark.sql(f"USE {DATABASE}")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda table: register(lake, table), TABLES))
        list(threads.map(spark.sql, history_views.statements()))
    for file in ("views.sql", "histories.sql"):
        for statement in statements(file):
            spark.sql(statement)
    return lake


def register(lake: Lake, table: Table) -> None:
    """One external table of the session's catalog."""
    lake.create(table)
    lake.spark.sql(f"DROP TABLE IF EXISTS {DATABASE}.{table.name}")
    lake.spark.sql(f"CREATE TABLE {DATABASE}.{table.name} USING DELTA LOCATION '{lake.location(table)}'")


def statements(file: str) -> Iterator[str]:
    """The statements of a packaged SQL file, comments left out."""
    text = resources.files("dashboards").joinpath(file).read_text()
    text = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    return (s.strip() for s in text.split(";") if s.strip())
