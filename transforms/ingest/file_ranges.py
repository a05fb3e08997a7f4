"""The epoch ranges of scanned files, from the headers of their batches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from transforms.ingest.batch_hashes import batch_hashes
from transforms.ingest.epoch_ranges import FileEpochRange, joined
from transforms.ingest.scanning import SCANNED
from transforms.lake.arrow_rows import Row

_MOMENT = SCANNED.field("appended_at").type
# A range of a file, or a part of one: fields of FileEpochRange.
RANGES = pa.schema(
    [
        SCANNED.field("file_number"),
        SCANNED.field("run_index"),
        ("leader_epoch", pa.int32()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("digest", pa.int64()),
        ("first_appended_at", _MOMENT),
        ("last_appended_at", _MOMENT),
        ("first_batch_end_offset", pa.int64()),
        ("first_data_end_offset", pa.int64()),
        ("first_data_appended_at", _MOMENT),
        ("batches", pa.int64()),
        ("size_bytes", pa.int64()),
        ("first_batch_crc", pa.int64()),
        ("first_batch", pa.int64()),
        ("last_batch", pa.int64()),
    ]
)


def ranges_of(batches: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of RANGES of batches (rows of SCANNED without damage), in which those of a range adjoin.

    The digest is the XOR of one hash a batch, so that ranges can be joined without their batches.
    """
    if not len(batches):
        return pa.RecordBatch.from_pylist([], RANGES)
    number, run, epoch, ends, times, crc, size = (
        batches[name].to_numpy(zero_copy_only=False)
        for name in (
            "file_number",
            "run_index",
            "leader_epoch",
            "last_offset",
            "appended_at",
            "crc",
            "size_bytes",
        )
    )
    ends = ends + 1
    is_first = (np.diff(number, prepend=-1) != 0) | (np.diff(run, prepend=-1) != 0)
    first = np.flatnonzero(is_first)
    after = np.append(first[1:], len(batches))
    hashes = batch_hashes(batches)
    # The next batch with data, from the first of each range on.
    data = np.append(np.flatnonzero(~batches["is_control"].to_numpy(zero_copy_only=False)), len(batches))
    of_data = data[np.searchsorted(data, first)]
    has_none = of_data >= after
    of_data = np.where(has_none, 0, of_data)
    columns = {
        "file_number": number[first],
        "run_index": run[first],
        "leader_epoch": epoch[first],
        "first_offset": batches["base_offset"].to_numpy()[first],
        "end_offset": ends[after - 1],
        "digest": np.bitwise_xor.reduceat(hashes, first),
        "first_appended_at": times[first],
        "last_appended_at": np.maximum.reduceat(times, first),
        "first_batch_end_offset": ends[first],
        "first_data_end_offset": pa.array(ends[of_data], mask=has_none),
        "first_data_appended_at": pa.array(times[of_data], _MOMENT, mask=has_none),
        "batches": after - first,
        "size_bytes": np.add.reduceat(size, first),
        "first_batch_crc": crc[first],
        "first_batch": hashes[first],
        "last_batch": hashes[after - 1],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in RANGES]
    return pa.RecordBatch.from_arrays(arrays, schema=RANGES)


def whole_ranges(parts: Iterable[pa.RecordBatch]) -> list[Row]:
    """Rows of RANGES, the parts of each range joined; those of a file come in their order."""
    found: dict[tuple[int, int], Row] = {}
    for rows in parts:
        for part in rows.to_pylist():
            key = part["file_number"], part["run_index"]
            first = found.get(key)
            found[key] = part if first is None else _joined(first, part)
    return list(found.values())


def _joined(first: Row, second: Row) -> Row:
    one = joined(FileEpochRange.of_row(first), FileEpochRange.of_row(second))
    return first | {name: getattr(one, name) for name in FileEpochRange.__slots__}
