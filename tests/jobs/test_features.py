"""kraftlake features as a user calls it. The expected tables are those of Kafka 4.3.1's kafka-features."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jobs.cli import main

HEALTHY = "tests/golden/disk-failure/before-wipe"


@pytest.fixture(autouse=True)
def _in_the_checkout(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parents[1])


def test_levels_of_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "version-mapping"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "metadata.version=30 (4.3-IV0)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=1",
        "share.version=1",
        "streams.version=1",
    ]
    assert main(["features", "version-mapping", "--release-version", "9.9"]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err[:36]) == ("", "Unknown metadata.version '9.9'. Supp")


def test_dependencies_until_an_unknown_level(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("eligible.leader.replicas.version=1", "metadata.version=30", "share.version=2")
    flags = [word for each in asked for word in ("--feature", each)]
    assert main(["features", "feature-dependencies", *flags]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "metadata.version=30 (4.3-IV0) has no dependencies.",
    ]
    assert captured.err == "No feature:share.version with feature level 2\n"


def test_the_tool_of_another_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "feature-dependencies", "--feature", "share.version=2", "--tool", "4.4.0"]) == 0
    assert capsys.readouterr().out == "share.version=2 has no dependencies.\n"


def test_what_a_captured_leader_supports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "describe", "--captures", HEALTHY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == sorted(line.split()[1] for line in lines)
    (metadata_version,) = (line for line in lines if "metadata.version" in line)
    assert metadata_version.split()[1::2][:4] == ["metadata.version", "3.3-IV3", "4.3-IV0", "4.3-IV0"]
    (kraft_version,) = (line for line in lines if "kraft.version" in line)
    assert kraft_version.split()[1::2][:4] == ["kraft.version", "0", "1", "1"]


def test_without_the_leader_nothing_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(HEALTHY, tmp_path / "captures")
    shutil.rmtree(tmp_path / "captures/node-3")
    assert main(["features", "describe", "--captures", str(tmp_path / "captures")]) == 1
    captured = capsys.readouterr()
    assert (captured.out, "not known: leader 3 was not captured" in captured.err) == ("", True)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["describe"], "describe takes --captures PATH... or --lake PATH\n"),
        (["version-mapping", "--captures", "x"], "--captures is an option of describe, not of version-map"),
        (["describe", "--feature", "x=1"], "--feature is an option of feature-dependencies, not of describe"),
        (["feature-dependencies"], "takes --feature NAME=LEVEL"),
        (["feature-dependencies", "--feature", "x"], "'x' is not a feature and a level"),
        (["version-mapping", "--tool", "2.8"], "release 2.8 is not known; known releases: 3.3, "),
    ],
)
def test_wrong_usage(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", *words]) == 2
    assert error in capsys.readouterr().err
