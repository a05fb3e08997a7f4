"""describe of captures: beside what Kafka's tools printed when the golden captures were recorded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main

CHECKOUT = Path(__file__).parents[2]
GOLDEN = CHECKOUT / "tests/golden"
NODE = "tests/golden/dynamic-membership/node-3"
CHECKPOINT = f"{NODE}/__cluster_metadata-0/00000000000000003692-0000000009.checkpoint"
DYNAMIC = "rPoTXydvQsK3Nv6AA77Cqg"
STATIC = "5I9LNCnDRemmDYWZUB4JUw"
STATIC_NODE = "tests/golden/static-upgrade/node-1"
WHAT = ("topics", "cluster", "features", "quorum")
KNOWN = ("ClusterId", "LeaderId", "LeaderEpoch", "CurrentVoters")


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    capsys.readouterr()
    code = main(["describe", *map(str, words)])
    return code, *capsys.readouterr()


def fields(text: str) -> dict[str, str]:
    return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines())}


@pytest.mark.parametrize("scenario", ["dynamic-membership", "disk-failure", "election-storm"])
def test_what_kafka_metadata_quorum_printed(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of each status that was recorded, at its high watermark, what a log holds is equal."""
    compared = 0
    node = next(iter(sorted((GOLDEN / scenario).glob("node-*"))))
    for file in sorted((GOLDEN / scenario / "quorum").glob("*-status-*.txt")):
        printed = fields(file.read_text())
        at = int(printed["HighWatermark"]) - 1
        code, out, said = asked(capsys, "quorum", "--at", at, "--captures", node)
        if "is gone" in said or "is beyond the end of the log" in said:
            continue
        ours = fields(out)
        assert (code, list(ours)) == (0, list(printed)), file
        assert {name: ours[name] for name in KNOWN} == {name: printed[name] for name in KNOWN}, file
        assert {value for name, value in ours.items() if name not in KNOWN} == {"not known"}
        compared += 1
    assert compared >= 3


