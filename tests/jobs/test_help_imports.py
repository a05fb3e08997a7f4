"""Help comes before the libraries that take long to import."""

from __future__ import annotations

import subprocess
import sys

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


@pytest.mark.parametrize("verb", VERBS)
def test_help_imports_no_library(verb: str) -> None:
    words = [sys.executable, "-c", ASKED, verb, *LIBRARIES, *OF_THE_CORE]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    usage, _, imported = done.stdout.rpartition("imported:")
    assert usage.startswith(f"usage: kraftlake {verb}")
    assert imported.split() == []
