"""Derive broken files from a good segment and checkpoint: a folder per kind of damage, and a README.md.

.venv/bin/python tests/kafka/gen/corrupt.py SEGMENT CHECKPOINT OUT. The same input gives the same bytes.
Batches are written without kraft_core, which is tested with them.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import google_crc32c

# Offsets within a batch's header.
LENGTH, EPOCH, MAGIC, CRC, CRC_START, LAST_DELTA, TIMESTAMP, COUNT, HEADER_END = (
    8,
    12,
    16,
    17,
    21,
    23,
    35,
    57,
    61,
)
NO_OP = b"\x01\x14\x00\x00"
TEXT = b"this is not a kafka record batch, just some text appended to the log\n"


class Span(NamedTuple):
    """Where a batch lies in its file, and its base offset."""

    position: int
    size: int
    base_offset: int


class Case(NamedTuple):
    """A broken file: folder, bytes, and the damage in words."""

    folder: str
    data: bytes
    note: str


@dataclass(frozen=True)
class File:
    path: Path
    data: bytes
    batches: list[Span]

    @classmethod
    def read(cls, path: Path) -> File:
        data, batches, position = path.read_bytes(), [], 0
        while position + LENGTH + 4 <= len(data):
            base_offset, length = struct.unpack_from(">qi", data, position)
            batches.append(Span(position, LENGTH + 4 + length, base_offset))
            position += batches[-1].size
        return cls(path, data, batches)

    def patched(self, position: int, new: bytes) -> bytes:
        return self.data[:position] + new + self.data[position + len(new) :]

    def flipped(self, position: int, mask: int) -> bytes:
        return self.patched(position, bytes([self.data[position] ^ mask]))


def varint(number: int) -> bytes:
    """A zigzag varint."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def batch(offset: int, epoch: int, timestamp: int, value: bytes, control_key: bytes | None = None) -> bytes:
    """A batch of one record."""
    key = varint(-1) if control_key is None else varint(len(control_key)) + control_key
    record = b"\0" + varint(0) + varint(0) + key + varint(len(value)) + value + varint(0)
    attributes = 0 if control_key is None else 0x20
    body = struct.pack(">hiqqqhii", attributes, 0, timestamp, timestamp, -1, -1, -1, 1)
    body += varint(len(record)) + record
    crc = struct.pack(">I", google_crc32c.value(body))
    return struct.pack(">qiib", offset, 4 + 1 + 4 + len(body), epoch, 2) + crc + body


