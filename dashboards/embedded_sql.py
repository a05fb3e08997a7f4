"""Queries over a lake's views without Spark: DataFusion, the engine inside delta-rs, runs their definitions.

A Spark session takes 20 seconds to start, this engine milliseconds. The views that it runs are written in
SQL that both engines read; EQUIVALENTS holds what they spell differently.

The engine puts a view's definition in the place of its name. Views and small tables that are named more than
once are put into memory instead, or they would be planned, read and evaluated as often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
from deltalake import QueryBuilder

from dashboards.definitions import chosen, defined, needed, of_files, tables_among
from dashboards.view_columns import VIEWS
from transforms.lake.delta_rs import size_bytes
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import exists, queried_table
from transforms.lake.tables import REPLAYS, Table

# Spark's spelling and DataFusion's.
EQUIVALENTS = (
    # Of microseconds, rounded down, as before 1970, too.
    (
        r"UNIX_MILLIS\((\w+)\)",
        r"(CAST(\1 AS BIGINT) / 1000 - CASE WHEN CAST(\1 AS BIGINT) % 1000 < 0 THEN 1 ELSE 0 END)",
    ),
    # Spark leaves control characters around a number out, too, as Kafka does.
    (
        r"TRY_CAST\((\w+) AS INT\)",
        r"TRY_CAST(regexp_replace(\1, '^[\\x00-\\x20\\x7f]+|[\\x00-\\x20\\x7f]+$', '', 'g') AS INT)",
    ),
    (r"EXPLODE\(", "unnest("),
    (r"MAX_BY\((\w+), (\w+)\)", r"last_value(\1 ORDER BY \2)"),
    (r"MIN_BY\((\w+), (\w+)\)", r"first_value(\1 ORDER BY \2)"),
    (r"collect_set\(", "array_agg(DISTINCT "),
    (r"COLLECT_LIST\(", "array_agg("),
    (r"\bARRAY\(", "make_array("),
    (r"\bsequence\(", "generate_series("),
    (r"\btry_element_at\(", "array_element("),
    (r"\bslice\((.+), 1, (\d+)\)", r"array_slice(\1, 1, \2)"),
)
SETTINGS = {
    # DataFusion compares the schemas of a plan including the comments of columns, and fails where a UNION
    # joins columns with different ones.
    "datafusion.execution.skip_physical_aggregate_schema_check": "true",
    # Further passes over these plans find nothing that saves as much time as they take.
    "datafusion.optimizer.max_passes": "1",
    # A million versions that still hold join no later one by the offset where they end.
    "datafusion.optimizer.filter_null_join_keys": "true",
}
# The files of a small table.
MOST_BYTES = 1024 * 1024

_TYPE_NAMES = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float64(): "Float64",
    pa.string(): "Utf8",
    pa.binary(): "Binary",
    pa.timestamp("us", "UTC"): 'Timestamp(Microsecond, Some("UTC"))',
}


def query(lake: Location, view: str, sql: str, clusters: Sequence[str] = ()) -> pa.Table | None:
    """The answer to one SELECT over a view of the rows of some clusters, or of all.

    None where captures were ingested, but nothing was derived. A derivation writes no history without rows.
    """
    names = needed(f"SELECT * FROM {view}")
    assert names is not None, view
    tables = tables_among(names)
    missing = [table for table in tables if not exists(lake, table)]
    if missing and not exists(lake, REPLAYS):
        return None
    definitions = map(_translated, chosen(of_files(), names))
    made_of = {defined(d): re.split(r"\sAS\s", d, maxsplit=1)[1] for d in definitions}
    used = _uses([*made_of.values(), sql])
    engine = QueryBuilder(SETTINGS)
    among = f"cluster_id IN ({', '.join(map(_literal, clusters))})" if clusters else "true"
    for table in tables:
        rows = f"(SELECT {_nulls(table)} WHERE false)" if table in missing else f"every_{table.name}"
        if table not in missing:
            engine.register(rows, queried_table(lake, table))
        columns = [f'"{name}"' for name in table.names if name in used or name in VIEWS[view]]
        # A condition on the view itself is not passed on through its windows and joins.
        condition = among if "cluster_id" in table.names else "true"
        is_held = used[table.name] > 1 and size_bytes(lake, table) <= MOST_BYTES
        _make(engine, table.name, f"SELECT {', '.join(columns)} FROM {rows} WHERE {condition}", is_held)
    for name, select in made_of.items():
        _make(engine, name, select, used[name] > 1)
    return pa.table(engine.execute(sql))


def _make(engine: QueryBuilder, name: str, made_of: str, is_held: bool) -> None:
    engine.execute(f"CREATE {'TABLE' if is_held else 'VIEW'} {name} AS {made_of}")


def _uses(queries: Iterable[str]) -> Counter[str]:
    """How often each word stands in SQL, outside of texts."""
    texts_left_out = re.sub(r"'[^']*'", "", " ".join(queries))
    return Counter(re.findall(r"\w+", texts_left_out))


def _nulls(table: Table) -> str:
    """A null of each column of a table, with its type and name."""
    return ", ".join(
        f'arrow_cast(NULL, {_literal(_type_name(field.type))}) AS "{field.name}"'
        for field in table.arrow_schema
    )


def _type_name(type_: pa.DataType) -> str:
    """A type of Arrow as DataFusion's arrow_cast names it."""
    if pa.types.is_list(type_):
        return f"List({_type_name(type_.value_type)})"
    if pa.types.is_struct(type_):
        fields = (f'"{field.name}": {_type_name(field.type)}' for field in type_)
        return f"Struct({', '.join(fields)})"
    return _TYPE_NAMES[type_]


def _literal(text: str) -> str:
    """A string literal of DataFusion's dialect."""
    return "'" + text.replace("'", "''") + "'"


def _translated(sql: str) -> str:
    """A definition in DataFusion's dialect."""
    for spark, datafusion in EQUIVALENTS:
        sql = re.sub(spark, datafusion, sql)
    return sql
