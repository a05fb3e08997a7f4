"""Streams of format("kraft") as real drivers, and the rows that captures of the same quorum have."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from deltalake import DeltaTable

from kraft_core.messages.uuid_text import uuid_text
from kraft_core.wire.errors import WireError
from kraft_core.wire.quorum import DescribedQuorum
from tests.long.live_cluster import LiveCluster
from tests.long.live_quorum import LiveQuorum, kafka_tools
from tests.long.processes import CHECKOUT
from transforms.live.connection import NodeConnection
from transforms.live.kraft import KraftSource
from transforms.live.options import live_options
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


def file_rows(captures: Path | list[Path], cluster_id: str, include: str = "log") -> Iterator[Row]:
    """The rows of format("kraft") of the log or checkpoints, in the columns that a stream has, too."""
    folders = captures if isinstance(captures, list) else [captures]
    paths = json.dumps([str(each) for each in folders])
    given = {"paths": paths, "include": include, "clusterId": cluster_id}
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


def snapshots(rows: Iterable[Row]) -> dict[tuple[int, int], list[str]]:
    """The rows of snapshots by offset and epoch, sorted: several batches of one begin at index 0."""
    found: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for row in rows:
        if row["source"] == "snapshot":
            found[row["offset"], row["leader_epoch"]].append(repr({name: row[name] for name in ALIKE}))
    return {place: sorted(texts) for place, texts in found.items()}


@dataclass(slots=True)
class ObservedCluster(LiveCluster):
    """Asked by this process: a tool of Kafka's needs a JVM for every question."""

    def random_uuid(self) -> str:
        # A leading dash would be taken for a flag.
        return "A" + uuid_text(uuid4().bytes)[1:]

    def described(self, node: int) -> DescribedQuorum | None:
        """The quorum by a node; None where it does not lead."""
        (cluster,) = live_options({"bootstrap.controllers": self.address(node)}).clusters
        try:
            connection = NodeConnection(cluster.addresses[0], cluster.security)
            try:
                return connection.describe_quorum()
            finally:
                connection.close()
        except WireError:
            return None

    def leader(self, *asked: int, but: int | None = None) -> int:
        for _ in range(1200):
            for node in asked:
                found = None if node == but else self.described(node)
                if found is not None and found.high_watermark is not None:
                    return node
            time.sleep(0.2)
        raise AssertionError(f"no leader by {asked}")

    def watermark(self, by: int) -> int:
        found = self.described(by)
        return -1 if found is None or found.high_watermark is None else found.high_watermark

    def observers(self, by: int) -> set[int]:
        found = self.described(by)
        assert found is not None
        return {replica.node_id for replica in found.replicas if not replica.is_voter}


Observed = TypeVar("Observed", bound=ObservedCluster)


@contextmanager
def observed_cluster(
    path: Path, port: int, broker: int, kind: type[Observed] = ObservedCluster
) -> Iterator[Observed]:
    """Voters 1, 2 and 3 and a broker, all of them running, by one directory that is formatted."""
    live = kind(kafka_tools(), path, port, brokers={broker})
    directories = {node: live.random_uuid() for node in (1, 2, 3)}
    voters = ",".join(f"{node}@{live.address(node)}:{id_}" for node, id_ in directories.items())
    live.address(broker)
    live.format(1, "--initial-controllers", voters)
    for node in (2, 3, broker):
        shutil.copytree(live.folder(1), live.folder(node))
        facts = live.folder(node) / "meta.properties"
        known = facts.read_text().replace("node.id=1", f"node.id={node}")
        own = directories.get(node) or live.random_uuid()
        facts.write_text(known.replace(directories[1], own))
    for checkpoint in live.folder(broker).glob("__cluster_metadata-0"):
        shutil.rmtree(checkpoint)
    try:
        for node in (*directories, broker):
            live.configure(node)
            live.start(node)
        live.leader(*directories)
        yield live
    finally:
        live.close()


def controllers(live: LiveQuorum, *nodes: int) -> str:
    return ",".join(map(live.address, nodes))


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
