"""Damaged segments and checkpoints, many of them with good checksums, read by both engines.

Of each offset that the undamaged segment held, reading must account: a batch holds it, or it lies in what is
reported as lost or missing, or after the end of what could be read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from google_crc32c import value as crc32c

from kraft_core.columnar import fast
from kraft_core.columnar.schema import HEADERS, RECORDS
from kraft_core.format.batch import BatchHeader, read_header, write_batch
from kraft_core.format.compression import compress
from kraft_core.format.record import read_batch
from kraft_core.format.segment import Damage, order_faults, scan
from kraft_core.format.snapshot import read_snapshot
from tests.kraft_core.batches import no_op_batch, raw, resealed
from tests.kraft_core.columnar import reference
from tests.kraft_core.columnar.comparing import differing
from tests.mutations import damage
from transforms.ingest.checkpoints import read_checkpoint
from transforms.ingest.scanning import scan_file

GOLDEN = Path(__file__).parents[1] / "golden"
SEGMENTS = (
    "all-record-types/node-7/__cluster_metadata-0/00000000000000000000.log",
    "all-record-types-4.4.0/node-7/__cluster_metadata-0/00000000000000000000.log",
    "corrupt/good/00000000000000000408.log",
    "dynamic-membership/node-1/__cluster_metadata-0/00000000000000000000.log",
    "election-storm/node-1/__cluster_metadata-0/00000000000000000000.log",
    "v4.4.0-mini/node-1/__cluster_metadata-0/00000000000000000000.log",
)
CHECKPOINTS = (
    "corrupt/good/00000000000000000321-0000000001.checkpoint",
    "dynamic-membership/node-1/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
    "stale-split/after/node-1/bootstrap.checkpoint",
)
MOST_BATCHES = 12
VALIDATED_ONE_OF = 16
CHECKED_FROM, RECORDS_AT = 21, 61
# Where the numbers of a header lie: base offset, length, epoch, attributes, last offset delta, times, count.
FIELDS = ((0, "q"), (8, "i"), (12, "i"), (21, "h"), (23, "i"), (27, "q"), (35, "q"), (57, "i"))
EXTREMES = {
    "q": (0, 1, -1, 1 << 40, (1 << 63) - 1, -(1 << 63), 253_402_300_799_999, -62_135_596_800_001),
    "i": (0, 1, -1, 2, 48, 49, 1 << 20, (1 << 31) - 1, -(1 << 31)),
    "h": (0, 1, 2, 3, 4, 5, 7, 8, 0x10, 0x20, 0x21, 0x24, 0x40, -1),
}


class Log(NamedTuple):
    """Consecutive batches."""

    batches: tuple[bytes, ...]

    @property
    def first_offset(self) -> int:
        return read_header(self.batches[0], 0).base_offset

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Of each batch: the first inclusive, the end exclusive."""
        headers = (read_header(batch, 0) for batch in self.batches)
        return [(header.base_offset, header.next_offset) for header in headers]


@cache
def batches_of(name: str) -> tuple[bytes, ...]:
    """The batches of a golden file."""
    log = (GOLDEN / name).read_bytes()
    return tuple(log[item.position : item.end] for item in scan(log) if isinstance(item, BatchHeader))


@cache
def _made() -> tuple[bytes, ...]:
    """Batches of every compression, with many records, with headers and with values of no type."""
    packed = [no_op_batch(20 * codec, epoch=codec + 1, records=20, codec=codec) for codec in range(5)]
    odd = [
        raw(100 + n, value, key) for n, (value, key) in enumerate(((None, None), (b"", b"k"), (b"x", b"")))
    ]
    return (*packed, write_batch(100, 6, odd), no_op_batch(103, epoch=6))


def some_log(rng: Random) -> Log:
    """A few batches in a row."""
    name = rng.choice((*SEGMENTS, ""))
    batches = batches_of(name) if name else _made()
    start = rng.randrange(len(batches))
    return Log(batches[start : start + rng.randint(1, MOST_BATCHES)])


# --- damage that leaves checksums good ---


def _sealed(batch: bytes) -> bytes:
    """With the length and checksum that fit, where it has a header at all."""
    if len(batch) < RECORDS_AT:
        return batch
    return resealed(batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:])


def _of_records(rng: Random, batch: bytes) -> bytes:
    """The records damaged, the checksum good."""
    return _sealed(batch[:RECORDS_AT] + damage.damaged(rng, batch[RECORDS_AT:], batch))


def _of_header(rng: Random, batch: bytes) -> bytes:
    """A number of the header as extreme as it can be, the checksum good."""
    at, code = rng.choice(FIELDS)
    number = struct.pack(f">{code}", rng.choice(EXTREMES[code]))
    return resealed(batch[:at] + number + batch[at + len(number) :])


def _packed(rng: Random, batch: bytes) -> bytes:
    """The records compressed, and perhaps damaged after that."""
    codec = rng.randrange(1, 5)
    body = compress(codec, batch[RECORDS_AT:] * rng.choice((1, 1, 50)))
    if rng.random() < 0.5:
        body = damage.damaged(rng, body, body)
    return _sealed(batch[:21] + struct.pack(">h", rng.choice((codec, codec | 0x20))) + batch[23:61] + body)


