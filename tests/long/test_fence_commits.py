"""A writer without Spark that is stopped in the middle of its commits: it changes nothing after the fence."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.long.processes import CHECKOUT
from transforms.lake.commits import LEASE, TableWriter
from transforms.lake.delta_rs import newest_version
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import CLUSTER_NAMES, TABLES

ROUNDS = int(os.environ.get("KRAFTLAKE_FENCES", "30"))
# It makes, fills, replaces and joins tables for as long as it may.
WRITER = """
import itertools, sys
from datetime import UTC, datetime
from pathlib import Path
from transforms.lake.commits import FencedError, TableWriter
from transforms.lake.delta_rs import among
from transforms.lake.tables import CLUSTER_NAMES, EXPIRED_CAPTURES, TABLES

writer = TableWriter(Path(sys.argv[1]), 1)
names = {"node_id": 1, "directory_id": "d", "captured_at": datetime(2026, 11, 21, tzinfo=UTC)}
stamp = {"run_id": "r", "loaded_at": datetime(2026, 11, 21, tzinfo=UTC)}
print("begun", flush=True)
try:
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


@pytest.mark.long
def test_a_writer_is_stopped_anywhere(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    rnd = random.Random(seed)
    print("seed", seed)
    for number in range(ROUNDS):
        lake = tmp_path / str(number)
        prepare_lake(lake)
        command = [sys.executable, "-c", WRITER, str(lake)]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
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
        leases = {DeltaTable(str(lake / table.name)).transaction_version(LEASE) for table in TABLES}
        assert leases == {2}
