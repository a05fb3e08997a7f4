"""format("kraft") with both its sides: captured files, and running quorums as a stream."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from transforms.live.options import is_live, live_options
from transforms.live.stream import KraftStreamReader
from transforms.source.columns import default_schema
from transforms.source.errors import SourceError
from transforms.source.kraft import KraftDataSource


class KraftSource(KraftDataSource):
    """Options: docs/format.md for files, docs/live.md for quorums. Raises SourceError."""

    def schema(self) -> StructType:
        if is_live(self.options):
            return default_schema(live_options(self.options).types)
        return super().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        if is_live(self.options):
            raise SourceError(
                'a running quorum is read as a stream: spark.readStream.format("kraft"), with '
                "trigger(availableNow=True) for what is committed now"
            )
        return super().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        if not is_live(self.options):
            raise SourceError(
                "a stream follows a running quorum: give its controllers in option bootstrap.controllers; "
                'captured files are read by spark.read.format("kraft").load(PATH)'
            )
        return KraftStreamReader(self.options, schema)
