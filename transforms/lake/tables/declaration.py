"""How a table is declared: columns with Spark SQL types and comments, and the key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SIMPLE_TYPES = {
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}
_NAMES = {type_: name.lower() for name, type_ in _SIMPLE_TYPES.items()}

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
    def arrow_schema(self) -> pa.Schema:
        """The same as Arrow has it, times in UTC."""
        return _arrow_schema(self.columns)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]


def required(name: str, type_: str, comment: str) -> Column:
    """A column that is never null."""
    return Column(name, type_, comment, nullable=False)


@cache
def _spark_schema(columns: tuple[Column, ...]) -> StructType:
    # Most verbs that read a lake take less time than the import of PySpark.
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(_arrow_schema(columns))


@cache
def _arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(c.type), c.nullable) for c in columns])


def type_name(type_: pa.DataType) -> str:
    """How Spark SQL writes a type that a column can have."""
    if pa.types.is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{type_name(type_.key_type)},{type_name(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in type_)}>"
    return "timestamp" if pa.types.is_timestamp(type_) else _NAMES[type_]


def arrow_type(text: str) -> pa.DataType:
    """The type that a declaration names, as Spark has it in Arrow."""
    return _next_type(re.findall(r"\w+|[<>,:]", text)[::-1])


def _next_type(tokens: list[str]) -> pa.DataType:
    """Read one type off the end of the tokens, which are in reverse order."""
    name = tokens.pop().upper()
    if name in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[name]
    tokens.pop()  # <
    if name == "ARRAY":
        found = pa.list_(pa.field("element", _next_type(tokens)))
    elif name == "MAP":
        key = _next_type(tokens)
        tokens.pop()  # ,
        found = pa.map_(key, _next_type(tokens))
    elif name == "STRUCT":
        fields = []
        while tokens[-1] != ">":
            field = tokens.pop()
            tokens.pop()  # :
            fields.append(pa.field(field, _next_type(tokens)))
            if tokens[-1] == ",":
                tokens.pop()
        found = pa.struct(fields)
    else:
        raise ValueError(f"unknown type {name}")
    tokens.pop()  # >
    return found
