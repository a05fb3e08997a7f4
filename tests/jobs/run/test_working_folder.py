"""A run imports nothing from the folder in which it is started, neither in the driver nor in workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.runtime import class_archive
from jobs.runtime.outcome import Failure
from tests.jobs.lakes import report

CHECKOUT = Path(__file__).parents[3]
# As the script of an installed package: its own folder, not the working one, is first on the path.
COMMAND = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from jobs.cli import main; sys.exit(main())"
PACKAGES = ("transforms", "kraft_core", "jobs")
MODULES = ("json", "random", "pyarrow", "pandas", "pyspark")


@pytest.fixture
def strangers(tmp_path: Path) -> Path:
    """A folder with packages and modules of the names that workers import, each of which leaves a file."""
    folder = tmp_path / "working"
    folder.mkdir()
    imported = f"open({str(tmp_path / 'imported')!r}, 'a').write(__name__ + '\\n')\n"
    for name in PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(imported)
    for name in MODULES:
        (folder / f"{name}.py").write_text(imported)
    return folder


def test_workers_do_not_import_what_the_working_folder_holds(
    strangers: Path, golden: Path, tmp_path: Path
) -> None:
    captures = golden / "uncommitted-truncation/before"
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMMAND, "run", "--captures", captures, "--lake", tmp_path / "lake"],
        cwd=strangers,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert report(done.stdout)["captures_read"] == 4
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()


def test_nor_does_the_process_that_archives_sparks_classes(
    strangers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(strangers)
    monkeypatch.setattr(class_archive, "TRAINING", "jobs.no_such_module")
    with pytest.raises(Failure, match=r"No module named jobs\.no_such_module$"):
        class_archive.make(tmp_path / "archive.jsa")
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()
