"""The Spark session of every job: settings from spark-defaults.conf, jars fetched once, quiet logs."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from jobs.runtime import early_daemon
from jobs.runtime.class_archive import options_of
from jobs.runtime.jars import jars, jars_of
from jobs.runtime.java import is_submitted, java_of
from jobs.runtime.python_path import own_path
from jobs.runtime.spark_jvm import JavaCommand, StartingJvm, java_command, needs_submit
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.objects import endpoint, region

_PACKAGE = Path(__file__).resolve().parents[1]
_NO_SETTINGS: Mapping[str, str] = {}
_WORKERS_PATH = "spark.executorEnv.PYTHONPATH"


def packaged(name: str) -> str:
    """The text of a file in package jobs (perhaps zipped in a wheel), or at the top of the checkout."""
    inside = resources.files("jobs").joinpath(name)
    return inside.read_text() if inside.is_file() else (_PACKAGE.parent / name).read_text()


def _read_defaults() -> dict[str, str]:
    """The settings of spark-defaults.conf by key."""
    settings: dict[str, str] = {}
    for line in packaged("spark-defaults.conf").splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not line.startswith("#"):
            settings[words[0]] = words[1].strip()
    return settings


def _jar_settings(
    settings: Mapping[str, str], say: Callable[[str], None] | None, lake: Location | None
) -> dict[str, str]:
    """spark.jars: Delta's files, or those of the packages that the user names; S3's; and the user's own."""
    packages = settings["spark.jars.packages"]
    is_ours = packages == _read_defaults()["spark.jars.packages"]
    files = [*(jars(say, settings) if is_ours else jars_of(packages, settings))]
    files += _store_jars(settings, lake)
    own = settings.get("spark.jars", "").split(",")
    return {"spark.jars": ",".join(filter(None, [*map(str, files), *own])), "spark.jars.packages": ""}


def _store_jars(settings: Mapping[str, str], lake: Location | None) -> Sequence[Path]:
    """What Spark needs to read a lake's store."""
    if not isinstance(lake, StoreUrl):
        return ()
    excluded = {"spark.jars.excludes": settings["spark.kraftlake.s3aExcludes"]}
    return jars_of(settings["spark.kraftlake.s3aPackages"], {**settings, **excluded})


def settings_in_force(own: Mapping[str, str]) -> dict[str, str]:
    """The settings of the next session: spark-defaults.conf, overridden by the user's own, overridden by
    spark-submit's.
    """
    settings = _read_defaults() | dict(own)
    if is_submitted():
        SparkContext._ensure_initialized()  # pyright: ignore[reportPrivateUsage]
        settings |= dict(SparkConf().getAll())
    return settings


def open_session(
    master: str | None = None,
    say: Callable[[str], None] | None = None,
    quick: bool = False,
    own: Mapping[str, str] = _NO_SETTINGS,
    lake: Location | None = None,
    resident: bool = False,
    workers: bool = False,
) -> SparkSession:
    """A session configured by spark-defaults.conf; local[*] unless a master is named or spark-submit set one.

    Under spark-submit, its settings win and its jars are used.

    Parameters: `master` as Spark takes it; `say` receives a line before a long wait; `quick` is for jobs that
    read little, for which start-up time matters more than peak speed; `own` settings override the file's;
    `lake` is read by the session, perhaps from a store; `resident` is for a process that mostly waits, whose
    JVM is to take little memory; `workers`: tasks will need Python.
    """
    _set_utc()
    _quiet_logs()
    settings = _read_defaults()
    kind = "resident" if resident else "quick" if quick else None
    if kind is not None:
        settings["spark.driver.extraJavaOptions"] = settings[f"spark.kraftlake.{kind}JavaOptions"]
    settings |= _store_settings(lake) | dict(own)
    if is_submitted():
        return _quiet(_submitted_session(settings, master))
    master = master or settings.get("spark.master", "local[*]")
    if settings["spark.sql.catalogImplementation"] == "in-memory":  # else it is the metastore's to say
        settings.setdefault("spark.sql.warehouse.dir", _scratch())
    if master.startswith("local"):
        settings.setdefault("spark.python.daemon.module", early_daemon.MODULE)
        settings[_WORKERS_PATH] = own_path(settings.get(_WORKERS_PATH, ""))
    java = java_of()
    _prepare_environment(master)
    started = SparkContext._gateway is not None  # pyright: ignore[reportPrivateUsage]
    if workers and not started and master.startswith("local"):
        settings |= early_daemon.start_early(settings)
    if kind is not None and not started and needs_submit(master, own) is None:
        command = replace(local_command(java, settings, say), more_jars=tuple(_store_jars(settings, lake)))
        jvm = StartingJvm(command.words(*options_of(command, say)))
        SparkContext._ensure_initialized(gateway=jvm.gateway())  # pyright: ignore[reportPrivateUsage]
        settings["spark.jars.packages"] = ""
    else:
        settings |= _jar_settings(settings, say, lake)
    with _stdout_is_stderr(), _own_log_settings():
        spark = _configured(SparkSession.builder.master(master), settings).getOrCreate()
    return _quiet(spark)


