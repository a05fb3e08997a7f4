"""Many small captured directories: what each costs by itself, and a night in which each has one new batch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.frame import ROUNDS, Bench, Row
from tests.bench.inputs import batches_of, leader_change, made, renumbered, write_directory
from tests.bench.lakes import commits, ingest_seconds, new_lake, reported

REPLICAS = 5
LOG_BYTES = 18 * 1024


def rows(bench: Bench) -> Iterator[Row]:
    """A thousand directories, then a thousand clusters of five replicas."""
    count = bench.size(1_000, 20)
    ingest_seconds(bench, one_directory(bench, LOG_BYTES))
    of_many, of_one = clusters(bench, count, replicas=1), one_directory(bench, count * LOG_BYTES)
    many, one = (median(ingest_seconds(bench, of) for _ in range(ROUNDS)) for of in (of_many, of_one))
    detail = f"{many:.1f} s, {one:.1f} s"
    yield Row(f"{count:,} directories of 18 KB / one of the same bytes", many / one, at_most=2, detail=detail)
    yield from nights(bench, count)


def nights(bench: Bench, count: int) -> Iterator[Row]:
    """The first night, one with nothing new, and one with a batch more in every replica."""
    kept = clusters(bench, count, REPLICAS)
    captures = bench.folder / "tonight"
    shutil.rmtree(captures, ignore_errors=True)
    shutil.copytree(kept, captures)
    lake = new_lake(bench)
    assert bench.spark
    what = f"{count:,} clusters of {REPLICAS} replicas"
    first = reported(lake, "run", captures)
    yield Row(f"first run, {what}", first["seconds"] / 60, "min", detail=stages(first))
    nothing = reported(lake, "run", captures)
    yield Row(f"a run with nothing new, {what}", nothing["seconds"], "s", at_most=5)
    *_, added = small_log(REPLICAS)
    for path in captures.rglob("*.log"):
        with path.open("ab") as file:
            file.write(added)
    before = commits(lake)
    second = reported(lake, "run", captures)
    made = {table: n - before.get(table, 0) for table, n in commits(lake).items()}
    yield Row(
        f"a run with one batch more in each, {what}", second["seconds"] / 60, "min", detail=stages(second)
    )
    busiest = max(made, key=lambda table: made[table])
    yield Row(
        "its commits to one table",
        made[busiest],
        "",
        at_most=3,
        detail=f"{busiest}; {sum(made.values())} in all",
    )


def stages(report: dict) -> str:
    """Where the time of a job went."""
    return ", ".join(
        f"{name} {taken:.0f} s" for name, taken in report["stage_seconds"].items() if taken >= 0.5
    )


def clusters(bench: Bench, count: int, replicas: int) -> Path:
    """Directories of `count` clusters, their replicas equal."""

    def make(folder: Path) -> None:
        batches = list(small_log(replicas))[:-1]
        for cluster in range(count):
            for node in range(1, replicas + 1):
                name = f"bench-cluster-{cluster:08d}"
                write_directory(folder / name / f"node-{node}", batches, name, node)

    return made(bench.folder / f"led-clusters-{count}x{replicas}", make)


def small_log(replicas: int) -> Iterator[bytes]:
    """A LEADER_CHANGE and what a leader then wrote."""
    yield leader_change(range(1, replicas + 1))
    for batch in batches_of(LOG_BYTES):
        yield renumbered(batch, 1 + int.from_bytes(batch[:8], "big"))


def one_directory(bench: Bench, size_bytes: int) -> Path:
    """One directory with a log of about so many bytes, like the small ones' over and over."""

    def make(folder: Path) -> None:
        write_directory(folder, batches_of(size_bytes), "bench-one-directory-00", 1)

    return made(bench.folder / f"one-of-{size_bytes}", make)
