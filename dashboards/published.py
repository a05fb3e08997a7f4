"""A lake registered in a persistent catalog: external tables, views and functions.

The view `registration` holds the path of the registered lake and a digest of the definitions; if both are
current, nothing is done. It is written first without the digest and last with it, so that an interrupted
registration is repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from dashboards.catalog import create_tables, define
from dashboards.databases import CatalogError, Database
from dashboards.definitions import commented, every_definition
from transforms.lake.lake import Lake, escape
from transforms.lake.storage import is_lake
from transforms.lake.storage.location import location
from transforms.lake.tables import TABLES

REGISTRATION = "registration"
# Spark's own catalog: in a Hive metastore, or in memory.
SPARKS_OWN = "spark_catalog"


@dataclass(frozen=True, slots=True)
class RegisteredLake:
    """The lake that a database shows: its folder, a digest of the definitions (empty while registering)."""

    lake: str
    definitions: str


def check_lasts(catalog: str, implementation: str | None) -> None:
    """Raises CatalogError if the catalog is Spark's own and in memory."""
    if catalog == SPARKS_OWN and implementation != "hive":
        raise CatalogError(
            f"the catalog {catalog} is in memory only: configure its metastore under [spark] in "
            f"kraftlake.toml (docs/running.md)"
        )


def check_database(lake: Lake, database: Database) -> RegisteredLake | None:
    """The lake registered in the database; None if the database does not exist or is empty.

    Raises CatalogError if it holds tables that are not Kraftlake's, or another lake that still exists.
    """
    check_lasts(database.catalog, lake.spark.conf.get("spark.sql.catalogImplementation"))
    _check_is_there(lake.spark, database.catalog)
    shown = _registered(lake.spark, database)
    if shown is not None and shown.lake != str(lake.path) and is_lake(location(shown.lake)):
        raise CatalogError(
            f"{database} shows the lake {shown.lake}: choose another --database, or run DROP DATABASE "
            f"{database} CASCADE first, which removes no data"
        )
    return shown


def _check_is_there(spark: SparkSession, catalog: str) -> None:
    """Raises CatalogError if Spark cannot load the catalog: it would take the name for a database's."""
    try:
        with current_kept(spark):
            spark.catalog.setCurrentCatalog(catalog)
    except Py4JJavaError as error:
        raise CatalogError(str(error.java_exception.getMessage()).split(" SQLSTATE:")[0]) from None


def _registered(spark: SparkSession, database: Database) -> RegisteredLake | None:
    """The lake registered in the database. Raises CatalogError if its tables are not Kraftlake's."""
    if not spark.catalog.databaseExists(str(database)):
        return None
    if spark.catalog.tableExists(f"{database}.{REGISTRATION}"):
        (row,) = spark.sql(f"SELECT lake, definitions FROM {database}.{REGISTRATION}").collect()
        return RegisteredLake(*row)
    if not spark.sql(f"SHOW TABLES IN {database}").isEmpty():
        raise CatalogError(f"{database} contains tables that are not Kraftlake's: choose another --database")
    return None


def publish(lake: Lake, database: Database) -> bool:
    """Register the lake in the database unless it is registered and current. Returns whether it was not.

    Tables that no run has written yet are created empty. Raises CatalogError.
    """
    shown = check_database(lake, database)
    wanted = RegisteredLake(str(lake.path), _definitions_digest())
    if shown == wanted:
        return False
    before = wanted.lake if shown is None else shown.lake
    create_tables(lake)
    lake.spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    with current_kept(lake.spark):
        lake.spark.sql(f"USE {database}")
        _register(lake.spark, RegisteredLake(before, ""))
        define(lake, moved=before != wanted.lake)
        _register(lake.spark, wanted)
    return True


@contextmanager
def current_kept(spark: SparkSession) -> Iterator[None]:
    """Restore the current database afterwards."""
    catalog, database = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    try:
        yield
    finally:
        spark.sql(f"USE {Database(catalog, database)}")


def _register(spark: SparkSession, shown: RegisteredLake) -> None:
    """Record which lake the current database shows."""
    spark.sql(
        f"CREATE OR REPLACE VIEW {REGISTRATION} COMMENT 'The lake that this database shows' AS "
        f"SELECT '{escape(shown.lake)}' AS lake, '{shown.definitions}' AS definitions"
    )


def _definitions_digest() -> str:
    """A digest of all definitions: it changes with the version of Kraftlake that changes one."""
    tables = (f"{t.name}: {', '.join(c.ddl for c in t.columns)}" for t in TABLES)
    return hashlib.sha256("\n".join((*tables, *map(commented, every_definition()))).encode()).hexdigest()
