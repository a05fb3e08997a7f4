"""SHOW TABLES and SHOW VIEWS of database `kraft`, answered by what is declared.

Spark lists what its catalog has, and to register the whole lake there takes it ten seconds.
"""

from __future__ import annotations

import re

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from dashboards.databases import KRAFT
from dashboards.view_columns import VIEWS
from transforms.lake.spark_rows import from_arrow
from transforms.lake.tables import TABLES

# The whole statement: what it lists, and the pattern, of which * and | have a meaning.
_SHOW = re.compile(
    rf"\s*SHOW\s+(TABLES|VIEWS)(?:\s+(?:IN|FROM)\s+`?{KRAFT}`?)?(?:\s+(?:LIKE\s+)?'([\w*|]*)')?\s*",
    re.IGNORECASE,
)


def listing(spark: SparkSession, asked: str) -> DataFrame | None:
    """Spark's answer to SHOW TABLES or SHOW VIEWS once all is registered; None for any other statement."""
    found = _SHOW.fullmatch(asked)
    if found is None:
        return None
    what, pattern = found.groups()
    is_views = what.upper() == "VIEWS"
    names = sorted(VIEWS.keys() if is_views else VIEWS.keys() | {table.name for table in TABLES})
    if pattern is not None:
        some = re.compile(pattern.replace("*", ".*"), re.IGNORECASE)
        names = [name for name in names if some.fullmatch(name)]
    columns = {
        "namespace": pa.array([KRAFT] * len(names), pa.string()),
        "viewName" if is_views else "tableName": pa.array(names, pa.string()),
        "isTemporary": pa.array([False] * len(names), pa.bool_()),
    }
    types = (StringType(), StringType(), BooleanType())
    schema = StructType([StructField(name, type_, False) for name, type_ in zip(columns, types, strict=True)])
    return from_arrow(spark, pa.table(columns), schema)
