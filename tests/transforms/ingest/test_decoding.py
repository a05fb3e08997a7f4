"""Chosen batches become sections of files, however Spark has cut the rows that name them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.format.batch import BatchHeader
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import scan
from transforms.ingest import decoding
from transforms.ingest.decoding import SourceFile, by_file, decoder, sections

GOLDEN = Path(__file__).parents[2] / "golden"
CORRUPT = GOLDEN / "corrupt"
LOG_0 = "00000000000000000000.log"
LOG = "00000000000000000408.log"


def rows(*named: tuple[int, int]) -> pa.RecordBatch:
    """(address, size in bytes) of batches."""
    addresses, sizes = zip(*named, strict=True) if named else ((), ())
    arrays = [pa.array(addresses, pa.int64()), pa.array(sizes, pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, ["address", "size_bytes"])


def test_the_batches_of_a_file_come_together():
    sources = [
        SourceFile(0, 0, "a", "one"),
        SourceFile(21, 100, "of which nothing is read", "one"),
        SourceFile(21, 7, "b", "two"),
        SourceFile(30, 0, "c", "one"),
    ]
    given = [rows((0, 5), (5, 5)), rows(), rows((20, 1), (21, 2)), rows((31, 9))]
    found = [(s.path, starts.tolist(), ends.tolist()) for s, starts, ends in by_file(iter(given), sources)]
    assert found == [("a", [0, 5, 20], [5, 10, 21]), ("b", [7], [9]), ("c", [1], [10])]
    assert list(by_file(iter([rows()]), sources)) == []
    assert list(by_file(iter([]), sources)) == []


def test_batches_that_touch_are_one_stretch():
    starts, ends = np.array([0, 5, 20, 30]), np.array([5, 10, 30, 31])
    assert sections(starts, ends) == [(0, 10), (20, 31)]
    assert sections(starts[:1], ends[:1]) == [(0, 5)]


def batches(path: Path) -> list[BatchHeader]:
    with mapped(path) as buf:
        return [item for item in scan(buf) if isinstance(item, BatchHeader)]


def test_files_of_several_clusters_in_one_task():
    paths = [CORRUPT / case / LOG for case in ("good", "unknown-record-type")]
    every = [batches(path) for path in paths]
    begins = [0, 1_000_000]
    given = [
        rows((begin + h.position, h.size_bytes))
        for begin, headers in zip(begins, every, strict=True)
        for h in headers
    ]
    sources = [SourceFile(begins[n], 0, str(path), f"cluster-{n}") for n, path in enumerate(paths)]
    (found,) = decoder(sources)(iter(given))
    records = [sum(h.record_count for h in headers) for headers in every]
    assert found["cluster_id"].to_pylist() == ["cluster-0"] * records[0] + ["cluster-1"] * records[1]
    # Where the value of a newer Kafka begins is told from the start of its batch: copies have equal rows.
    unread = found.filter(pc.is_valid(found["unread_position"]))
    assert unread["unread_reason"].to_pylist() == ["unknown_type"]
    holder = next(h for h in every[1] if h.base_offset == unread["batch_base_offset"][0].as_py())
    assert 61 < unread["unread_position"][0].as_py() < holder.size_bytes


def test_a_large_file_is_read_by_type(monkeypatch):
    """The same rows, the frequent types first; a file of many types is read as it is."""
    path = GOLDEN / "dynamic-membership" / "node-1" / "__cluster_metadata-0" / LOG_0
    headers = batches(path)
    given = rows(*((h.position, h.size_bytes) for h in headers))
    sources = [SourceFile(0, 0, str(path), "a cluster")]
    read = decoder(sources)
    (whole,) = read(iter([given]))
    assert decoding.frequent_types(list(by_file(iter([given]), sources))) == set()
    monkeypatch.setattr(decoding, "LARGE_BYTES", 0)
    types = decoding.frequent_types(list(by_file(iter([given]), sources)))
    every = set(whole["type"].to_pylist())
    assert set() < types < every
    (found,) = read(iter([given]))
    is_frequent = [name in types for name in found["type"].to_pylist()]
    assert is_frequent == sorted(is_frequent, reverse=True)
    assert found.take(pc.sort_indices(found["offset"])).equals(whole)
    monkeypatch.setattr(decoding, "FREQUENT", 1)
    (found,) = read(iter([given]))
    assert found.equals(whole)


def test_no_batches_no_records():
    assert list(decoder([])(iter([rows()]))) == []
