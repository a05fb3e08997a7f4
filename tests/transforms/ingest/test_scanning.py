"""What a scan says was lost of a file."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from tests.kraft_core.batches import log_of, no_op_batch
from transforms.ingest import scanning
from transforms.ingest.scanning import DISORDERED, MOST_FAULTS, scan_file


def scanned(path: Path, log: bytes) -> list[dict[str, Any]]:
    path.write_bytes(log)
    file = {"file_number": 0, "task": 0, "path": str(path), "start": 0, "address": 0}
    file |= {"first_offset": 0, "size_bytes": len(log)}
    return [row for batch in scan_file(file) for row in batch.to_pylist()]


def test_an_earlier_batch_does_not_end_a_loss(tmp_path: Path) -> None:
    """Then nobody knows the end: of a range that ends before it begins, nothing would be quarantined."""
    bad = no_op_batch(10, records=10)[:-1] + b"\xff"
    log = log_of(no_op_batch(0, records=10), bad, no_op_batch(0, records=10))
    lost = [row for row in scanned(tmp_path / "log", log) if row["reason"] is not None]
    assert [(row["lost_from_offset"], row["lost_to_offset"]) for row in lost] == [(10, None)]


def numbered_again(batch: bytes, offsets: Iterable[int], epochs: Iterable[int]) -> bytes:
    """A batch at each of these offsets and epochs: no checksum covers them."""
    prefixes = zip(offsets, epochs, strict=False)
    return b"".join(
        offset.to_bytes(8, "big") + batch[8:12] + epoch.to_bytes(4, "big") + batch[16:]
        for offset, epoch in prefixes
    )


TIMES = 5000
BATCH = no_op_batch(0, records=2)
BAD = BATCH[:-1] + b"\xff"
DISORDER = {
    "overlapping": numbered_again(BATCH, range(TIMES), repeat(1)),
    "repeated": numbered_again(BATCH, repeat(0, TIMES), repeat(1)),
    "with gaps": numbered_again(BATCH, range(0, 5 * TIMES, 5), repeat(1)),
    "of falling epochs": numbered_again(BATCH, range(0, 2 * TIMES, 2), range(TIMES, 0, -1)),
    "damaged": numbered_again(BATCH + BAD, range(0, 4 * TIMES, 4), repeat(1)),
}


@pytest.mark.parametrize("log", DISORDER.values(), ids=DISORDER.keys())
def test_what_no_log_is_like_costs_the_rest_of_its_file(tmp_path: Path, log: bytes) -> None:
    """What reaches the driver is bounded, and every byte is a batch of a range or reported as damage."""
    rows = scanned(tmp_path / "log", log)
    assert sum(row["size_bytes"] for row in rows) == len(log)
    damages = [row for row in rows if row["reason"] is not None]
    ranges = {row["run_index"] for row in rows if row["reason"] is None}
    assert len(ranges) + len(damages) <= 2 * (MOST_FAULTS + 2)
    last = max(damages, key=lambda row: row["position"])
    assert (last["reason"], last["lost_to_offset"]) == (DISORDERED, None)
    assert last["position"] + last["size_bytes"] == len(log)
    read = [row for row in rows if row["reason"] is None]
    assert last["lost_from_offset"] == max(read, key=lambda row: row["position"])["last_offset"] + 1


def test_an_election_is_no_fault(tmp_path: Path) -> None:
    rows = scanned(tmp_path / "log", numbered_again(BATCH, range(0, 2 * TIMES, 2), range(TIMES)))
    assert {row["reason"] for row in rows} == {None}
    assert len({row["run_index"] for row in rows}) == TIMES


def test_more_elections_than_a_file_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "MOST_RANGES", 3000)
    rows = scanned(tmp_path / "log", numbered_again(BATCH, range(0, 2 * TIMES, 2), range(TIMES)))
    (rest,) = [row for row in rows if row["reason"] is not None]
    assert (rest["reason"], rest["lost_from_offset"]) == (DISORDERED, 6000)
    assert len({row["run_index"] for row in rows if row["reason"] is None}) == 3000
