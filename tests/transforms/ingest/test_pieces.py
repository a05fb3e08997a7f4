"""Scanned batches in pieces, and the ranges of files that come with them, beside a reference by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kraft_core.format.capture import Identity
from tests.kraft_core.batches import control_batch, no_op_batch
from transforms.ingest import pieces, scanning
from transforms.ingest.batch_hashes import batch_hashes
from transforms.ingest.file_ranges import RANGES, ranges_of, whole_ranges
from transforms.ingest.pieces import (
    PIECES,
    deserialized,
    good_rows,
    owned_batches,
    places,
    scan_to_pieces,
    scanned_rows,
)
from transforms.ingest.scanning import FILES, SCANNED, scan_file

# A batch: records, offsets lost before it, epochs more than that of the batch before, control, damaged.
BATCH = st.tuples(
    st.integers(1, 4), st.sampled_from([0, 0, 0, 3]), st.sampled_from([0, 0, 1]), st.booleans(), st.booleans()
)
LOGS = st.lists(st.lists(BATCH, max_size=12), min_size=1, max_size=4)


def log_of(batches: list[tuple[int, int, int, bool, bool]]) -> bytes:
    """The bytes of drawn batches."""
    content, offset, epoch = b"", 0, 1
    for records, lost, elections, is_control, is_damaged in batches:
        offset, epoch = offset + lost, epoch + elections
        made = (
            control_batch(offset, epoch, 2, LEADER_CHANGE)
            if is_control
            else no_op_batch(offset, epoch, records)
        )
        offset += 1 if is_control else records
        content += made[:-1] + bytes([made[-1] ^ 1]) if is_damaged else made
    return content


LEADER_CHANGE = {"version": 0, "leaderId": 1, "voters": [], "grantingVoters": []}


def files_of(folder: str, logs: list[bytes]) -> list[dict[str, Any]]:
    """Rows of scanning.FILES of logs that are written to a folder."""
    rows, address = [], 0
    for number, log in enumerate(logs):
        path = Path(folder, f"{number}.log")
        path.write_bytes(log)
        row = {"file_number": number, "task": 0, "path": str(path), "start": 0, "address": address}
        rows.append(row | {"first_offset": 0, "size_bytes": len(log)})
        address += len(log)
    return rows


def in_pieces(files: list[dict[str, Any]]) -> pa.Table:
    """Rows of PIECES, in pieces as small as a few batches."""
    with patch.object(pieces, "PIECE_BYTES", 300), patch.object(scanning, "ROWS_AT_ONCE", 7):
        made = scan_to_pieces(iter([pa.RecordBatch.from_pylist(files, FILES)]))
        return pa.Table.from_batches(made, PIECES)


def all_rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for rows in batches for row in rows.to_pylist()]


def reference_ranges(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ranges of good rows of SCANNED, one batch after the other."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        [hash_] = batch_hashes(pa.RecordBatch.from_pylist([row], SCANNED)).tolist()
        end, has_data = row["last_offset"] + 1, not row["is_control"]
        fresh = {
            "file_number": row["file_number"],
            "run_index": row["run_index"],
            "leader_epoch": row["leader_epoch"],
            "first_offset": row["base_offset"],
            "digest": 0,
            "first_appended_at": row["appended_at"],
            "last_appended_at": row["appended_at"],
            "first_batch_end_offset": end,
            "first_data_end_offset": None,
            "first_data_appended_at": None,
            "batches": 0,
            "size_bytes": 0,
            "first_batch_crc": row["crc"],
            "first_batch": hash_,
        }
        held = found.setdefault((row["file_number"], row["run_index"]), fresh)
        held |= {"end_offset": end, "digest": held["digest"] ^ hash_, "last_batch": hash_}
        held |= {"batches": held["batches"] + 1, "size_bytes": held["size_bytes"] + row["size_bytes"]}
        held["last_appended_at"] = max(held["last_appended_at"], row["appended_at"])
        if has_data and held["first_data_end_offset"] is None:
            held |= {"first_data_end_offset": end, "first_data_appended_at": row["appended_at"]}
    return list(found.values())


@given(drawn=LOGS)
def test_pieces_hold_what_was_scanned_and_the_ranges_of_it(drawn: list[list[Any]]) -> None:
    with TemporaryDirectory() as folder:
        files = files_of(folder, list(map(log_of, drawn)))
        found = in_pieces(files)
        rows = [row for file in files for row in all_rows(scan_file(file))]
    good = [row for row in rows if row["reason"] is None]
    batches = found.to_batches()
    assert all_rows(scanned_rows(iter(batches))) == rows
    assert all_rows(good_rows(iter(batches))) == good
    damaged = [piece for piece in batches for n in range(len(piece)) if piece["is_damaged"][n].as_py()]
    assert bool(damaged) == (len(good) < len(rows))
    parts = [part for chunk in found["ranges"].chunks for part in deserialized(chunk, RANGES)]
    assert whole_ranges(parts) == reference_ranges(good)


def test_a_piece_is_small_and_says_where_it_begins(tmp_path: Path) -> None:
    log = b"".join(no_op_batch(offset) for offset in range(100))
    found = in_pieces(files_of(str(tmp_path), [log]))
    sizes = []
    for piece in found.to_pylist():
        rows = pa.ipc.read_record_batch(pa.py_buffer(piece["rows"]), SCANNED)
        assert rows["address"][0].as_py() == piece["address"]
        sizes.append(sum(rows["size_bytes"].to_pylist()))
    assert len(sizes) > 20
    assert max(sizes) <= 300 + len(no_op_batch(0))


def test_batches_of_some_files_and_their_owners(tmp_path: Path) -> None:
    logs = [no_op_batch(0) + no_op_batch(1), no_op_batch(0, records=3), no_op_batch(0, epoch=2)]
    found = in_pieces(files_of(str(tmp_path), logs)).to_batches()
    sizes = list(map(len, logs))
    expected = [(0, len(no_op_batch(0))), (len(no_op_batch(0)), len(no_op_batch(1)))]
    expected += [(sizes[0] + sizes[1], sizes[2])]
    chosen = [(row["address"], row["size_bytes"]) for row in all_rows(places(iter(found), {0, 2}))]
    assert chosen == expected
    assert len(all_rows(places(iter(found)))) == 4
    replicas = [Identity("a", 1, "one"), Identity("a", 2, "two"), Identity("b", 1, "three")]
    owners = pa.RecordBatch.from_pylist(list(map(asdict, replicas)))
    owned = all_rows(owned_batches(iter(found), owners))
    assert [Identity(r["cluster_id"], r["node_id"], r["directory_id"]) for r in owned] == [
        replicas[0],
        *replicas,
    ]


def test_without_batches_there_are_no_ranges() -> None:
    assert len(ranges_of(pa.RecordBatch.from_pylist([], SCANNED))) == 0


def test_lakes_hold_digests_of_hashes_that_spark_made(spark: SparkSession) -> None:
    """Earlier versions let Spark make them; ranges of old captures are compared with those of new ones."""
    random = np.random.default_rng()
    rows = {
        "base_offset": random.integers(0, 1 << 62, 1000),
        "leader_epoch": random.integers(-1, 1 << 31, 1000).astype(np.int32),
        "crc": random.integers(0, 1 << 32, 1000),
        "size_bytes": random.integers(61, 1 << 31, 1000),
    }
    batch = pa.RecordBatch.from_pydict(rows)
    by_spark = spark.createDataFrame(pa.Table.from_batches([batch])).select(F.xxhash64(*rows).alias("hash"))
    assert batch_hashes(batch).tolist() == by_spark.toArrow()["hash"].to_pylist()


@pytest.mark.parametrize("epoch", [-1, 0, 2**31 - 1])
def test_the_hash_of_any_epoch(spark: SparkSession, epoch: int) -> None:
    rows = {"base_offset": [-1], "leader_epoch": [epoch], "crc": [2**32 - 1], "size_bytes": [0]}
    schema = pa.schema([SCANNED.field(name).remove_metadata() for name in rows])
    batch = pa.RecordBatch.from_pydict(rows, schema)
    by_spark = spark.createDataFrame(pa.Table.from_batches([batch])).select(F.xxhash64(*rows).alias("hash"))
    assert batch_hashes(batch).tolist() == by_spark.toArrow()["hash"].to_pylist()
