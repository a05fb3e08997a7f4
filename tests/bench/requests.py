"""A lake on S3 beside a local one: requests and time of a first run, of one with nothing new, and of one in
which one cluster has a batch more.

S3Proxy serves on loopback. Requests are counted by a proxy of it, times are of runs without that one. Maven
fetches the server; without Maven these rows are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.directories import clusters, small_log
from tests.bench.frame import Bench, Row
from tests.long.processes import run
from tests.long.s3proxy import environment, faulty, fetched_jar, started
from transforms.lake.storage.location import Location, StoreUrl

REPLICAS = 3
# The runs, and the most requests of each: with nothing new; and for each table that gets a commit.
FIRST, NOTHING, CHANGED = "first run", "a run with nothing new", "a run with a batch more in one cluster"
MOST_REQUESTS, MOST_PER_TABLE = 12, 30


@dataclass(frozen=True, slots=True)
class Night:
    """A run: its wall seconds, its requests by kind, and the tables of which it made a commit.

    own_count: the requests that the run says it made before it ended.
    """

    seconds: float
    requests: Counter[str]
    tables: int
    own_count: int


def rows(bench: Bench) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jar = fetched_jar(folder)
        if jar is None:
            bench.say("mvn is not installed: no server of S3's protocol")
            return
        log = folder / "requests"
        with started(jar, folder / "s3") as server, faulty(server.port, "counted", log) as port:
            counted = nights(bench, folder, StoreUrl("bucket", "counted"), environment(port))
            stored = nights(bench, folder, StoreUrl("bucket", "lake"), server.environment)
        local = nights(bench, folder, folder / "lake", {})
    for what, night in counted.items():
        total, per_table = sum(night.requests.values()), max(night.tables, 1)
        detail = ", ".join(f"{count} {kind}" for kind, count in sorted(night.requests.items()))
        most = {NOTHING: MOST_REQUESTS, CHANGED: MOST_PER_TABLE * per_table}.get(what)
        detail += f"; commits to {night.tables} tables"
        yield Row(f"requests of {what} on S3", total, "", at_most=most, detail=detail)
        if what == CHANGED:
            own = night.own_count
            yield Row("requests that runs counts / of the proxy", own / total, at_least=0.9, at_most=1)
    for what, night in stored.items():
        own = local[what].seconds
        most = 1.5 if what == FIRST else None
        detail = f"{night.seconds:.1f} s, {own:.1f} s"
        yield Row(f"{what} on S3 / local", night.seconds / own, at_most=most, detail=detail)


def nights(bench: Bench, folder: Path, lake: Location, variables: Mapping[str, str]) -> dict[str, Night]:
    """The three runs over a lake. variables: of the environment."""
    captures, os_environ = folder / "captures", dict(os.environ)
    shutil.rmtree(captures, ignore_errors=True)
    shutil.copytree(clusters(bench, bench.size(100, 3), REPLICAS), captures)
    os.environ.update(variables)
    try:
        found = {what: one_night(folder, lake, captures) for what in (FIRST, NOTHING)}
        *_, added = small_log(REPLICAS)
        for path in (captures / "bench-cluster-00000000").rglob("*.log"):
            with path.open("ab") as file:
                file.write(added)
        return {**found, CHANGED: one_night(folder, lake, captures)}
    finally:
        os.environ.clear()
        os.environ.update(os_environ)


def one_night(folder: Path, lake: Location, captures: Path) -> Night:
    log = folder / "requests"
    log.write_text("")
    began = time.perf_counter()
    done = run(folder / "run", lake, [captures])
    assert done.ended() == 0, done.err.read_text()
    took = time.perf_counter() - began
    lines = [line.split(" ", 1) for line in log.read_text().splitlines()]
    written = {
        path.split("/_delta_log/")[0] for kind, path in lines if kind == "PUT" and "/_delta_log/" in path
    }
    said = json.loads(done.out.read_text().splitlines()[-1])
    assert said["exit_code"] == 0
    own_count = sum(number for name, number in said.items() if name.endswith("_requests"))
    return Night(took, Counter(kind for kind, _ in lines), len(written), own_count)
