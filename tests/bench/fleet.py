"""A fleet's nights: many clusters of five replicas, in a lake of one night, then in one of 365.

Every run is a process of its own. Directories are as `kraftlake capture` copies those of voters. The logs of
those clusters that change grow by a batch a day, from 4 KB to 30: the history has for each capture of each
earlier night the rows of `captures` and `segments` that a run leaves of so long a log, under ids and times of
its own. What else a lake holds of a log it holds of the longest alone. Of all other clusters the history has
the same rows, though their logs have 4 KB: nothing is derived of these.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.format.batch import write_batch
from kraft_core.format.capture import CAPTURE_JSON
from kraft_core.format.log_dirs import LOG_DIR_NAME
from tests.bench.directories import stages
from tests.bench.frame import Bench, Row
from tests.bench.inputs import T0_MS, leader_change, made, renumbered, value, write_directory
from tests.bench.lakes import commits, new_lake
from tests.bench.memory import watched
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import arrow_with
from transforms.lake.storage.table_folders import table_folder
from transforms.lake.table_files import TableFile
from transforms.lake.tables import CAPTURES, SEGMENTS, Table

REPLICAS = 5
NIGHTS = 365
# What a log of 4 KB holds.
PARTITIONS, IDLE = 32, 16
DAY_MS = 24 * 3600 * 1000
# One cluster of so many has a batch more.
CHANGED_OF = 100
DRIVER_MIB = 1024
LETTERS = "ghijklmnop"
# Columns of captures and segments that other directories with the same log have otherwise.
OF_DIRECTORY = ("cluster_id", "node_id", "directory_id", "captured_at_source")
# Rows of a file, about what compaction joins.
FILE_ROWS = 500_000


@dataclass(frozen=True, slots=True)
class Night:
    """A run's report, its CPU seconds, the peaks of its processes in MiB, and the commits it made."""

    report: dict[str, Any]
    cpu: float
    peaks: dict[str, float]
    commits: int

    def row(self, name: str, count: int, at_most: float | None = None) -> Row:
        peaks = ", ".join(f"{kind} {mib:,.0f} MiB" for kind, mib in sorted(self.peaks.items()))
        detail = f"{self.cpu:.0f} CPU s; {stages(self.report)}; {peaks}; {self.commits} commits"
        return Row(f"{name}, {count:,} clusters", self.report["seconds"], "s", at_most=at_most, detail=detail)


def rows(bench: Bench) -> Iterator[Row]:
    """First night, nothing new, and a batch more in 1 %: without and with a year of nights before.

    With it, the first night looks all captures up, as after maintenance: the memo knows other tables.
    """
    count = bench.clusters or bench.size(10_000, 200)
    captures, lake = fleet(bench, count), new_lake(bench)
    grow(captures, 0)
    nights = [first := night(lake, captures)]
    yield first.row("first run", count)
    nights += (young := two_nights(lake, captures, 1))
    bench.say(f"adding {NIGHTS} nights to the lake")
    shorter, of_first_night = shorter_logs(bench), first_captures(lake)
    for table in (CAPTURES, SEGMENTS):
        add_nights(lake, table, shorter, of_first_night)
    nights += [(looked_up := night(lake, captures)), *(old := two_nights(lake, captures, 2))]
    yield looked_up.row(f"nothing new by all rows, after {NIGHTS} nights", count)
    for name, one, other in zip(("nothing new", "a batch more in 1 %"), young, old, strict=True):
        yield one.row(name, count)
        yield other.row(f"{name}, after {NIGHTS} nights", count)
        yield Row(f"{name}: CPU after {NIGHTS} nights / after one", other.cpu / one.cpu, at_most=1.25)
    grow(captures, 0)
    yield Row("driver's peak", max(each.peaks["driver"] for each in nights), "MiB", at_most=DRIVER_MIB)


def two_nights(lake: Path, captures: Path, more: int) -> list[Night]:
    """A night with nothing new, and one after which 1 % of the clusters have so many batches more."""
    nothing = night(lake, captures)
    grow(captures, more)
    return [nothing, night(lake, captures)]


def fleet(bench: Bench, count: int) -> Path:
    """Directories of `count` clusters, their replicas equal."""

    def make(folder: Path) -> None:
        bench.say(f"making {count * REPLICAS:,} captures")
        for cluster in range(count):
            name = f"fleet-cluster-{cluster:08d}"
            batches = log(0 if cluster % CHANGED_OF == 0 else -NIGHTS)
            for node in range(1, REPLICAS + 1):
                write_capture(folder / name / f"node-{node}", batches, name, node)

    return made(bench.folder / f"fleet-{count}x{REPLICAS}", make)


