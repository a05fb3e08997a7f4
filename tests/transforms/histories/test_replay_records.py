"""Records of a lake are read in pieces."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from transforms.histories.replay_records import scanned
from transforms.lake.tables import RECORDS

GROUPS, ROWS = 30, 100_000


def test_many_rows_are_read_a_row_group_at_a_time(tmp_path: Path) -> None:
    """However long it takes what is done with the rows."""
    path = tmp_path / "records.parquet"
    group = pa.table({"cluster_id": ["c"] * ROWS, "offset": range(ROWS)})
    with pq.ParquetWriter(path, group.schema, use_dictionary=False, compression="none") as writer:
        for _ in range(GROUPS):
            writer.write_table(group)
    held = {RECORDS: ds.dataset(path)}
    before = pa.total_allocated_bytes()
    read = scanned(held, RECORDS, ["offset"], ds.field("offset") >= 0, ["c"], are_many=True)
    rows = len(next(read)[1])
    time.sleep(0.5)
    ahead = pa.total_allocated_bytes() - before
    assert ahead < 5 * group.nbytes
    assert rows + sum(len(some) for _, some in read) == GROUPS * ROWS
