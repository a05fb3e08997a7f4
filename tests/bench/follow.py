"""kraftlake follow over a hundred simulated quorums on loopback: CPU time of a pass, and memory."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from kraft_core.simulation.actions import Elapse, Write
from tests.bench.frame import Bench, Row
from tests.bench.memory import EVERY_SECONDS, memory_mib, processes
from tests.bench.source import tree_seconds
from tests.kraft_core.wire.test_follower import started
from tests.transforms.live.loopback import LoopbackQuorum, controllers, loopback

# After the first pass, which opens the session and makes all tables.
PASSES = 6
# 1 GB, in MiB.
MOST_MIB = 1e9 / 2**20


def rows(bench: Bench) -> Iterator[Row]:
    count = bench.size(100, 5)
    folder = bench.folder / "follow"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        quorums = [stack.enter_context(loopback(started(seed))) for seed in range(count)]
        with followed(folder, quorums) as job:
            yield from measured(folder, job, quorums)
    if job.returncode:
        raise RuntimeError(f"kraftlake follow ended with {job.returncode}")


def followed(folder: Path, quorums: Sequence[LoopbackQuorum]) -> subprocess.Popen[bytes]:
    """kraftlake follow, whose reports go to a file of the folder."""
    settings = folder / "kraftlake.toml"
    settings.write_text(
        "".join(
            f'[clusters.c{number}]\nid = "{held.quorum.setup.cluster_id}"\n'
            f'bootstrap_controllers = "{controllers(held)}"\n'
            for number, held in enumerate(quorums)
        )
    )
    command = ["follow", "--config", str(settings), "--lake", str(folder / "lake"), "--interval", "1s"]
    with (folder / "reports").open("w") as reports:
        return subprocess.Popen([sys.executable, "-m", "jobs.cli", *command], stdout=reports)


def measured(folder: Path, job: subprocess.Popen[bytes], quorums: Sequence[LoopbackQuorum]) -> Iterator[Row]:
    """Watch the passes, with records appended to every quorum after each; then end the job."""
    peaks: dict[str, float] = {}
    first_seconds = seconds = 0.0
    passes = 0
    while job.poll() is None and passes <= PASSES:
        time.sleep(EVERY_SECONDS)
        for process, kind in processes(job.pid):
            peaks[kind] = max(peaks.get(kind, 0.0), memory_mib(process))
        done = reports(folder)
        if len(done) > passes:
            passes, seconds = len(done), tree_seconds(job.pid)
            first_seconds = first_seconds or seconds
            for held in quorums:
                with held.lock:
                    held.quorum.act(Write(3))
                    held.quorum.act(Elapse(300))
    job.send_signal(signal.SIGTERM)
    job.wait()
    count, last = len(quorums), reports(folder)[-1]
    detail = f"{count} clusters, {PASSES} passes after the first; {last['touched_clusters']} in the last"
    yield Row("a cluster in a pass", (seconds - first_seconds) / PASSES / count, "CPU-s", detail=detail)
    driver, java = peaks["driver"], peaks["java"]
    detail = f"peaks: Python {driver:.0f}, JVM {java:.0f}; largest Python worker {peaks['worker']:.0f}"
    yield Row("driver and its JVM", driver + java, "MiB", MOST_MIB, detail=detail)


def reports(folder: Path) -> list[dict[str, int]]:
    """What the passes that have ended reported."""
    lines = (folder / "reports").read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if line.startswith("{")]
