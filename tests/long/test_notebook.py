"""notebooks/who-led-when.ipynb, run in a session of its own, shows what is stored in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.notebook import NOTEBOOK, stored

pytestmark = pytest.mark.long
CHECKOUT = NOTEBOOK.parents[1]


def test_the_cells_run(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    made = tmp_path / "made.ipynb"
    words = [sys.executable, "-m", "tests.notebook", str(tmp_path / "notebooks"), str(made)]
    subprocess.run(words, cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": str(CHECKOUT)}, check=True)
    found, shown = stored(json.loads(made.read_text())), stored(json.loads(NOTEBOOK.read_text()))
    # What the run prints has times of the run.
    assert [printed(cell) for cell in found[1:]] == [printed(cell) for cell in shown[1:]]
    assert [[o["output_type"] for o in cell] for cell in found] == [
        [o["output_type"] for o in cell] for cell in shown
    ]


def printed(shown: list[dict[str, Any]]) -> str:
    return "".join(line for output in shown for line in output.get("text", ()))
