"""The daemon of Python workers that a job starts beside Spark's JVM: workers are as those of Spark's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.runtime import early_daemon
from jobs.runtime.early_daemon import MODULE, start_early
from jobs.runtime.session import open_session
from transforms.lake.spark_tasks import map_in_arrow
from transforms.worker_daemon import SOCKET

CHECKOUT = Path(__file__).parents[2]
OURS = {"spark.python.daemon.module": MODULE}
# Every daemon has its own secret, and a worker's first task may set the last.
OF_ONE_DAEMON = ("PYTHON_WORKER_FACTORY_SECRET", "OF_ANOTHER_DAEMON")
FOUND = pa.schema([("found", pa.string())])


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        found = {
            "daemon": Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\0")[1:-1],
            "variables": {k: v for k, v in os.environ.items() if k not in OF_ONE_DAEMON},
            "path": sys.path,
            "words": sys.argv,
            "hash": hash("kraftlake"),
            "threads": pa.cpu_count(),
            "streams": [str(Path(f"/proc/self/fd/{n}").readlink()).split(":")[0] for n in range(3)],
        }
        yield pa.RecordBatch.from_pylist([{"found": json.dumps(found)}], FOUND)


def seen_by_a_worker(spark: SparkSession) -> dict[str, Any]:
    return json.loads(map_in_arrow(spark.range(1), look, FOUND).toArrow()["found"][0].as_py())


def main() -> None:
    """Print what workers see of two daemons of a session: of the early one, and of Spark's own."""
    spark = open_session("local[1]", quick=True, workers=True)
    found = [seen_by_a_worker(spark)]
    spark.sparkContext.environment["OF_ANOTHER_DAEMON"] = "1"
    found.append(seen_by_a_worker(spark))
    print(json.dumps(found))


def test_workers_of_an_early_daemon_are_as_those_of_sparks_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.jobs.test_early_daemon"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    early, own = json.loads(done.stdout)
    assert early.pop("daemon")[:3] == ["-m", MODULE, "--early"]
    assert own.pop("daemon") == ["-m", MODULE, "pyspark.worker"]
    assert early == own


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", MODULE, "--early", str(tmp_path / "socket")]
    with subprocess.Popen(words, cwd=CHECKOUT, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_daemon_that_spark_never_asks_for_ends_with_the_job(waiting: subprocess.Popen[bytes]) -> None:
    assert waiting.stdin is not None
    waiting.stdin.close()
    assert waiting.wait(60) == 0


def test_a_daemon_of_spark_that_ends_takes_the_early_one_along(
    waiting: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    while not path.exists():
        assert waiting.poll() is None
    words = [sys.executable, "-m", MODULE, "pyspark.worker"]
    pipe = subprocess.PIPE
    variables = os.environ | {SOCKET: str(path)}
    with subprocess.Popen(words, cwd=CHECKOUT, stdin=pipe, stdout=pipe, env=variables) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        assert int.from_bytes(started.stdout.read(4)) > 1024, "the port of the daemon"
        assert not path.exists()
        started.stdin.close()  # as Spark asks a daemon to end
        waiting.wait(60)
        assert started.wait(60) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.python.daemon.module": "pyspark.daemon"},
        OURS | {"spark.pyspark.python": "/usr/bin/another-python"},
    ],
)
def test_none_is_started_for_a_daemon_or_a_python_of_the_user(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert start_early(settings) == {}


def test_none_is_started_for_a_session_that_is_open(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(early_daemon, "start_early", started.append)
    assert open_session("local[2]", quick=True, workers=True) is spark
    assert started == []


if __name__ == "__main__":
    main()
