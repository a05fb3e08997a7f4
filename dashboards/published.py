"""A lake registered in a catalog that outlives the session: external tables, views and functions.

The view `registration` says which lake the database shows, and by which definitions: where both are as they
should be, nothing is done. It is written first without definitions and last with them, so that what was
killed in between is done again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from dashboards.catalog import create_tables, define, every_definition
from dashboards.databases import CatalogError, Database
from transforms.lake.lake import Lake, escape
from transforms.lake.tables import TABLES

REGISTRATION = "registration"
# Spark's own catalog: kept by a Hive metastore, or in memory.
SPARKS_OWN = "spark_catalog"


@dataclass(frozen=True, slots=True)
class RegisteredLake:
    """What a database shows: a lake's folder, by which definitions (a digest; empty while they are made)."""

    lake: str
    definitions: str


def check_lasts(catalog: str, implementation: str | None) -> None:
    """Raises CatalogError for Spark's own catalog where it is one in memory."""
    if catalog == SPARKS_OWN and implementation != "hive":
        raise CatalogError(
            f"the catalog {catalog} lives in memory: name its metastore under [spark] in kraftlake.toml "
            "(docs/running.md)"
        )


def check_database(lake: Lake, database: Database) -> RegisteredLake | None:
    """What the database shows now; None where it is not there, or empty.

    Raises CatalogError where it holds what is not Kraftlake's, or shows another lake that is still there.
    """
    check_lasts(database.catalog, lake.spark.conf.get("spark.sql.catalogImplementation"))
    check_is_there(lake.spark, database.catalog)
    shown = registered(lake.spark, database)
    if shown is not None and shown.lake != str(lake.path) and (Path(shown.lake) / "lake.json").is_file():
        raise CatalogError(
            f"{database} shows the lake {shown.lake}: name another --database, "
            f"or DROP DATABASE {database} CASCADE first, which removes no data"
        )
    return shown


def check_is_there(spark: SparkSession, catalog: str) -> None:
    """Raises CatalogError for one that Spark cannot load: it would take the name for a database's."""
    try:
        with current_kept(spark):
            spark.catalog.setCurrentCatalog(catalog)
    except Py4JJavaError as error:
        raise CatalogError(str(error.java_exception.getMessage()).split(" SQLSTATE:")[0]) from None


def registered(spark: SparkSession, database: Database) -> RegisteredLake | None:
    """What the database shows. Raises CatalogError where it holds what is not Kraftlake's."""
    if not spark.catalog.databaseExists(str(database)):
        return None
    if spark.catalog.tableExists(f"{database}.{REGISTRATION}"):
        (row,) = spark.sql(f"SELECT lake, definitions FROM {database}.{REGISTRATION}").collect()
        return RegisteredLake(*row)
    if not spark.sql(f"SHOW TABLES IN {database}").isEmpty():
        raise CatalogError(f"{database} holds tables that are not Kraftlake's: name another --database")
    return None


def publish(lake: Lake, database: Database) -> bool:
    """Register the lake in the database, unless it is there as it should be. Returns whether it was not.

    Tables that no run has written yet are created empty. Raises CatalogError.
    """
    shown = check_database(lake, database)
    wanted = RegisteredLake(str(lake.path), definitions_digest())
    if shown == wanted:
        return False
    before = wanted.lake if shown is None else shown.lake
    create_tables(lake)
    lake.spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    with current_kept(lake.spark):
        lake.spark.sql(f"USE {database}")
        register(lake.spark, RegisteredLake(before, ""))
        define(lake, moved=before != wanted.lake)
        register(lake.spark, wanted)
    return True


@contextmanager
def current_kept(spark: SparkSession) -> Iterator[None]:
    """Let the current database be again afterwards what it was."""
    catalog, database = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    try:
        yield
    finally:
        spark.sql(f"USE {Database(catalog, database)}")


def register(spark: SparkSession, shown: RegisteredLake) -> None:
    """Note what the current database shows."""
    spark.sql(
        f"CREATE OR REPLACE VIEW {REGISTRATION} COMMENT 'Which lake this database shows' AS "
        f"SELECT '{escape(shown.lake)}' AS lake, '{shown.definitions}' AS definitions"
    )


def definitions_digest() -> str:
    """Of all that is registered: what another version of Kraftlake defines differently has another one."""
    tables = (f"{t.name}: {', '.join(c.ddl for c in t.columns)}" for t in TABLES)
    return hashlib.sha256("\n".join((*tables, *every_definition())).encode()).hexdigest()