def local_command(
    java: Path, settings: Mapping[str, str] = _NO_SETTINGS, say: Callable[[str], None] | None = None
) -> JavaCommand:
    """The JVM of a local session. Raises Failure if Delta's jars cannot be had."""
    log4j = _conf_folder() / "log4j2.properties"
    return java_command(java, settings, jars(say, settings), log4j)


def _store_settings(lake: Location | None) -> dict[str, str]:
    """The address and region of a lake's store."""
    if not isinstance(lake, StoreUrl):
        return {}
    address = endpoint()
    found = {"spark.hadoop.fs.s3a.endpoint.region": region()}
    return found if address is None else found | {"spark.hadoop.fs.s3a.endpoint": address}


def _set_utc() -> None:
    """Make UTC the zone of this process: PySpark hands out times without a zone, in that of its process."""
    os.environ["TZ"] = "UTC"
    time.tzset()


def _quiet_logs() -> None:
    """Without the tracebacks of py4j when the JVM ends, see jvm_has_ended, or when Ctrl-C interrupts it.

    Nor the page of JSON that PySpark logs for every wrong query, for which we print one line.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # Two of py4j's errors are logged by the root logger.
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _quiet(spark: SparkSession) -> SparkSession:
    """Without the traceback of the accumulators' server when the JVM ends: see jvm_has_ended."""
    server: Any = spark.sparkContext._accumulatorServer  # pyright: ignore[reportPrivateUsage]
    server.handle_error = lambda *_: None
    return spark


def jvm_has_ended() -> bool:
    """Whether this process had a JVM that no longer answers."""
    gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    if gateway is None:
        return False
    try:
        gateway.jvm.System.nanoTime()
    except (Py4JError, OSError):
        return True
    return False


def _submitted_session(settings: dict[str, str], master: str | None) -> SparkSession:
    """The session of a program started by spark-submit, whose JVM is already running."""
    SparkContext._ensure_initialized()  # pyright: ignore[reportPrivateUsage]
    given = dict(SparkConf().getAll())
    missing = {k: v for k, v in settings.items() if k not in given and not k.startswith("spark.jars")}
    builder = SparkSession.builder.master(master) if master else SparkSession.builder
    return _configured(builder, missing).getOrCreate()


def _configured(builder: SparkSession.Builder, settings: dict[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


@contextmanager
def _stdout_is_stderr() -> Iterator[None]:
    """Redirect the output of a JVM started here to stderr: stdout is for results."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def _own_log_settings() -> Iterator[None]:
    """Let Spark's launcher find log4j2.properties; later processes would take the variable for the user's."""
    name = "SPARK_CONF_DIR"
    if name in os.environ:
        yield
        return
    os.environ[name] = str(_conf_folder())
    try:
        yield
    finally:
        del os.environ[name]


@cache
def _scratch() -> str:
    """A folder that goes with this process, for Spark's own: else it makes one where the user is."""
    folder = tempfile.TemporaryDirectory(prefix="kraftlake-warehouse-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return folder.name


def _prepare_environment(master: str) -> None:
    """Set the variables that Spark reads before its JVM starts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _conf_folder() -> Path:
    """A folder with the log4j2.properties that silence Spark's own logging."""
    folder = Path(tempfile.gettempdir()) / f"kraftlake-conf-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    target = folder / "log4j2.properties"
    text = packaged("log4j2.properties")
    if not target.is_file() or target.read_text() != text:
        target.write_text(text)
    return folder
