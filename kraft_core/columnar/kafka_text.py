"""kafka_dump by columns: consecutive usual batches are printed at once, all others one by one.

A batch is usual if its producer is none, its records are uncompressed, have no headers and were all read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from kraft_core.columnar.fast import decode
from kraft_core.columnar.headers import Headers, scan_window
from kraft_core.columnar.json_text import holds_former_layout, json_texts
from kraft_core.columnar.timestamps import FIRST_MS, LAST_MS
from kraft_core.columnar.window import opened
from kraft_core.format.batch import HEADER_BYTES
from kraft_core.format.kafka_dump import MAX_BYTES, FileDump
from kraft_core.format.varint import Buffer
from kraft_core.messages.metadata import METADATA_RECORDS

pa = cast(Any, pyarrow)
pc = cast(Any, pyarrow.compute)

_MAGIC_AT, _MAGIC = 16, 2
_PRODUCER_AT = np.arange(43, 57)  # producer id and epoch, base sequence: all -1
# Fewer records than this are printed faster one by one; more than that, or more bytes, take too much memory.
_LEAST_RECORDS, _MOST_RECORDS = 2048, 65536
_MOST_BYTES = 64 * 1024 * 1024
_UNKNOWN_TO_KAFKA = [message.type_name for message in METADATA_RECORDS if message.layout is not None]

_Numbers = NDArray[np.int64]


@dataclass
class ColumnarDump(FileDump):
    """A FileDump that prints the same, but faster. path: of the file whose bytes pieces() gets."""

    path: str = ""

    def pieces(self, buf: Buffer, name: str) -> Iterator[str]:
        """As FileDump.pieces."""
        can_run = self.options.max_bytes == MAX_BYTES and not self.options.skip_metadata
        self._runs = _runs(self.path) if can_run else iter(())
        self._run = next(self._runs, None)
        yield from super().pieces(buf, name)

    def _next(self, buf: Buffer, position: int) -> tuple[str, int]:
        while self._run is not None and self._run.position[0] < position:
            self._run = next(self._runs, None)
        if self._run is not None and self._run.position[0] == position:
            text = self._text(self._run)
            if text is not None:
                return text, self._run.end
        return super()._next(buf, position)

    def _text(self, run: Headers) -> str | None:
        """The text of a run of batches; None if a record is not a usual one."""
        span = (int(run.position[0]), run.end)
        read = list(decode(self.path, [span], not self.options.show_secrets, self.options.allowed))
        records = pa.concat_batches(read) if len(read) > 1 else read[0]
        if not _are_usual(records, run):
            return None
        self._count(run, _numbers(records["offset"]))
        return _joined(_record_lines(records), _batch_lines(run), run.record_count)

    def _count(self, run: Headers, offsets: _Numbers) -> None:
        before = np.concatenate([[self.last_offset], offsets[:-1]])
        jumps = np.flatnonzero(offsets != before + 1)
        self.jumps |= zip(before[jumps].tolist(), offsets[jumps].tolist(), strict=True)
        self.last_offset = int(offsets[-1])
        self.batches += len(run.position)


def _runs(path: str) -> Iterator[Headers]:
    """The runs of batches whose headers are usual, in the order of the file."""
    with opened(path) as window:
        for piece in scan_window(window, 0, None):
            if isinstance(piece, Headers):
                yield from _runs_of(piece, _have_usual_headers(piece, window.buf))


def _have_usual_headers(headers: Headers, buf: Buffer) -> NDArray[np.bool_]:
    content = np.frombuffer(buf, dtype=np.uint8)
    usual = (headers.attributes == 0) & (headers.record_count > 0)
    usual &= content[headers.position + _MAGIC_AT] == _MAGIC
    usual &= (content[headers.position[:, None] + _PRODUCER_AT] == 0xFF).all(axis=1)
    for times in (headers.base_timestamp, headers.max_timestamp):
        usual &= (times > FIRST_MS) & (times < LAST_MS)
    return usual


def _runs_of(headers: Headers, usual: NDArray[np.bool_]) -> Iterator[Headers]:
    """Consecutive usual batches, with as many records as memory allows."""
    records = np.concatenate([[0], np.cumsum(headers.record_count)])
    ends = np.append(np.flatnonzero(~usual), len(usual))
    at = 0
    while at < len(usual):
        if not usual[at]:
            at += 1
            continue
        start = int(headers.position[at])
        full = min(
            int(np.searchsorted(records, int(records[at]) + _MOST_RECORDS, side="right")) - 1,
            int(np.searchsorted(headers.position, start + _MOST_BYTES)) - 1,
        )
        end = min(int(ends[np.searchsorted(ends, at)]), max(full, at + 1))
        size = int(headers.position[end - 1] + headers.size_bytes[end - 1]) - start
        if records[end] - records[at] >= _LEAST_RECORDS and size <= _MOST_BYTES:
            yield Headers(*(getattr(headers, column.name)[at:end] for column in fields(Headers)))
        at = end


def _are_usual(records: Any, run: Headers) -> bool:
    """Whether these are the records of the run, and all were read as Kafka reads them."""
    rows = int(run.record_count.sum())
    if len(records) != rows or records["unread_reason"].null_count != rows:
        return False
    if pc.any(pc.is_in(records["type"], pa.array(_UNKNOWN_TO_KAFKA, pa.string()))).as_py():
        return False
    if _numbers(records["unknown_tagged_fields"]).any() or holds_former_layout(records):
        return False
    if (_numbers(records["batch_crc"]) != np.repeat(run.crc, run.record_count)).any():
        return False
    times = _numbers(records["appended_at"])
    if ((times <= FIRST_MS) | (times >= LAST_MS)).any():
        return False
    return bool((_sizes_without_headers(records, times, run) == run.size_bytes).all())


def _sizes_without_headers(records: Any, times: _Numbers, run: Headers) -> _Numbers:
    """The size of each batch if its records have no headers: those that have some, make it larger."""
    keys, values = _numbers(records["key_size_bytes"]), _numbers(records["value_size_bytes"])
    deltas = _numbers(records["offset"]) - np.repeat(run.base_offset, run.record_count)
    body = _varint_bytes(times - np.repeat(run.base_timestamp, run.record_count)) + _varint_bytes(deltas)
    for sizes in (keys, values):
        body += _varint_bytes(sizes) + np.maximum(sizes, 0)
    body += 2  # attributes, and the number of headers
    starts = np.concatenate([[0], np.cumsum(run.record_count)[:-1]])
    return HEADER_BYTES + np.add.reduceat(body + _varint_bytes(body), starts)


def _varint_bytes(numbers: _Numbers) -> _Numbers:
    """How many bytes the zigzag varint of each number has."""
    stored = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    return np.searchsorted(_VARINT_LIMITS, stored, side="right").astype(np.int64) + 1


_VARINT_LIMITS = np.array([1 << bits for bits in range(7, 64, 7)], dtype=np.uint64)


def _numbers(column: Any) -> _Numbers:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _record_lines(records: Any) -> Any:
    def text(name: str) -> Any:
        return pa.array(_numbers(records[name])).cast(pa.string())

    return pc.binary_join_element_wise(
        "| offset: ",
        text("offset"),
        " CreateTime: ",
        text("appended_at"),
        " keySize: ",
        text("key_size_bytes"),
        " valueSize: ",
        text("value_size_bytes"),
        ' sequence: -1 headerKeys: [] payload: {"type":"',
        records["type"],
        '","version":',
        text("version"),
        ',"data":',
        json_texts(records),
        "}\n",
        "",
    )


def _batch_lines(run: Headers) -> Any:
    def text(numbers: _Numbers) -> Any:
        return pa.array(numbers).cast(pa.string())

    return pc.binary_join_element_wise(
        "baseOffset: ",
        text(run.base_offset),
        " lastOffset: ",
        text(run.last_offset),
        " count: ",
        text(run.record_count),
        " baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: ",
        text(run.leader_epoch),
        " isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: ",
        text(run.position),
        " CreateTime: ",
        text(run.max_timestamp),
        " size: ",
        text(run.size_bytes),
        " magic: 2 compresscodec: none crc: ",
        text(run.crc),
        " isvalid: true\n",
        "",
    )


def _joined(record_lines: Any, batch_lines: Any, record_counts: _Numbers) -> str:
    """Each batch's line, and those of its records behind it."""
    batches, rows = len(batch_lines), len(record_lines)
    before = np.arange(batches) + np.concatenate([[0], np.cumsum(record_counts)[:-1]])
    order = np.empty(batches + rows, dtype=np.int64)
    is_batch = np.zeros(len(order), dtype=np.bool_)
    is_batch[before] = True
    order[is_batch] = np.arange(batches)
    order[~is_batch] = np.arange(batches, batches + rows)
    lines = pa.concat_arrays([batch_lines, record_lines]).take(pa.array(order))
    _, offsets, content = lines.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)
    first, last = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return memoryview(content)[first:last].tobytes().decode()
