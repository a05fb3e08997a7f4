"""Verbs that open a lake do not wait for pandas, and who needs it later has it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

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