def test_the_replicas_of_a_quorum(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, said = asked(capsys, "quorum", "--replication", "--at", "2400", "--captures", NODE)
    assert out.splitlines()[1].split("\t")[0::6] == ["2     ", "Leader  "]
    assert "what is not known was known only to the leader, and is not in the log" in said


def test_features_are_of_the_node_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, of_leader, said = asked(capsys, "features", "--at", "2400", "--captures", NODE)
    _, of_broker, _ = asked(capsys, "features", "--node", "11", "--at", "2400", "--captures", NODE)
    assert [line.split()[1] for line in of_leader.splitlines()] == sorted(
        line.split()[1] for line in of_leader.splitlines()
    )
    assert "Feature: metadata.version" in of_broker
    assert all(line.endswith("Epoch: 2400") for line in of_broker.splitlines())
    assert all(line.endswith("Epoch: not known") for line in of_leader.splitlines())
    assert "the epoch that a controller prints is not known" in said


@pytest.mark.parametrize(
    ("cluster", "node", "at"),
    [
        *((DYNAMIC, NODE, at) for at in (8, 110, 453, 983, 2400, 3000, 3691)),
        *((STATIC, STATIC_NODE, at) for at in (300, 700)),
    ],
)
def test_a_lake_shows_the_same(
    lake: Any, cluster: str, node: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a static quorum, before and after it became a dynamic one."""
    for what in WHAT:
        of_node = asked(capsys, what, "--at", at, "--captures", node)
        of_lake = asked(capsys, what, "--at", at, "--lake", lake.path, "--cluster", cluster)
        assert of_lake == of_node


def test_only_topics_need_the_histories_of_partitions(
    lake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There may be millions. What needs them fails where their files are gone, and is not as without any."""
    copy = Path(shutil.copytree(lake.path, tmp_path / "lake"))
    options = ("--at", 2400, "--cluster", DYNAMIC, "--lake", copy)
    whole = {what: asked(capsys, what, *options) for what in WHAT}
    for file in (copy / "partitions").glob("*.parquet"):
        file.unlink()
    for what in WHAT:
        code, out, said = asked(capsys, what, *options)
        if what == "topics":
            assert (code not in (0, 1), out) == (True, "")
        else:
            assert (code, out, said) == whole[what]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["topics"], 2, "give a controller directory"),
        (["topics", "--at", "2020-01-01", "--captures", NODE], 2, "covers 2026-11-21T09:40:31.847Z"),
        (["topics", "--bootstrap-servers", "h:1"], 2, "topics is described from captures or a lake"),
        (["topics", "--format", "json", "--captures", NODE], 2, "shell and export print JSON"),
        (["features", "--node", "99", "--captures", NODE], 1, "not known: what node 99 supports"),
        (["features", "--at", "0", "--captures", NODE], 1, "not known: "),
        (["cluster", "--captures", CHECKPOINT], 2, "the cluster's id is not known"),
    ],
)
def test_what_is_not_known_is_an_error(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answered, out, said = asked(capsys, *words)
    assert (answered, out) == (code, "")
    assert message in said


def test_evidence_is_taken_away_piece_by_piece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is described of the rest is not known, or as it was: never something else."""
    whole = {what: asked(capsys, what, "--at", "3600", "--captures", NODE)[1] for what in WHAT}
    log = tmp_path / "node" / "__cluster_metadata-0"
    shutil.copytree(CHECKOUT / NODE, tmp_path / "node")
    taken = sorted(file for file in log.iterdir() if file.suffix in (".log", ".checkpoint"))
    assert len(taken) >= 4
    answered: list[int] = []
    for file in (*taken, tmp_path / "node" / "meta.properties"):
        file.unlink()
        for what in WHAT:
            code, out, said = asked(capsys, what, "--at", "3600", "--captures", tmp_path / "node")
            answered.append(code)
            # Whole as before, or an error, or said to be a part.
            assert out == whole[what] if code == 0 else out == "" or "warning: " in said
    assert 0 in answered
    assert answered[-len(WHAT) :] == [3] * len(WHAT)


def test_what_missing_records_may_have_changed_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Voter sets and levels of before a gap may have changed in it; a checkpoint above it shows them."""
    log = tmp_path / "node" / "__cluster_metadata-0"
    shutil.copytree(CHECKOUT / NODE, tmp_path / "node")
    whole = asked(capsys, "quorum", "--captures", tmp_path / "node")[1]

    def described(at: object) -> list[tuple[int, str, str]]:
        words = ("--at", at, "--captures", tmp_path / "node")
        return [asked(capsys, what, *words) for what in ("quorum", "features")]

    before = described(1100)[0][1]
    (log / f"{1748:020}.log").unlink()
    assert described("end")[0][1] == whole
    for checkpoint in log.glob("*-*[1-9].checkpoint"):
        checkpoint.unlink()
    for code, out, said in described("end"):
        assert (code, out) == (1, "")
        assert (
            "records below offset 2589 are missing: capture a replica that has them, or a checkpoint" in said
        )
    assert described(1100)[0][1] == before
    for base_offset in (0, 697):
        (log / f"{base_offset:020}.log").unlink()
    # The LEADER_CHANGEs that are left name voters, but no record shows that the quorum is static.
    for code, out, said in described("end"):
        assert (code, out) == (1, "")
        assert "not known: " in said
    _, out, _ = asked(capsys, "topics", "--captures", tmp_path / "node")
    assert "Leader: none" not in out


def test_a_log_without_its_beginning_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    log = "tests/golden/corrupt/good/00000000000000000408.log"
    code, _, said = asked(capsys, "topics", "--captures", log)
    assert (code, "no checkpoint covers the log before offset 408" in said) == (1, True)
    code, out, said = asked(capsys, "quorum", "--captures", log)
    assert (code, out) == (1, "")
    assert "not known: who " in said
