"""A lake on S3: requests of a first run of a fleet, of runs with nothing new, and of runs with a batch more
in one cluster; and the time of the demo's run, beside that with a local lake.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.directories import clusters, small_log
from tests.bench.frame import ROUNDS, Bench, Row
from tests.bench.inputs import renumbered
from tests.long.processes import CHECKOUT, run
from tests.long.s3proxy import environment, faulty, fetched_jar, started
from transforms.lake.storage.location import Location, StoreUrl

REPLICAS = 3
# The runs, and the most requests of each: with nothing new; and for each table that gets a commit.
FIRST, NOTHING, CHANGED = "first run", "a run with nothing new", "a run with a batch more in one cluster"
AGED = "such a run after {} more, the most of any"
NIGHTS = 24
MOST_REQUESTS, MOST_PER_TABLE = 12, 30
# What `make run` reads, and how much longer it may take.
DEMO, MOST_RATIO = "the demo's run", 1.5
DEMO_CAPTURES = [
    CHECKOUT / "tests/golden" / name for name in ("dynamic-membership", "uncommitted-truncation")
]


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
        with started(jar, folder / "s3") as server:
            with faulty(server.port, "counted", folder / "requests") as port:
                counted = nights(bench, folder, StoreUrl("bucket", "counted"), environment(port))
            timed = [demo(folder, number, server.environment) for number in range(ROUNDS)]
    yield from _counts(counted)
    for number, (what, most) in enumerate(((DEMO, MOST_RATIO), (NOTHING, None))):
        stored, own = (median(pair[place][number] for pair in timed) for place in (0, 1))
        detail = f"{stored:.1f} s, {own:.1f} s; medians of {ROUNDS}"
        yield Row(f"{what} on S3 / local", stored / own, at_most=most, detail=detail)


def _counts(counted: Mapping[str, Night]) -> Iterator[Row]:
    for what, night in counted.items():
        total, per_table = _total(night), max(night.tables, 1)
        detail = ", ".join(f"{count} {kind}" for kind, count in sorted(night.requests.items()))
        most = {FIRST: None, NOTHING: MOST_REQUESTS}.get(what, MOST_PER_TABLE * per_table)
        detail += f"; commits to {night.tables} tables; {night.seconds:.1f} s by way of the proxy"
        yield Row(f"requests of {what} on S3", total, "", at_most=most, detail=detail)
        if what == CHANGED:
            own = night.own_count
            yield Row("requests that runs counts / of the proxy", own / total, at_least=0.9, at_most=1)


def nights(bench: Bench, folder: Path, lake: Location, variables: Mapping[str, str]) -> dict[str, Night]:
    """Runs over a lake of a fleet. variables: of the environment."""
    captures = folder / "captures"
    shutil.copytree(clusters(bench, bench.size(1_000, 3), REPLICAS), captures)
    *_, added = small_log(REPLICAS)
    first, count = int.from_bytes(added[:8], "big"), 1 + int.from_bytes(added[23:27], "big")

    def night() -> Night:
        return one_night(folder, lake, [captures])

    def changed(number: int) -> Night:
        for path in (captures / "bench-cluster-00000000").rglob("*.log"):
            with path.open("ab") as file:
                file.write(renumbered(added, first + number * count))
        return night()

    with _environment(variables):
        # The second one with nothing new may write a checkpoint that the first one need not.
        found = {FIRST: night(), NOTHING: max(night(), night(), key=_total), CHANGED: changed(0)}
        more = bench.size(NIGHTS, 2)
        found[AGED.format(more)] = max((changed(number) for number in range(1, more + 1)), key=_total)
    return found


def _total(night: Night) -> int:
    return sum(night.requests.values())


def demo(folder: Path, number: int, variables: Mapping[str, str]) -> list[list[float]]:
    """Seconds on S3, and those of a local lake: of the demo's run, and of the same again."""
    with _environment(variables):
        stored = [
            one_night(folder, StoreUrl("bucket", f"lake-{number}"), DEMO_CAPTURES).seconds for _ in "12"
        ]
    own = [one_night(folder, folder / f"lake-{number}", DEMO_CAPTURES).seconds for _ in "12"]
    return [stored, own]


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def one_night(folder: Path, lake: Location, captures: Sequence[Path]) -> Night:
    log = folder / "requests"
    log.write_text("")
    began = time.perf_counter()
    done = run(folder / "run", lake, captures)
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
