"""kraftlake plan format as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.messages.uuid_text import uuid_bytes
from tests.unprivileged import public_folder, unprivileged

CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
CONFIG = (
    "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
    "listeners=CONTROLLER://host-1:9093\ncontroller.quorum.bootstrap.servers=host-1:9093\n"
    "log.dirs={log_dir}\n"
)
SECRET = "SCRAM-SHA-256=[name=alice,password=alice-secret]"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A configuration; its log directory does not exist."""
    file = tmp_path / "server.properties"
    file.write_text(CONFIG.format(log_dir=tmp_path / "data"))
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


def test_a_directory_below_a_file(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the tool of 4.3.1 says; it was SAFE."""
    (node.parent / "data").write_text("")
    node.write_text(node.read_text().replace("/data", "/data/kafka"))
    assert main(asked(node, "--standalone")) == 1
    out = capsys.readouterr().out
    assert out.startswith("REFUSED: Kafka refuses it: No available log directories to format.\n")
    assert f"{node.parent}/data/kafka does not exist" in out


def test_a_link_that_leads_nowhere(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the tool of 4.3.1 says; it was SAFE."""
    data = node.parent / "data"
    data.symlink_to(node.parent / "not-mounted")
    assert main(asked(node, "--standalone")) == 1
    assert capsys.readouterr().out.startswith(
        f"REFUSED: Kafka refuses it: Error while writing meta.properties file {data}: "
        f"java.nio.file.FileAlreadyExistsException: {data}\n"
    )


def test_a_directory_that_may_not_be_searched(capsys: pytest.CaptureFixture[str]) -> None:
    """From Python 3.14 on, Path.exists says that what it holds is not there: then it was SAFE."""
    with public_folder() as folder:
        closed = folder / "data"
        (closed / "kafka").mkdir(parents=True)
        file = folder / "server.properties"
        file.write_text(CONFIG.format(log_dir=closed / "kafka"))
        closed.chmod(0)

        def answered() -> tuple[int, str]:
            return main(asked(file, "--standalone")), capsys.readouterr().out

        answered()  # what it imports may be where nobody may not read
        code, out = unprivileged(answered)
        closed.chmod(0o700)
    assert code == 1
    assert out.startswith("REFUSED: Kafka refuses it: No available log directories to format.\n")


@pytest.mark.parametrize(
    ("words", "risk"),
    [
        (["--standalone"], "has no __cluster_metadata-0: the voters are not written to it"),
        (
            ["--initial-controllers", "1@host-1:9093:MvDxzVmcRsaTz33bUuRU6A"],
            "with directory id d5efUia_RsKg158_0afzxQ: the voters name MvDxzVmcRsaTz33bUuRU6A for node 1",
        ),
    ],
)
def test_voters_that_are_not_written(
    node: Path, words: list[str], risk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The metadata log directory is formatted before, the tool passes over it; it was SAFE."""
    meta = node.parent / "data" / "meta.properties"
    meta.parent.mkdir()
    meta.write_text(f"version=1\nnode.id=1\ncluster.id={CLUSTER}\ndirectory.id=d5efUia_RsKg158_0afzxQ\n")
    assert main(asked(node, *words, "--ignore-formatted")) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"RISKY: {meta.parent} is formatted already")
    assert risk in out.splitlines()[0]
    (meta.parent / "__cluster_metadata-0").mkdir()
    assert main(asked(node, "--standalone", "--ignore-formatted")) == 0
