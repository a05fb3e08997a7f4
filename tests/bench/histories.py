"""From records to histories, compared with the ingest of the same log; the image at an offset."""

from __future__ import annotations

import contextlib
import io
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs.cli import main
from jobs.derivation.compare_snapshots import wanted_comparisons
from jobs.derivation.derive_histories import derive_histories
from jobs.runtime.progress import Progress
from jobs.time_travel.lake_source import open_cluster, valid_at
from kraft_core.findings.snapshot_replays import replays
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.uuid_text import uuid_text
from tests.bench.frame import Bench, Row, seconds
from tests.bench.inputs import T0_MS, mixed_log, write_directory
from tests.bench.lakes import new_lake, reported
from tests.bench.memory import processes
from transforms.lake.delta_rs import arrow_with, cluster_ids, count_rows, rows_with
from transforms.lake.lake import Lake, existing_lake
from transforms.lake.tables import CAPTURES, PARTITIONS
from transforms.quality.snapshot_checks import checked_snapshots

PARTITIONS_A_TOPIC = 100
TOPIC_RECORD, PARTITION_RECORD = by_api_key[2], by_api_key[3]


def rows(bench: Bench) -> Iterator[Row]:
    """A log of many changes, then one of many partitions, all of which are current."""
    records = bench.size(10_000_000, 100_000)
    yield from derived(bench, f"{records:,} records", mixed_log(bench, records))
    partitions = bench.size(1_000_000, 20_000)
    yield from derived(bench, f"{partitions:,} partitions", partition_log(bench, partitions))
    yield from images(bench.folder / "lake", partitions)


def derived(bench: Bench, what: str, log: Path) -> Iterator[Row]:
    """Histories beside ingest; a second derivation, which has nothing to do."""
    path = new_lake(bench)
    ingest_cpu, ingest = with_cpu(bench, lambda: reported(path, "ingest", log))
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["derive", "--lake", str(path), "--fail-on", "never"]) == 0
    lake, cluster = existing_lake(bench.spark, path), cluster_of(path)

    def derive(whole: bool) -> None:
        derive_histories(lake, [cluster], Progress(), whole=[cluster] if whole else ())

    cpu, took = with_cpu(bench, lambda: derive(whole=True))
    versions = count_rows(path, PARTITIONS, cluster_id=[cluster])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    detail = f"{took:.1f} s, {versions:,} versions of partitions; ingest {ingest:.1f} s"
    yield Row(f"histories / ingest, {what}", took / ingest, at_most=1, detail=detail)
    detail = f"{cpu:.0f} CPU-s; ingest {ingest_cpu:.0f} CPU-s; {peak:.1f} GB at most in this process"
    yield Row(f"histories / ingest, CPU, {what}", cpu / ingest_cpu, at_most=1, detail=detail)
    yield Row(f"histories as they were, {what}", seconds(lambda: derive(whole=False)), "s", at_most=1)
    yield from compared(lake, what)


def compared(lake: Lake, what: str) -> Iterator[Row]:
    """Rule 22 over a whole log: its checkpoints beside the replay from offset 0."""
    wanted = wanted_comparisons(lake, cluster_ids(lake.path), [], {})
    todo = [(cluster, replay) for cluster, some in wanted.items() for replay in replays(some, [])]
    if todo:
        took = seconds(lambda: checked_snapshots(lake.spark, lake.path, todo))
        detail = f"{sum(len(replay.comparisons) for _, replay in todo)} checkpoints"
        yield Row(f"checkpoints beside the replay, {what}", took, "s", at_most=60, detail=detail)


def images(lake: Path, partitions: int) -> Iterator[Row]:
    """The image at the last offset, as a table and as the objects that the shell shows."""
    cluster = cluster_of(lake)
    source = open_cluster(lake, None)
    standing = valid_at(source.last_offset)
    took = seconds(lambda: arrow_with(lake, PARTITIONS, PARTITIONS.names, standing, cluster_id=[cluster]))
    yield Row(f"as-of table of {partitions:,} partitions", took, "s", at_most=10)
    took = seconds(source.image_at)
    yield Row(f"as-of image of {partitions:,} partitions", took, "s", detail="for shell and diff, no Spark")


def cluster_of(lake: Path) -> str:
    (cluster,) = {row["cluster_id"] for row in rows_with(lake, CAPTURES, ["cluster_id"])}
    return cluster


def partition_log(bench: Bench, partitions: int) -> Path:
    """A controller directory whose log makes so many partitions, and nothing else."""
    folder = bench.folder / f"partitions-{partitions}"
    if not folder.exists():
        bench.say(f"making a log of {partitions:,} partitions")
        making = folder.with_suffix(".making")
        write_directory(making, topic_batches(partitions), "kVn1JWtYRKmbDSm0rS4fGg", 1)
        making.rename(folder)
    return folder


def topic_batches(partitions: int) -> Iterator[bytes]:
    """A batch a topic: the topic, then its partitions."""
    size = PARTITIONS_A_TOPIC
    # Values differ in the topic's id alone, 16 bytes that take the place of these.
    mark = b"id of that topic"
    fields = {"topicId": uuid_text(mark), "replicas": [1, 2, 3], "isr": [1, 2, 3]}
    fields |= {"leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    fields |= {"directories": [uuid_text(bytes([n] * 16)) for n in (1, 2, 3)]}
    values = [
        write_metadata_value(PARTITION_RECORD, 1, PARTITION_RECORD.default(1) | fields | {"partitionId": n})
        for n in range(size)
    ]
    for number in range(partitions // size):
        topic = b"topic " + number.to_bytes(10)
        named = {"name": f"topic-{number:06d}", "topicId": uuid_text(topic)}
        values_of = [write_metadata_value(TOPIC_RECORD, 0, named), *(v.replace(mark, topic) for v in values)]
        at = number * (size + 1)
        records = [RawRecord(at + n, T0_MS + number, None, value) for n, value in enumerate(values_of)]
        yield write_batch(at, 1, records)


def with_cpu(bench: Bench, work: Any) -> tuple[float, float]:
    """CPU seconds of this process, its JVM and Spark's Python workers, and wall seconds."""
    assert bench.spark

    def used() -> float:
        return sum(cpu_seconds(process) for process, _ in processes(os.getpid()))

    before = used()
    took = seconds(work)
    return used() - before, took


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its ended children; 0 where it has ended itself."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
