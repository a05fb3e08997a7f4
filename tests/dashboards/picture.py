"""python -m tests.dashboards.picture [FOLDER]: the demo's page, quorum.html, and its picture, quorum.png.

The picture in docs/ is such a one: compare them by eye when the page has changed, and replace it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.dashboards.browser import Visit, launched

CHECKOUT = Path(__file__).parents[2]
CAPTURES = CHECKOUT / "tests" / "golden" / "uncommitted-truncation"
NOW = "2026-11-21T10:00:00Z"
SIZE = {"width": 1280, "height": 1400}


def draw(folder: Path) -> None:
    """Write quorum.html and quorum.png into the folder. Raises CalledProcessError if a verb fails."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "quorum.html"
    with TemporaryDirectory() as scratch:
        lake = Path(scratch) / "demo.lake"
        _kraftlake("run", "--captures", CAPTURES, "--lake", lake)
        _kraftlake("report", "--lake", lake, "--out", page, "--now", NOW)
    with launched() as browser:
        visit = Visit(browser, page, viewport=SIZE)
        visit.page.screenshot(path=folder / "quorum.png")
        visit.end()


def _kraftlake(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "jobs.cli", *map(str, words)], cwd=CHECKOUT, check=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