def damaged_log(rng: Random, log: Log, other: Log) -> bytes:
    """The bytes of a log after damage of batches, of their order, or of the whole."""
    batches = list(log.batches)
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(batches)) if batches else 0
        change = rng.randrange(8)
        if change <= 2 and batches:
            batches[at] = (_of_records, _of_header, _packed)[change](rng, batches[at])
        elif change == 3:
            del batches[at : at + rng.randint(1, 3)]
        elif change == 4:
            batches[at:at] = batches[at : at + rng.randint(1, 3)]
        elif change == 5:
            rng.shuffle(batches)
        elif change == 6:
            batches[at:] = other.batches
        else:
            batches[at:at] = [rng.choice(other.batches)]
    data = b"".join(batches)
    return damage.damaged(rng, data, b"".join(other.batches)) if rng.random() < 0.6 else data


# --- what must be true ---


def check_segment(rng: Random, folder: Path) -> int:
    """Reads a damaged segment; AssertionError where something is lost without a word. Its size in bytes."""
    log = some_log(rng)
    data = damaged_log(rng, log, some_log(rng))
    path = folder / f"{log.first_offset:020d}.log"
    path.write_bytes(data)
    _check_engines(rng, path, log.first_offset)
    items = list(scan(data, next_offset=log.first_offset))
    _check_bytes(data, items)
    for item in items:
        if isinstance(item, BatchHeader):
            _check_records(data, item)
    _check_offsets(path, data, log, items)
    return len(data)


def check_checkpoint(rng: Random, folder: Path) -> int:
    """The same of a checkpoint: complete is only what has every record that it ought to have."""
    name, other = rng.choice(CHECKPOINTS), rng.choice(CHECKPOINTS)
    data = damaged_log(rng, Log(batches_of(name)), Log(batches_of(other)))
    path = folder / Path(name).name
    path.write_bytes(data)
    _check_engines(rng, path, 0)
    items = list(scan(data, next_offset=0))
    _check_bytes(data, items)
    found = read_snapshot(data)
    file = {"file_number": 0, "path": str(path), "size_bytes": len(data)}
    (row,) = (batch.to_pylist()[0] for batch in read_checkpoint(file))
    assert row["complete"] == found.complete
    if found.complete:
        assert all(isinstance(item, BatchHeader) for item in items)
        expected = 0
        for item in items:
            assert isinstance(item, BatchHeader)
            assert item.base_offset == expected, "a batch is missing in a complete checkpoint"
            expected = item.next_offset
    return len(data)


def _check_engines(rng: Random, path: Path, next_offset: int) -> None:
    """Both give the same rows; Arrow holds them for valid, UTF-8 and all."""
    place = (path, 0, None, next_offset)
    headers, records = list(fast.scan_headers(*place)), list(fast.decode(path))
    for batch in (*headers, *records) if rng.randrange(VALIDATED_ONE_OF) == 0 else ():
        batch.validate(full=True)
    _assert_same(headers, reference.scan_headers(*place), HEADERS)
    _assert_same(records, reference.decode(path), RECORDS)


def _assert_same(found: Iterable[Any], wanted: Iterable[Any], schema: pa.Schema) -> None:
    one, other = (pa.Table.from_batches(list(rows), schema=schema) for rows in (found, wanted))
    # A NaN is equal to itself only column by column.
    assert one.equals(other) or differing(one, other) == []


def _check_bytes(data: bytes, items: list[BatchHeader | Damage]) -> None:
    """Every byte is in a batch whose checksum holds, or in damage."""
    at = 0
    for item in items:
        assert item.position == at
        assert item.end > at
        if isinstance(item, BatchHeader):
            assert crc32c(data[at + CHECKED_FROM : item.end]) == item.crc
        at = item.end
    assert at == len(data)


def _check_records(data: bytes, header: BatchHeader) -> None:
    """A batch has as many records as it states, or says from where on they are lost."""
    records = list(read_batch(data, header))
    rest = [record for record in records if record.is_rest_of_batch]
    if not rest:
        assert len(records) == header.record_count
        return
    (last,) = rest
    assert records[-1] is last
    assert all(header.base_offset <= r.offset < header.next_offset for r in records[:-1])
    if last.offset < header.next_offset:
        assert last.lost_offsets == (last.offset, header.next_offset)


def _check_offsets(path: Path, data: bytes, log: Log, items: list[BatchHeader | Damage]) -> None:
    first = log.first_offset
    good = [item for item in items if isinstance(item, BatchHeader)]
    covered = [(item.base_offset, item.next_offset) for item in good]
    lost = _lost(path, data, first)
    for start, end in lost:
        assert end is None or start <= end, f"lost from {start} to {end}"
    covered += [(start, 1 << 63 if end is None else end) for start, end in lost]
    faults = order_faults(items, first)
    covered += [(fault.expected, fault.found) for fault in faults if fault.kind == "gap"]
    covered.append((max((item.next_offset for item in good), default=first if data else 0), 1 << 63))
    for start, end in log.offsets:
        at = start
        for from_, to in sorted(covered):
            if from_ <= at < to:
                at = to
        assert at >= end, f"nothing says what became of offset {at}"


def _lost(path: Path, data: bytes, first_offset: int) -> list[tuple[int, int | None]]:
    """The offsets that the scan of an ingest reports as lost."""
    file = {"file_number": 0, "task": 0, "path": str(path), "start": 0, "address": 0}
    file |= {"first_offset": first_offset, "size_bytes": len(data)}
    rows = [row for batch in scan_file(file) for row in batch.to_pylist()]
    assert sum(row["size_bytes"] for row in rows) == len(data)
    return [(r["lost_from_offset"], r["lost_to_offset"]) for r in rows if r["reason"] is not None]
