"""kraftlake validate and explain on the golden lake with a false describe output and an impossible time."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dashboards.report.queries import ask_fleet
from dashboards.report.state import fleet
from jobs.captures.describe_files import described
from jobs.cli import main
from kraft_core.findings.finding import Finding
from tests.jobs.lakes import move_beyond_the_calendar, opened, report, run
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import DERIVATIONS, FINDINGS, OBSERVATIONS, RUNS, TABLES, VOTER_SETS
from transforms.quality.expectation_history import unvalidated
from transforms.quality.findings import finding_of, finding_rows, observation_rows

# The clusters of dynamic-membership and of the three uncommitted-* scenarios.
BAD_CLOCK, FALSELY_DESCRIBED = "rPoTXydvQsK3Nv6AA77Cqg", "iWP35uOsShu1pFlBJh_E7w"
STATUS = """ClusterId:              iWP35uOsShu1pFlBJh_E7w
LeaderId:               3
LeaderEpoch:            6
HighWatermark:          700
MaxFollowerLag:         0
MaxFollowerLagTimeMs:   0
CurrentVoters:          [1, 2, 3]
CurrentObservers:       []
"""


@pytest.fixture(scope="module")
def faulty(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A copy of the golden lake: one cluster has an impossible time, another a false describe output."""
    path = tmp_path_factory.mktemp("faulty") / "lake"
    shutil.copytree(lake.path, path)
    copy = opened(lake.spark, path)
    move_beyond_the_calendar(path, BAD_CLOCK, is_control=[True])
    output = described("1795252663000-false.txt", STATUS, FALSELY_DESCRIBED)
    rows = [
        row | {"run_id": "other", "loaded_at": datetime(2026, 1, 1, tzinfo=UTC)}
        for row in observation_rows(output.cluster_id, output.observation_id, output.observations)
    ]
    copy.writer.append_once(OBSERVATIONS, rows, "false output")
    return copy


