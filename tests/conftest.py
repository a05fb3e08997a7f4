"""One Spark session for all tests that need one; the golden captures, and one lake of them to read."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

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

# Modules whose tests start Spark: in parallel runs, two processes run them, each with one session.
SPARK_MODULES = (
    "jobs/",
    *(f"transforms/{wing}/" for wing in ("evidence", "histories", "lake", "quality")),
    "test_data_dictionary.py",
)
# About half of what these tests take.
LOADING = ("jobs/run/", "jobs/validate/", "jobs/secrets/")
SPARK_GROUPS = ("loading", "asking")
IS_PARALLEL = "PYTEST_XDIST_WORKER" in os.environ


class ByFixtures(LoadScopeScheduling):
    """Gives one process the tests that share fixtures: those of a module, or of a Spark session.

    pytest-xdist's own groups are no groups: it appends their names to ids that pytest no longer lets change.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    module = nodeid.partition("::")[0].removeprefix("tests/")
    if module.startswith(LOADING):
        return SPARK_GROUPS[0]
    return SPARK_GROUPS[1] if module.startswith(SPARK_MODULES) else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFixtures:
    """How `pytest -n 3` divides the tests."""
    config.option.loadscopereorder = False  # in the order of the tests, not by their number
    return ByFixtures(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In parallel runs, the groups of minutes come first: groups of seconds share what time is left."""
    if IS_PARALLEL:
        items.sort(key=lambda item: group_of(item.nodeid) not in SPARK_GROUPS)


@pytest.fixture(scope="session")
def golden() -> Path:
    """The captures by real Kafka (tests/golden/README.md)."""
    return GOLDEN


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The session that every Spark test shares."""
    from jobs.runtime.session import open_session

    session = open_session("local[2]", quick=True)
    yield session
    session.stop()


@pytest.fixture
def interpreted(spark: Any) -> Iterator[None]:
    """Spark interprets queries over a few rows sooner than it compiles them."""
    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in settings:
        spark.conf.unset(name)


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
