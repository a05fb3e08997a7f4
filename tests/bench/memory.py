"""The most memory that the driver, the JVM and a Python worker have at once while a large log is read."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.frame import Bench, Row
from tests.bench.inputs import mixed_log
from tests.bench.lakes import new_lake

EVERY_SECONDS = 0.2


def rows(bench: Bench) -> Iterator[Row]:
    """kraftlake ingest of one log, in a process of its own."""
    records = bench.size(10_000_000, 100_000)
    arguments = ["ingest", "--lake", str(new_lake(bench)), "--captures", str(mixed_log(bench, records))]
    command = [sys.executable, "-m", "jobs.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as job:
        peaks = watched(job)
    if job.returncode:
        raise RuntimeError(f"kraftlake ingest ended with {job.returncode}")
    yield Row(f"driver, {records:,} records", peaks["driver"], "MiB")
    yield Row(f"JVM (driver and executor of local[*]), {records:,} records", peaks["java"], "MiB")
    yield Row(f"Python worker, {records:,} records", peaks["worker"], "MiB", at_most=600)


def watched(job: subprocess.Popen[bytes], also: Callable[[int], object] = lambda _: None) -> dict[str, float]:
    """The peaks by kind of process, in MiB, while the job runs. also: called with each process, often."""
    peaks: defaultdict[str, float] = defaultdict(float)
    while job.poll() is None:
        for process, kind in processes(job.pid):
            peaks[kind] = max(peaks[kind], memory_mib(process))
            also(process)
        time.sleep(EVERY_SECONDS)
    return peaks


def processes(root: int) -> Iterator[tuple[int, str]]:
    """The job's process and those it has started: driver, java, or worker for any other Python."""
    children: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, state = stat.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        parent, process = int(state.split()[1]), int(stat.parent.name)
        children[parent].append((process, "java" if name == "java" else "worker"))
    found = [(root, "driver")]
    for process, kind in found:
        yield process, kind
        started = children[process]
        if kind == "java":
            # While Java starts a program, that has all pages of the JVM for a moment.
            started = [(child, of) for child, of in started if _program(child) != _program(process)]
        found += started


def _program(process: int) -> Path | None:
    """The file that it executes; None if it has just ended."""
    try:
        return Path("/proc", str(process), "exe").readlink()
    except OSError:
        return None


def memory_mib(process: int, which: str = "VmHWM") -> float:
    """Its most memory, or by VmRSS its memory now, in MiB; 0 if the process has just ended."""
    try:
        lines = Path("/proc", str(process), "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(which)), 0.0)
