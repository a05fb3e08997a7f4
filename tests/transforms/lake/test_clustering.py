"""Joined files: rows sorted by cluster, in bounded memory."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from transforms.lake import clustering, file_changes
from transforms.lake.clustering import sorted_row_groups
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import by_cluster
from transforms.lake.file_changes import StoredTable
from transforms.lake.storage.table_folders import read_table
from transforms.lake.tables import CLUSTER_NAMES, EXPIRED_CAPTURES


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Runs of a few rows, and a folder for files that are sorted one by one."""
    monkeypatch.setattr(clustering, "SORTED_BYTES", 4000)
    monkeypatch.setattr(clustering, "SORTED_GROUP_ROWS", 16)
    monkeypatch.setattr(clustering, "GROUP_ROWS", 32)
    monkeypatch.setattr(clustering, "COUNTED_ROWS", 50)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


class Rows:
    """Rows of some clusters in batches, to be read several times."""

    def __init__(self, clusters: Sequence[str | None], each: int = 20) -> None:
        numbers = range(len(clusters))
        self.table = pa.table(
            {
                "cluster_id": pa.array(clusters, pa.string()),
                "n": pa.array(numbers, pa.int64()),
                "held": [[{"n": n, "text": "x" * (n % 7)}] * (n % 3) for n in numbers],
            }
        )
        self._each = each

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        chosen = self.table if columns is None else self.table.select(columns)
        yield from chosen.slice(0, 0).to_batches()
        yield from chosen.to_batches(self._each)


@pytest.mark.parametrize("seed", range(20))
def test_every_row_is_there_once_and_clusters_rise(small: Path, seed: int) -> None:
    """Of many clusters, of few large ones, and of one that is most of the rows."""
    drawn = random.Random(seed)
    names = [f"cluster-{n:03}" for n in range(drawn.choice([1, 2, 3, 40, 400]))]
    weights = [1000 if n == 1 and seed % 2 else 1 for n in range(len(names))]
    rows = Rows(drawn.choices(names, weights, k=drawn.choice([1, 15, 700, 2500])))
    groups = list(sorted_row_groups(rows.read))
    assert max(map(len, groups)) <= 32
    found = pa.concat_tables(groups)
    assert found["cluster_id"].to_pylist() == sorted(rows.table["cluster_id"].to_pylist())
    assert found.sort_by("n").to_pylist() == rows.table.to_pylist()
    assert not list(small.iterdir())


@pytest.mark.usefixtures("small")
def test_rows_of_one_cluster_keep_their_order_and_need_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """So do those of a table without clusters."""
    monkeypatch.setattr(clustering, "TemporaryDirectory", None)
    rows = Rows(["a"] * 500)
    assert pa.concat_tables(sorted_row_groups(rows.read))["n"].to_pylist() == list(range(500))
    rows.table = rows.table.rename_columns({"cluster_id": "other_id"})
    assert pa.concat_tables(sorted_row_groups(rows.read))["n"].to_pylist() == list(range(500))
    assert not list(sorted_row_groups(Rows([]).read))


def test_files_that_are_written_again_are_not_decoded_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slowly their rows are written: of 40 row groups a few are in memory."""
    writer = TableWriter(tmp_path, None)
    writer.create(CLUSTER_NAMES)
    names = [{"cluster_id": f"{n:08}", "name": "x" * 200} for n in range(20_000)]
    monkeypatch.setattr("transforms.lake.table_files.ROW_GROUP_ROWS", 500)
    writer.append(CLUSTER_NAMES, names)
    size = pa.Table.from_pylist(names).nbytes
    before, most = pa.total_allocated_bytes(), 0
    with read_table(tmp_path, CLUSTER_NAMES) as held:
        stored = StoredTable(tmp_path / CLUSTER_NAMES.name, held)
        count = 0
        for batch in stored._batches(None, list(stored.rows().get_fragments()), None):  # pyright: ignore[reportPrivateUsage]
            time.sleep(0.01)
            count += len(batch)
            most = max(most, pa.total_allocated_bytes() - before)
    assert count == len(names)
    assert most < size / 4


def test_compaction_sorts_rows_by_cluster_piece_by_piece(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TableWriter(small / "lake", None)
    writer.create(EXPIRED_CAPTURES)
    others = {"node_id": 1, "directory_id": "d", "captured_at": datetime(2026, 11, 21, tzinfo=UTC)}
    rows = [{"cluster_id": f"{n % 97:03}", "capture_id": f"{n:05}", **others} for n in range(3000)]
    for first in range(0, len(rows), 500):
        writer.append(EXPIRED_CAPTURES, rows[first : first + 500])
    monkeypatch.setattr(file_changes, "ROWS_AT_ONCE", 100)
    writer.compact(EXPIRED_CAPTURES)
    found = by_cluster(small / "lake", EXPIRED_CAPTURES, ["cluster_id", "capture_id"], ["003", "none", "096"])
    expected = {c: sorted(r["capture_id"] for r in rows if r["cluster_id"] == c) for c in found}
    assert {c: sorted(held["capture_id"].to_pylist()) for c, held in found.items()} == expected
    assert list(map(len, found.values())) == [31, 0, 30]
    with read_table(small / "lake", EXPIRED_CAPTURES) as held:
        fragments = list(StoredTable(small / "lake" / EXPIRED_CAPTURES.name, held).rows().get_fragments())
    assert len(fragments) == 1
    ids = fragments[0].to_table()["cluster_id"].to_pylist()
    assert ids == sorted(ids)
    assert len(ids) == len(rows)


def test_of_a_table_that_does_not_exist_a_cluster_has_no_rows(tmp_path: Path) -> None:
    found = by_cluster(tmp_path, EXPIRED_CAPTURES, ["cluster_id", "capture_id"], ["a"])
    assert found["a"].column_names == ["cluster_id", "capture_id"]
    assert not len(found["a"])
