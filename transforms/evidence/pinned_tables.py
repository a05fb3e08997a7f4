"""The tables that a cluster's facts are read from, each at one Delta version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds

from transforms.lake import tables
from transforms.lake.delta_rs import columns_with, exists, newest_version, opened
from transforms.lake.storage.location import Location
from transforms.lake.tables import Table

TABLES_READ = (
    tables.ACKNOWLEDGEMENTS,
    tables.BATCHES,
    tables.BROKER_PARTITIONS,
    tables.CAPTURES,
    tables.LIVES,
    tables.OBSERVATIONS,
    tables.RECORDS,
    tables.REFUSED_RECORDS,
    tables.SNAPSHOT_RECORDS,
    tables.SNAPSHOTS,
)
NO_ROWS = pa.table({"cluster_id": pa.array([], pa.string())})


@dataclass(frozen=True, slots=True)
class PinnedTables:
    """The tables TABLES_READ of a lake at one Delta version each; those that do not exist have none."""

    lake: Location
    versions: Mapping[str, int]

    @classmethod
    def newest(cls, lake: Location) -> PinnedTables:
        return cls(lake, {t.name: newest_version(lake, t) for t in TABLES_READ if exists(lake, t)})

    def open(self, table: Table) -> ds.Dataset | None:
        version = self.versions.get(table.name)
        return None if version is None else opened(self.lake, table, version)

    def read(self, table: Table, columns: Sequence[str], **wanted: Sequence[str]) -> pa.Table:
        """The rows whose named columns are among the wanted values; none where the table does not exist."""
        rows = self.open(table)
        if rows is None:
            return pa.table({name: pa.array([], pa.string()) for name in columns})
        return columns_with(rows, columns, **wanted)