def test_a_new_error_fails_the_job_and_a_failing_cluster_affects_no_other(
    faulty: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failing cluster is named and keeps its earlier derived rows; the other one is derived."""
    before = {t.name: rows_with(faulty.path, t, cluster_id=[BAD_CLOCK]) for t in TABLES if t.recomputed}
    code = main(
        [
            "validate",
            "--rules-only",
            "--lake",
            str(faulty.path),
            "--cluster",
            BAD_CLOCK,
            "--cluster",
            FALSELY_DESCRIBED,
        ]
    )
    out, err = capsys.readouterr()
    assert code == 1
    assert f"cluster {BAD_CLOCK} could not be derived: " in err
    assert "OverflowError: date value out of range" in err
    after = {t.name: rows_with(faulty.path, t, cluster_id=[BAD_CLOCK]) for t in TABLES if t.recomputed}
    assert {n: sorted(map(repr, rows)) for n, rows in after.items()} == {
        n: sorted(map(repr, rows)) for n, rows in before.items()
    }
    assert len(before[VOTER_SETS.name]) == 10
    states = {r["cluster_id"]: r["failure"] for r in rows_with(faulty.path, DERIVATIONS)}
    assert [cluster for cluster, failure in states.items() if failure is not None] == [BAD_CLOCK]
    assert len(states) == 7
    assert "OverflowError" in states[BAD_CLOCK]
    # The page says so too, and the next validation tries again; no run wrote the false output.
    (shown,) = fleet(ask_fleet(faulty.path, [BAD_CLOCK]), now=0)
    assert "could not be derived" in shown.reasons[0].words
    assert set(unvalidated(faulty.path, "next").underived) == {BAD_CLOCK, FALSELY_DESCRIBED}

    (found,) = rows_with(faulty.path, FINDINGS, cluster_id=[FALSELY_DESCRIBED], severity=["error"])
    assert (found["rule"], found["state"]) == (6, "open")
    assert out.startswith(f"ERROR  {found['finding_id']}  rule 6 high_watermark_rises  (open)\n")
    assert "The high watermark fell from 786 (leader 3, epoch 6) to 700" in out
    assert f"recovery of {FALSELY_DESCRIBED}: nodes 3, 1, 2, 4 have the best claim" in out
    summary = report(out)
    assert (summary["clusters"], summary["failed_clusters"], summary["new_findings"]) == (2, 1, 1)
    (noted,) = rows_with(faulty.path, RUNS, ["reported_findings"], run_id=[summary["run_id"]])
    assert noted["reported_findings"] == [
        {"cluster_id": FALSELY_DESCRIBED, "finding_id": found["finding_id"]}
    ]


def test_states_follow_captures_and_acknowledgements() -> None:
    finding = Finding(
        "id", "c", 23, "name", "error", 1, 2, (1,), ("1@a",), ("x",), "words", "", "KIP", 1000, 2000
    )
    noted = [
        {"finding_id": "id", "reason": "later", "acknowledged_at": datetime(2026, 2, 1, tzinfo=UTC)},
        {"finding_id": "id", "reason": "first", "acknowledged_at": datetime(2026, 1, 1, tzinfo=UTC)},
    ]
    over = replace(finding, resolution="no longer shown")
    rows = finding_rows([finding, over, replace(finding, finding_id="other")], noted)
    assert [(r["state"], r["reason"]) for r in rows] == [
        ("acknowledged", "later"),
        ("resolved", "no longer shown"),
        ("open", None),
    ]
    assert [finding_of({"cluster_id": "c", **row}) for row in rows[:2]] == [finding, over]
    assert (rows[0]["first_seen_at"], rows[0]["last_seen_at"]) == (
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
    )


def explained(lake: Any, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    capsys.readouterr()
    assert main(["explain", "--lake", str(lake.path), "--cluster", FALSELY_DESCRIBED, *flags]) == 0
    return capsys.readouterr().out


def test_explanation_of_a_truncated_change(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(explained(lake, capsys, "--offset", "355").split())
    assert "Offset 355 of epoch 1 was written by leader 1." in out
    assert "It is truncated, replaced by epoch 3" in out
    assert "Offset 355 of epoch 3 was written by leader 2." in out
    explanation = json.loads(explained(lake, capsys, "--offset", "355", "--format", "json"))
    assert [(b["leader_epoch"], b["status"], b["truncated_by_epoch"]) for b in explanation["batches"]] == [
        (1, "truncated", 3),
        (3, "committed", None),
    ]
    assert explanation["batches"][0]["held_by"][0]["first_captured_at"].endswith("Z")


def test_recovery_advice(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    now = ("--now", "2026-11-21T12:00:00Z")
    out = explained(lake, capsys, "--recovery", *now)
    claim = "nodes 3, 1, 2, 4 have the best claim (epoch 10, log end 1288)"
    best = f"recovery of {FALSELY_DESCRIBED}: {claim}, safe"
    assert out.startswith(f"{best}\n")
    assert " ago. Elections, commits, truncations and voter changes since then" in " ".join(out.split())
    later = explained(lake, capsys, "--recovery", "--now", "2026-11-23T12:00:00Z")
    assert later.startswith(f"{best} as of 2026-11-21 ")
    strict = explained(lake, capsys, "--recovery", *now, "--max-evidence-age-hours", "0.5")
    assert strict.startswith(f"{best} as of 2026-11-21 ")
    advice = json.loads(explained(lake, capsys, "--recovery", "--format", "json", *now))
    assert (advice["is_safe"], advice["is_evidence_old"]) == (True, False)
    assert {(c["node_id"], c["log_end_offset"]) for c in advice["best"]} >= {(1, 1288), (2, 1288), (3, 1288)}


def test_recovery_from_captures_that_state_no_time(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However recent they look: safe as of the newest timestamp in them, never as of a file time."""
    copies = tmp_path / "copies"
    shutil.copytree(golden / "disk-failure/before-wipe", copies)
    for stated in copies.glob("node-*/capture.json"):
        stated.unlink()
    assert run(tmp_path / "lake", copies, flags=("--fail-on", "never")) == 0
    capsys.readouterr()
    words = ["explain", "--lake", str(tmp_path / "lake"), "--recovery", "--now", "2026-11-21T09:22:00Z"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.split("\n")[0].endswith("(epoch 1, log end 54), safe as of 2026-11-21 09:21:04Z")
    assert out.count("(newest timestamp in the log) or later\n") == 3
    assert "or later: state when each capture was taken" in " ".join(out.split())


def test_recovery_without_nodes_that_are_gone(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    one = explained(lake, capsys, "--recovery", "--without", "3", "--now", "2026-11-21T12:00:00Z")
    claim = "nodes 1, 2, 4 have the best claim (epoch 10, log end 1288), safe"
    assert one.startswith(f"recovery of {FALSELY_DESCRIBED} without node 3: {claim}\n")
    three = explained(lake, capsys, "--recovery", *(f"--without={n}" for n in (1, 2, 3)))
    assert "node 4 has the best claim (epoch 10, log end 1288), NOT SAFE" in three
    assert "is gone: what it stored after its capture is lost" in " ".join(three.split())
    every = explained(lake, capsys, "--recovery", *(f"--without={n}" for n in (1, 2, 3, 4)))
    assert every.endswith("\n  highest epoch seen: 10\n")
    of = ("--cluster", FALSELY_DESCRIBED, "--recovery", "--without", "9")
    assert main(["explain", "--lake", str(lake.path), *of]) == 2
    assert main(["explain", "--lake", str(lake.path), "--offset", "9", "--without", "3"]) == 2
    errors = capsys.readouterr().err
    assert "--without N is an option of --recovery" in errors


def test_wrong_usage(lake: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", "--lake", str(lake.path), "--offset", "3"]) == 2
    assert "choose one with --cluster" in capsys.readouterr().err
    assert main(["explain", "--lake", str(lake.path), "--cluster", "none", "--recovery"]) == 2
    assert "has no capture of cluster none" in capsys.readouterr().err
    assert main(["validate", "--lake", str(tmp_path)]) == 2
    assert "is not a lake" in capsys.readouterr().err
