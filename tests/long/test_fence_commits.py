"""A writer without Spark that is stopped or killed in the middle of its commits: the fence is the last."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.long.processes import CHECKOUT
from transforms.lake.commits import LEASE, TableWriter
from transforms.lake.delta_rs import newest_version, rows_with
from transforms.lake.storage import prepare_lake
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.table_folders import delta_table
from transforms.lake.table_damage import damaged_tables
from transforms.lake.tables import CLUSTER_NAMES, TABLES

ROUNDS = int(os.environ.get("KRAFTLAKE_FENCES", "30"))
# It makes, fills, replaces and joins tables for as long as it may.
WRITER = """
import itertools, sys
from contextlib import nullcontext
from datetime import UTC, datetime
from transforms.lake.commits import FencedError, TableWriter
from transforms.lake.delta_rs import among
from transforms.lake.storage.location import location
from transforms.lake.storage.table_folders import written_alone
from transforms.lake.tables import CLUSTER_NAMES, EXPIRED_CAPTURES, TABLES

lake = location(sys.argv[1])
writer = TableWriter(lake, 1)
alone = written_alone(lake) if sys.argv[2] == "alone" else nullcontext()
names = {"node_id": 1, "directory_id": "d", "captured_at": datetime(2026, 11, 21, tzinfo=UTC)}
stamp = {"run_id": "r", "loaded_at": datetime(2026, 11, 21, tzinfo=UTC)}
print("begun", flush=True)
try:
    with alone:
        for n in itertools.count():
            if n < len(TABLES):
                writer.create(TABLES[n])
            named = {"cluster_id": str(n % 3), "name": str(n)}
            writer.replace_where(CLUSTER_NAMES, among({"cluster_id": [str(n % 3)]}), [named])
            writer.append_once(CLUSTER_NAMES, [{"cluster_id": "x", "name": str(n)}], str(n))
            writer.create(EXPIRED_CAPTURES)
            capture = names | stamp | {"cluster_id": "c", "capture_id": str(n % 5)}
            writer.put(EXPIRED_CAPTURES, [capture], by="capture_id")
            if n % 7 == 6:
                writer.compact(CLUSTER_NAMES)
                writer.remove_where(CLUSTER_NAMES, among({"cluster_id": ["x"]}))
except FencedError:
    sys.exit(4)
"""


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """Where the lakes are."""
    if request.param == "local":
        return tmp_path
    request.getfixturevalue("s3")
    return StoreUrl("bucket", "lakes")


@contextmanager
def writing(lake: Location, how: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", WRITER, str(lake), how]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        yield writer


@pytest.mark.long
def test_a_writer_is_stopped_anywhere(place: Location) -> None:
    seed = random.randrange(10**6)
    rnd = random.Random(seed)
    print("seed", seed)
    for number in range(ROUNDS):
        lake = place / str(number)
        prepare_lake(lake)
        with writing(lake, rnd.choice(("alone", "not alone"))) as writer:
            time.sleep(rnd.uniform(0, 1.5))
            os.kill(writer.pid, signal.SIGSTOP)
            fence = TableWriter(lake, 2)
            fence.fence()
            before = {table: newest_version(lake, table) for table in TABLES}
            os.kill(writer.pid, signal.SIGCONT)
            if number % 2:
                fence.put(CLUSTER_NAMES, [{"cluster_id": "2", "name": "fence"}], by="cluster_id")
                before[CLUSTER_NAMES] += 1
            assert writer.wait(60) == 4
        assert {table: newest_version(lake, table) for table in TABLES} == before
        leases = {delta_table(lake, table).transaction_version(LEASE) for table in TABLES}
        assert leases == {2}


@pytest.mark.long
def test_a_writer_is_killed_anywhere(place: Location) -> None:
    """Each load is there once, whoever repeats it, and no table is damaged."""
    seed = random.randrange(10**6)
    rnd = random.Random(seed)
    print("seed", seed)
    lake = place / "killed"
    prepare_lake(lake)
    for lease in range(1, ROUNDS // 3 + 1):
        with writing(lake, rnd.choice(("alone", "not alone"))) as writer:
            time.sleep(rnd.uniform(0, 1.5))
            writer.kill()
        after = TableWriter(lake, 1)
        after.append_once(CLUSTER_NAMES, [{"cluster_id": "mine", "name": str(lease)}], f"load {lease}")
        after.append_once(CLUSTER_NAMES, [{"cluster_id": "mine", "name": str(lease)}], f"load {lease}")
        names = [row["name"] for row in rows_with(lake, CLUSTER_NAMES, cluster_id=["mine"])]
        assert sorted(names, key=int) == [str(number) for number in range(1, lease + 1)], seed
        assert damaged_tables(lake, open_files=True) == {}, seed
