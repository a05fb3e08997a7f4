"""A segment as large as Kafka lets one grow, through the whole job: in pieces, in little memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key
from tests.bench.inputs import T0_MS, batches_of, renumbered, write_directory
from tests.bench.memory import watched
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, RECORDS

SEGMENT_BYTES = 1 << 30
# Of these many bytes the first are of small records, as most logs are; the others of wide ones.
SMALL_BYTES = 64 << 20
CONFIG = by_api_key[4]


def wide_batch() -> bytes:
    """Forty configurations of 10,000 bytes each."""
    fields = CONFIG.default(0) | {"resourceType": 2, "resourceName": "wide", "name": "some.list"}
    values = [fields | {"value": f"{number:02d}" * 5000} for number in range(40)]
    records = [
        RawRecord(number, T0_MS + number, None, write_metadata_value(CONFIG, 0, value))
        for number, value in enumerate(values)
    ]
    return write_batch(0, 1, records)


def segment() -> Iterator[bytes]:
    """Batches of a gibibyte, less than one batch missing."""
    written = next_offset = 0
    for batch in batches_of(SMALL_BYTES):
        yield batch
        written += len(batch)
        next_offset = int.from_bytes(batch[:8], "big") + int.from_bytes(batch[23:27], "big") + 1
    wide = wide_batch()
    while written + len(wide) <= SEGMENT_BYTES:
        yield renumbered(wide, next_offset)
        written += len(wide)
        next_offset += 40


@pytest.mark.long
def test_a_segment_of_a_gibibyte_is_read_in_pieces(tmp_path: Path) -> None:
    write_directory(tmp_path / "node-1", segment(), "large", 1)
    (log,) = (tmp_path / "node-1").rglob("*.log")
    assert log.stat().st_size > SEGMENT_BYTES - (1 << 19)
    lake = tmp_path / "lake"
    command = ["ingest", "--lake", str(lake), "--captures", str(tmp_path / "node-1")]
    with subprocess.Popen([sys.executable, "-m", "jobs.cli", *command]) as job:
        peaks = watched(job)
    assert job.returncode == 0
    assert 0 < peaks["worker"] < 600, peaks
    (capture,) = rows_with(lake, CAPTURES, ["log_end_offset", "damage"], cluster_id=["large"])
    assert capture["damage"] == []
    offsets = rows_with(lake, RECORDS, ["offset"], cluster_id=["large"])
    assert len(offsets) == len({row["offset"] for row in offsets}) == capture["log_end_offset"]
