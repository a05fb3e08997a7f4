"""What judging costs: five replicas with a million batches each, and a thousand small clusters.

Time must grow with the work and no faster, and memory not at all: batches are read a range of offsets at a
time.
"""

from __future__ import annotations

import itertools
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jobs.captures.ingest import PendingCommit
from jobs.cli import main
from jobs.derivation.derive_tables import derive, end_derivation
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from kraft_core.format.batch import write_batch
from tests.bench.frame import Bench, Row, seconds
from tests.bench.inputs import leader_change, renumbered, value, write_directory
from transforms.lake.delta_rs import rows_with
from transforms.lake.lake import existing_lake
from transforms.lake.tables import CAPTURES, FINDINGS, SNAPSHOT_CHECKS

GOLDEN = Path(__file__).parents[1] / "golden"
REPLICAS = 5
TOPICS = 1_000
GIGABYTE = 1 << 30
SAMPLE_SECONDS = 0.2


def rows(bench: Bench) -> Iterator[Row]:
    """One large cluster and many small ones, each at two sizes."""
    batches, clusters = bench.size(1_000_000, 20_000), bench.size(1_000, 40)
    yield from grown(
        bench,
        f"{REPLICAS} replicas of {batches:,} batches",
        [large_cluster(bench, size) for size in (batches // 4, batches)],
    )
    yield from grown(
        bench,
        f"{clusters:,} clusters of two replicas",
        [small_clusters(bench, size) for size in (clusters // 4, clusters)],
    )


def grown(bench: Bench, name: str, captures: list[Path]) -> Iterator[Row]:
    """Judging captures and four times as many: what more it takes, and the memory at the larger size."""
    lakes = [lake_of(bench, folder) for folder in captures]
    judge(bench, lakes[0])  # the first in a session pays for its warming up
    small = seconds(lambda: judge(bench, lakes[0]))
    with Memory(bench.spark) as memory:
        large = seconds(lambda: judge(bench, lakes[1]))
    detail = f"{large:.1f} s against {small:.1f} s for a quarter of it"
    yield Row(f"time for 4 times as much, {name}", large / small, at_most=4.4, detail=detail)
    for who, peak in (("driver", memory.driver), ("largest worker", memory.worker)):
        yield Row(f"memory of the {who}, {name}", peak / GIGABYTE, unit="GB", at_most=1)


def judge(bench: Bench, path: Path) -> None:
    """Derive and judge every cluster of a lake, its checkpoints as if for the first time."""
    shutil.rmtree(path / SNAPSHOT_CHECKS.name, ignore_errors=True)
    lake = existing_lake(bench.spark, path)
    clusters = sorted({row["cluster_id"] for row in rows_with(path, CAPTURES, ["cluster_id"])})
    record = RunRecord("bench", Progress())
    failed = derive(lake, clusters, PendingCommit(), record)
    end_derivation(lake, clusters, failed, record)
    errors = rows_with(path, FINDINGS, ["cluster_id", "sentence"], severity=["error"])
    if failed or errors:
        raise RuntimeError(f"sound clusters failed: {failed} {errors[:3]}")


def lake_of(bench: Bench, captures: Path) -> Path:
    """The lake of captures, read once and kept."""
    path = captures.with_name(f"{captures.name}-lake")
    if not (path / "ready").exists():
        shutil.rmtree(path, ignore_errors=True)
        assert bench.spark  # the verb goes on in this session
        if main(["ingest", "--captures", str(captures), "--lake", str(path)]) != 0:
            raise RuntimeError(f"{captures} could not be read")
        (path / "ready").touch()
    return path


def large_cluster(bench: Bench, batches: int) -> Path:
    """Five replicas that hold the same log: a LEADER_CHANGE, then batches of one record."""
    folder = bench.folder / f"calm-quorum-{batches}"
    if not folder.exists():
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        for node in range(1, REPLICAS + 1):
            write_directory(making / f"node-{node}", calm_log(batches), "large", node)
        making.rename(folder)
    return folder


def calm_log(batches: int) -> Iterator[bytes]:
    """The batches of a leader that was elected once: topics of one partition are made, then they change."""
    yield leader_change(range(1, REPLICAS + 1))

    def each(*kinds: str) -> list[bytes]:
        return [
            write_batch(0, 1, [value(kind, 0, topic)]) for topic in range(1, TOPICS + 1) for kind in kinds
        ]

    made = each("TopicRecord", "PartitionRecord")
    changed = itertools.cycle(each("PartitionChangeRecord", "NoOpRecord"))
    for offset, batch in enumerate(itertools.islice(itertools.chain(made, changed), batches - 1), start=1):
        yield renumbered(batch, offset)


def small_clusters(bench: Bench, count: int) -> Path:
    """Copies of one captured cluster, each under a name of its own."""
    folder = bench.folder / f"clusters-{count}"
    if not folder.exists():
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        for number in range(count):
            for node in (GOLDEN / "v4.4.0-mini").glob("node-*"):
                copy = making / f"{number:04d}" / node.name
                shutil.copytree(node, copy)
                meta = copy / "meta.properties"
                meta.write_text(re.sub(r"cluster\.id=.*", f"cluster.id=c{number:04d}", meta.read_text()))
        making.rename(folder)
    return folder


class Memory:
    """The most memory that the driver's Python and any worker's had at once, in bytes, sampled meanwhile."""

    def __init__(self, spark: Any) -> None:
        self.driver = 0
        self.worker = 0
        self._jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.driver = max(self.driver, resident(Path("/proc/self")))
            for process in descendants(self._jvm):
                if is_python(process):
                    self.worker = max(self.worker, resident(process))


def is_python(process: Path) -> bool:
    """Whether it is a worker: a command that the JVM runs is for a moment the JVM's own memory over again."""
    try:
        return (process / "exe").readlink().name.startswith("python")
    except OSError:
        return False


def resident(process: Path) -> int:
    """Bytes of a process that lie in memory; 0 where it has ended."""
    return read(process / "status", lambda text: int(re.search(r"VmRSS:\s*(\d+)", text)[1]) * 1024) or 0


def descendants(pid: int) -> Iterator[Path]:
    """The processes below a process."""
    parents = {
        folder: read(folder / "stat", lambda text: int(text.rpartition(")")[2].split()[1]))
        for folder in Path("/proc").glob("[0-9]*")
    }
    below = [pid]
    while below:
        parent = below.pop()
        for folder, of in parents.items():
            if of == parent:
                below.append(int(folder.name))
                yield folder


def read(file: Path, value: Callable[[str], int]) -> int | None:
    """A number in a file of /proc; None where the process has ended or has none."""
    try:
        return value(file.read_text())
    except (OSError, TypeError):
        return None
