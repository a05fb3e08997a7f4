"""Streams of format("kraft") as real drivers, and the rows that captures of the same quorum have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.long.live_quorum import LiveQuorum
from tests.long.processes import CHECKOUT
from transforms.live.kraft import KraftSource
from transforms.live.options import LiveCluster, live_options
from transforms.source.columns import PLAIN

# What captures and a stream know of a record alike.
ALIKE = [name for name in PLAIN if name not in ("node_id", "directory_id", "file", "position")]
# Seconds that a driver has for what it is waited for.
LONGEST = 300.0
Row = dict[str, Any]


@dataclass(slots=True)
class Driver:
    """A driver in a process group of its own, with its JVM and Python workers; started again by start()."""

    folder: Path
    options: Mapping[str, str]
    trigger: Mapping[str, Any]
    format: str = "kraft"
    starts: int = 0
    _process: subprocess.Popen[bytes] = field(init=False)

    @property
    def table(self) -> Path:
        return self.folder / "rows"

    @property
    def said(self) -> str:
        return "".join(file.read_text() for file in sorted(self.folder.glob("driver-*.err")))

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.starts += 1
        asked = {
            "format": self.format,
            "options": dict(self.options),
            "trigger": dict(self.trigger),
            "table": str(self.table),
            "checkpoint": str(self.folder / "checkpoint"),
        }
        with (self.folder / f"driver-{self.starts}.err").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.long.following", json.dumps(asked)],
                cwd=CHECKOUT,
                stdout=err,
                stderr=err,
                start_new_session=True,
            )

    def ended(self) -> int:
        return self._process.wait(LONGEST)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL to the driver, its JVM and its workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def rows(self) -> list[Row]:
        if not (self.table / "_delta_log/00000000000000000000.json").is_file():
            return []
        return DeltaTable(str(self.table)).to_pyarrow_table().to_pylist()

    def offsets(self) -> list[int]:
        if not (self.table / "_delta_log/00000000000000000000.json").is_file():
            return []
        held = DeltaTable(str(self.table)).to_pyarrow_table(columns=["offset", "source"]).to_pylist()
        return sorted(row["offset"] for row in held if row["source"] == "log")

    def until(self, offset: int) -> None:
        """Wait for the row of an offset."""
        give_up = time.monotonic() + LONGEST
        while offset > max(self.offsets(), default=-1):
            assert self.is_running(), self.said[-4000:]
            assert time.monotonic() < give_up, self.said[-4000:]
            time.sleep(1)


@contextmanager
def driving(driver: Driver) -> Iterator[Driver]:
    driver.start()
    try:
        yield driver
    finally:
        if driver.is_running():
            driver.kill()


def captured_rows(captures: Path | list[Path], cluster_id: str, end: int) -> dict[int, Row]:
    """By offset below the end the record of the log that captures have: of committed offsets all agree."""
    found: dict[int, Row] = {}
    for row in file_rows(captures, cluster_id):
        if row["offset"] < end:
            known = found.setdefault(row["offset"], row)
            assert known == row, (known, row)
    return found


def file_rows(captures: Path | list[Path], cluster_id: str) -> Iterator[Row]:
    """The rows of format("kraft") of the log, in the columns that a stream has, too."""
    folders = captures if isinstance(captures, list) else [captures]
    given = {"paths": json.dumps([str(each) for each in folders]), "include": "log", "clusterId": cluster_id}
    source = KraftSource(given)
    reader: Any = source.reader(source.schema())
    for part in reader.partitions():
        for batch in reader.read(part):
            for row in batch.to_pylist():
                if row["_corrupt_range"] is None:
                    yield {name: row[name] for name in ALIKE}


def alike(rows: list[Row]) -> list[Row]:
    """A stream's rows of the log in their order."""
    ordered = sorted((row for row in rows if row["source"] == "log"), key=lambda row: row["offset"])
    return [{name: row[name] for name in ALIKE} for row in ordered]


def controllers(live: LiveQuorum, *nodes: int) -> str:
    return ",".join(map(live.address, nodes))


def one_cluster(options: Mapping[str, str]) -> LiveCluster:
    (cluster,) = live_options(options).clusters
    return cluster


class Operator:
    """Kafka's admin client in one JVM: a line is an operation of tests/kafka/gen/Ops.java."""

    def __init__(self, live: LiveQuorum, bootstrap: str) -> None:
        command = [str(live.tools / "k"), live.release, "Ops", bootstrap]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        while " op `" not in (line := self._process.stdout.readline()):
            assert line, "the admin client ended"
        return line

    def do(self, line: str) -> str:
        self.send(line)
        return self.answer()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
