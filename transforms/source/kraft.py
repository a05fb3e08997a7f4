"""format("kraft"): the records of captured controller directories, as Spark reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from transforms.source.columns import checked, default_schema
from transforms.source.filters import Wanted
from transforms.source.options import file_options
from transforms.source.planning import partitions
from transforms.source.reading import Reading


class KraftDataSource(DataSource):
    """Options: see docs/format.md. Raises SourceError."""

    @classmethod
    def name(cls) -> str:
        return "kraft"

    def schema(self) -> StructType:
        return default_schema(file_options(self.options).types or ())

    def reader(self, schema: StructType) -> DataSourceReader:
        return KraftReader(self.options, schema)


class KraftReader(DataSourceReader):
    """Reads files; filters that Spark pushes down leave out files, batches and records."""

    def __init__(self, options: Any, schema: StructType) -> None:
        self._options = file_options(options)
        self._schema = checked(schema)
        self._wanted = Wanted.of(self._options)

    @property
    def pushFilters(self) -> Any:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        """Spark refuses a reader with this method where the session pushes no filters, as it does by default.

        It recognizes the method by its function: here it finds the base class's.
        """
        return _PushFilters(self)

    def take_filters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Note the filters, and return them all: Spark evaluates them again.

        In mode FAILFAST nothing is skipped: a query fails for the same damage, pushed filters or not.
        """
        if self._options.mode != "FAILFAST":
            self._wanted = self._wanted.with_filters(filters)
        return iter(filters)

    def partitions(self) -> list[InputPartition]:
        return partitions(self._options, self._wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return Reading(self._options, self._wanted, self._schema).rows(partition)


class _PushFilters:
    """A bound method by all that Spark looks at."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: KraftReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterator[Filter]:
        return self._reader.take_filters(filters)
