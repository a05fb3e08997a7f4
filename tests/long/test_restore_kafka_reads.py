"""restore verify --kafka: the tools of a real Kafka read what was written, and no secret of it is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.restore_kafka import read_by_kafka
from jobs.runtime.outcome import Failure
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.image.replica import CapturedReplica
from tests.kafka import LAB, RELEASE
from tests.long.live_quorum import kafka_tools
from tests.long.restoring import restored

WORDS = ("--voters", "21@127.0.0.1:29781", "--controllers-stopped", "--brokers-stopped")
SECRETS = ("golden-secret", "salt", "storedKey", "password=", "tokenId")


def _kafka(release: str = RELEASE) -> Path:
    kafka_tools(release)
    return LAB / f"kafka-{release}"


def _verify(folder: Path, kafka: Path) -> subprocess.CompletedProcess[str]:
    given = ["verify", str(folder / "new"), "--against", str(folder / "plan.json"), "--kafka", str(kafka)]
    command = [sys.executable, "-m", "jobs.cli", "restore", *given]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def _written(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.parametrize(
    ("moment", "release"),
    [
        ("uncommitted-truncation/after", RELEASE),
        ("static-upgrade/at-3.9.2", RELEASE),
        ("static-upgrade/at-3.9.2", "3.9.2"),
        ("dynamic-membership", RELEASE),
    ],
)
def test_its_tools_read_what_was_written(golden: Path, tmp_path: Path, moment: str, release: str) -> None:
    kafka = _kafka(release)
    made = restored(golden / moment, tmp_path, *WORDS)
    before = _written(tmp_path / "new")
    done = _verify(tmp_path, kafka)
    assert done.returncode == 0, done.stderr
    records = int(done.stdout.partition("reads the same ")[2].split()[0])
    assert records > sum(made["restored"]["counts"].values())
    assert f"kafka-metadata-shell of {kafka} lists the same " in done.stdout
    assert not any(word in done.stdout + done.stderr for word in SECRETS)
    assert _written(tmp_path / "new") == before


@pytest.mark.long
def test_an_older_kafka_does_not_vouch(golden: Path, tmp_path: Path) -> None:
    """It does not know the newest versions of records, and its dump ends with exit code 0 all the same."""
    kafka = _kafka("3.9.2")
    restored(golden / "dynamic-membership", tmp_path, *WORDS)
    done = _verify(tmp_path, kafka)
    assert done.returncode == 1
    assert "differently from the plan: the record at offset 8. Is its release as new" in done.stderr
    assert not any(word in done.stdout + done.stderr for word in SECRETS)


@pytest.mark.long
def test_other_metadata_is_seen(golden: Path, tmp_path: Path) -> None:
    """A checkpoint that Kafka reads well, but that is not of the planned metadata."""
    kafka, files = _kafka(), list[Path]()
    for moment in ("uncommitted-truncation/after", "static-upgrade"):
        folder = tmp_path / moment.partition("/")[0]
        folder.mkdir()
        name = restored(golden / moment, folder, *WORDS)["restored"]["checkpoint"]
        files.append(folder / "new/node-21" / LOG_DIR_NAME / name)
    other = CapturedReplica.of_file(files[1]).image_at()
    with pytest.raises(
        Failure,
        match=r"kafka-metadata-shell of .* reads .* differently from the plan: "
        r"/image/",
    ):
        list(read_by_kafka(kafka, files[0], other))
