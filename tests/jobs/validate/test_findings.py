"""Findings at the command line, over a small lake that holds some: list, ack, and what makes a job fail."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboards import summary
from jobs import validate
from jobs.cli import main
from jobs.runtime.fail_on import ErrorCheck, verdict
from tests.jobs.lakes import opened
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.spark_rows import to_frame
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import (
    ACKNOWLEDGEMENTS,
    CAPTURES,
    CLUSTER_NAMES,
    EXPECTATION_RESULTS,
    FINDINGS,
    RUNS,
)

SEEN = datetime(2026, 11, 21, 10, 28, 10, tzinfo=UTC)


def finding(
    finding_id: str, severity: str = "error", state: str = "open", cluster: str = "c"
) -> dict[str, Any]:
    return {
        "cluster_id": cluster,
        "finding_id": finding_id,
        "rule": 23,
        "name": "leader_change_names_the_set",
        "severity": severity,
        "state": state,
        "first_seen_at": SEEN,
        "last_seen_at": SEEN,
        "first_offset": 5006,
        "end_offset": 5007,
        "leader_epochs": [4],
        "replicas": ["1@one", "3@three"],
        "capture_ids": ["x"],
        "sentence": f"Leader 1 was elected unlawfully ({finding_id}).",
        "evidence": "its LEADER_CHANGE",
        "source": "KIP-595",
        "reason": None,
    }


def capture(cluster: str) -> dict[str, Any]:
    """What the table needs at least of a capture."""
    return dict.fromkeys(CAPTURES.names) | {
        "cluster_id": cluster,
        "capture_id": f"of {cluster}",
        "node_id": 1,
        "directory_id": "one",
        "captured_at": SEEN,
        "captured_at_source": "flag",
        "last_captured_at": SEEN,
        "epoch_ranges": [],
        "consistent": True,
    }


ROWS = (
    finding("warned", severity="warning"),
    finding("resolved", state="resolved"),
    finding("open"),
    finding("elsewhere", cluster="d"),
)


@pytest.fixture(scope="module")
def written(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with ROWS and no run yet. Tests that change it work on findings of their own."""
    path = tmp_path_factory.mktemp("findings") / "lake"
    prepare_lake(path)
    lake = opened(spark, path)
    lake.replace(FINDINGS, to_frame(spark, ROWS, FINDINGS.schema), ["c", "d"])
    captures = [capture(cluster) for cluster in ("c", "d")]
    lake.replace(CAPTURES, to_frame(spark, captures, CAPTURES.schema), ["c", "d"])
    lake.create(CLUSTER_NAMES)
    lake.writer.append(CLUSTER_NAMES, [{"cluster_id": "d", "name": "orders"}])
    lake.create(ACKNOWLEDGEMENTS)
    lake.create(RUNS)
    return path


@pytest.fixture
def lake(written: Path) -> Path:
    """The lake as it was first, whatever the test before did."""
    from deltalake import DeltaTable

    for table in (FINDINGS, ACKNOWLEDGEMENTS, RUNS):
        first = 1 if table is FINDINGS else 0
        if DeltaTable(written / table.name).version() != first:
            DeltaTable(written / table.name).restore(first)
    return written


def listed(lake: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> list[str]:
    """The ids that the list prints, in its order."""
    capsys.readouterr()
    assert main(["findings", "list", "--lake", str(lake), "--format", "jsonl", *flags]) == 0
    return [json.loads(line)["finding_id"] for line in capsys.readouterr().out.splitlines()]


def test_what_needs_a_person_comes_first(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(lake, capsys) == ["open", "elsewhere", "warned"]
    assert listed(lake, capsys, "--state", "all") == ["open", "elsewhere", "warned", "resolved"]
    assert listed(lake, capsys, "--cluster", "d") == ["elsewhere"]
    assert listed(lake, capsys, "--cluster", "orders") == ["elsewhere"]
    assert listed(lake, capsys, "--cluster", "d", "--state", "resolved") == []


def test_a_cluster_that_the_lake_does_not_have(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "list", "--lake", str(lake), "--cluster", "TYPO"]) == 2
    assert "has no capture of cluster TYPO; it has c, d" in capsys.readouterr().err


def test_list_takes_the_lake_and_the_names_of_clusters_from_the_settings(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'lake = "{lake}"\n[clusters.the-other]\nid = "d"\n')
    words = ["findings", "list", "--config", str(file), "--cluster", "the-other", "--format", "jsonl"]
    assert main(words) == 0
    assert [json.loads(line)["finding_id"] for line in capsys.readouterr().out.splitlines()] == ["elsewhere"]
    assert main(["findings", "ack", "elsewhere", "--reason", "known", "--config", str(file)]) == 0
    assert main(["findings", "list", "--config", str(tmp_path / "none.toml")]) == 2
    assert "none.toml cannot be read" in capsys.readouterr().err


def test_the_summary_lists_the_worst_of_many_clusters(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "MOST_CLUSTERS", 1)
    assert summary.summary(lake, ["c", "d"]).lines[0].startswith("cluster c: ")
    TableWriter(lake, None).put(FINDINGS, [finding("another", cluster="d")], by="finding_id")
    assert summary.summary(lake, ["c"], {"c": "of the settings"}).lines[0].startswith("cluster c (of the set")
    lines = summary.summary(lake, ["c", "d"]).lines
    assert lines[0].startswith("cluster d (orders): ")
    assert lines[-1] == "and 1 more cluster: see kraftlake clusters"


def test_a_finding_in_words(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "list", "--lake", str(lake), "--cluster", "d"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ERROR  elsewhere  rule 23 leader_change_names_the_set  (open)",
        "    Leader 1 was elected unlawfully (elsewhere).",
        "    cluster d, offset 5006, epoch 4, replicas 1@one, 3@three, seen 2026-11-21 10:28:10Z",
        "    shown by: its LEADER_CHANGE",
        "    source: KIP-595",
    ]


def test_an_acknowledged_finding_is_kept_with_its_reason(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["findings", "ack", "open", "--reason", "it's known", "--lake", str(lake)]) == 0
    assert "(acknowledged: it's known)" in capsys.readouterr().out
    assert listed(lake, capsys) == ["elsewhere", "warned"]
    assert listed(lake, capsys, "--state", "acknowledged") == ["open"]
    kept = rows_with(lake, ACKNOWLEDGEMENTS)
    assert [(r["cluster_id"], r["finding_id"], r["reason"]) for r in kept] == [("c", "open", "it's known")]
    others = [r for r in rows_with(lake, FINDINGS) if r["finding_id"] != "open"]
    assert sorted(others, key=str) == sorted((r for r in ROWS if r["finding_id"] != "open"), key=str)


def test_what_is_resolved_stays_so(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "ack", "resolved", "--reason", "mended", "--lake", str(lake)]) == 0
    assert listed(lake, capsys, "--state", "resolved") == ["resolved"]


