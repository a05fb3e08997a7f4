"""Cluster ids in groups of which a table holds so many rows that they fit in memory together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow.compute as pc

from transforms.lake.delta_rs import arrow_with, exists
from transforms.lake.spark_tasks import in_groups
from transforms.lake.storage.location import Location
from transforms.lake.tables import Table

# Rows of captures or segments in memory at once: about 1 KB each.
ROWS_AT_ONCE = 50_000


def id_groups(
    lake: Location, table: Table, ids: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Sequence[str]]]:
    """Cluster ids of meta.properties, each with the ids of its lives in the table."""
    rows: Counter[str] = Counter()
    if ids and exists(lake, table):
        every = {name for names in ids.values() for name in names}
        held = arrow_with(lake, table, ["cluster_id"], cluster_id=every)["cluster_id"]
        rows.update({pair["values"]: pair["counts"] for pair in pc.value_counts(held).to_pylist()})
    for some in in_groups(sorted(ids), lambda id_: sum(rows[name] for name in ids[id_]), ROWS_AT_ONCE):
        yield {id_: ids[id_] for id_ in some}