def write_capture(folder: Path, batches: list[bytes], cluster_id: str, node_id: int) -> None:
    """A voter's directory, copied in the first night."""
    write_directory(folder, iter(batches), cluster_id, node_id)
    state = {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in range(1, REPLICAS + 1)],
        "data_version": 0,
    }
    (folder / LOG_DIR_NAME / "quorum-state").write_text(json.dumps(state))
    (folder / LOG_DIR_NAME / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    note_time(folder, 0)


def note_time(folder: Path, more: int) -> None:
    """Note that a directory was copied so many nights after the first one, each a second after another."""
    at = datetime.fromtimestamp(T0_MS / 1000, UTC) + timedelta(NIGHTS + 1 + more, int(folder.name[-1]))
    (folder / CAPTURE_JSON).write_text(json.dumps({"captured_at": at.isoformat()}))


def log(more: int) -> list[bytes]:
    """The batches of a log so many nights after the first one; below 0 before.

    4 KB, and a batch a day: a LEADER_CHANGE, a topic with its partitions, idle moments.
    """
    batches = [
        leader_change(range(1, REPLICAS + 1)),
        renumbered(write_batch(0, 1, [value("TopicRecord", 0, topic=1)]), 1),
    ]
    partitions = [value("PartitionRecord", number, topic=1) for number in range(PARTITIONS)]
    batches.append(renumbered(write_batch(0, 1, partitions), 2))
    first = 2 + PARTITIONS
    days = [*[0] * IDLE, *range(1, NIGHTS + more + 1)]
    return [*batches, *(renumbered(idle(day), first + nth) for nth, day in enumerate(days))]


def idle(day: int) -> bytes:
    """The batch of an idle moment, at offset 0."""
    return write_batch(0, 1, [value("NoOpRecord", 0)._replace(timestamp=T0_MS + day * DAY_MS)])


def grow(captures: Path, more: int) -> None:
    """Let the logs of 1 % of the clusters have so many batches more than the first night's."""
    content = b"".join(log(more))
    for cluster in sorted(captures.iterdir())[::CHANGED_OF]:
        for segment in cluster.rglob("*.log"):
            if segment.stat().st_size != len(content):
                segment.write_bytes(content)
                note_time(segment.parent.parent, more)


def night(lake: Path, captures: Path) -> Night:
    """Run a job as a process. Raises RuntimeError if it fails."""
    before = sum(commits(lake).values())
    words = [sys.executable, "-m", "jobs.cli", "run", "--lake", lake, "--captures", captures]
    words += ["--fail-on", "never"]
    with tempfile.TemporaryFile("w+") as out, subprocess.Popen(words, stdout=out) as job:
        used: dict[int, float] = {}
        peaks = watched(job, lambda process: used.update(cpu_seconds(process)))
        out.seek(0)
        said = out.read()
    if job.returncode:
        raise RuntimeError(f"kraftlake run ended with {job.returncode}: {said}")
    made = sum(commits(lake).values()) - before
    return Night(json.loads(said.splitlines()[-1]), sum(used.values()), peaks, made)


def cpu_seconds(process: int) -> dict[int, float]:
    """User and system time of a process so far, by its id; nothing if it has just ended."""
    try:
        fields = Path("/proc", str(process), "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return {}
    return {process: (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")}


def shorter_logs(bench: Bench) -> Path:
    """A lake that holds a capture of the log in each of the earlier nights."""
    lake = bench.folder / "shorter-logs"
    shutil.rmtree(lake, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        for nth in range(1, NIGHTS + 1):
            write_capture(Path(name, f"night-{nth}"), log(-nth), "fleet-shorter-logs", 1)
        night(lake, Path(name))
    return lake


def first_captures(lake: Path) -> pa.Array:
    """The ids of each directory's capture of the first night, from which earlier nights are counted back."""
    held = arrow_with(lake, CAPTURES, ["cluster_id", "node_id", "capture_id", "captured_at"])
    first = held.group_by(["cluster_id", "node_id"]).aggregate([("captured_at", "min")])
    at = first.rename_columns({"captured_at_min": "captured_at"})
    return at.join(held, at.column_names)["capture_id"].combine_chunks()


def add_nights(lake: Path, table: Table, shorter: Path, first: pa.Array) -> None:
    """Add the rows of NIGHTS earlier nights to a table of captures, in joined files.

    shorter: the lake with a row of each night, the longest logs first. first: first_captures.
    """
    TableWriter(lake, None).compact(table)
    schema = table.arrow_schema
    held = arrow_with(lake, table, table.names).cast(schema)
    held = held.filter(pc.is_in(held["capture_id"], first))
    logs = arrow_with(shorter, table, table.names).cast(schema).sort_by([("size_bytes", "descending")])
    assert len(logs) == NIGHTS
    written: list[dict[str, Any]] = []
    each_file = max(1, FILE_ROWS // len(held))
    for begin in range(1, NIGHTS + 1, each_file):
        file = TableFile(table_folder(lake, table), schema, "zstd")
        for nth in range(begin, min(begin + each_file, NIGHTS + 1)):
            file.add(of_night(held, logs.slice(nth - 1, 1), nth))
        if (row := file.close()) is not None:
            written.append(row)
    TableWriter(lake, None).add_files(table, written, "nights")
    for _ in range(2):  # runs join what they have joined again, while it is small
        TableWriter(lake, None).compact(table)


def of_night(held: pa.Table, log_row: pa.Table, nth: int) -> pa.Table:
    """The rows as the nth night before would have left them. log_row: of its log, in another directory."""
    every = pa.array(np.zeros(len(held), np.int64))
    for index, field in enumerate(held.schema):
        column = held[field.name]
        if field.name in ("capture_id", "run_id"):
            # Far behind what statistics hold of a text: ids of one night do not stand together.
            # No digit of one is hexadecimal, so that none is that of a real capture or run.
            begin = len(column[0].as_py()) - 24
            letters = "".join(LETTERS[int(d)] for d in f"{nth:03}")
            column = pc.binary_replace_slice(column, begin, begin + 3, letters)
        elif field.name in ("captured_at", "last_captured_at", "loaded_at"):
            column = pc.subtract(column, pa.scalar(timedelta(days=nth), pa.duration("us"))).cast(field.type)
        elif field.name not in OF_DIRECTORY:
            column = log_row[field.name].combine_chunks().take(every)
        held = held.set_column(index, field, column)
    return held
