"""How a table is declared: columns with Spark SQL types and comments, and the key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_SIMPLE_TYPES: dict[str, DataType] = {
    "STRING": StringType(),
    "BINARY": BinaryType(),
    "BOOLEAN": BooleanType(),
    "TINYINT": ByteType(),
    "SMALLINT": ShortType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "TIMESTAMP": TimestampType(),
}

# So long Delta logs keep commits that a checkpoint replaced: as long as maintain keeps replaced files.
# kraftlake follow makes thousands of commits a day. Ids of loads stay: a run that was killed may be repeated
# after any time, and must not load twice.
LOG_KEPT_DAYS = 7
# How many commits, at most, come after a log's last checkpoint. Whoever opens a table reads them all: of 80,
# which is less than delta-rs's own interval, that takes it 20 ms, some hundred times in a pass of follow.
CHECKPOINT_EVERY = 10
LOG_PROPERTIES = {
    "delta.logRetentionDuration": f"interval {LOG_KEPT_DAYS} days",
    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, Spark SQL type, comment, and whether null is allowed."""

    name: str
    type: str
    comment: str
    nullable: bool = True

    @property
    def ddl(self) -> str:
        comment = self.comment.replace("'", "\\'")
        return f"`{self.name}` {self.type}{'' if self.nullable else ' NOT NULL'} COMMENT '{comment}'"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: `key` names the non-null columns that identify a row.

    `recomputed` tables are derived: all rows of a touched cluster are replaced together.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    recomputed: bool = False

    @property
    def schema(self) -> StructType:
        """The Spark schema, column order as declared."""
        return _spark_schema(self.columns)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]


def required(name: str, type_: str, comment: str) -> Column:
    """A column that is never null."""
    return Column(name, type_, comment, nullable=False)


@cache
def _spark_schema(columns: tuple[Column, ...]) -> StructType:
    return StructType([StructField(c.name, parse_type(c.type), c.nullable) for c in columns])


def parse_type(text: str) -> DataType:
    """The Spark type that a declaration names. Spark's own parser needs a session."""
    return _next_type(re.findall(r"\w+|[<>,:]", text)[::-1])


def _next_type(tokens: list[str]) -> DataType:
    """Read one type off the end of the tokens, which are in reverse order."""
    name = tokens.pop().upper()
    if name in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[name]
    tokens.pop()  # <
    if name == "ARRAY":
        found: DataType = ArrayType(_next_type(tokens))
    elif name == "MAP":
        key = _next_type(tokens)
        tokens.pop()  # ,
        found = MapType(key, _next_type(tokens))
    elif name == "STRUCT":
        found = StructType()
        while tokens[-1] != ">":
            field = tokens.pop()
            tokens.pop()  # :
            found.add(field, _next_type(tokens))
            if tokens[-1] == ",":
                tokens.pop()
    else:
        raise ValueError(f"unknown type {name}")
    tokens.pop()  # >
    return found
