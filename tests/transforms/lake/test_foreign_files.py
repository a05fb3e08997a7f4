"""A table of which another program has rewritten a file is read as before."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, count_rows, each_row, rows_with
from transforms.lake.tables import CAPTURES

IDS = ["a", "b", "c", "d"]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake whose captures are all in a file that delta-rs has written, and that has string_view."""
    writer = TableWriter(tmp_path, None)
    writer.create(CAPTURES)
    writer.append(CAPTURES, [a_row(CAPTURES) | {"capture_id": name} for name in (*IDS, "e")])
    DeltaTable(tmp_path / CAPTURES.name).delete("capture_id = 'e'")
    (file,) = DeltaTable(tmp_path / CAPTURES.name).file_uris()
    assert pq.read_schema(file).field("capture_id").type == "string_view"
    return tmp_path


def test_its_rows_are_found_by_their_texts(lake: Path) -> None:
    whole = rows_with(lake, CAPTURES)
    assert sorted(row["capture_id"] for row in whole) == IDS
    assert whole[0] == a_row(CAPTURES) | {"capture_id": whole[0]["capture_id"]}
    found = each_row(lake, CAPTURES, ["capture_id"], among({"capture_id": ["b", "e"]}))
    assert list(found) == [{"capture_id": "b"}]
    assert count_rows(lake, CAPTURES, capture_id=["a", "d", "x"]) == 2


def test_its_rows_are_changed(lake: Path) -> None:
    writer = TableWriter(lake, None)
    writer.put(CAPTURES, [a_row(CAPTURES) | {"capture_id": "b", "node_id": 77}], by="capture_id")
    assert sorted(row["capture_id"] for row in rows_with(lake, CAPTURES)) == IDS
    assert [row["node_id"] for row in rows_with(lake, CAPTURES, capture_id=["b"])] == [77]
    writer.append(CAPTURES, [a_row(CAPTURES) | {"capture_id": "f"}])
    writer.compact(CAPTURES)
    writer.replace_where(CAPTURES, among({"capture_id": ["a"]}))
    assert sorted(row["capture_id"] for row in rows_with(lake, CAPTURES)) == [*IDS[1:], "f"]
