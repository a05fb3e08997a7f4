"""kraftlake dump --format kafka beside kafka-dump-log, byte for byte the same output: whole processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.frame import ROUNDS, Bench, Row, seconds
from tests.bench.inputs import checkpoint, first_segment, mixed_log, one_record_batches

CHECKOUT = Path(__file__).parents[2]
SMALL = CHECKOUT / "tests/golden/dynamic-membership/node-1/__cluster_metadata-0/00000000000000000697.log"


def rows(bench: Bench) -> Iterator[Row]:
    """Large logs, a checkpoint, and a file of 63 KiB."""
    records = bench.size(5_000_000, 50_000)
    yield from compared(bench, "mixed log", first_segment(mixed_log(bench, records)))
    yield from compared(bench, "one-record batches", one_record_batches(bench, records))
    yield from compared(bench, "checkpoint", checkpoint(bench, records))
    yield from compared(bench, "63 KiB", SMALL)


def compared(bench: Bench, name: str, path: Path) -> Iterator[Row]:
    """Wall seconds, for which people wait, and CPU seconds of both tools, their output thrown away."""
    ours, our_cpu = both(lambda: kraftlake(path))
    if bench.kafka is None:
        yield Row(f"kraftlake dump, {name}", ours, "s", detail=f"CPU {our_cpu:.2f} s")
        return
    kafka = bench.kafka
    theirs, their_cpu = both(lambda: kafka.dump_seconds(path))
    detail = f"{theirs:.2f} s / {ours:.2f} s; CPU {their_cpu:.2f} s / {our_cpu:.2f} s"
    yield Row(f"kafka-dump-log / kraftlake dump, {name}", theirs / ours, at_least=50, detail=detail)


def both(work: Callable[[], object]) -> tuple[float, float]:
    """The least wall seconds and the least CPU seconds of child processes, of some rounds."""
    measured: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        before = children_cpu()
        measured.append((seconds(work), children_cpu() - before))
    walls, cpus = zip(*measured, strict=True)
    return min(walls), min(cpus)


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kraftlake(path: Path) -> None:
    command = [sys.executable, "-m", "jobs.cli", "dump", "--format", "kafka", str(path)]
    # What is installed has its bytecode; a checkout would compile its sources each time.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        command, cwd=CHECKOUT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
