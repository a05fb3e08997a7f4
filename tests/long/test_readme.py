"""The answer that README shows is the one that its run gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_run_prints_what_readme_shows(tmp_path: Path) -> None:
    shown = re.search(r"```\n(cluster .*?)```", (CHECKOUT / "README.md").read_text(), flags=re.DOTALL)
    assert shown is not None
    captures = ("tests/golden/dynamic-membership", "tests/golden/uncommitted-truncation")
    command = [
        sys.executable,
        "-m",
        "jobs.cli",
        "run",
        "--lake",
        str(tmp_path / "lake"),
        "--captures",
        *captures,
    ]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert shown[1] in done.stdout
