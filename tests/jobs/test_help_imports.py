"""Help comes before the libraries that take long to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import VERBS

# Each takes 0.1 s to 7 s.
LIBRARIES = (
    "altair",
    "deltalake",
    "great_expectations",
    "llvmlite",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
)
# What the core concludes from captures: 0.2 s in all.
OF_THE_CORE = ("kraft_core.evidence.conclusions", "kraft_core.findings.judge", "kraft_core.protocol.replica")
ASKED = """
import sys
from contextlib import suppress
from jobs.cli import main
with suppress(SystemExit):
    main([sys.argv[1], "--help"])
print("imported:", *set(sys.argv[2:]) & set(sys.modules))
"""

# Each takes 2 ms to 5 ms; a small file is dumped in 70 ms.
SMALL_LIBRARIES = ("concurrent.futures", "json", "shutil", "tempfile")
SMALL_FILE = Path(__file__).parents[1] / "golden/corrupt/good/00000000000000000408.log"


@pytest.mark.parametrize("verb", VERBS)
def test_help_imports_no_library(verb: str) -> None:
    words = [sys.executable, "-c", ASKED, verb, *LIBRARIES, *OF_THE_CORE]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    usage, _, imported = done.stdout.rpartition("imported:")
    assert usage.startswith(f"usage: kraftlake {verb}")
    assert imported.split() == []


def test_dump_of_a_small_file_imports_no_library() -> None:
    dumped = ASKED.replace('"--help"', f'"--format", "kafka", {str(SMALL_FILE)!r}')
    words = [sys.executable, "-c", dumped, "dump", *LIBRARIES, *SMALL_LIBRARIES]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Dumping ")
    assert done.stdout.splitlines()[-1] == "imported:"
