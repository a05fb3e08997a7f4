"""kraftlake plan as a user calls it; the plan from a lake equals the plan from its captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.plan import as_json
from jobs.quorum.quorum_facts import clusters_of, facts_of, registrations_of
from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.actions import Add, Lose, Remove, Replace, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import quorum_of
from kraft_core.plan.plan import plan
from kraft_core.plan.registrations import registrations


def test_a_refusal_as_text(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "remove", "3", "--captures", str(golden / "uncommitted-truncation/before")]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("REFUSED: Kafka refuses to remove 3@kf8ghIj_xoS34ea-4yIRQg: REQUEST_TIMED_OUT")
    assert "Kafka's tool prints TimeoutException: Request timed out waiting for voters to commit" in out
    assert "2@JJnBYSCjLKkJ5gRPQ1FZ7g voter, behind: lacks the last 17 records, for 8.0 s or more" in out
    assert "1. bring back 2, 3, so that the pending change commits; then plan again" in out


def test_a_safe_plan_as_json(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "plan",
        "replace",
        "2",
        "--captures",
        str(golden / "disk-failure/before-wipe"),
        "--format",
        "json",
    ]
    assert main(words) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["verdict"], made["error"]) == ("safe", None)
    assert made["action"] == {"name": "Replace", "node_id": 2, "successor": None}
    assert made["before"]["tolerated_failures"] == 1
    assert [stage["verdict"] for stage in made["stages"]] == ["safe"] * 3
    assert any(step["command"] and "--no-initial-controllers" in step["command"] for step in made["steps"])


def test_a_lake_gives_the_plan_of_its_captures(lake: Any, golden_captures: list[Path]) -> None:
    directories = find_controller_dirs(golden_captures).directories
    assert clusters_of(lake.path) == sorted({d.meta.cluster_id for d in directories if d.meta})
    for facts in collect(directories):
        of_cluster = [d for d in directories if d.meta and d.meta.cluster_id == facts.cluster_id]
        from_files, from_lake = conclude(facts), conclude(facts_of(lake.path, facts.cluster_id))
        assert from_lake.lower_bounds == from_files.lower_bounds
        by_files = quorum_of(from_files, registrations(of_cluster))
        by_lake = quorum_of(from_lake, registrations_of(lake.path, facts.cluster_id))
        assert by_files is not None
        assert by_lake is not None
        assert by_lake.registrations == by_files.registrations
        for action in (Remove(3), Add(4), Replace(2), Lose((1,)), UpgradeKRaftVersion()):
            assert as_json(plan(by_lake, action)) == as_json(plan(by_files, action))


def test_wrong_usage(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captures = str(golden / "disk-failure/before-wipe")

    def refused(code: int, message: str, *words: str) -> None:
        assert main(["plan", *words]) == code
        err = capsys.readouterr().err
        assert message in err
        assert len(err.splitlines()) == 1

    refused(2, "nowhere does not exist", "remove", "3", "--captures", str(tmp_path / "nowhere"))
    refused(3, "no controller directory", "remove", "3", "--captures", str(tmp_path))
    refused(2, "clusters: choose one with --cluster", "remove", "3", "--captures", str(golden))
    refused(2, "no cluster x", "remove", "3", "--captures", captures, "--cluster", "x")
    refused(2, "is no lake", "remove", "3", "--lake", str(tmp_path))
    refused(2, "remove takes one node", "remove", "--captures", captures)
    refused(2, "lose takes one node or more", "lose", "--captures", captures)
    refused(2, "upgrade-kraft-version takes no node", "upgrade-kraft-version", "1", "--captures", captures)
    refused(2, "update takes the new --endpoint", "update", "1", "--captures", captures)
    refused(2, "give --captures PATH... or --lake PATH", "remove", "3")
    for words in (("update", "2", "--endpoint", "host"), ("fly", "1"), ("remove", "one")):
        with pytest.raises(SystemExit, match="2"):
            main(["plan", *words, "--captures", captures])
