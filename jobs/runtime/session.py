"""The Spark session of every job: settings from spark-defaults.conf, jars resolved once, quiet logs.

`python -m jobs.runtime.session` resolves the jars (set-up does it); later sessions start from these files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

PACKAGE = Path(__file__).resolve().parents[1]
NOTHING: Mapping[str, str] = {}


def packaged(name: str) -> str:
    """A file of the package jobs, which may be zipped in a wheel, or else at the top of a checkout."""
    inside = resources.files("jobs").joinpath(name)
    return inside.read_text() if inside.is_file() else (PACKAGE.parent / name).read_text()


def ivy_folder() -> Path | None:
    """Where the jars are kept between sessions; None where this environment cannot be written."""
    prefix = Path(sys.prefix)
    if not os.access(prefix, os.W_OK):
        return None
    return prefix / "share" / "kraftlake" / "ivy"


def read_defaults() -> dict[str, str]:
    """The settings of spark-defaults.conf, key to value."""
    settings: dict[str, str] = {}
    for line in packaged("spark-defaults.conf").splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not line.startswith("#"):
            settings[words[0]] = words[1].strip()
    return settings


def jar_settings(settings: dict[str, str], ivy: Path | None) -> dict[str, str]:
    """spark.jars with the resolved files where they are all there, else the coordinates to resolve.

    A marker file names the coordinates that the folder holds, so a new version is resolved anew.
    """
    if ivy is None:
        return {}
    packages = settings["spark.jars.packages"]
    marker = ivy / "resolved"
    if marker.is_file() and marker.read_text() == packages:
        jars = sorted((ivy / "jars").glob("*.jar"))
        return {"spark.jars": ",".join(map(str, jars)), "spark.jars.packages": ""}
    return {"spark.jars.ivy": str(ivy)}


def is_submitted() -> bool:
    """Whether spark-submit started this program, and its JVM."""
    return "SPARK_ENV_LOADED" in os.environ


def settings_in_force(own: Mapping[str, str]) -> dict[str, str]:
    """The settings of the session to come: above those of spark-defaults.conf a person's own, above all what
    spark-submit was given.
    """
    settings = read_defaults() | dict(own)
    if is_submitted():
        SparkContext._ensure_initialized()
        settings |= dict(SparkConf().getAll())
    return settings


def open_session(
    master: str | None = None,
    say: Callable[[str], None] | None = None,
    quick: bool = False,
    own: Mapping[str, str] = NOTHING,
) -> SparkSession:
    """A session by spark-defaults.conf; local[*] unless a master is named or spark-submit set one.

    Under spark-submit what it was given wins, and its jars are there already.

    Parameters: `master` as Spark takes it; `say` is told about long waits; `quick` is for jobs that read
    little, where the start counts for more than the speed reached later; `own` settings win over the file's.
    """
    settings = read_defaults()
    if quick:
        settings["spark.driver.extraJavaOptions"] = settings["spark.kraftlake.quickJavaOptions"]
    settings |= own
    if is_submitted():
        return submitted_session(settings, master)
    ivy = ivy_folder()
    jars = jar_settings(settings, ivy)
    if say is not None and "spark.jars" not in jars:
        say("fetching the Delta jars (once)")
    master = master or settings.get("spark.master", "local[*]")
    prepare_environment(master)
    with stdout_is_stderr():
        spark = configured(SparkSession.builder.master(master), settings | jars).getOrCreate()
    if ivy is not None and "spark.jars" not in jars:
        (ivy / "resolved").write_text(settings["spark.jars.packages"])
    return spark


def submitted_session(settings: dict[str, str], master: str | None) -> SparkSession:
    """The session of a program that spark-submit started, whose JVM runs already."""
    SparkContext._ensure_initialized()
    given = dict(SparkConf().getAll())
    missing = {k: v for k, v in settings.items() if k not in given and not k.startswith("spark.jars")}
    builder = SparkSession.builder.master(master) if master else SparkSession.builder
    return configured(builder, missing).getOrCreate()


def configured(builder: SparkSession.Builder, settings: dict[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


@contextmanager
def stdout_is_stderr() -> Iterator[None]:
    """Let the JVM that is started here print to stderr, whatever it prints: stdout is for results."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def prepare_environment(master: str) -> None:
    """What Spark reads from the environment before its JVM starts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_CONF_DIR", str(conf_folder()))


def conf_folder() -> Path:
    """A folder with log4j2.properties that keeps Spark's own chatter off the terminal."""
    folder = Path(tempfile.gettempdir()) / f"kraftlake-conf-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    target = folder / "log4j2.properties"
    text = packaged("log4j2.properties")
    if not target.is_file() or target.read_text() != text:
        target.write_text(text)
    return folder


if __name__ == "__main__":
    open_session(say=lambda line: print(line, file=sys.stderr), quick=True).stop()
