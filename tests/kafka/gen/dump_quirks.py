"""Logs that no Kafka writes, and what kafka-dump-log prints of them.

python -m tests.kafka.gen.dump_quirks OUT [SEED]: values.tar.xz, values of metadata records with any fault,
and batches.tar.xz, control records and batches with any fault; each holds N.log and, as N.txt, the output
without stack traces. Left out: what depends on the version of Java (some doubles before 19), and magics 0, 1.
"""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from kraft_core.format.batch import (
    HEADER_BYTES,
    BatchHeader,
    RawRecord,
    RecordHeader,
    iter_records,
    write_batch,
)
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import scan
from kraft_core.messages.metadata import by_api_key
from tests.kafka import RELEASE, SCRIPTS
from tests.kraft_core.batches import NO_OP, raw, resealed

GOLDEN = Path(__file__).parents[2] / "golden"
ALL_TYPES = GOLDEN / "all-record-types/node-7/__cluster_metadata-0/00000000000000000000.log"
REAL = (
    GOLDEN / "dynamic-membership/node-1/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
    GOLDEN / "corrupt/good/00000000000000000408.log",
)
STRINGS = (
    '\x00\x01\x1f\x7f"\\\b\t\n\f\r/<>&',
    "\u2028\u2029\ud7ff\ue000\U0001f600é",
    "\u202e\x9b",
    "a" * 300,
)
DOUBLES = (0.0, -0.0, 1.0, 0.1, 1e7, 9999999.0, 1e-3, 9.99e-4, 123456.789, 5e-324, 1.7976931348623157e308)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
VARINTS = ("ffffffff0f", "8080808008", "808080808001", "8180808008", "8000", "ffffffff7f")
UTF_8 = bytes.fromhex("41 80 8f 90 9f a0 bf c0 c2 e0 e1 ed ee f0 f1 f4 f5 ff")
RECORDS_PER_BATCH = 40
# Client quotas, whose doubles depend on Java; a type that the release does not know.
LEFT_OUT = (14, 29)
OTHER_MAGICS = (0, 1)
OTHER_MAGIC = re.compile("^offset: ", re.MULTILINE)
STOPPED = "[exception]\n"


def batches(path: Path) -> Iterator[bytes]:
    with mapped(path) as buf:
        yield from (buf[item.position : item.end] for item in scan(buf) if isinstance(item, BatchHeader))


def value_log(seed: int, count: int) -> bytes:
    """A log of faulty values of every record type."""
    chance = random.Random(seed)
    whole = [
        record.value
        for batch in batches(ALL_TYPES)
        for record in iter_records(
            batch, next(header for header in scan(batch) if isinstance(header, BatchHeader))
        )
        if record.value and record.value[1] not in LEFT_OUT and not batch[22] & 0x20
    ]
    values = [*texts(chance), *(changed(chance, chance.choice(whole)) for _ in range(count))]
    log = b""
    for start in range(0, len(values), RECORDS_PER_BATCH):
        part = values[start : start + RECORDS_PER_BATCH]
        records = [
            raw(start + index, None if chance.random() < 0.01 else value, chance.choice((None, b"key")))
            for index, value in enumerate(part)
        ]
        log += write_batch(start, 1, records)
    return log


def texts(chance: random.Random) -> Iterator[bytes]:
    for number in (*DOUBLES, *NOT_FINITE):
        fields = {"entity": [], "key": "k", "value": number, "remove": False}
        yield write_metadata_value(by_api_key[14], 0, fields)
    for text in STRINGS:
        yield write_metadata_value(by_api_key[2], 0, {"name": text, "topicId": "A" * 22})
    for _ in range(200):
        text = bytes(chance.choices(UTF_8, k=chance.randrange(1, 9)))
        yield b"\x01\x02\x00" + bytes([len(text) + 1]) + text + bytes(17)


def changed(chance: random.Random, value: bytes) -> bytes:
    """The value with one to three faults."""
    out = bytearray(value)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        kind, at = chance.randrange(8), chance.randrange(len(out) or 1)
        if kind == 0 and out:
            out[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and out:
            out[at] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, 0xED, 34, 92, 10, 31))
        elif kind == 2:
            del out[at:]
        elif kind == 3:
            out[at:at] = chance.randbytes(chance.randrange(1, 5))
        elif kind == 4:
            out[at:at] = bytes.fromhex(chance.choice(VARINTS))
        elif kind == 5:
            out += chance.randbytes(chance.randrange(1, 4))
        elif kind == 6 and len(out) > 2:
            out[2] = chance.choice((0, 1, 2, 3, 4, 5, 99))
        elif kind == 7 and len(out) > 1:
            out[1] = chance.randrange(28)
    return bytes(out) if not out[1:2] or out[1] not in LEFT_OUT else value


