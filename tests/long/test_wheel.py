"""The wheel in environments of its own, outside the checkout, without a network once the jars are there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.runtime import jars

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[2]
CAPTURES = CHECKOUT / "tests/golden/uncommitted-truncation"
VERSIONS = ("3.11", "3.12", "3.13")
JUPYTER = ("nbclient==0.11.0", "nbformat==5.11.1", "ipykernel==7.4.0")
# A network of its own, in which there is only the machine itself.
OFFLINE = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def python(version: str) -> str | None:
    """A Python of that version: on the PATH, or of pyenv or uv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = (str(path) for path in pyenv.glob(f"versions/{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *installed):
        script = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
        if (
            found
            and subprocess.run([found, "-c", script], capture_output=True, text=True).stdout == f"{version}\n"
        ):
            return found
    return None


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, CHECKOUT]
    subprocess.run(build, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(params=VERSIONS)
def environment(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path) -> Iterator[Path]:
    """The bin of an environment into which pip installed the wheel."""
    found = python(request.param)
    if found is None:
        pytest.skip(f"no Python {request.param}")
    subprocess.run([found, "-m", "venv", tmp_path / "venv"], check=True)
    bin = tmp_path / "venv" / "bin"
    pip = [bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", CHECKOUT / "constraints.txt", wheel], check=True)
    yield bin
    shutil.rmtree(tmp_path / "venv")  # 1.3 GB


def test_it_runs_without_a_network(environment: Path, tmp_path: Path) -> None:
    kept = tmp_path / "jars"
    kept.mkdir()
    for file in jars.jars():
        shutil.copy(file, kept)
    variables = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}

    def kraftlake(*words: str | Path) -> str:
        done = subprocess.run(
            [*OFFLINE, environment / "kraftlake", *words],
            cwd=tmp_path,
            env={**variables, "HOME": str(tmp_path), jars.VARIABLE: str(kept)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    lake, page = tmp_path / "lake", tmp_path / "quorum.html"
    flags = ("--lake", lake, "--validate", "--report", page, "--fail-on", "never")
    assert "truncated by epoch 3" in kraftlake("run", "--captures", CAPTURES, *flags)
    assert "iWP35uOsShu1pFlBJh_E7w" in page.read_text()
    assert "355" in kraftlake("sql", "SELECT * FROM voter_history", "--lake", lake)


# Both formats, and a view of SQL's, in a session that nothing else of Kraftlake's has prepared.
VOTERS_OF_NODE_2 = f"""
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
log = spark.read.format("kraft").load("{CAPTURES}/after")
kept = log.where("type = 'KRaftVoters' AND node_id = 2 AND source = 'log'").orderBy("offset")
directories = spark.read.format("kraft_quorum").load("{CAPTURES}/after")
spark.sql("CREATE TEMP VIEW captured USING kraft OPTIONS (path '{CAPTURES}/after')")
(last,) = spark.sql("SELECT max(offset) FROM captured WHERE node_id = 2 AND source = 'log'").first()
print("found", [row.offset for row in kept.collect()], directories.count(), last)
"""
FOUND = "found [2, 25, 28] 4 506"


def test_spark_submit_and_a_notebook_find_the_formats(environment: Path, tmp_path: Path) -> None:
    """As after `activate`: the environment's programs come first, and nothing names them."""
    variables = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    variables |= {"PATH": f"{environment}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    script = tmp_path / "voters.py"
    script.write_text(VOTERS_OF_NODE_2)
    words = [environment / "spark-submit", "--master", "local[2]", script]
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert FOUND in done.stdout, done.stderr

    subprocess.run([environment / "pip", "install", "--quiet", *JUPYTER], check=True)
    cells = [part.strip() for part in VOTERS_OF_NODE_2.split("\n\n")]
    run = (
        "import sys, nbformat, nbclient; book = nbformat.v4.new_notebook();"
        "book.cells = [nbformat.v4.new_code_cell(cell) for cell in sys.argv[1:]];"
        "nbclient.NotebookClient(book, timeout=300).execute(); print(book.cells[-1].outputs)"
    )
    words = [environment / "python", "-c", run, *cells]
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert FOUND in done.stdout, done.stderr
