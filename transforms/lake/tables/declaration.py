"""How a table is declared: columns with Spark SQL types and comments, and the key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pyspark.sql.types import (
    StructType,
    _parse_datatype_string,  # pyright: ignore[reportPrivateUsage]
)


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

    `recomputed` tables hold what is derived: all rows of a touched cluster are replaced together.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    recomputed: bool = False

    @property
    def schema(self) -> StructType:
        """The Spark schema, column order as declared. Needs a session: Spark parses the types."""
        return spark_schema(self.columns)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]


@cache
def spark_schema(columns: tuple[Column, ...]) -> StructType:
    """The columns as Spark has them; it takes a tenth of a second to parse hundreds of types."""
    schema = _parse_datatype_string(", ".join(f"`{c.name}` {c.type}" for c in columns))
    assert isinstance(schema, StructType)
    for column, declared in zip(schema.fields, columns, strict=True):
        column.nullable = declared.nullable
    return schema


def required(name: str, type_: str, comment: str) -> Column:
    return Column(name, type_, comment, nullable=False)
