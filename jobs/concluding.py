"""What was derived into its tables: by delta-rs, and only into those that it changes.

A replacement by Spark costs a second a table before it moves a row, and on most nights few of the tables
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from transforms.derived import DERIVED, rows_of
from transforms.frames import arrow_schema
from transforms.lake import Lake
from transforms.tables import Table

# More are not brought to the driver, but written by Spark. Some hundred bytes each.
MOST_ROWS = 1_000_000


def write_conclusions(lake: Lake, derived: DataFrame, clusters: Sequence[str], count: int) -> None:
    """Replace the rows of the clusters in the tables DERIVED. count: how many rows there are to come.

    derived: as derive_clusters gives it, of these clusters.
    """
    few = derived.toArrow().combine_chunks() if count <= MOST_ROWS else None

    def write(table: Table) -> None:
        if few is None:
            lake.replace(table, rows_of(derived, table), clusters)
        else:
            lake.replace_few(table, arrow_rows_of(few, table), clusters)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, DERIVED))


def arrow_rows_of(derived: pa.Table, table: Table) -> pa.Table:
    """The rows of one table."""
    rows = derived[table.name].combine_chunks()
    clusters = derived["cluster_id"].combine_chunks().take(pc.list_parent_indices(rows))
    held = pc.list_flatten(rows)
    columns = {"cluster_id": clusters} | {n: held.field(n) for n in table.names if n != "cluster_id"}
    return pa.table(columns).select(table.names).cast(arrow_schema(table.schema))
