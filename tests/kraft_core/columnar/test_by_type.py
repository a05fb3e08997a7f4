"""Records read by type, where a file has more of them than a record batch holds."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kraft_core.columnar import fast
from kraft_core.columnar.chunk import ROWS
from kraft_core.columnar.fast import without
from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import no_op_batch, raw

NO_OP, REMOVE_TOPIC = by_api_key[20], by_api_key[9]
RECORDS_A_BATCH = 1000


def batch_of(every: int) -> bytes:
    """A batch in which each record of so many removes a topic, the others do nothing."""
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    return write_batch(
        0,
        1,
        [
            raw(n, write_metadata_value(*((REMOVE_TOPIC, 0, topic) if n % every == 0 else (NO_OP, 0, {}))))
            for n in range(RECORDS_A_BATCH)
        ],
    )


def parts(path: Path, *types: str) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    first, others = fast.decode_by_type(path, [(0, None)], frozenset(types))
    return list(first), list(others)


def offsets(batches: list[pa.RecordBatch]) -> list[int]:
    return [n for batch in batches for n in batch["offset"].to_pylist()]


def test_record_batches_are_full_of_the_types_that_are_read(tmp_path):
    """Records that are passed over take no room."""
    path = tmp_path / "00000000000000000000.log"
    every, count = 8, 3 * ROWS // RECORDS_A_BATCH
    body = batch_of(every)[8:]
    path.write_bytes(b"".join(struct.pack(">q", RECORDS_A_BATCH * n) + body for n in range(count)))
    first, others = parts(path, NO_OP.type_name)
    place = np.arange(count * RECORDS_A_BATCH)
    removes = place % RECORDS_A_BATCH % every == 0
    assert offsets(first) == place[~removes].tolist()
    assert offsets(others) == place[removes].tolist()
    assert len(others) == 1
    assert [batch["position_in_batch"].to_pylist() for batch in others] == [
        (place[removes] % RECORDS_A_BATCH).tolist()
    ]
    assert all(batch["remove_topic"].null_count == len(batch) for batch in first)
    assert all(batch["remove_topic"].null_count == 0 for batch in others)


@pytest.mark.parametrize("types", [(), (NO_OP.type_name,), (NO_OP.type_name, REMOVE_TOPIC.type_name)])
def test_what_the_kernel_leaves_out_comes_once(tmp_path, types):
    """Compressed batches are read by the reference codec, at most once where they come first."""
    path = tmp_path / "00000000000000000000.log"
    compressed = [no_op_batch(n, records=3, codec=4) for n in (0, 3)]
    plain = struct.pack(">q", 6) + batch_of(2)[8:]
    end = 6 + RECORDS_A_BATCH
    path.write_bytes(b"".join([*compressed, plain, no_op_batch(end, codec=2)]))
    first, others = parts(path, *types)
    assert {*range(6), end} <= set(offsets(first))
    assert sorted(offsets(first) + offsets(others)) == list(range(end + 1))


@pytest.mark.parametrize("types", [(NO_OP.type_name,), (REMOVE_TOPIC.type_name,)])
def test_a_batch_with_a_torn_value_comes_once(tmp_path, types):
    """The kernel notices it only where it reads records of that type."""
    path = tmp_path / "00000000000000000000.log"
    torn = write_metadata_value(REMOVE_TOPIC, 0, {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ"})[:-5]
    values = [write_metadata_value(NO_OP, 0, {}), torn]
    path.write_bytes(write_batch(0, 1, [raw(n, value) for n, value in enumerate(values)]))
    first, others = parts(path, *types)
    assert sorted(offsets(first) + offsets(others)) == [0, 1]
    reasons = [r for batch in (*first, *others) for r in batch["unread_reason"].to_pylist()]
    assert sorted(map(str, reasons)) == ["None", "malformed_value"]


def test_ranges_without_parts():
    assert without([(0, 10), (20, None)], []) == [(0, 10), (20, None)]
    parts = [(0, 3), (7, 10), (20, 25), (30, 31)]
    assert without([(0, 10), (20, None)], parts) == [(3, 7), (25, 30), (31, None)]
    assert without([(0, 10), (20, 30)], [(0, 10), (20, 25)]) == [(25, 30)]
    assert without([], []) == []
