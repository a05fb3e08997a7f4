"""readStream.format("kraft") from a leader on loopback into Delta: how fast it catches up, its lag and its
memory.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from tests.bench.frame import Bench, Row
from tests.bench.inputs import first_segment, mixed_log
from tests.bench.memory import memory_mib, processes
from tests.bench.served_log import LEADER, ServedLog
from tests.bench.source import tree_seconds
from tests.transforms.live.loopback import listening

CLUSTER = "P8uJ9VpCWoAK1iFpZ7Wm5w"
A_SECOND = 50.0
# Seconds: until the first batches are over, and how long the others are watched.
WARM_UP, WATCHED = 20.0, 60.0
# Of memory: records a second; minutes that are watched, and of these the first, in which pools fill up.
FAST, MINUTES, FILLING = 1000.0, 10, 3


def rows(bench: Bench) -> Iterator[Row]:
    records = bench.size(1_000_000, 100_000)
    segment = first_segment(mixed_log(bench, records))
    with served(ServedLog(segment, CLUSTER)) as log:
        # The first query also loads classes and starts Python's workers.
        streamed(bench, log, {"availableNow": True}).awaitTermination()
        began, spent = time.perf_counter(), tree_seconds(os.getpid())
        query = streamed(bench, log, {"availableNow": True})
        query.awaitTermination()
        seconds, spent = time.perf_counter() - began, tree_seconds(os.getpid()) - spent
        count = log.ends[-1]
        detail = f"{count:,} records, {spent:.1f} CPU-s"
        yield Row("catch-up into Delta", seconds / count * 1e6, "s/M", detail=detail)
    with served(ServedLog(segment, CLUSTER, A_SECOND)) as log:
        query = streamed(bench, log, {"processingTime": "1 second"})
        time.sleep(WARM_UP + bench.size(int(WATCHED), 10))
        query.stop()
        lags = seconds_behind(bench, log)
        detail = f"{A_SECOND:.0f} records a second, worst {max(lags):.1f} s"
        yield Row("lag from commit to row, triggers of 1 s, median", median(lags), "s", 2.0, detail=detail)
    with served(ServedLog(segment, CLUSTER, FAST)) as log:
        query = streamed(bench, log, {"processingTime": "1 second"})
        minutes = [resident_mib(bench.size(60, 3)) for _ in range(MINUTES)]
        query.stop()
        detail = (
            f"{FAST:.0f} records a second, MiB of all processes: {', '.join(f'{m:.0f}' for m in minutes)}"
        )
        growth = minutes[-1] / max(minutes[:FILLING])
        yield Row(
            f"memory in minute {MINUTES}, of the most in the first {FILLING}", growth, "x", 1.1, detail=detail
        )


@contextmanager
def served(log: ServedLog) -> Iterator[ServedLog]:
    with listening(log, LEADER) as port:
        log.begin(port)
        yield log


def streamed(bench: Bench, log: ServedLog, trigger: dict[str, Any]) -> Any:
    """A query into a new table."""
    shutil.rmtree(folder(bench), ignore_errors=True)
    stream = bench.spark.readStream.format("kraft").option("bootstrap.controllers", f"127.0.0.1:{log.port}")
    writer = stream.load().writeStream.format("delta").trigger(**trigger)
    return writer.option("checkpointLocation", str(folder(bench) / "checkpoint")).start(str(table(bench)))


def resident_mib(seconds: int) -> float:
    """The most memory, in MiB, that this process and all that it started have at once in so many seconds."""
    most, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, sum(memory_mib(process, "VmRSS") for process, _ in processes(os.getpid())))
        time.sleep(1)
    return most


def folder(bench: Bench) -> Path:
    return bench.folder / "live"


def table(bench: Bench) -> Path:
    return folder(bench) / "rows"


def seconds_behind(bench: Bench, log: ServedLog) -> list[float]:
    """Of each record after the warm-up the time from its commit to that of the Delta commit that has it."""
    warm, found = log.began + WARM_UP, []
    for file in sorted((table(bench) / "_delta_log").glob("*[0-9].json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        (at,) = (action["commitInfo"]["timestamp"] / 1000 for action in actions if "commitInfo" in action)
        for action in actions:
            if "add" in action:
                offsets = pq.read_table(table(bench) / action["add"]["path"], columns=["offset"])["offset"]
                committed = [log.committed_at(offset) for offset in offsets.to_pylist()]
                found += [at - each for each in committed if each > warm]
    return found
