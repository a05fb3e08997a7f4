"""One Spark session for all tests that need one; the golden captures, and one lake of them to read."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

GOLDEN = Path(__file__).parent / "golden"
SCENARIOS = (
    "disk-failure",
    "dynamic-membership",
    "election-storm",
    "old-mv-3.3-IV0-fatal-on-4.3.1",
    "static-upgrade",
    "uncommitted-removal",
    "uncommitted-then-committed",
    "uncommitted-truncation",
    "v4.4.0-mini",
)

# No test is timed: a busy machine is not a failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# pyspark.sql.connect, which great-expectations imports, takes a process without a main file for a doctest and
# ends it: pytest-xdist's processes have none.
main = sys.modules["__main__"]
if main.__spec__ is None and not hasattr(main, "__file__"):
    main.__file__ = pytest.__file__

# Tests start hundreds of processes, each of which would compile what it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Nor need each of them start threads of OpenBLAS, which spin (jobs/cli.py).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Thousands of tests and their modules stay until the end: Python need not look through them all the time.
gc.set_threshold(50_000, 20, 10)

# Modules whose tests use the session: in parallel runs, two processes run them, each with its own.
SPARK_MODULES = (
    "jobs/",
    *(f"transforms/{wing}/" for wing in ("evidence", "histories", "lake", "quality")),
    "transforms/ingest/test_pieces.py",
    "transforms/test_worker_daemon.py",
)
SPARK_PROCESSES = 2
IS_PARALLEL = "PYTEST_XDIST_WORKER" in os.environ
# Quick jobs' options, but with room: two such JVMs on two cores gain nothing by collecting in parallel. By
# default, sorts and aggregations take pages of up to 64 MB, for a few rows: the heap would be full of them.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
    "-XX:+UseSerialGC -Xms1g -Xmn800m -XX:MetaspaceSize=256m -Dspark.buffer.pageSize=1m"
)
# What a page of Spark's would show of queries that have ended.
HISTORY = {
    **{f"spark.ui.retained{kind}": "10" for kind in ("Jobs", "Stages", "Tasks")},
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.ui.explainMode": "simple",
}


class ByModule(LoadScopeScheduling):
    """Gives one process all tests of a module, which share fixtures, and those with Spark to two processes.

    The others fill what these leave of the processors; in the end, all share what is left.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = self._next_scope(node)
        if scope is None:
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _next_scope(self, node: WorkerController) -> str | None:
        """The module that a process runs next; None if only such are left as others are to run."""
        plain = (scope for scope in self.workqueue if not needs_spark(scope))
        if sorted(map(number_of, self.nodes)).index(number_of(node)) >= SPARK_PROCESSES:
            return next(plain, None)
        return next(filter(needs_spark, self.workqueue), None) or next(plain)


def number_of(node: WorkerController) -> int:
    """The n of process gwN: they are ready in any order."""
    return int(node.gateway.id.removeprefix("gw"))


def needs_spark(nodeid: str) -> bool:
    return nodeid.removeprefix("tests/").startswith(SPARK_MODULES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    """How `pytest -n 3` divides the tests."""
    config.option.loadscopereorder = False  # in the order of the tests, not by their number
    return ByModule(config, log)


def pytest_sessionstart() -> None:
    """The longest way is that of the tests with Spark: the others wait for them."""
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if int(number) >= SPARK_PROCESSES:
        os.nice(5)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def golden() -> Path:
    """The captures by real Kafka (tests/golden/README.md)."""
    return GOLDEN


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The session that every Spark test shares."""
    from jobs.runtime.session import open_session

    own = {"spark.driver.extraJavaOptions": JAVA_OPTIONS, **HISTORY}
    session = open_session("local[2]", quick=True, own=own)
    yield session
    session.stop()


@pytest.fixture
def interpreted(spark: Any) -> Iterator[None]:
    """Spark interprets queries over a few rows sooner than it compiles them."""
    from transforms.lake import spark_rows

    with spark_rows.interpreted(spark):
        yield


@pytest.fixture(scope="session")
def golden_captures(golden: Path) -> list[Path]:
    """The folders that the golden lake was read from."""
    return [golden / scenario for scenario in SCENARIOS]


@pytest.fixture(scope="module")
def catalog_lake(lake: Any) -> Any:
    """The golden lake with all tables, views and functions in the session's catalog; `ask` is faster."""
    from dashboards.catalog import open_lake

    return open_lake(lake.spark, lake.path)


@pytest.fixture(scope="module")
def ask(lake: Any) -> Callable[[str], Any]:
    """Frames of SQL over the golden lake."""
    from tests.jobs.lakes import asking

    return asking(lake.spark, lake.path)


@pytest.fixture(scope="session")
def lake(spark: Any, golden_captures: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The golden lake: written by one run, of which each other process of parallel tests has a copy."""
    from tests.jobs.lakes import opened, run

    base, path = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("golden") / "lake"
    shared = (base.parent if IS_PARALLEL else base) / "golden-lake"
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if shared.exists():
            shutil.copytree(shared, path)
        else:
            assert run(path, *golden_captures) == 0
            shutil.copytree(path, shared)
    return opened(spark, path)
