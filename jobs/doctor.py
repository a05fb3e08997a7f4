"""kraftlake doctor: check each part of the environment, one line each, and print what to fix."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.arguments import add_format
from jobs.runtime.crash import failure_of
from jobs.runtime.lakes import lake_folder
from jobs.runtime.outcome import ExitCode, Failure, one_line
from jobs.runtime.output import json_line, print_line
from transforms.lake.storage.location import Location

EXAMPLES = """examples:
  kraftlake doctor
  kraftlake doctor --lake /data/lake --format json

Each line begins with ok, with note (it works, but slowly or in a limited way), or with WRONG and ends
with what to do. The exit code is 78 if a line is WRONG."""

OK, NOTE, WRONG = "ok", "note", "WRONG"
_LEAST_FREE_BYTES = 1 << 30
_LEAST_MEMORY_BYTES = 3 << 30


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found of one part. state: OK, NOTE or WRONG."""

    part: str
    state: str
    words: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lake", type=lake_folder, metavar="PATH", help="also check this lake")
    add_format(parser, "text", "json")


def run(args: argparse.Namespace) -> int:
    """Print a line for each part. Returns the exit code."""
    found = list(diagnoses(args.lake))
    for each in found:
        if args.format == "json":
            print_line(json_line({"part": each.part, "state": each.state, "text": each.words}))
        else:
            print_line(f"{each.state:<5}  {each.part:<7}  {each.words}")
    return ExitCode.ENVIRONMENT if any(each.state == WRONG for each in found) else ExitCode.FINE


def diagnoses(lake: Location | None) -> Iterator[Diagnosis]:
    """Every part, in the order in which a run needs them."""
    checks: dict[str, Callable[[], tuple[str, str]]] = {
        "java": _java,
        "spark": _spark,
        "jars": _jars,
        "archive": _archive,
        "kernel": _kernel,
        "disk": lambda: _disk(lake),
        "memory": _memory,
        "clock": _clock,
    }
    if lake is not None:
        checks["lake"] = lambda: _lake(lake)
    for part, check in checks.items():
        try:
            state, words = check()
        except Exception as error:  # whatever a broken environment raises is the finding
            state, words = WRONG, str(failure_of(error, lake) or one_line(error))
        yield Diagnosis(part, state, words)


def _java() -> tuple[str, str]:
    from jobs.runtime.java import java_of, release_name

    java = java_of()
    return OK, f"{java}, {release_name(java)}"


def _spark() -> tuple[str, str]:
    from importlib.metadata import version

    from jobs.runtime.spark_jvm import needs_submit

    why = needs_submit("local", {})
    if why is not None:
        return (
            NOTE,
            f"PySpark {version('pyspark')}, started by spark-submit because {why}: unset it if you can",
        )
    return OK, f"PySpark {version('pyspark')}, Delta {version('delta-spark')}"


def _jars() -> tuple[str, str]:
    from jobs.runtime.jars import folder, lacking

    missing = lacking(folder())
    if missing:
        return NOTE, f"{len(missing)} of Delta's jars are not in {folder()}: the first run fetches them"
    return OK, f"Delta's jars are in {folder()}"


def _archive() -> tuple[str, str]:
    from jobs.runtime import class_archive
    from jobs.runtime.jars import folder, lacking
    from jobs.runtime.java import java_of
    from jobs.runtime.session import local_command

    if lacking(folder()):
        return NOTE, "the archive of Spark's classes is made once the jars are there"
    try:
        command = local_command(java_of())
    except Failure:
        return NOTE, "no archive of Spark's classes can be made without Java"
    why = class_archive.unused(command)
    if why is not None:
        make = "" if class_archive.unwanted(command) else ": python -m jobs.archive_classes makes it"
        return NOTE, f"Spark starts slower without the archive of its classes, {why}{make}"
    return OK, f"Spark's classes are archived in {class_archive.archive_of(command)}"


def _kernel() -> tuple[str, str]:
    from kraft_core.columnar.compiled import cache_folder

    folder = cache_folder()
    if folder is None:
        return NOTE, "every process compiles the kernel again: set NUMBA_CACHE_DIR to a writable folder"
    if not any(folder.iterdir()):
        return NOTE, f"the kernel is not compiled yet; the first run compiles it: {folder}"
    return OK, f"the kernel is compiled in {folder}"


def _disk(lake: Location | None) -> tuple[str, str]:
    from transforms.lake.storage.files import is_folder

    places = [Path(tempfile.gettempdir())]
    if isinstance(lake, Path) and is_folder(lake):
        places.append(lake)
    free = {place: shutil.disk_usage(place).free for place in places}
    words = ", ".join(f"{size / 1e9:.1f} GB free for {place}" for place, size in free.items())
    if min(free.values()) < _LEAST_FREE_BYTES:
        return WRONG, f"{words}: free some, or choose another folder with TMPDIR or --lake"
    return OK, words


def _memory() -> tuple[str, str]:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    words = f"{size / 1e9:.1f} GB, {os.cpu_count()} processors"
    if size < _LEAST_MEMORY_BYTES:
        return NOTE, f"{words}: lower spark.driver.memory in kraftlake.toml ([spark])"
    return OK, words


def _clock() -> tuple[str, str]:
    now = datetime.now(UTC)
    # The sources are not newer than any moment at which they run.
    made = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    words = f"{now:%Y-%m-%d %H:%M:%SZ}"
    if now < made:
        return WRONG, f"{words} is before kraftlake was installed ({made:%Y-%m-%d %H:%M:%SZ}): set the clock"
    return OK, words


def _lake(path: Location) -> tuple[str, str]:
    from jobs.runtime.lakes import must_be_lake, must_be_whole
    from transforms.lake.delta_rs import cluster_ids
    from transforms.lake.storage import FORMAT_VERSION
    from transforms.lake.storage.files import write_fault

    try:
        must_be_lake(path)
        must_be_whole(path)
    except Failure as failure:
        return WRONG, str(failure)
    words = f"{path}, format {FORMAT_VERSION}, clusters: {len(cluster_ids(path))}"
    if write_fault(path) is not None:
        return NOTE, f"{words}; this user can read it but not write to it"
    return OK, words
