"""kraftlake plan format as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.messages.uuid_text import uuid_bytes

CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
SECRET = "SCRAM-SHA-256=[name=alice,password=alice-secret]"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A configuration; its log directory does not exist."""
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://host-1:9093\ncontroller.quorum.bootstrap.servers=host-1:9093\n"
        f"log.dirs={tmp_path}/data\n"
    )
    return file


def asked(node: Path, *words: str) -> list[str]:
    return ["plan", "format", CLUSTER, "--server-properties", str(node), *words]


def test_a_new_controller(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(node, "--standalone", "--add-scram", SECRET)) == 0
    out = capsys.readouterr().out
    assert out.startswith("SAFE: kafka-storage formats 1 directory\n")
    assert "kraft.version 1, voters 1@host-1:9093:(drawn)\n" in out
    assert "SCRAM-SHA-256 credential of alice, 4096 iterations, secrets not shown" in out
    assert "password=..." in out
    assert "alice-secret" not in out
    assert not (node.parent / "data").exists()


def test_an_answer_as_json(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(node, "--format", "json")) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["verdict"], made["exception"]) == ("refused", None)
    assert made["error_message"].startswith("Because controller.quorum.voters is not set")
    assert made["info"]["exit_code"] == 1


def test_a_captured_directory_is_formatted_already(
    node: Path, golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = node.parent / "root"
    shutil.copytree(golden / "dynamic-membership/node-1", root / str(node.parent / "data").lstrip("/"))
    assert main(asked(node, "--standalone", "--root", str(root))) == 1
    out = capsys.readouterr().out
    assert "is already formatted. Use --ignore-formatted" in out
    assert "kafka-storage info now, exit code 0:" in out


def test_a_copy_that_is_not_there(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked(node, "--standalone", "--root", str(node.parent / "rot"))) == 3
    assert "rot is not a folder" in capsys.readouterr().err


def test_a_log_without_meta_properties_is_a_risk(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (node.parent / "data/__cluster_metadata-0").mkdir(parents=True)
    assert main(asked(node, "--standalone")) == 1
    assert "  not_empty: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("voter", "risk"), [("2@host-2:9093", "not_a_voter"), ("1@host-7:9093", "moved_voter")]
)
def test_voters_that_do_not_fit_the_node(
    node: Path, voter: str, risk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked(node, "--initial-controllers", f"{voter}:d5efUia_RsKg158_0afzxQ")) == 1
    assert f"  {risk}: " in capsys.readouterr().out


def test_what_is_not_judged_is_not_known(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node.write_text(node.read_text() + "log.cleaner.threads=2\n")
    assert main(asked(node, "--standalone")) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "NOT KNOWN: Kraftlake does not know whether Kafka accepts the values of log.cleaner.threads"
    )


def test_wrong_usage(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "format", "--server-properties", str(node)]) == 2
    assert main(["plan", "format", CLUSTER]) == 2
    assert main(asked(node, "--tool", "3.9")) == 2
    assert main(asked(node / "absent")) == 3
    assert "kafka-storage of 3.9 is not known" in capsys.readouterr().err


def test_a_new_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "random-uuid"]) == 0
    assert len(uuid_bytes(capsys.readouterr().out.strip())) == 16
    assert main(["plan", "random-uuid", "--format", "json"]) == 0
    assert len(uuid_bytes(json.loads(capsys.readouterr().out)["uuid"])) == 16
    assert main(["plan", "random-uuid", "3"]) == 2
