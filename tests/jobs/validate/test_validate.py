"""kraftlake validate and explain over the golden lake, into which a fault and an impossible time were put."""

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
from tests.jobs.lakes import opened, report
from transforms.lake.arrow_rows import to_frame
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import DERIVATIONS, FINDINGS, OBSERVATIONS, RUNS, TABLES, VOTER_SETS
from transforms.quality.expectation_history import unvalidated
from transforms.quality.findings import finding_rows, observation_rows

# The clusters of dynamic-membership and of the three uncommitted-* scenarios.
MAD_CLOCK, LIED_ABOUT = "rPoTXydvQsK3Nv6AA77Cqg", "iWP35uOsShu1pFlBJh_E7w"
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
def judged(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The golden lake, copied. In one cluster a leader's clock was far off; of another the outputs lie."""
    path = tmp_path_factory.mktemp("judged") / "lake"
    shutil.copytree(lake.path, path)
    copy = opened(lake.spark, path)
    lake.spark.sql(
        f"UPDATE delta.`{path}/records` SET appended_at = TIMESTAMP'+12026-01-01 00:00:00' "
        f"WHERE cluster_id = '{MAD_CLOCK}' AND is_control"
    )
    lie = described("1795252663000-lie.txt", STATUS, LIED_ABOUT)
    lies = [
        row | {"run_id": "told", "loaded_at": datetime(2026, 1, 1, tzinfo=UTC)}
        for row in observation_rows(lie.cluster_id, lie.observation_id, lie.observations)
    ]
    copy.append(OBSERVATIONS, to_frame(lake.spark, lies, OBSERVATIONS.schema), "lies")
    return copy


def test_a_new_error_fails_it_and_a_broken_cluster_harms_no_other(
    judged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broken one is named and keeps what was derived of it before; the other is judged."""
    before = {t.name: rows_with(judged.path, t, cluster_id=[MAD_CLOCK]) for t in TABLES if t.recomputed}
    code = main(
        [
            "validate",
            "--rules-only",
            "--lake",
            str(judged.path),
            "--cluster",
            MAD_CLOCK,
            "--cluster",
            LIED_ABOUT,
        ]
    )
    out, err = capsys.readouterr()
    assert code == 1
    assert f"cluster {MAD_CLOCK} could not be derived: " in err
    assert "OverflowError: date value out of range" in err
    after = {t.name: rows_with(judged.path, t, cluster_id=[MAD_CLOCK]) for t in TABLES if t.recomputed}
    assert {n: sorted(map(repr, rows)) for n, rows in after.items()} == {
        n: sorted(map(repr, rows)) for n, rows in before.items()
    }
    assert len(before[VOTER_SETS.name]) == 10
    states = {r["cluster_id"]: r["failure"] for r in rows_with(judged.path, DERIVATIONS)}
    assert [cluster for cluster, failure in states.items() if failure is not None] == [MAD_CLOCK]
    assert len(states) == 7
    assert "OverflowError" in states[MAD_CLOCK]
    # So does the page, and the next validation will try again; no run brought the outputs that lie.
    (shown,) = fleet(ask_fleet(judged.path, [MAD_CLOCK]), now=0)
    assert "could not be derived" in shown.reasons[0].words
    assert set(unvalidated(judged.path, "next").underived) == {MAD_CLOCK, LIED_ABOUT}

    (found,) = rows_with(judged.path, FINDINGS, cluster_id=[LIED_ABOUT], severity=["error"])
    assert (found["rule"], found["state"]) == (6, "open")
    assert out.startswith(f"ERROR  {found['finding_id']}  rule 6 high_watermark_rises  (open)\n")
    assert "The high watermark fell from 786 (leader 3, epoch 6) to 700" in out
    assert f"recovery of {LIED_ABOUT}: nodes 3, 1, 2, 4 have the best claim" in out
    said = report(out)
    assert (said["clusters"], said["failed_clusters"], said["new_findings"]) == (2, 1, 1)
    (noted,) = rows_with(judged.path, RUNS, ["reported_findings"], run_id=[said["run_id"]])
    assert noted["reported_findings"] == [{"cluster_id": LIED_ABOUT, "finding_id": found["finding_id"]}]


def test_states_follow_captures_and_acknowledgements() -> None:
    seen = Finding(
        "id", "c", 23, "name", "error", 1, 2, (1,), ("1@a",), ("x",), "words", "", "KIP", 1000, 2000, False
    )
    noted = [
        {"finding_id": "id", "reason": "later", "acknowledged_at": datetime(2026, 2, 1, tzinfo=UTC)},
        {"finding_id": "id", "reason": "first", "acknowledged_at": datetime(2026, 1, 1, tzinfo=UTC)},
    ]
    rows = finding_rows([seen, replace(seen, resolved=True), replace(seen, finding_id="other")], noted)
    assert [(r["state"], r["reason"]) for r in rows] == [
        ("acknowledged", "later"),
        ("resolved", "later"),
        ("open", None),
    ]
    assert (rows[0]["first_seen_at"], rows[0]["last_seen_at"]) == (
        datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
    )


def explained(lake: Any, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    capsys.readouterr()
    assert main(["explain", "--lake", str(lake.path), "--cluster", LIED_ABOUT, *flags]) == 0
    return capsys.readouterr().out


def test_the_fate_of_the_lost_change(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = " ".join(explained(lake, capsys, "--offset", "355").split())
    assert "Offset 355 of epoch 1 was written by leader 1." in out
    assert "It is truncated, replaced by epoch 3" in out
    assert "Offset 355 of epoch 3 was written by leader 2." in out
    told = json.loads(explained(lake, capsys, "--offset", "355", "--format", "json"))
    assert [(b["leader_epoch"], b["status"], b["truncated_by_epoch"]) for b in told["batches"]] == [
        (1, "truncated", 3),
        (3, "committed", None),
    ]
    assert told["batches"][0]["held_by"][0]["first_captured_at"].endswith("Z")


def test_recovery_advice(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    out = explained(lake, capsys, "--recovery")
    best = "nodes 3, 1, 2, 4 have the best claim (epoch 10, log end 1288), safe as of "
    assert out.startswith(f"recovery of {LIED_ABOUT}: {best}")
    told = json.loads(explained(lake, capsys, "--recovery", "--format", "json"))
    assert told["is_safe"]
    assert {(c["node_id"], c["log_end_offset"]) for c in told["best"]} >= {(1, 1288), (2, 1288), (3, 1288)}


def test_wrong_questions(lake: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", "--lake", str(lake.path), "--offset", "3"]) == 2
    assert "choose one with --cluster" in capsys.readouterr().err
    assert main(["explain", "--lake", str(lake.path), "--cluster", "none", "--recovery"]) == 2
    assert "has no capture of cluster none" in capsys.readouterr().err
    assert main(["validate", "--lake", str(tmp_path)]) == 2
    assert "is no lake" in capsys.readouterr().err
