"""kraftlake capture --broker-dirs: what a broker holds, without its messages."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.cli import main
from kraft_core.format.log_dirs import CLEAN_SHUTDOWN
from kraft_core.restore.broker_dirs import broker_log_dir

TOPIC = "o" * 21 + "A"


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    path = tmp_path / "kafka-1"
    for name in ("orders-0", f"orders-1.{'0' * 32}-stray", "__cluster_metadata-0", "logs"):
        (path / name).mkdir(parents=True)
        (path / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC}")
        (path / name / "00000000000000000000.log").write_bytes(b"messages")
    (path / "orders-0/leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    (path / "meta.properties").write_text(f"version=1\nnode.id=7\ncluster.id=c\ndirectory.id={'a' * 21}A\n")
    (path / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":5}')
    return path


def captured(*paths: Path, to: Path) -> int:
    return main(["capture", "--broker-dirs", *map(str, paths), "--to", str(to)])


def test_a_copy_says_what_the_broker_holds(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert captured(log_dir, to=tmp_path / "to") == 0
    said = json.loads(capsys.readouterr().out)
    copy = Path(said["path"])
    assert (said["broker_id"], said["partitions"], copy.name) == (7, 2, "a" * 21 + "A")
    assert copy.parents[1] == tmp_path / "to/c/broker-7"
    made = broker_log_dir(copy, "c")
    assert (made.copied_at is not None, made.clean_shutdown) == (True, 5)
    assert replace(made, copied_at=None) == broker_log_dir(log_dir, "c")
    files = sorted(file.name for file in copy.rglob("*") if file.is_file())
    written = ["capture.json", "leader-epoch-checkpoint", "meta.properties", "partition.metadata"]
    assert files == [CLEAN_SHUTDOWN, *written, "partition.metadata"]
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_a_directory_that_is_none(log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert captured(log_dir, tmp_path / "absent", to=tmp_path / "to") == 1
    assert "its meta.properties cannot be read" in capsys.readouterr().err
    assert captured(tmp_path / "absent", to=tmp_path / "to") == 3
    assert captured(log_dir, to=log_dir / "to") == 3
    (log_dir / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=..\n")
    assert captured(log_dir, to=tmp_path / "to") == 3
