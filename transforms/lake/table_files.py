"""Files of a Delta table that Spark's tasks write by Arrow.

Spark's own writer works row by row and takes ten times as long where most of many columns are null. A file
belongs to the table once the driver has committed it (Lake.append_files).
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transforms.lake.arrow_rows import Row, gathered
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import DataFile

# A function for mapInArrow.
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
# A file that was written: its name in the table's folder, its rows, and Delta's statistics of them as JSON.
FILES = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("row_count", pa.int64()),
        ("stats", pa.string()),
    ]
)
# Rows are buffered up to a row group, or fewer where they are wide.
ROW_GROUP_ROWS, ROW_GROUP_BYTES = 128 * 1024, 32 * 1024 * 1024
# A Delta log holds this many characters of a string; the maximum of a longer one ends in the greatest one.
MOST_CHARACTERS, GREATEST_CHARACTER = 32, chr(0x10FFFF)
ALMOST_A_MILLISECOND = timedelta(microseconds=999)


def writing(decode: Task, folder: Location, schema: pa.Schema, constants: Mapping[str, Any]) -> Task:
    """A function for mapInArrow that writes the rows of `decode` to a file or two and returns rows of FILES.

    folder: of the table, which every worker must reach. schema: of the table's rows; columns that
    `decode` does not return are constants. The first file has no structs but those of its first rows: to
    write that all others are null takes a third of the time. Readers take what a file lacks for null. What
    does not fit goes to the second file, from the first record batch that does not.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file = TableFile(folder, schema, leaves_out=True)
        rows_of = (fitted(batch, schema, constants) for batch in decode(batches))

        def is_apart(batch: pa.RecordBatch) -> bool:
            return not file.fits(batch)

        for rows in row_groups(rows_of, is_apart):
            if not file.fits(rows):
                yield from _closed(file)
                file = TableFile(folder, schema)
            file.add(rows)
        yield from _closed(file)

    return write


def _closed(file: TableFile) -> Iterator[pa.RecordBatch]:
    written = file.close()
    if written is not None:
        yield pa.RecordBatch.from_pylist([written], schema=FILES)


class TableFile:
    """A file of a table that is written row group by row group; there is none until it has rows.

    leaves_out: the structs that are null in all of the first row group.
    """

    def __init__(
        self, folder: Location, schema: pa.Schema, compression: str = "snappy", leaves_out: bool = False
    ) -> None:
        self._folder = folder
        self._name = f"part-{uuid.uuid4()}.{compression}.parquet"
        self._schema = schema
        self._compression = compression
        self._leaves_out = leaves_out
        self._left_out: list[str] = []
        self._stats = Statistics(schema)
        self._file: DataFile | None = None

    def add(self, rows: pa.Table) -> None:
        """Write a row group, or several where there are more rows than in one."""
        if self._file is None:
            if self._leaves_out:
                self._left_out = [f.name for f in self._schema if _is_left_out(f, rows[f.name])]
            held = pa.schema(f for f in self._schema if f.name not in self._left_out)
            self._file = DataFile(self._folder, self._name, held, self._compression)
        self._file.write(rows.drop_columns(self._left_out), ROW_GROUP_ROWS)
        self._stats.add(rows)

    def fits(self, rows: pa.Table | pa.RecordBatch) -> bool:
        """Whether the rows have no value in a column that was left out."""
        return all(rows[name].null_count == len(rows) for name in self._left_out)

    def close(self) -> Row | None:
        """A row of FILES, of which the driver commits it; None if there were no rows."""
        if self._file is None:
            return None
        return {
            "path": self._name,
            "size_bytes": self._file.close(),
            "modified_ms": time.time_ns() // 1_000_000,
            "row_count": self._stats.rows,
            "stats": self._stats.as_json(),
        }


def _is_left_out(field: pa.Field, values: pa.ChunkedArray) -> bool:
    return pa.types.is_struct(field.type) and field.nullable and values.null_count == len(values)


def fitted(batch: pa.RecordBatch, schema: pa.Schema, constants: Mapping[str, Any]) -> pa.RecordBatch:
    """The rows as the schema has them."""
    columns = [
        pa.repeat(pa.scalar(constants[f.name], f.type), len(batch))
        if f.name in constants
        else batch[f.name].cast(f.type)
        for f in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def row_groups(
    batches: Iterator[pa.RecordBatch], is_apart: Callable[[pa.RecordBatch], bool] | None = None
) -> Iterator[pa.Table]:
    """The same rows, in tables of the size of row groups; is_apart: whether a batch begins one."""
    filled = (batch for batch in batches if len(batch))
    return map(pa.Table.from_batches, gathered(filled, ROW_GROUP_ROWS, ROW_GROUP_BYTES, is_apart))


class Statistics:
    """Statistics of a file in a Delta log: the rows, and for each column the nulls, minimum and maximum.

    No plain column may be missing, and every struct must be there, even if empty: delta-rs takes a missing
    statistic for a value that matches no row.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = 0
        self._plain = [f.name for f in schema if not pa.types.is_nested(f.type)]
        self._structs: dict[str, Any] = {f.name: {} for f in schema if pa.types.is_struct(f.type)}
        self._nulls = dict.fromkeys(self._plain, 0)
        self._least: dict[str, Any] = {}
        self._greatest: dict[str, Any] = {}

    def add(self, rows: pa.Table) -> None:
        self.rows += len(rows)
        for name in self._plain:
            column = rows[name]
            self._nulls[name] += column.null_count
            if column.null_count == len(column) or pa.types.is_boolean(column.type):
                continue
            least, greatest = pc.min_max(column).as_py().values()
            if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
                least, greatest = -sys.float_info.max, sys.float_info.max  # JSON has no infinity, and no NaN
            self._least[name] = min(self._least.get(name, least), least)
            self._greatest[name] = max(self._greatest.get(name, greatest), greatest)

    def as_json(self) -> str:
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": self._structs | {name: at_least(v) for name, v in self._least.items()},
                "maxValues": self._structs | {name: at_most(v) for name, v in self._greatest.items()},
                "nullCount": self._structs | self._nulls,
            }
        )


def at_least(value: Any) -> Any:
    """A minimum as the log holds it: strings are truncated, times have milliseconds."""
    if isinstance(value, str):
        return value[:MOST_CHARACTERS]
    return in_log(value) if isinstance(value, datetime) else value


def at_most(value: Any) -> Any:
    """A maximum as the log holds it: never less than the value."""
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return value[:MOST_CHARACTERS] + GREATEST_CHARACTER
    return in_log(value + ALMOST_A_MILLISECOND) if isinstance(value, datetime) else value


def in_log(time: datetime) -> str:
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
