"""Tables opened without Spark: delta-rs and polars see the same rows."""

from __future__ import annotations

from typing import Any

import polars as pl
from deltalake import DeltaTable

from transforms.lake.tables import TABLES, VOTER_SETS


def test_delta_rs_and_polars_read_every_table(lake: Any) -> None:
    written = [table for table in TABLES if lake.exists(table)]
    assert len(written) > 12
    for table in written:
        arrow = DeltaTable(lake.location(table)).to_pyarrow_table()
        frame = pl.read_delta(lake.location(table))
        assert set(table.names) <= set(frame.columns) == set(arrow.column_names)
        assert frame.height == arrow.num_rows


def test_polars_finds_the_lost_change(lake: Any) -> None:
    sets = pl.read_delta(lake.location(VOTER_SETS)).filter(pl.col("commit_status") == "truncated")
    lost = sets.select("offset", "voter_ids", "truncated_by_epoch").sort("offset").rows()
    assert lost == [(355, [1, 2, 3, 4], 3), (790, [2, 3], 7)]
