"""Machine code is kept where that is possible, and never needed to be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kraft_core

PACKAGE = Path(kraft_core.__file__).parent
GOOD = Path(__file__).parents[2] / "golden" / "corrupt" / "good" / "00000000000000000408.log"

# Nothing can be made below a file.
FOLDER = """
import sys, tempfile
if sys.argv[2]:
    tempfile.tempdir = sys.argv[2]
from kraft_core.columnar import compiled
assert ".whl" in compiled.__file__
print(compiled.cache_folder())
"""
SCAN = (
    FOLDER
    + """
from kraft_core.columnar import fast, kernel
assert sum(batch.num_rows for batch in fast.scan_headers(sys.argv[1])) == 74
stats = kernel.scan_batches.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The package as Spark ships it: nothing can be written beside the modules."""
    path = tmp_path_factory.mktemp("wheel") / "kraftlake.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for source in PACKAGE.rglob("*.py"):
            archive.write(source, source.relative_to(PACKAGE.parent))
    return path


def printed(program: str, wheel: Path, temporary: Path | None, environment: dict[str, Path]) -> list[str]:
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    given = {name: str(path) for name, path in environment.items()}
    done = subprocess.run(
        [sys.executable, "-c", program, GOOD, temporary or ""],
        cwd=wheel.parent,
        env=inherited | {"PYTHONPATH": str(wheel)} | given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def folder_of(wheel: Path, temporary: Path | None = None, **environment: Path) -> str:
    """The folder of the machine code in a new process."""
    (folder,) = printed(FOLDER, wheel, temporary, environment)
    return folder


def scan(wheel: Path, temporary: Path | None = None, **environment: Path) -> tuple[str, int, int]:
    """The folder of the machine code, and how often it was taken from there, and not, in a new process."""
    folder, hits, misses = printed(SCAN, wheel, temporary, environment)
    return folder, int(hits), int(misses)


@pytest.fixture(scope="module")
def chosen(wheel, tmp_path_factory) -> Path:
    """A folder for machine code, in which a process has left its own."""
    place = tmp_path_factory.mktemp("code") / "chosen"
    folder, hits, misses = scan(wheel, NUMBA_CACHE_DIR=place)
    assert Path(folder).parent == place
    assert (hits, misses) == (0, 1)
    return place


def test_a_second_process_takes_what_the_first_compiled(wheel, chosen):
    (folder,) = chosen.iterdir()
    assert scan(wheel, NUMBA_CACHE_DIR=chosen) == (str(folder), 1, 0)


def test_damaged_machine_code_is_compiled_anew(wheel, chosen, tmp_path):
    shutil.copytree(chosen, tmp_path / "chosen")
    (folder,) = (tmp_path / "chosen").iterdir()
    held = list(folder.glob("*.nb?"))
    assert held
    for file in held:
        file.write_bytes(b"no machine code")
    assert scan(wheel, NUMBA_CACHE_DIR=folder.parent) == (str(folder), 0, 1)


def test_the_folder_is_looked_for(wheel, tmp_path):
    nowhere = tmp_path / "file" / "below"
    (tmp_path / "file").touch()
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    folder = folder_of(wheel, NUMBA_CACHE_DIR=nowhere, HOME=home)
    assert Path(folder).parent == home / ".cache"
    folder = folder_of(wheel, temporary, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere)
    assert Path(folder).parent.parent == temporary
    assert Path(folder).parent.stat().st_mode & 0o777 == 0o700


def test_without_any_folder_it_works_all_the_same(wheel, tmp_path):
    nowhere = tmp_path / "file" / "below"
    (tmp_path / "file").touch()
    assert scan(wheel, nowhere, NUMBA_CACHE_DIR=nowhere, HOME=nowhere) == ("None", 0, 1)


def test_a_folder_that_others_can_write_does_not_serve(wheel, tmp_path):
    nowhere = tmp_path / "file"
    nowhere.touch()
    (tmp_path / f"kraftlake-{os.getuid()}").mkdir()
    (tmp_path / f"kraftlake-{os.getuid()}").chmod(0o777)
    assert folder_of(wheel, tmp_path, NUMBA_CACHE_DIR=nowhere / "x", HOME=nowhere) == "None"


COMPILE_ALL = """
from numba.core.registry import CPUDispatcher
from kraft_core.columnar import __main__, kernel, straight, text
held = [f for module in (kernel, straight, text) for f in vars(module).values()]
functions = [f for f in held if isinstance(f, CPUDispatcher)]
entries = [f for f in functions if f.stats.cache_path]
print(sorted(f.__name__ for f in entries))
__main__.main()
print(sorted(f.__name__ for f in entries if f.signatures))
"""


@pytest.mark.long
def test_what_is_compiled_beforehand_is_all_that_python_calls():
    done = subprocess.run([sys.executable, "-c", COMPILE_ALL], capture_output=True, text=True, check=True)
    entries, used = done.stdout.splitlines()
    assert used == entries != "[]"


def test_numba_is_loaded_for_the_kernel_alone():
    names = [
        ".".join(source.relative_to(PACKAGE.parent).with_suffix("").parts)
        for source in PACKAGE.rglob("*.py")
        if source.parent.name != "columnar" and source.name != "__main__.py"
    ]
    names += ["kraft_core.columnar", "kraft_core.columnar.schema", "kraft_core.columnar.reference"]
    script = f"import sys\nfor name in {names!r}: __import__(name)\nassert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
