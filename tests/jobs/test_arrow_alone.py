"""Verbs that need no session do not wait for pandas or PySpark, and who needs pandas later has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.outcome import ExitCode

ASKED = """
import sys
from jobs.cli import main
code = main(["clusters", "--lake", sys.argv[1]])
assert "pyarrow" in sys.modules
print("imported:", code, "pandas" in sys.modules)
import pandas
import pyarrow
frame = pyarrow.table({"offset": [1, None]}).to_pandas()
print("made:", type(frame) is pandas.DataFrame, pyarrow.Table.from_pandas(frame).column("offset").null_count)
"""


def test_a_verb_with_a_lake_does_not_import_pandas(lake: Any) -> None:
    words = [sys.executable, "-c", ASKED, str(lake.path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["imported: 0 False", "made: True 1"]


THREADS = """
import os
from jobs.cli import main
assert main(["version"]) == 0
before = len(os.listdir("/proc/self/task"))
import numpy
print(len(os.listdir("/proc/self/task")) - before, os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(("chosen", "has"), [(None, "1"), ("2", "2")])
def test_numpy_starts_no_threads_unless_the_user_says_so(chosen: str | None, has: str) -> None:
    """They spin for as long as its import takes, on every core."""
    variables = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if chosen is not None:
        variables["OPENBLAS_NUM_THREADS"] = chosen
    words = [sys.executable, "-c", THREADS]
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=True)
    started = min(int(has), os.cpu_count() or 1) - 1
    assert done.stdout.splitlines()[-1] == f"{started} {has}"


IMPORTED = """
import sys
from jobs.cli import main
code = main(sys.argv[1:])
print("imported:", code, "pyspark" in sys.modules)
"""
FAMILY = "iWP35uOsShu1pFlBJh_E7w"


def asked(*words: str | Path) -> list[str]:
    """The exit code of a verb, and whether it has imported PySpark."""
    command = [sys.executable, "-c", IMPORTED, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "imported:" in done.stdout, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize(
    "words",
    [
        "clusters",
        "findings list",
        "metrics",
        f"explain --cluster {FAMILY} --offset 355",
        f"report --cluster {FAMILY} --out PAGE",
        f"plan --cluster {FAMILY} remove 3",
        f"diff --cluster {FAMILY} --from 2 --to 355",
    ],
)
def test_a_verb_without_a_session_does_not_import_pyspark(words: str, lake: Any, tmp_path: Path) -> None:
    """It takes 70 ms, a sixth of such a verb."""
    page = str(tmp_path / "page.html")
    code, imported = asked(*words.replace("PAGE", page).split(), "--lake", lake.path)
    assert (int(code) in (ExitCode.FINE, ExitCode.FOUND), imported) == (True, "False")


def test_nor_does_a_run_with_nothing_new(lake: Any, golden: Path, tmp_path: Path) -> None:
    """As the memo of the last run answers."""
    copy = shutil.copytree(lake.path, tmp_path / "lake")
    words = ("run", "--captures", golden / "uncommitted-truncation", "--fail-on", "never", "--lake", copy)
    assert [asked(*words) for _ in range(2)] == [["0", "True"], ["0", "False"]]
