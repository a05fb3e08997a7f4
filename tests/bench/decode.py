"""Bytes to Arrow columns on one core, checksums checked, beside Kafka's own readers and a bare checksum."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from google_crc32c import extend

from kraft_core.columnar.fast import decode
from tests.bench.frame import Bench, Kafka, Row, best, best_within, seconds
from tests.bench.inputs import checkpoint, first_segment, mixed_log, one_record_batches

PIECE_BYTES = 1 << 20
ROUNDS = 5
WARM_DECODER = Path(__file__).parent / "WarmDecoder.java"


def rows(bench: Bench) -> Iterator[Row]:
    """A mixed log, a log of one-record batches and a checkpoint."""
    records = bench.size(1_000_000, 50_000)
    yield from compared(bench, "mixed log", first_segment(mixed_log(bench, records)), at_least=25)
    yield from compared(bench, "one-record batches", one_record_batches(bench, records), at_least=60)
    yield from compared(bench, "checkpoint", checkpoint(bench, records), at_least=25)


def compared(bench: Bench, name: str, path: Path, at_least: float) -> Iterator[Row]:
    """One file by us, by kafka-dump-log and by Kafka's classes in a warm JVM, and a bare checksum."""
    size = path.stat().st_size
    records = decoded(path)
    rounds_seconds = bench.size(20, 3)
    ours = best_within(rounds_seconds, lambda: seconds(lambda: decoded(path)))
    speed = f"{records / ours / 1e6:.2f} M records/s, {size / ours / 1e6:.0f} MB/s"
    if bench.kafka is not None:
        cold = bench.kafka.dump_seconds(path)
        detail = f"{speed}; kafka-dump-log {records / cold / 1e6:.2f} M records/s"
        yield Row(f"kafka-dump-log / ours, {name}", cold / ours, at_least=at_least, detail=detail)
        warm = warm_seconds(bench.kafka, path, records, rounds_seconds)
        detail = f"{speed}; warm {records / warm / 1e6:.2f} M records/s"
        yield Row(f"warm Java decoder / ours, {name}", warm / ours, at_least=1.1, detail=detail)
    plain = best(lambda: seconds(lambda: checksum(path)), ROUNDS)
    detail = f"{speed}; checksum alone {size / plain / 1e6:.0f} MB/s"
    yield Row(f"ours / checksum alone, {name}", ours / plain, detail=detail)


def decoded(path: Path) -> int:
    """Decode a whole file. Returns the number of records."""
    return sum(len(batch) for batch in decode(path))


def checksum(path: Path) -> int:
    """CRC-32C of a whole file."""
    crc = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            crc = extend(crc, piece)
    return crc


def warm_seconds(kafka: Kafka, path: Path, records: int, rounds_seconds: int) -> float:
    """The best round of decoding the file with Kafka's own classes, again and again in one JVM."""
    java = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-cp", kafka.class_path]
    done = subprocess.run(
        [*java, str(WARM_DECODER), str(path), str(rounds_seconds)], capture_output=True, text=True, check=True
    )
    count, best_round = done.stdout.split()
    if int(count) != records:
        raise RuntimeError(f"Kafka's classes read {count} records of {path}, not {records}")
    return float(best_round)
