"""kraftlake plan start-broker as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.format.log_dirs import CLEAN_SHUTDOWN
from kraft_core.image.tables import BROKERS, PARTITIONS
from tests.kraft_core.plan.captured import metadata

NOW = "2026-11-21T09:15:25Z"


def asked(captures: Path, broker_id: int, *dirs: Path) -> list[str]:
    words = [
        "plan",
        "start-broker",
        str(broker_id),
        "--captures",
        str(captures),
        "--now",
        NOW,
        "--format",
        "json",
    ]
    return [*words, *(["--broker-dirs", *map(str, dirs)] if dirs else [])]


def shut_down(log_dir: Path, broker_epoch: int) -> None:
    (log_dir / CLEAN_SHUTDOWN).write_text(json.dumps({"version": 0, "brokerEpoch": broker_epoch}))


def test_a_topic_that_is_gone(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = metadata("uncommitted-truncation/before")
    assert known.image is not None
    (broker_id,), broker = next(known.image.tables.items(BROKERS))
    dirs = [tmp_path / directory_id for directory_id in broker.log_dirs]
    for path in dirs:
        path.mkdir()
        text = f"version=1\nnode.id={broker_id}\ncluster.id={known.quorum.cluster_id}\n"
        (path / "meta.properties").write_text(f"{text}directory.id={path.name}\n")
        shut_down(path, broker.broker_epoch)
    (dirs[0] / "gone-0").mkdir()
    stated = dirs[0] / "gone-0/partition.metadata"
    stated.write_text(f"version: 0\ntopic_id: {'g' * 21}A")
    captures = golden / "uncommitted-truncation/before"
    assert main(asked(captures, broker_id, *dirs)) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "risky"
    assert {risk["name"] for risk in made["risks"]} == {"unknown_topic", "lacking_replica"}
    assert "gone-0 of topic id" in made["reason"]
    stated.unlink()
    assert main(asked(captures, broker_id, *dirs)) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "not_known"


def test_an_old_copy_is_evidence_of_then_only(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its capture.json says when it was made: the disk may be another one since."""
    known = metadata("uncommitted-then-committed")
    assert known.image is not None
    (broker_id,), broker = next(known.image.tables.items(BROKERS))
    for directory_id in broker.log_dirs:
        path = tmp_path / directory_id
        path.mkdir()
        text = f"version=1\nnode.id={broker_id}\ncluster.id={known.quorum.cluster_id}\n"
        (path / "meta.properties").write_text(f"{text}directory.id={directory_id}\n")
        shut_down(path, broker.broker_epoch)
    for _, each in known.image.tables.items(PARTITIONS):
        if broker_id in each.replicas:
            directory = each.directories[each.replicas.index(broker_id)]
            held = tmp_path / directory / f"{each.topic_name}-{each.partition_id}"
            held.mkdir()
            (held / "partition.metadata").write_text(f"version: 0\ntopic_id: {each.topic_id}")
    dirs = [tmp_path / directory_id for directory_id in broker.log_dirs]
    words = asked(golden / "uncommitted-then-committed", broker_id, *dirs)
    words[words.index(NOW)] = "2026-11-21T09:19:58Z"
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "safe"
    (dirs[0] / "capture.json").write_text('{"captured_at": "2026-11-19T09:19:58Z"}')
    assert main(words) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["verdict"], made["is_evidence_old"]) == ("safe_as_of", True)
    assert made["evidence_age"].startswith("The evidence ends at 2026-11-19 09:19:58Z, 2 d ago")
    (dirs[0] / "capture.json").write_text("{}")
    assert main(words) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "not_known"


def test_wrong_usage(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(golden / "uncommitted-truncation/before", 11)) == 2
    assert main(asked(golden / "uncommitted-truncation/before", 11, tmp_path / "none")) == 2
    assert capsys.readouterr().err.endswith("/none does not exist\n")
    assert main(asked(golden / "uncommitted-truncation/before", 11, tmp_path)) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert made["missing"][0] == f"{tmp_path}/meta.properties cannot be read: No such file or directory"
