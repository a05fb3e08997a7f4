"""The same job on a Spark cluster: a real standalone master and two workers on loopback."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.long.processes import CHECKOUT, LONGEST, run, tables

SPARK = Path(pyspark.__file__).parent
MASTER, WORKER = ("org.apache.spark.deploy." + name for name in ("master.Master", "worker.Worker"))


class Daemon:
    """A master or worker, with what it starts, in a process group of its own.

    hidden: a folder that is an empty one of their own for them.
    """

    def __init__(self, folder: Path, *words: str, hidden: Path | None = None) -> None:
        folder.mkdir()
        self._log = folder / "log"
        environment = os.environ | {
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder),
        }
        with self._log.open("wb") as out:
            hiding = [] if hidden is None else ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
            hiding += [] if hidden is None else [f'mount -t tmpfs none "{hidden}" && exec "$@"', "sh"]
            command = [*hiding, SPARK / "bin/spark-class", *words]
            self._process = subprocess.Popen(
                command, stdout=out, stderr=out, env=environment, start_new_session=True
            )

    def says(self, pattern: str) -> str:
        """The first group of the pattern, once it stands in the log."""
        give_up = time.monotonic() + 300
        while not (found := re.search(pattern, self._log.read_text())):
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < give_up, self._log.read_text()
            time.sleep(0.2)
        return found[1]

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Cluster:
    """A master and two workers of one core each. hidden: a folder that workers do not see."""

    def __init__(self, folder: Path, hidden: Path | None = None) -> None:
        self.master = Daemon(folder / "master", MASTER, "-h", "127.0.0.1", "-p", "0", "--webui-port", "0")
        self.url = self.master.says(r"Starting Spark master at (spark://\S+)")
        words = (WORKER, "-h", "127.0.0.1", "-c", "1", "-m", "1500m", "--webui-port", "0", self.url)
        self.workers = [Daemon(folder / f"worker-{n}", *words, hidden=hidden) for n in range(2)]
        for worker in self.workers:
            worker.says("(Successfully registered with master)")

    def kill(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.kill()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    started = Cluster(tmp_path)
    yield started
    started.kill()


@pytest.fixture(scope="module")
def captures(golden: Path) -> list[Path]:
    return [golden / "v4.4.0-mini", golden / "uncommitted-truncation"]


@pytest.fixture(scope="module")
def expected(captures: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The tables that local mode makes."""
    folder = tmp_path_factory.mktemp("local")
    assert run(folder / "run", folder / "lake", captures).ended() == 0
    return tables(folder / "lake")


@pytest.mark.long
def test_the_tables_are_those_of_local_mode(
    cluster: Cluster, captures: list[Path], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    done = run(tmp_path / "run", tmp_path / "lake", captures, "--master", cluster.url)
    assert done.ended() == 0, done.err.read_text()
    assert tables(tmp_path / "lake") == expected


@pytest.mark.long
@pytest.mark.parametrize("moment", ["scan", "write records"])
def test_a_worker_is_killed_in_mid_run(
    cluster: Cluster, captures: list[Path], expected: dict[str, list[str]], tmp_path: Path, moment: str
) -> None:
    done = run(tmp_path / "run", tmp_path / "lake", captures, "--master", cluster.url)
    assert done.until(moment)
    time.sleep(2)
    cluster.workers[0].kill()
    assert done.ended() == 0, done.err.read_text()
    cluster.master.says("(Removing worker worker-)")
    assert tables(tmp_path / "lake") == expected


@pytest.mark.long
def test_spark_submit_with_a_wheel(
    cluster: Cluster, captures: list[Path], expected: dict[str, list[str]], tmp_path: Path
) -> None:
    """From outside the checkout, with the settings of its file and the code of the wheel."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, CHECKOUT]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    script = shutil.copy(CHECKOUT / "jobs/cli.py", tmp_path / "cli.py")
    words = ["run", "--captures", *captures, "--lake", tmp_path / "lake", "--fail-on", "never"]
    done = subprocess.run(
        [
            SPARK / "bin/spark-submit",
            *("--master", cluster.url),
            *("--properties-file", CHECKOUT / "spark-defaults.conf"),
            *("--py-files", wheel),
            *(script, *words),
        ],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(SPARK)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert tables(tmp_path / "lake") == expected