def batch_logs(seed: int, count: int) -> Iterator[bytes]:
    """Logs of three batches, the one in the middle unusual or faulty."""
    chance = random.Random(seed)
    real = [batch for path in REAL for batch in batches(path) if len(batch) < 700]
    unusual = list(unusual_batches())
    for batch in unusual:
        yield chance.choice(real) + batch + chance.choice(real)
    for _ in range(count):
        yield chance.choice(real) + damaged(chance, chance.choice(real + unusual)) + chance.choice(real)


def unusual_batches() -> Iterator[bytes]:
    some = [raw(5 + index, NO_OP) for index in range(3)]
    yield from (write_batch(5, 2, some, codec=codec) for codec in range(5))
    yield write_batch(5, 2, some, log_append_time=True)
    headers = (RecordHeader("héa", b"1"), RecordHeader("b", None), RecordHeader("", b""))
    yield write_batch(5, 2, [RawRecord(5, 5, b"kk", NO_OP, headers)])
    two = "0000000702000000050002000000050000"
    values = (
        "",
        "0000",
        "000000000007",
        "000100000007",
        "00000000000700",
        "0000" + two[2:],
        "0001" + two[2:],
    )
    for type_ in range(-1, 9):
        for value in (*map(bytes.fromhex, values), None):
            yield control(struct.pack(">hh", 0, type_), value)
    for key in ("", "00", "0000000200", "ffff0002", "00070002"):
        yield control(bytes.fromhex(key), bytes.fromhex("000000000007010100"))


def control(key: bytes, value: bytes | None) -> bytes:
    return write_batch(9, 1, [raw(9, value, key)], is_control=True)


def damaged(chance: random.Random, batch: bytes) -> bytes:
    out, kind = bytearray(batch), chance.randrange(9)
    if kind == 0:
        out[chance.randrange(HEADER_BYTES)] ^= 1 << chance.randrange(8)
        return bytes(out) if out[16] not in OTHER_MAGICS else batch
    if kind == 5:
        out[8:12] = struct.pack(">i", chance.randrange(len(out) + 8))
        return bytes(out)
    if kind == 6:
        return batch[: chance.randrange(1, len(batch))]
    if kind == 8:
        return batch + chance.randbytes(chance.randrange(1, 90))
    if kind == 1:
        out[chance.randrange(21, HEADER_BYTES)] ^= 1 << chance.randrange(8)
    elif kind == 2:
        out[chance.randrange(HEADER_BYTES, len(out))] ^= 1 << chance.randrange(8)
    elif kind == 3:
        out[chance.randrange(HEADER_BYTES, len(out))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 4:
        out[57:61] = struct.pack(">i", chance.choice((0, -1, 1, 2, 100, 0x7FFFFFFF)))
    else:
        out[22] ^= chance.choice((0, 8, 16, 64))
        out[43:57] = struct.pack(
            ">qhi", chance.choice((0, 77)), chance.choice((0, 7)), chance.choice((0, 5, 0x7FFFFFFF))
        )
    return resealed(bytes(out))


def printed(logs: Iterator[bytes], skip_metadata: bool = False) -> Iterator[tuple[str, bytes, str]]:
    """Each log's name and bytes with what kafka-dump-log prints of it, stdout and then stderr."""
    with tempfile.TemporaryDirectory() as folder:
        names: list[str] = []
        for number, log in enumerate(logs):
            names.append(f"{number:020d}.log")
            Path(folder, names[-1]).write_bytes(log)
        mode, suffix = ("nometa", ".skip-record-metadata.txt") if skip_metadata else ("meta", ".txt")
        command = [SCRIPTS / "bin" / "k", RELEASE, "DumpAll", "out", mode, *names]
        environment = {**os.environ, "KOPTS": "-Dfile.encoding=UTF-8"}
        subprocess.run(command, cwd=folder, check=True, env=environment)
        for name in names:
            text = Path(folder, "out", name + suffix).read_bytes().decode()
            before, stopped, _ = text.partition(STOPPED)
            if OTHER_MAGIC.search(before) is None:
                yield name, Path(folder, name).read_bytes(), before + stopped


def main(arguments: list[str]) -> None:
    out, seed = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 1
    out.mkdir(parents=True, exist_ok=True)
    for name, logs in (("values", iter([value_log(seed, 3000)])), ("batches", batch_logs(seed, 400))):
        with tarfile.open(out / f"{name}.tar.xz", "w:xz") as archive:
            for file, log, text in printed(logs):
                for member, content in ((file, log), (f"{file}.txt", text.encode())):
                    entry = tarfile.TarInfo(member)
                    entry.size = len(content)
                    archive.addfile(entry, BytesIO(content))


if __name__ == "__main__":
    main(sys.argv[1:])
