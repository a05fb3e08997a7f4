"""quarantine names the offsets that were lost: all of them, and none that was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.runtime.outcome import ExitCode
from kraft_core.format.batch import HEADER_BYTES
from kraft_core.format.log_dirs import LOG_DIR_NAME
from tests.jobs.lakes import opened, run
from tests.kraft_core.batches import log_of, no_op_batch, resealed
from transforms.lake.arrow_rows import to_rows
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import QUARANTINE, RECORDS

# Offsets 5 to 14, between good batches.
BATCH = no_op_batch(5, records=10)
RECORD_BYTES = (len(BATCH) - HEADER_BYTES) // 10


def overwritten(at: int, new: bytes) -> bytes:
    return resealed(BATCH[:at] + new + BATCH[at + len(new) :])


# The batch, and the offsets that are lost of it: (first, end), None if none is.
CASES: dict[str, tuple[bytes, tuple[int, int] | None]] = {
    "malformed": (overwritten(HEADER_BYTES + 3 * RECORD_BYTES, b"\x01"), (8, 15)),
    "malformed at once": (overwritten(HEADER_BYTES, b"\x7e"), (5, 15)),
    "more than counted": (overwritten(HEADER_BYTES - 4, (4).to_bytes(4, "big")), (9, 15)),
    "fewer than counted": (overwritten(HEADER_BYTES - 4, (12).to_bytes(4, "big")), None),
    "unknown codec": (overwritten(21, b"\x00\x07"), (5, 15)),
    "bad checksum": (BATCH[:-1] + b"\xff", (5, 15)),
}


def captured(folder: Path, name: str, log: bytes) -> None:
    """A captured directory of a cluster of that name."""
    log_dir = folder / name / LOG_DIR_NAME
    log_dir.mkdir(parents=True)
    (folder / name / "meta.properties").write_text(f"version=1\ncluster.id={name}\nnode.id=1\n")
    (log_dir / f"{0:020}.log").write_bytes(log)


def test_whole_batches(spark: Any, tmp_path: Path) -> None:
    for name, (batch, _) in CASES.items():
        captured(tmp_path / "tree", name, log_of(no_op_batch(0, records=5), batch, no_op_batch(15)))
    assert run(tmp_path / "lake", tmp_path / "tree") == ExitCode.FOUND
    lake = opened(spark, tmp_path / "lake")
    (*lost,) = rows_with(lake.path, QUARANTINE)
    assert {row["cluster_id"] for row in lost} == CASES.keys()
    read = to_rows(lake.read(RECORDS).where("unread_reason IS NULL"))
    for row in lost:
        cluster, (_, expected) = row["cluster_id"], CASES[row["cluster_id"]]
        found = (row["lost_from_offset"], row["lost_to_offset"])
        assert found == (expected or (None, None)), cluster
        held = {r["offset"] for r in read if r["cluster_id"] == cluster}
        assert held == set(range(16)) - set(range(*(expected or (0, 0)))), cluster