def torn(segment: File) -> Iterator[Case]:
    """Tails cut off, and tails that are no batches."""
    data, last = segment.data, segment.batches[-1]
    at = last.position
    where = f"last batch (pos {at}, baseOffset {last.base_offset}, size {last.size})"
    cut = f"cut in the middle of its records: last readable offset {last.base_offset - 1}"
    yield Case("torn-last-batch", data[: at + last.size // 2 + 20], f"{where} {cut}")
    into = f"bytes into the last batch (pos {at}): inside the"
    yield Case("torn-in-batch-header", data[: at + 40], f"cut 40 {into} 61-byte batch header")
    yield Case("torn-in-length-field", data[: at + 9], f"cut 9 {into} 12-byte offset+length prefix")
    after = f"after the last batch (pos {len(data)})"
    noise = random.Random(7)
    garbage = bytes(noise.randrange(256) for _ in range(137))
    yield Case("garbage-tail", data + garbage, f"137 random bytes {after}")
    yield Case("garbage-tail-text", data + TEXT * 3, f"ASCII text {after}")
    yield Case("empty-segment", b"", "zero-byte segment")
    yield Case("zero-tail", data + bytes(4096), f"4096 zero bytes {after}: preallocated tail")
    yield Case("all-zero", bytes(4096), "segment with only zero bytes")


def damaged(segment: File) -> Iterator[Case]:
    """A batch in the middle whose bytes, header or place are wrong."""
    data, last = segment.data, segment.batches[-1]
    large = [span for span in segment.batches if span.size > 150 and span.position > 0]
    middle = large[len(large) // 2]
    at, end = middle.position, middle.position + middle.size
    which = f"batch pos {at} baseOffset {middle.base_offset}"
    intact = "later batches are intact"
    yield Case(
        "crc-flip-middle", segment.flipped(at + 81, 0x40), f"one bit flipped in records of {which}; {intact}"
    )
    flipped = segment.flipped(last.position + last.size - 2, 1)
    note = f"one bit flipped in the last batch pos {last.position} baseOffset {last.base_offset}"
    yield Case("crc-flip-last", flipped, note)
    yield Case("crc-field-flip", segment.flipped(at + CRC + 1, 0xFF), f"crc field itself changed in {which}")
    note = f"magic=9 in {which} (magic is not covered by the crc)"
    yield Case("wrong-magic", segment.patched(at + MAGIC, b"\x09"), note)
    yield Case("magic-1", segment.patched(at + MAGIC, b"\x01"), f"magic=1 in {which}")
    lengths = (("huge", 0x7FFFFF00, "0x7fffff00"), ("negative", -1, "-1"), ("too-small", 10, "10 (<49)"))
    for name, length, text in lengths:
        changed = segment.patched(at + LENGTH, struct.pack(">i", length))
        yield Case(f"length-{name}", changed, f"batchLength={text} in batch pos {at}")
    base = f"baseOffset {middle.base_offset}"
    yield Case("missing-batch", data[:at] + data[end:], f"batch pos {at} {base} removed: offset gap")
    follower = segment.batches[segment.batches.index(middle) + 1]
    next_end = follower.position + follower.size
    swapped = data[:at] + data[end:next_end] + data[at:end] + data[next_end:]
    yield Case("swapped-batches", swapped, f"batches {base} and {follower.base_offset} swapped")
    yield Case("duplicate-batch", data[:end] + data[at:end] + data[end:], f"batch {base} twice")
    note = f"partitionLeaderEpoch=0 in batch {base} (not covered by the crc)"
    yield Case("epoch-regression", segment.patched(at + EPOCH, bytes(4)), note)
    (count,) = struct.unpack_from(">i", data, at + COUNT)
    longer = bytearray(data[at:end])
    struct.pack_into(">i", longer, COUNT, count + 3)
    struct.pack_into(">I", longer, CRC, google_crc32c.value(bytes(longer[CRC_START:])))
    note = f"recordCount {count}->{count + 3} in batch {base}, crc recomputed"
    yield Case("record-count-too-big", segment.patched(at, bytes(longer)), note)


def unknown(segment: File) -> Iterator[Case]:
    """Valid batches after the last one with records that no reader knows, each followed by a NoOp."""
    data, last = segment.data, segment.batches[-1]
    (epoch,) = struct.unpack_from(">i", data, last.position + EPOCH)
    (timestamp,) = struct.unpack_from(">q", data, last.position + TIMESTAMP)
    (delta,) = struct.unpack_from(">i", data, last.position + LAST_DELTA)
    at = last.base_offset + delta + 1
    tail = batch(at + 1, epoch, timestamp + 500, NO_OP)
    valid = f"valid batch at offset {at}"
    type_999 = f"{valid} with metadata record apiKey 999 version 0, then a NoOpRecord batch at {at + 1}"
    for folder, value, note in (
        ("unknown-record-type", b"\x01\xe7\x07\x00\x01\x02\x03", type_999),
        (
            "unknown-record-version",
            b"\x01\x02\x63\x05abcd",
            f"{valid}: TopicRecord (apiKey 2) version 99, then NoOp",
        ),
        ("unknown-frame-version", b"\x07\x02\x00\x05abcd", f"{valid}: frame version 7, then NoOp"),
        (
            "truncated-record-payload",
            b"\x01\x02\x00\x20ab",
            f"{valid}: TopicRecord whose string length exceeds the payload (crc ok), then NoOp",
        ),
        (
            "trailing-garbage-in-payload",
            NO_OP + b"\x99\x99",
            f"{valid}: NoOpRecord with 2 extra bytes (crc ok), then NoOp",
        ),
        (
            "unknown-tagged-field",
            b"\x01\x14\x00\x01\x7b\x03xyz",
            f'{valid}: NoOpRecord with unknown tagged field 123 = "xyz" (legal), then NoOp',
        ),
        ("null-value-record", b"", f"{valid}: record with empty value (crc ok), then NoOp"),
    ):
        yield Case(folder, data + batch(at, epoch, timestamp + 1, value) + tail, note)
    control = batch(at, epoch, timestamp + 1, b"\0\0", struct.pack(">hh", 0, 77))
    note = f"valid control batch at offset {at}: control type 77, then NoOp"
    yield Case("unknown-control-type", data + control + tail, note)


def checkpoints(checkpoint: File) -> Iterator[Case]:
    """Checkpoints without an end, a beginning, or with a broken middle."""
    data = checkpoint.data
    footer, body = checkpoint.batches[-1].position, checkpoint.batches[1].position
    yield Case("checkpoint-no-footer", data[:footer], f"footer batch removed (pos {footer})")
    yield Case("checkpoint-torn", data[: footer - 30], "cut inside the last data batch")
    yield Case("checkpoint-no-header", data[body:], "header batch removed")
    yield Case("checkpoint-crc-flip", checkpoint.flipped(body + 80, 4), f"bit flipped in batch pos {body}")
    yield Case("checkpoint-empty", b"", "zero bytes")


def main(segment_path: str, checkpoint_path: str, out: str) -> None:
    segment, checkpoint = File.read(Path(segment_path)), File.read(Path(checkpoint_path))
    last = segment.batches[-1]
    lines = [
        "# corrupt\n",
        f"base segment: {segment_path} ({len(segment.data)} bytes, {len(segment.batches)} batches, "
        f"last batch at {last.position} baseOffset {last.base_offset}); base checkpoint: {checkpoint_path} "
        f"({len(checkpoint.data)} bytes, {len(checkpoint.batches)} batches)\n",
    ]

    def write(case: Case, name: str) -> None:
        folder = Path(out) / case.folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(case.data)
        lines.append(f"- `{case.folder}/{name}` ({len(case.data)} bytes): {case.note}")

    write(Case("good", segment.data, "unmodified segment"), segment.path.name)
    write(Case("good", checkpoint.data, "unmodified checkpoint"), checkpoint.path.name)
    for case in (*torn(segment), *damaged(segment), *unknown(segment)):
        write(case, segment.path.name)
    for case in checkpoints(checkpoint):
        write(case, checkpoint.path.name)
    part = checkpoint.data[: checkpoint.batches[-1].position - 30]
    note = "unfinished temporary snapshot file as Kafka leaves after a crash"
    write(Case("checkpoint-part", part, note), f"{checkpoint.path.name}.part")
    (Path(out) / "README.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:4])
