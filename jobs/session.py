"""The Spark session of every job: settings from spark-defaults.conf, jars resolved once, quiet logs.

`python -m jobs.session` resolves the jars (set-up does it); later sessions start from the files found.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

PACKAGE = Path(__file__).resolve().parent


def defaults_file() -> Path:
    """spark-defaults.conf: beside this module in an installed wheel, at the top of a checkout."""
    inside = PACKAGE / "spark-defaults.conf"
    return inside if inside.is_file() else PACKAGE.parent / "spark-defaults.conf"


def ivy_folder() -> Path | None:
    """Where the jars are kept between sessions; None where this environment cannot be written."""
    prefix = Path(sys.prefix)
    if not os.access(prefix, os.W_OK):
        return None
    return prefix / "share" / "kraftlake" / "ivy"


def read_defaults() -> dict[str, str]:
    """The settings of spark-defaults.conf, key to value."""
    settings: dict[str, str] = {}
    for line in defaults_file().read_text().splitlines():
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


def open_session(
    master: str | None = None,
    say: Callable[[str], None] | None = None,
    quick: bool = False,
) -> SparkSession:
    """A session by spark-defaults.conf; local[*] unless a master is named or spark-submit set one.

    Parameters: `master` as Spark takes it; `say` is told about long waits; `quick` is for jobs that read
    little, where the start counts for more than the speed reached later.
    """
    settings = read_defaults()
    if quick:
        settings["spark.driver.extraJavaOptions"] = settings["spark.kraftlake.quickJavaOptions"]
    ivy = ivy_folder()
    jars = jar_settings(settings, ivy)
    if say is not None and "spark.jars" not in jars:
        say("fetching the Delta jars (once)")
    prepare_environment()
    builder = SparkSession.builder
    if master is None and "spark.master" not in settings and "SPARK_ENV_LOADED" not in os.environ:
        master = "local[*]"
    if master:
        builder = builder.master(master)
    for key, value in {**settings, **jars}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if ivy is not None and "spark.jars" not in jars:
        (ivy / "resolved").write_text(settings["spark.jars.packages"])
    return spark


def prepare_environment() -> None:
    """What Spark reads from the environment before its JVM starts."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_CONF_DIR", str(conf_folder()))


def conf_folder() -> Path:
    """A folder with log4j2.properties that keeps Spark's own chatter off the terminal."""
    folder = Path(tempfile.gettempdir()) / f"kraftlake-conf-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    target = folder / "log4j2.properties"
    text = (PACKAGE / "log4j2.properties").read_text()
    if not target.is_file() or target.read_text() != text:
        target.write_text(text)
    return folder


if __name__ == "__main__":
    open_session(say=lambda line: print(line, file=sys.stderr), quick=True).stop()
