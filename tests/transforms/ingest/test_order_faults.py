"""Batches out of order, as ingest finds them by ranges and the reference batch by batch."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.segment import OrderCheck, scan
from tests.kraft_core.findings.broken import NO_OP
from transforms.ingest.epoch_ranges import FileEpochRange
from transforms.ingest.order_faults import order_faults
from transforms.ingest.scanning import scan_file
from transforms.lake.arrow_rows import moment

BATCHES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2), st.integers(1, 3)), max_size=12)
AT = moment(0)


def segment(batches: list[tuple[int, int, int]]) -> bytes:
    """Batches by base offset, epoch and how many records."""
    return b"".join(
        write_batch(base, epoch, [RawRecord(base + n, 0, None, NO_OP) for n in range(count)])
        for base, epoch, count in batches
    )


def by_batches(buf: bytes) -> list[dict[str, Any]]:
    """The reference: an epoch that goes back is told of the first batch of a stretch."""
    check, goes_on, found = OrderCheck(0), (0, -1), []
    for item in scan(buf):
        for fault in check.faults(item):
            if fault.kind != "epoch_regression" or (item.base_offset, item.leader_epoch) != goes_on:
                found.append((item.base_offset, item.leader_epoch, fault.kind, fault.expected))
        goes_on = (item.next_offset, item.leader_epoch)
    return [dict(zip(("offset", "leader_epoch", "kind", "expected"), row, strict=True)) for row in found]


def ranges(path: Path) -> list[FileEpochRange]:
    """The ranges of a scan, as file_ranges makes them."""
    file = {
        "path": str(path),
        "start": 0,
        "address": 0,
        "first_offset": 0,
        "size_bytes": path.stat().st_size,
        "file_number": 0,
    }
    rows = [row for batch in scan_file(file) for row in batch.to_pylist()]
    found = []
    for _, some in groupby(rows, key=itemgetter("run_index")):
        first, *_ = batches = list(some)
        last = batches[-1]
        hashes = [
            hash((b["base_offset"], b["leader_epoch"], b["crc"], b["size_bytes"])) for b in (first, last)
        ]
        ends = (last["last_offset"] + 1, first["last_offset"] + 1)
        found.append(
            FileEpochRange(
                first["leader_epoch"],
                first["base_offset"],
                ends[0],
                0,
                AT,
                AT,
                ends[1],
                None,
                None,
                1,
                1,
                first["crc"],
                *hashes,
            )
        )
    return found


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES)
def test_ranges_show_the_faults_that_batches_show(
    tmp_path: Path, batches: list[tuple[int, int, int]]
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(segment(batches))
    assert list(order_faults(0, ranges(path), ())) == by_batches(path.read_bytes())


def test_a_gap_behind_damage_is_none() -> None:
    def stretch(first: int, end: int) -> FileEpochRange:
        return FileEpochRange(1, first, end, 0, AT, AT, first + 1, None, None, 1, 1, 6)

    def kinds(*lost: tuple[int, int | None]) -> list[str]:
        damage = [{"lost_from_offset": first, "lost_to_offset": end} for first, end in lost]
        return [fault["kind"] for fault in order_faults(0, [stretch(0, 5), stretch(8, 9)], damage)]

    assert kinds() == kinds((5, 7)) == kinds((2, 8)) == ["gap"]
    assert kinds((5, 8)) == kinds((5, None)) == []
    assert kinds((6, 8), (5, 6)) == kinds((5, 7), (7, None)) == []  # files that could not be opened
    assert kinds((5, 9)) == kinds((5, 5)) == kinds((5, 6), (7, 8)) == ["gap"]


def test_a_batch_that_an_earlier_run_read_is_known_by_its_end() -> None:
    known = FileEpochRange(1, 0, 5, 0, AT, AT, 1, None, None, 5, 5, 6)
    again = FileEpochRange(1, 4, 9, 0, AT, AT, 5, None, None, 5, 5, 6, 7, 8)
    other = FileEpochRange(1, 3, 9, 0, AT, AT, 4, None, None, 5, 5, 6, 7, 8)
    assert [fault["kind"] for fault in order_faults(0, [known, again], ())] == ["duplicate"]
    assert [fault["kind"] for fault in order_faults(0, [known, other], ())] == ["overlap"]
