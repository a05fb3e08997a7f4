"""The text that a run prints about its clusters."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dashboards.summary import MOST_CLUSTERS, MOST_SETS, summary
from tests.dashboards.small_lakes import write, write_for
from transforms.lake.tables import CAPTURES, CLUSTER_NAMES, EPOCHS, FINDINGS, VOTER_SETS

Row = dict[str, Any]
TIME = datetime(2026, 11, 21, 9, tzinfo=UTC)


def lake_of(lake: Path, replicas: dict[str, int], findings: list[Row] | None = None) -> None:
    """Clusters with one capture of each of so many replicas."""
    write_for(lake, "admin_events", {})
    rows = [
        {"cluster_id": cluster, "capture_id": f"{cluster}-{node}", "node_id": node, "directory_id": "d"}
        | {"captured_at": TIME, "last_captured_at": TIME}
        for cluster, nodes in replicas.items()
        for node in range(1, nodes + 1)
    ]
    write(lake, CAPTURES, rows)
    write(lake, FINDINGS, findings or [])
    (lake / "lake.json").write_text('{"format_version": 1}')


def finding(cluster: str, number: int, severity: str = "error", **more: Any) -> Row:
    row = {"cluster_id": cluster, "finding_id": f"id-{number}", "rule": 5, "severity": severity}
    times = {"first_seen_at": TIME, "last_seen_at": TIME}
    return row | times | {"state": "open", "sentence": f"sentence {number}"} | more


def headlines(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(" ")]


def test_one_capture_of_one_replica_is_singular(tmp_path: Path) -> None:
    lake_of(tmp_path, {"c": 1, "d": 3})
    write(tmp_path, CLUSTER_NAMES, [{"cluster_id": "d", "name": "orders"}])
    assert headlines(summary(tmp_path, ["c", "d"]).lines) == [
        "cluster c: 1 capture of 1 replica (node 1)",
        "cluster d (orders): 3 captures of 3 replicas (nodes 1, 2, 3)",
    ]


def test_what_is_not_known_is_said_in_words(tmp_path: Path) -> None:
    lake_of(tmp_path, {"c": 1})
    write(tmp_path, EPOCHS, [{"cluster_id": "c", "leader_epoch": 7}])
    lines = summary(tmp_path, ["c"]).lines
    assert "  epochs: 1 known, newest 7, leader unknown" in lines
    assert "  high watermark: no bound with a known time; nothing is proven committed" in lines


def test_errors_of_one_cause_are_one_line(tmp_path: Path) -> None:
    stray = [finding("c", n, sentence=f"1 lost offset {n}.", first_offset=n) for n in range(124)]
    others = [finding("c", 200 + n, sentence=f"Rule broken {'so' * n}.", rule=6) for n in range(6)]
    lake_of(tmp_path, {"c": 1}, [*others, *reversed(stray)])
    lines = summary(tmp_path, ["c"]).lines
    at = lines.index("  findings: 130 open errors; see kraftlake findings list")
    assert lines[at + 1] == "    id-0  rule 5: 1 lost offset 0. And 123 more like it."
    assert len(lines) == at + 7
    assert lines[-1] == "    ... 2 more errors"


def test_the_worst_come_first_however_many_there_are(tmp_path: Path) -> None:
    names = [f"c{n:02}" for n in range(MOST_CLUSTERS + 3)]
    lake_of(tmp_path, dict.fromkeys(names, 1), [finding("c01", 1, "warning"), finding(names[-1], 2)])
    some = headlines(summary(tmp_path, names[-2:]).lines)
    assert [line[:11] for line in some] == ["cluster c12", "cluster c11"]
    every = headlines(summary(tmp_path, names).lines)
    assert [line[:11] for line in every[:3]] == ["cluster c12", "cluster c01", "cluster c00"]
    assert every[MOST_CLUSTERS:] == ["and 3 more clusters: see kraftlake clusters"]


def test_voter_sets_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    lake_of(tmp_path, {"c": 1})
    sets = [voter_set(n) | {"in_force_from_offset": n} for n in range(MOST_SETS + 2)]
    seen = {"source": "describe", "observed_from": TIME, "observed_to": TIME}
    reported = [voter_set(n) | seen for n in range(MOST_SETS + 1)]
    write(tmp_path, VOTER_SETS, [*sets, *reported])
    lines = summary(tmp_path, ["c"]).lines
    assert "    ... 2 earlier: view voter_history has all" in lines
    assert "    ... 1 reported earlier: view voter_history has all" in lines
    assert (
        sum("describe" in line for line in lines) == sum("[1]  record" in line for line in lines) == MOST_SETS
    )


def test_voter_sets_are_aligned_however_large_their_epochs(tmp_path: Path) -> None:
    """As after a restoration, which leaves out ten million offsets and a million epochs."""
    lake_of(tmp_path, {"c": 1})
    restored = voter_set(10006643) | {"leader_epoch": 1000004}
    write(tmp_path, VOTER_SETS, [each | {"in_force_from_offset": 2} for each in (voter_set(2), restored)])
    lines = [line for line in summary(tmp_path, ["c"]).lines if "[1]" in line]
    assert lines == [
        "             2/e1       [1]  record",
        "      10006643/e1000004 [1]  record",
    ]


def voter_set(offset: int) -> Row:
    return {"cluster_id": "c", "offset": offset, "leader_epoch": 1, "source": "record", "voter_ids": [1]}
