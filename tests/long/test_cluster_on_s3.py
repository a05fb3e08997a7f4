"""A cluster whose workers share the lake's store with the driver, and Python and captures, but no folder that
is written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.processes import CHECKOUT, LONGEST, Started, run, tables
from tests.long.test_cluster import SPARK, Cluster
from transforms.lake.storage.location import StoreUrl

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("s3")]
LAKE = StoreUrl("bucket", "lake")


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """The driver's folder for temporary files and the local lake, which workers do not see."""
    folder = tmp_path / "driver"
    folder.mkdir()
    return folder


@pytest.fixture
def cluster(tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    started = Cluster(tmp_path, hidden=driver)
    monkeypatch.setenv("TMPDIR", str(driver))
    yield started
    started.kill()


def test_workers_that_share_the_store_alone(
    cluster: Cluster, driver: Path, golden: Path, tmp_path: Path
) -> None:
    captures = [golden / "v4.4.0-mini", golden / "uncommitted-truncation"]
    hidden = run(tmp_path / "hidden", driver / "unseen", captures, "--master", cluster.url)
    assert hidden.ended() != 0
    assert run(tmp_path / "local", driver / "lake", captures).ended() == 0
    done = run(tmp_path / "run", LAKE, captures, "--master", cluster.url)
    assert done.ended() == 0, done.err.read_text()
    assert tables(LAKE) == tables(driver / "lake")
    again = Started(tmp_path / "derive", "derive", "--lake", str(LAKE), "--master", cluster.url)
    assert again.ended() == 0, again.err.read_text()
    assert tables(LAKE) == tables(driver / "lake")


def test_spark_submit(cluster: Cluster, golden: Path, tmp_path: Path) -> None:
    """With the packages that docs/running.md names."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, CHECKOUT]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    script = shutil.copy(CHECKOUT / "jobs/cli.py", tmp_path / "cli.py")
    lines = (CHECKOUT / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    packages = f"{settings['spark.jars.packages']},{settings['spark.kraftlake.s3aPackages']}"
    captures = [golden / "v4.4.0-mini"]
    done = subprocess.run(
        [
            SPARK / "bin/spark-submit",
            *("--master", cluster.url),
            *("--properties-file", CHECKOUT / "spark-defaults.conf"),
            *("--packages", packages),
            *("--exclude-packages", settings["spark.kraftlake.s3aExcludes"]),
            *("--conf", f"spark.hadoop.fs.s3a.endpoint={os.environ['AWS_ENDPOINT_URL']}"),
            *("--conf", f"spark.hadoop.fs.s3a.endpoint.region={os.environ['AWS_DEFAULT_REGION']}"),
            *("--py-files", wheel),
            *(script, "run", "--captures", *captures, "--lake", str(LAKE), "--fail-on", "never"),
        ],
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(SPARK)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "local", tmp_path / "here", captures).ended() == 0
    assert tables(LAKE) == tables(tmp_path / "here")
