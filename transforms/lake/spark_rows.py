"""Rows between Spark, Arrow and Python, so that times keep their zone and types are those declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructType

from transforms.lake.arrow_rows import Row, to_arrow
from transforms.lake.tables.declaration import arrow_type

# Spark compiles each query by default.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def to_frame(spark: SparkSession, rows: Iterable[Row], schema: StructType) -> DataFrame:
    """Rows as a DataFrame of the schema; times are datetimes with a zone."""
    return from_arrow(spark, to_arrow(rows, arrow_schema(schema)), schema)


def from_arrow(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """An Arrow table of the schema as a DataFrame. Spark refuses a table without chunks."""
    return spark.createDataFrame(rows if len(rows) else [], schema)


def to_rows(frame: DataFrame) -> list[Row]:
    """A small DataFrame as rows; times are datetimes in UTC."""
    return frame.toArrow().to_pylist()


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema, times in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_types(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that Spark accepts from a Python function: times in microseconds."""
    return arrow_schema(from_arrow_schema(schema))


def parse_type(text: str) -> DataType:
    """The Spark type that a declaration names. Spark's own parser needs a session."""
    return from_arrow_type(arrow_type(text))


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Let Spark interpret the queries of a block: over few rows, compiling them costs more than it saves."""
    before = {name: spark.conf.get(name) for name in _INTERPRETED}
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