def test_an_unknown_finding(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "ack", "none", "--reason", "x", "--lake", str(lake)]) == 2
    assert "there is no finding none" in capsys.readouterr().err
    assert rows_with(lake, ACKNOWLEDGEMENTS) == []


def test_an_error_fails_a_job_once(lake: Path) -> None:
    """New ones, even if resolved meanwhile; none that a run has reported; open ones as long as they are."""
    errors = verdict(lake, ["c", "d"], "new")
    assert errors.fails
    assert errors.reported == (("c", "open"), ("c", "resolved"), ("d", "elsewhere"))
    reported = [{"cluster_id": c, "finding_id": f} for c, f in errors.reported]
    row = {"run_id": "r", "started_at": SEEN, "finished_at": SEEN, "reported_findings": reported}
    TableWriter(lake, None).append(RUNS, [row])
    assert verdict(lake, ["c", "d"], "new") == (again := verdict(lake, ["c"], "new"))
    assert (again.fails, again.reported) == (False, ())
    assert verdict(lake, ["c", "d"], "open").fails
    assert not verdict(lake, ["c", "d"], "never").fails
    assert main(["findings", "ack", "open", "--reason", "known", "--lake", str(lake)]) == 0
    assert not verdict(lake, ["c"], "open").fails
    assert verdict(lake, ["d"], "open").fails


def test_of_no_cluster_there_is_nothing(lake: Path) -> None:
    assert rows_with(lake, FINDINGS, cluster_id=[]) == []
    assert verdict(lake, [], "open") == ErrorCheck(False, ())


def test_an_unmet_expectation_fails_every_job_that_looks_at_all_that_is_open(lake: Path) -> None:
    """Until a later result meets it, or its severity is changed to warning; also that of the whole lake."""

    def evaluated(run_id: str, cluster: str, success: bool, severity: str = "error") -> None:
        values = {"cluster_id": cluster, "suite": "captures", "expectation": "newest_capture_is_fresh"}
        values |= {"run_id": run_id, "loaded_at": SEEN + timedelta(hours=int(run_id))}
        row = a_row(EXPECTATION_RESULTS, **values, success=success, severity=severity)
        TableWriter(lake, None).append(EXPECTATION_RESULTS, [row])

    TableWriter(lake, None).create(EXPECTATION_RESULTS)
    assert main(["findings", "ack", "open", "--reason", "known", "--lake", str(lake)]) == 0
    assert not verdict(lake, ["c"], "open").fails
    evaluated("1", "c", success=False)
    for _ in range(2):
        assert verdict(lake, ["c"], "open").fails
        assert not verdict(lake, ["another"], "open").fails
        assert not verdict(lake, ["c"], "never").fails
    evaluated("2", "c", success=True)
    assert not verdict(lake, ["c"], "open").fails
    evaluated("3", "*", success=False)
    assert verdict(lake, ["c"], "open").fails
    evaluated("4", "*", success=False, severity="warning")
    assert not verdict(lake, ["c"], "open").fails


def test_a_run_that_is_never_to_fail_reports_nothing(lake: Path) -> None:
    assert verdict(lake, ["c", "d"], "never").reported == ()


def test_the_advice_of_many_clusters_is_named(lake: Path) -> None:
    shown = list(validate.lines(lake, [f"c{n}" for n in range(11)], "text", 0))
    assert shown[-1].startswith("recovery: kraftlake explain --recovery --cluster ID, or table recoveries")
