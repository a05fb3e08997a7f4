"""make run in a fresh clone: the page, and what makes the next start fast."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def _make_run(clone: Path) -> str:
    """What it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "MAKE"))}
    command = ["make", "run"]
    done = subprocess.run(
        command, cwd=clone, env=kept, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
def test_a_fresh_clone_comes_to_the_page(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
    first = _make_run(clone)
    assert "page: quorum.html" in first
    assert first.count("archiving Spark's classes") == 1
    assert "rPoTXydvQsK3Nv6AA77Cqg" in (clone / "quorum.html").read_text()
    (archive,) = (clone / ".venv/share/kraftlake/classes").iterdir()
    assert archive.suffix == ".jsa"
    said = [line for line in first.splitlines() if not line.startswith((" ", "cluster ", "{"))]
    assert len(said) <= 18, said
    again = _make_run(clone)
    assert "archiving" not in again
    assert "nothing new" in again
