"""No secret reaches Spark's event log, nor what Spark's processes print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.secrets.planted import SETTINGS, plant

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def test_no_secret_is_in_the_event_log(golden: Path, tmp_path: Path) -> None:
    """A run in a process of its own, with plans in full and Spark's messages on its stderr."""
    markers = plant(golden, tmp_path / "captures")
    events, settings = tmp_path / "events", tmp_path / "kraftlake.toml"
    events.mkdir()
    spark = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.sql.maxMetadataStringLength": "1000000",
        "spark.sql.debug.maxToStringFields": "1000",
        "spark.log.level": "INFO",
        "spark.hadoop.fs.s3a.secret.key": markers.hide("a setting of Spark"),
    }
    settings.write_text(
        f"{SETTINGS}[spark]\n" + "".join(f'"{name}" = "{value}"\n' for name, value in spark.items())
    )
    words = ["run", "--captures", tmp_path / "captures", "--lake", tmp_path / "lake", "--validate"]
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", *map(str, words), "--config", str(settings)],
        cwd=ROOT,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr[-2000:]
    held = {str(file): file.read_bytes() for file in events.rglob("*") if file.is_file()}
    assert sum(map(len, held.values())) > 100_000
    assert b"records" in done.stderr
    held |= {"stdout": done.stdout, "stderr": done.stderr}
    leaks = {name: found for name, text in held.items() if (found := markers.found(text, markers.hidden))}
    assert leaks == {}
