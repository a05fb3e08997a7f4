"""--catalog and --database: the lake's tables, views and functions in a catalog that other programs use.

Without them they are in the session's own catalog, in memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from dashboards.databases import KRAFT, CatalogError, Database
from jobs.runtime.outcome import Failure, one_line
from jobs.runtime.progress import Progress
from transforms.lake.storage.location import Location


def add_catalog(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--catalog",
        metavar="NAME",
        help="register tables, views and functions in this Spark catalog; spark_catalog is the Hive "
        "metastore configured under [spark] in kraftlake.toml (default: in memory, for this command only)",
    )
    parser.add_argument("--database", metavar="NAME", help=f"database in that catalog (default: {KRAFT})")


def database_of(args: argparse.Namespace) -> Database | None:
    """The database that the flags name, if any. Raises Failure before Spark starts."""
    if args.catalog is None:
        if args.database is not None:
            raise Failure(f"--database {args.database} needs a --catalog")
        return None
    from dashboards.published import check_lasts
    from jobs.runtime.session import settings_in_force

    settings = settings_in_force(args.settings.spark)
    _as_failure(lambda: check_lasts(args.catalog, settings.get("spark.sql.catalogImplementation")))
    return Database(args.catalog, args.database or KRAFT)


def check_database(lake: Any, database: Database) -> None:
    """Raises Failure if the lake cannot be registered there."""
    from dashboards import published

    _as_failure(lambda: published.check_database(lake, database))


def publish(lake: Any, database: Database) -> None:
    """Register the lake, unless it already is. Raises Failure."""
    from dashboards import published

    _as_failure(lambda: published.publish(lake, database))


def publish_known(args: argparse.Namespace, progress: Progress) -> None:
    """Register the lake in the catalog that was given, if any, in a run without new captures."""
    database = database_of(args)
    if database is not None:
        from jobs.runtime.session import open_session

        with progress.stage("register", str(database)):
            spark = open_session(
                args.master, say=progress.say, quick=True, own=args.settings.spark, lake=args.lake
            )
            open_lake(spark, args.lake, database)


def _as_failure(step: Callable[[], object]) -> None:
    """Run a step that uses a catalog; its errors become a Failure of one line."""
    from pyspark.errors import PySparkException

    try:
        step()
    except CatalogError as error:
        raise Failure(str(error)) from None
    except PySparkException as error:
        raise Failure(one_line(error)) from None


def open_lake(spark: Any, path: Location, database: Database | None) -> None:
    """Make tables and views available by plain names: from the database, or in memory."""
    if database is None:
        from dashboards.catalog import open_lake

        open_lake(spark, path)
    else:
        from transforms.lake.lake import existing_lake

        publish(existing_lake(spark, path), database)
        spark.sql(f"USE {database}")


def registering(
    spark: Any, path: Location, database: Database | None, whole: bool = False
) -> Callable[[str, Any], None]:
    """What makes the tables and views that SQL names available by plain names to the session that asks.

    That is done already where there is a database, and where the whole lake is asked for.
    """
    if whole or database is not None:
        open_lake(spark, path, database)
        return _nothing_to_register
    from dashboards.catalog import AskedLake

    return AskedLake(spark, path).register


def _nothing_to_register(_: str, __: Any) -> None:
    """Where the whole lake is registered already."""
