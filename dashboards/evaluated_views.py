"""Views of small tables, evaluated by the engine inside delta-rs and registered as their rows.

Spark takes seconds to plan such a view and to start its tasks, the engine milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from dashboards.definitions import are_selects, chosen, defined, named, needed, of_files, tables_among
from dashboards.embedded_sql import query
from dashboards.view_columns import VIEWS
from transforms.lake.delta_rs import newest_version, size_bytes
from transforms.lake.spark_rows import from_arrow
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import exists

# The files of all tables that a view is made of.
MOST_BYTES = 4 * 1024 * 1024

_Versions = tuple[int | None, ...]

# What the temporary views of sessions show: of which lake, and of which versions of its tables.
_shown: dict[tuple[SparkSession, str], tuple[Location, _Versions]] = {}


def show_evaluated(spark: SparkSession, lake: Location, asked: str) -> set[str]:
    """Evaluate for a session the views that SQL names, as temporary views; returns those that it then has.

    All or none: Spark refuses to define a view over a temporary one, of whichever lake.
    """
    views = named(asked).intersection(map(defined, of_files()))
    is_fit = are_selects(asked) and not _is_qualified(asked, views)
    if is_fit and all(_is_shown(spark, lake, view) for view in views):
        return views
    drop_evaluated(spark)
    return set()


def drop_evaluated(spark: SparkSession) -> None:
    """Drop all that show_evaluated has made in the sessions of the session's application."""
    for session, view in _shown:
        if session.sparkContext is spark.sparkContext:  # else it has ended
            session.catalog.dropTempView(view)
    _shown.clear()


def _is_shown(spark: SparkSession, lake: Location, view: str) -> bool:
    """Evaluate a view, unless its rows are those of its tables now. False if Spark must."""
    versions = _small_versions(lake, view)
    if versions is None:
        return False
    if _shown.get((spark, view)) != (lake, versions):
        try:
            rows = evaluated(lake, view)
        except (DeltaError, pa.ArrowException):  # Spark says which value or file cannot be read
            return False
        if rows is None:
            return False
        _show(spark, view, rows)
        _shown[spark, view] = lake, versions
    return True


def _small_versions(lake: Location, view: str) -> _Versions | None:
    """The versions of the tables that a view is made of; None if one is missing, or they are large."""
    tables = tables_among(needed(f"SELECT * FROM {view}"))
    if not all(exists(lake, table) for table in tables):
        return None
    if sum(size_bytes(lake, table) for table in tables) > MOST_BYTES:
        return None
    return tuple(newest_version(lake, table) for table in tables)


def evaluated(lake: Location, view: str) -> pa.Table | None:
    """The rows of a view in a fixed order; None if nothing was derived.

    Raises DeltaError or ArrowException for a value or a file that the engine cannot read.
    """
    rows = query(lake, view, f"SELECT * FROM {view}")
    return None if rows is None else _ordered(view, _plain(rows))


def _show(spark: SparkSession, view: str, rows: pa.Table) -> None:
    comments = VIEWS[view]
    fields = [
        StructField(field.name, field.dataType, metadata={"comment": comments[field.name]})
        for field in from_arrow_schema(rows.schema)
    ]
    from_arrow(spark, rows, StructType(fields)).createOrReplaceTempView(view)


def _is_qualified(asked: str, views: Iterable[str]) -> bool:
    """Whether SQL names one of the views with its database, where a temporary view is not found."""
    return any(re.search(rf"\.\s*`?{view}\b", asked, re.IGNORECASE) for view in views)


def _plain(rows: pa.Table) -> pa.Table:
    """The rows with Arrow's plain types of texts and bytes instead of views, which Spark does not read."""
    return rows.cast(pa.schema([field.with_type(_plain_type(field.type)) for field in rows.schema]))


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_plain_type(type_.value_type))
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(type_, type_)


def _ordered(view: str, rows: pa.Table) -> pa.Table:
    """The rows in the view's order, then by their columns: the engine leaves out the ORDER BY of a view."""
    (definition,) = chosen(of_files(), {view})
    clause = re.search(r"ORDER BY ([^()]*)$", definition)
    keys = [_sort_key(part) for part in clause[1].split(",")] if clause else []
    plain = (field.name for field in rows.schema if not pa.types.is_nested(field.type))
    return rows.sort_by([*keys, *((name, "ascending", "at_start") for name in plain)])


def _sort_key(part: str) -> tuple[str, str, str]:
    """A part of an ORDER BY as Arrow has it: column, direction and place of nulls, by default Spark's."""
    name, *words = part.replace("`", "").split()
    is_last = "LAST" in words or ("DESC" in words and "FIRST" not in words)
    direction = "descending" if "DESC" in words else "ascending"
    return name.rpartition(".")[2], direction, "at_end" if is_last else "at_start"
