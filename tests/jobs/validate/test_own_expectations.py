"""Own expectations in kraftlake.toml: in the table, in the exit code of every validation, and on the page."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from transforms.lake import spark_rows
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import EXPECTATION_RESULTS
from transforms.quality.expectation_history import open_failures

OWN = """
[expectations.topics.no_topic_of_a_test]
sql = "SELECT cluster_id, topic_name FROM topics_now WHERE topic_name LIKE 't-%'"
sentence = "Topics of tests are removed"
[expectations.brokers.ids_are_low]
column = "broker_id"
max = 1000
severity = "warning"
"""
MISSPELLED = """
[expectations.partitions.two_replicas_at_least]
sql = "SELECT cluster_id, topic_name FROM partition_now WHERE size(replicas) < 2"
[expectations.brokers.ids_are_known]
column = "brokerid"
max = 1000
severity = "warning"
"""
# Each asks a view. One named with its database is always Spark's, and then all are.
OF_VIEWS = """
[expectations.captures.clusters_have_a_leader]
sql = "SELECT cluster_id FROM clusters WHERE leader_id IS NULL"
[expectations.brokers.no_early_end]
sql = "SELECT cluster_id FROM kraft.zk_migrations WHERE finished_early"
"""
TESTED = "no_topic_of_a_test"


def validating(lake: Path) -> list[str]:
    return ["validate", "--lake", str(lake), "--now", "2026-11-21T12:00:00Z"]


@pytest.fixture(scope="module")
def validated(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of the golden lake, all of whose rows were validated with OWN and MISSPELLED; what was said."""
    folder = tmp_path_factory.mktemp("validated")
    path, settings = folder / "lake", folder / "kraftlake.toml"
    shutil.copytree(lake.path, path)
    settings.write_text(OWN + MISSPELLED)
    with spark_rows.interpreted(lake.spark), contextlib.redirect_stdout(io.StringIO()) as said:
        assert main([*validating(path), "--config", str(settings)]) == 1
    return path, said.getvalue()


@pytest.mark.usefixtures("interpreted")
def test_own_expectations_of_a_lake(
    validated: tuple[Path, str],
    golden_captures: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, settings, page = tmp_path / "lake", tmp_path / "kraftlake.toml", tmp_path / "page.html"
    held, said_of_all = validated
    shutil.copytree(held, path)
    words = validating(path)
    settings.write_text(OWN + MISSPELLED)
    mine = [*words, "--config", str(settings)]
    assert main(mine) == 1  # where nothing is new
    for said in (said_of_all, capsys.readouterr().out):
        assert f"ERROR  topics.{TESTED}  cluster " in said
        # What cannot be evaluated says why, and keeps nothing else from being evaluated.
        said = " ".join(said.split())
        assert "could not be evaluated: [TABLE_OR_VIEW_NOT_FOUND] The table or view `partition_now`" in said
        assert "`brokerid` cannot be resolved. Did you mean one of the following? [`broker_id`" in said
        assert "no value" not in said
    unknown = rows_with(path, EXPECTATION_RESULTS, expectation=["two_replicas_at_least"])
    assert [(row["severity"], row["success"]) for row in unknown] == [("error", False)] * 2
    assert not logging.getLogger("SQLQueryContextLogger").isEnabledFor(logging.ERROR)
    again = ["run", "--lake", str(path), "--captures", *map(str, golden_captures), "--fail-on"]
    assert main([*again, "new"]) == 0  # nothing is new
    assert "an expectation of severity error is not met" not in capsys.readouterr().err
    assert main([*again, "open"]) == 1
    assert "an expectation of severity error is not met" in capsys.readouterr().err
    (failed, *_) = rows_with(path, EXPECTATION_RESULTS, expectation=[TESTED], success=[False])
    assert failed["is_own"]
    assert TESTED in expected_now(path, capsys)
    assert failed["sentence"] == "Topics of tests are removed"
    assert json.loads(failed["failing_rows"][0])["topic_name"].startswith("t-")
    assert {row["expectation"] for row in open_failures(path)} >= {TESTED}
    assert main([*mine, "--failing", f"topics.{TESTED}", "--cluster", failed["cluster_id"]]) == 0
    *rows, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert [row["cluster_id"] for row in rows] == [failed["cluster_id"]] * int(failed["observed"])
    assert main(["report", "--lake", str(path), "--out", str(page)]) == 0
    assert "Topics of tests are removed" in page.read_text()
    assert main(words) == 0  # it is asked no longer, and nothing else is wrong
    assert TESTED not in {row["expectation"] for row in open_failures(path)}
    assert TESTED not in (expected := expected_now(path, capsys))
    assert "key_is_unique" in expected
    assert main(["report", "--lake", str(path), "--out", str(page)]) == 0
    assert "Topics of tests are removed" not in page.read_text()


def test_own_expectations_of_views(validated: tuple[Path, str], tmp_path: Path) -> None:
    path, settings = tmp_path / "lake", tmp_path / "kraftlake.toml"
    shutil.copytree(validated[0], path)
    before = {row["run_id"] for row in rows_with(path, EXPECTATION_RESULTS, ["run_id"])}
    settings.write_text(OF_VIEWS)
    assert main([*validating(path), "--config", str(settings)]) == 0
    found = [r for r in rows_with(path, EXPECTATION_RESULTS, is_own=[True]) if r["run_id"] not in before]
    assert {row["expectation"] for row in found} == {"clusters_have_a_leader", "no_early_end"}
    assert all(row["success"] for row in found)


def expected_now(lake: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The expectations that view expectations_now lists."""
    capsys.readouterr()
    asked = "SELECT DISTINCT expectation FROM expectations_now"
    assert main(["sql", "--lake", str(lake), asked, "--format", "json"]) == 0
    return {json.loads(line)["expectation"] for line in capsys.readouterr().out.splitlines()}
