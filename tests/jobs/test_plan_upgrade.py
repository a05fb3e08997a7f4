"""kraftlake plan upgrade and plan release as a user calls them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.messages.releases import METADATA_VERSION, RELEASES
from kraft_core.plan.upgrade import FeatureUpgrade, plan_upgrade, release_upgrade
from tests.jobs.plan_metadata import both_metadata
from transforms.lake.delta_rs import cluster_ids

HEALTHY = ("--captures", "tests/golden/disk-failure/before-wipe")
SOON = "2026-11-21T09:31:05Z"  # its captures were taken at 09:21:04


@pytest.fixture(autouse=True)
def _in_the_checkout(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parents[1])


def test_levels_that_are_in_effect_are_safe(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["release", "4.3"],
        ["upgrade", "kraft.version", "1"],
        ["upgrade", METADATA_VERSION, "4.3"],
    ):
        assert main(["plan", *words, *HEALTHY, "--now", SOON]) == 0
        assert capsys.readouterr().out.startswith("SAFE: already in effect")


def test_what_was_safe_a_day_ago_is_safe_as_of_then(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "release", "4.3", *HEALTHY, "--now", "2026-11-22T09:21:05Z"]) == 1
    assert capsys.readouterr().out.startswith("SAFE AS OF 2026-11-21T09:21:04.315Z: ")


def test_the_controllers_that_block_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "release", "4.4", *HEALTHY, "--now", SOON]) == 1
    out = capsys.readouterr().out
    assert out.startswith("REFUSED: Kafka refuses to finalize the levels of release 4.4 ")
    assert "Kafka's tool prints InvalidUpdateVersionException: The update failed for all features" in out
    assert "  controller 1 (Kafka 4.3): supports metadata.version 7-30, not 33\n" in out
    assert "  1. upgrade the software of controller 1 to 4.4 or later, and restart it\n" in out


def test_an_answer_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "upgrade", "streams.version", "0", *HEALTHY, "--now", SOON, "--format", "json"]
    assert main(words) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["verdict"], made["error"], made["missing"]) == ("risky", None, [])
    assert [risk["name"] for risk in made["risks"]] == ["feature_lost"]
    assert made["steps"][1]["command"].endswith("downgrade --feature streams.version=0")


@pytest.mark.parametrize("node", [1, 2, 3])
@pytest.mark.parametrize(
    "file", ["quorum-state", "leader-epoch-checkpoint", "00000000000000000000.log", "all"]
)
def test_without_a_file_of_the_leader_nothing_is_safe(
    node: int, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Node 3 leads; of the others one suffices."""
    shutil.copytree(HEALTHY[1], tmp_path / "copy")
    log = tmp_path / f"copy/node-{node}/__cluster_metadata-0"
    if file == "all":
        shutil.rmtree(log.parent)
    else:
        (log / file).unlink()
    words = ["plan", "upgrade", "streams.version", "0", "--captures", str(tmp_path / "copy"), "--now", SOON]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT KNOWN: " if node == 3 else "RISKY: clients can no longer use"), out


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    for message, *words in (
        ("release takes a release, such as 4.4", "release"),
        ("release 9.9 is not known; known releases: 3.3, 3.4, ", "release", "9.9"),
        ("upgrade takes a feature and a level", "upgrade", METADATA_VERSION),
        ("did you mean group.version?", "upgrade", "groups.version", "1"),
        ("'9.9' is not a level of metadata.version", "upgrade", METADATA_VERSION, "9.9"),
        ("'32768' is not a level of share.version", "upgrade", "share.version", "32768"),
        ("'x' is not a node id", "remove", "x"),
    ):
        assert main(["plan", *words, *HEALTHY]) == 2
        err = capsys.readouterr().err
        assert message in err, err
        assert len(err.splitlines()) == 1


def test_a_lake_gives_the_answers_of_its_captures(lake: Any, golden_captures: list[Path]) -> None:
    questions = [
        release_upgrade(RELEASES["4.4"]),
        FeatureUpgrade({"streams.version": 0}),
        FeatureUpgrade({METADATA_VERSION: 25}),
    ]
    compared = set[str]()
    for cluster in cluster_ids(lake.path):
        by_captures, by_rows = both_metadata(lake.path, golden_captures, cluster)
        for asked in questions:
            by_files = plan_upgrade(by_captures, asked)
            by_lake = plan_upgrade(by_rows, asked)
            assert (by_lake.verdict, by_lake.error_text) == (by_files.verdict, by_files.error_text), cluster
            if by_files.verdict != "not_known":
                assert by_lake == by_files
                compared.add(by_files.verdict)
    assert {"refused", "risky"} <= compared
