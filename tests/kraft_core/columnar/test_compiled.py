"""Machine code is kept where that is possible, and never needed to be."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import kraft_core

PACKAGE = Path(kraft_core.__file__).parent
GOOD = Path(__file__).parents[2] / "golden" / "corrupt" / "good" / "00000000000000000408.log"

# Nothing can be made below a file.
SCAN = """
import sys, tempfile
if sys.argv[2]:
    tempfile.tempdir = sys.argv[2]
from kraft_core.columnar import compiled, fast, kernel
assert ".whl" in compiled.__file__
assert sum(batch.num_rows for batch in fast.scan_headers(sys.argv[1])) == 74
stats = kernel.scan_batches.stats
print(compiled.cache_folder(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def wheel(tmp_path) -> Path:
    """The package as Spark ships it: nothing can be written beside the modules."""
    path = tmp_path / "kraftlake.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for source in PACKAGE.rglob("*.py"):
            archive.write(source, source.relative_to(PACKAGE.parent))
    return path


def scan(wheel: Path, temporary: Path | None = None, **environment: Path) -> tuple[str, int, int]:
    """The folder of the machine code, and how often it was taken from there, and not, in a new process."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    given = {name: str(path) for name, path in environment.items()}
    done = subprocess.run(
        [sys.executable, "-c", SCAN, GOOD, temporary or ""],
        cwd=wheel.parent,
        env=inherited | {"PYTHONPATH": str(wheel)} | given,
        capture_output=True,
        text=True,
        check=True,
    )
    folder, hits, misses = done.stdout.split()
    return folder, int(hits), int(misses)


def test_a_second_process_takes_what_the_first_compiled(wheel, tmp_path):
    chosen = tmp_path / "chosen"
    folder, hits, misses = scan(wheel, NUMBA_CACHE_DIR=chosen)
    assert Path(folder).parent == chosen
    assert (hits, misses) == (0, 1)
    assert scan(wheel, NUMBA_CACHE_DIR=chosen) == (folder, 1, 0)


def test_damaged_machine_code_is_compiled_anew(wheel, tmp_path):
    folder, _, _ = scan(wheel, NUMBA_CACHE_DIR=tmp_path)
    for held in Path(folder).glob("*.nb?"):
        held.write_bytes(b"no machine code")
    assert scan(wheel, NUMBA_CACHE_DIR=tmp_path) == (folder, 0, 1)


def test_the_folder_is_looked_for(wheel, tmp_path):
    nowhere = tmp_path / "file" / "below"
    (tmp_path / "file").touch()
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    temporary.mkdir()
    folder, _, _ = scan(wheel, NUMBA_CACHE_DIR=nowhere, HOME=home)
    assert Path(folder).parent == home / ".cache"
    folder, _, _ = scan(wheel, temporary, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere)
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
    assert scan(wheel, tmp_path, NUMBA_CACHE_DIR=nowhere / "x", HOME=nowhere)[0] == "None"


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
