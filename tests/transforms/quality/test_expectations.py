"""Expectations: each fails on input that violates it, and on no other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.types import StructField, StructType

from tests.transforms.quality.sound_cluster import (
    Rows,
    a_row,
    at,
    changed,
    doubled,
    epoch_range,
    sound_cluster,
)
from transforms.lake import tables
from transforms.lake.spark_rows import to_frame
from transforms.quality.expectation_scope import DERIVED_ROWS, Scope, scoped
from transforms.quality.expectation_settings import UnknownExpectationError, configured
from transforms.quality.expectation_suites import COMMON, WHOLE_LAKE, Suite, suites
from transforms.quality.expectations import failing_clusters, results, superseded

NOW = at(24)
SUITES = {suite.table.name: suite for suite in configured(suites())}
NAMES = [f"{suite}.{e.name}" for suite in SUITES for e in SUITES[suite].expectations]

BROKEN: dict[str, Callable[[Rows], None]] = {
    "captures.log_is_gapless": changed(
        "captures", epoch_ranges=[epoch_range(1, 0, 2), epoch_range(1, 0, 2), epoch_range(2, 2, 4)]
    ),
    "captures.ends_match_the_log": changed("captures", log_end_offset=5),
    "captures.captured_at_is_recorded": changed("captures", captured_at_source="file_time"),
    "captures.captured_at_not_in_future": changed("captures", last_captured_at=at(25)),
    "captures.side_files_are_readable": changed(
        "captures", file_faults=[{"file": "quorum-state", "reason": "x"}]
    ),
    "captures.newest_capture_is_fresh": changed("captures", last_captured_at=at(-3)),
    "segments.capture_is_known": changed("segments", capture_id="other"),
    "segments.bytes_read_within_size": changed("segments", bytes_read=161),
    "batches.capture_is_known": changed("captures", epoch_ranges=[epoch_range(1, 0, 2)], log_end_offset=2),
    "batches.range_is_complete": changed(
        "captures", epoch_ranges=[epoch_range(1, 0, 2), epoch_range(2, 2, 5)], log_end_offset=5
    ),
    "batches.offsets_match_the_count": changed("batches", 1, last_offset=2),
    "records.batch_is_known": changed("records", 3, batch_crc=9),
    "records.batch_is_complete": lambda rows: rows["records"].pop() and None,
    "records.values_are_decoded": changed("records", 3, unread_reason="malformed_value"),
    "snapshots.capture_is_known": changed("captures", snapshots=[]),
    "snapshots.captured_snapshot_is_known": changed(
        "captures",
        snapshots=[
            {"end_offset": 2, "leader_epoch": 1, "content_digest": "s"},
            {"end_offset": 4, "leader_epoch": 2, "content_digest": "t"},
        ],
    ),
    "snapshots.snapshot_is_complete": changed("snapshots", complete=False),
    "snapshot_records.snapshot_is_known": lambda rows: rows["snapshots"].clear(),
    "snapshot_records.positions_are_gapless": changed("snapshot_records", 1, position=2),
    "quarantine.capture_is_known": changed("quarantine", capture_id="other"),
    "quarantine.lost_bytes_within_limit": changed("quarantine", reason="bad_crc"),
    "log_ranges.range_is_not_empty": changed("log_ranges", 2, end_offset=2),
    "log_ranges.status_is_known": changed("log_ranges", 0, commit_status="lost"),
    "log_ranges.committed_ranges_do_not_overlap": changed("log_ranges", 1, first_offset=1),
    "log_ranges.truncation_names_its_epoch": changed("log_ranges", 2, truncated_by_epoch=None),
    "replica_ranges.required_columns_not_null": lambda rows: rows["replica_ranges"].append(
        rows["replica_ranges"][1] | epoch_range(3, 4, 5) | {"leader_epoch": None}
    ),
    "replica_ranges.range_is_not_empty": lambda rows: rows["replica_ranges"].append(
        rows["replica_ranges"][1] | epoch_range(3, 4, 4)
    ),
    "replica_ranges.capture_is_known": lambda rows: rows["replica_ranges"].append(
        rows["replica_ranges"][1] | {"node_id": 2}
    ),
    "replica_ranges.times_are_ordered": changed("replica_ranges", first_captured_at=at(3)),
    "epochs.leader_is_a_voter": changed("epochs", leader_id=2),
    "epochs.granting_voters_are_a_majority": changed("epochs", voter_ids=[1, 2]),
    "epochs.start_offsets_do_not_decrease": changed("epochs", start_offset=3),
    "epochs.leaderless_time_not_negative": changed("epochs", 1, leaderless_ms=-1),
    "voter_sets.source_is_known": changed("voter_sets", source="rumour"),
    "voter_sets.record_is_known": changed("records", type="LeaderChange"),
    "voter_sets.status_is_known": changed("voter_sets", 1, commit_status=None),
    "voter_sets.majority_is_more_than_half": changed("voter_sets", majority=2),
    "voter_sets.voters_are_distinct": changed("voter_sets", voter_ids=[3]),
    "voter_sets.in_force_range_is_ordered": changed("voter_sets", in_force_from_offset=1),
    "voter_sets.voters_are_captured": changed(
        "voter_sets", 1, voters=[{"voter_id": 1}, {"voter_id": 2}], voter_ids=[1, 2], majority=2
    ),
    "voter_changes.kind_is_known": changed("voter_changes", kind="promoted"),
    "voter_changes.set_is_known": changed("voter_changes", offset=1),
    "high_watermarks.one_bound_per_proof": changed("high_watermarks", believed_bound=3),
    "high_watermarks.bounds_do_not_cross": changed("high_watermarks", lower_bound=5),
    "derivations.derived_rows_are_kept": changed("derived_rows", rows=1),
}
# Other expectations that the same fault violates.
ALSO = {
    "batches.offsets_match_the_count": {"batches.range_is_complete"},
    "records.batch_is_known": {"records.batch_is_complete"},
    "records.key_is_unique": {"records.batch_is_complete"},
    "snapshot_records.snapshot_is_known": {"snapshots.captured_snapshot_is_known"},
}
# A required column that no other expectation evaluates, if the last one is evaluated by another.
UNUSED = {
    "captures": "consistent",
    "quarantine": "position",
    "snapshots": "kind",
    "log_ranges": "leader_epoch",
    "voter_sets": "leader_epoch",
}


def emptied(table: tables.Table) -> Callable[[Rows], None]:
    """A null in a required column."""
    last = [c.name for c in table.columns if not c.nullable][-1]
    return changed(table.name, 0, **{UNUSED.get(table.name, last): None})


def broken() -> dict[str, Callable[[Rows], None]]:
    """A fault for every expectation."""
    every = dict(BROKEN)
    for suite in SUITES.values():
        if "cluster_id" in suite.table.names:
            every[f"{suite.table.name}.key_is_unique"] = doubled(suite.table.name)
            every.setdefault(f"{suite.table.name}.required_columns_not_null", emptied(suite.table))
    return every


@pytest.fixture(autouse=True)
def _interpreted(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames:
        request.getfixturevalue("interpreted")


def broken_run() -> list[dict[str, Any]]:
    """Rows of runs that fail every expectation."""
    counts = {"unreadable": 1}
    run = a_row(tables.RUNS, run_id="r", job="run", started_at=at(1), finished_at=at(0), counts=counts)
    run |= {"failed_clusters": [("c", "x")]}
    return [run, dict(run), run | {"started_at": None}]


def frames_of(spark: Any, rows: Rows) -> dict[str, Any]:
    """The rows as frames, all columns nullable."""
    frames = {}
    for table in tables.TABLES:
        schema = StructType([StructField(f.name, f.dataType) for f in table.schema.fields])
        frames[table.name] = to_frame(spark, rows.get(table.name, []), schema)
    return frames | {"derived_rows": to_frame(spark, rows.get("derived_rows", []), DERIVED_ROWS)}


def test_every_expectation_fails_where_it_is_broken_and_nowhere_else(spark: Any) -> None:
    """One cluster for each expectation, named after it and with one fault, and a sound one."""
    every: Rows = {"runs": broken_run()}
    for name, fault in {"sound": dict.copy, **broken()}.items():
        rows = sound_cluster(name)
        fault(rows)
        for table, found in rows.items():
            every.setdefault(table, []).extend(found)
    frames = frames_of(spark, every)
    failed: dict[str, set[str]] = {}
    for row in results(configured(suites()), scoped(frames, Scope()), frames, NOW, None):
        if not row["success"]:
            name = f"{row['suite']}.{row['expectation']}"
            failed.setdefault(row["cluster_id"], set()).add(name)
            assert row["failing_rows"]
    of_runs = {name for name in NAMES if name.startswith("runs.")}
    expected = {WHOLE_LAKE: of_runs, **{name: {name} | ALSO.get(name, set()) for name in broken()}}
    differing = {c for c in failed.keys() | expected.keys() if failed.get(c) != expected.get(c)}
    assert {c: failed.get(c) for c in differing} == {c: expected.get(c) for c in differing}
    assert set(NAMES) == of_runs | set(broken())


# Distinct suites: most tables have only the two common expectations.
DISTINCT = {tuple(e.name for e in suite.expectations): suite for suite in SUITES.values()}


@pytest.mark.parametrize("suite", DISTINCT.values(), ids=lambda suite: suite.table.name)
def test_great_expectations_fails_each_number_above_what_is_allowed(suite: Suite) -> None:
    chosen = suite.expectations
    allowed = {e.name: e.allowed for e in chosen}
    above = [{"cluster_id": e.name, **allowed, e.name: e.allowed + 0.5} for e in chosen]
    frame = pd.DataFrame([{"cluster_id": "fine", **allowed}, *above])
    assert failing_clusters(suite.table.name, chosen, frame) == {name: {name} for name in allowed}
    fine = frame[:1]
    assert failing_clusters(suite.table.name, chosen, fine) == {name: set() for name in allowed}


def test_no_measured_value_is_no_failure() -> None:
    frame = pd.DataFrame([{"cluster_id": "c", "newest_capture_is_fresh": None}])
    chosen = [e for e in SUITES["captures"].expectations if e.measure]
    assert failing_clusters("captures", chosen, frame) == {"newest_capture_is_fresh": set()}


def test_thresholds_of_one_lake() -> None:
    changed_to = {"captures": {"newest_capture_is_fresh": {"allowed": 1, "severity": "error"}}}
    captures = next(s for s in configured(suites(), changed_to) if s.table.name == "captures")
    fresh = next(e for e in captures.expectations if e.measure)
    assert (fresh.allowed, fresh.severity) == (1, "error")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"capture": {}}, "no suite capture"),
        ({"captures": {"is_fresh": {}}}, "no expectation is_fresh"),
        ({"captures": {"captured_at_not_in_future": {"limit": 1}}}, "unknown setting limit"),
        (
            {"captures": {"captured_at_not_in_future": {"severity": "critical"}}},
            "error or warning, not critical",
        ),
        ({"captures": {"captured_at_not_in_future": {"allowed": "2"}}}, "allowed must be a number, not '2'"),
    ],
)
def test_a_wrong_threshold_is_refused(overrides: Any, message: str) -> None:
    with pytest.raises(UnknownExpectationError, match=message):
        configured(suites(), overrides)


def test_only_the_rows_of_a_run_are_evaluated(spark: Any) -> None:
    """Faults below the first new row are not found; one at the border with the old rows is.

    The record of the voter set lies below it too, and must not be reported as missing.
    """
    old, new = sound_cluster("old"), sound_cluster("new")
    for rows in (old, new):
        rows["records"].pop(1)  # of the first batch, which is not new
    for table in ("batches", "records"):
        for row in new[table]:
            row["run_id"] = "now" if row["leader_epoch"] == 2 else "before"
    new["records"].pop()
    for offset in (1, 2):
        topic = a_row(tables.TOPICS, cluster_id="new", topic_id=f"at {offset}", valid_from_offset=offset)
        new["topics"] += [topic, dict(topic)]
    frames = frames_of(spark, {t: old[t] + new[t] for t in old})
    limited = scoped(frames, Scope(["old", "new"], {"now"}))
    assert failing(["batches", "records", "topics", "voter_sets"], limited, frames, ["old", "new"]) == {
        ("new", "records", "batch_is_complete", 1.0),
        ("new", "topics", "key_is_unique", 1.0),
    }
    new["voter_sets"][1]["offset"] = 3  # where there is no such record
    frames = frames_of(spark, new)
    limited = scoped(frames, Scope(["new"], {"now"}))
    assert failing(["voter_sets"], limited, frames, ["new"]) == {
        ("new", "voter_sets", "record_is_known", 1.0)
    }


def test_batches_that_only_new_captures_show_must_be_there(spark: Any) -> None:
    """Also if no batch of their run is left. Below, where an older capture ends, nothing is read again."""
    clusters: list[Rows] = []
    for name in ("all lost", "old lost", "sound"):
        rows = sound_cluster(name)
        new = rows["captures"][0]
        new["run_id"] = "now"
        old = {
            "epoch_ranges": new["epoch_ranges"][:1],
            "log_end_offset": 2,
            "capture_id": f"old {name}",
            "run_id": "before",
        }
        rows["captures"].append(new | old)
        for row in rows["batches"]:
            row["run_id"] = "now" if row["leader_epoch"] == 2 else "before"
        clusters.append(rows)
    clusters[0]["batches"].clear()
    clusters[1]["batches"].pop(0)
    frames = frames_of(spark, {t: [row for rows in clusters for row in rows[t]] for t in clusters[0]})
    owners = [rows["captures"][0]["cluster_id"] for rows in clusters]
    limited = scoped(frames, Scope(owners, {"now"}))
    failed = [r for r in results([SUITES["batches"]], limited, frames, NOW, owners) if not r["success"]]
    (lost,) = failed
    assert (lost["cluster_id"], lost["expectation"]) == ("all lost", "range_is_complete")
    (row,) = map(json.loads, lost["failing_rows"])
    assert (row["leader_epoch"], row["first_offset"], row["held_to"], row["end_offset"]) == (2, 2, 2, 4)


def failing(suites: list[str], frames: Any, every: Any, clusters: list[str]) -> set[tuple[Any, ...]]:
    chosen = [SUITES[name] for name in suites]
    return {
        (row["cluster_id"], row["suite"], row["expectation"], row["observed"])
        for row in results(chosen, frames, every, NOW, clusters)
        if not row["success"]
    }


def test_without_new_rows_only_ages_and_derived_rows_are_evaluated(spark: Any) -> None:
    """Derived rows may be lost at any time; where none are, an earlier failure ends."""
    rows, sound = sound_cluster("c"), sound_cluster("sound")
    doubled("captures")(rows)
    changed("derived_rows", rows=0)(rows)
    rows["derived_rows"] += sound["derived_rows"]
    frames = frames_of(spark, rows | {"runs": broken_run()})
    late = at(24 * 30)
    found = list(results(configured(suites()), scoped(frames, Scope([], ())), frames, late, []))
    assert {(r["cluster_id"], r["suite"], r["expectation"]) for r in found if not r["success"]} == {
        ("c", "captures", "newest_capture_is_fresh"),
        ("c", "derivations", "derived_rows_are_kept"),
        *(("*", *name.split(".")) for name in NAMES if name.startswith("runs.")),
    }
    assert {r["suite"] for r in found} == {"captures", "derivations", "runs"}
    assert [r["success"] for r in found if r["cluster_id"] == "sound"] == [True]
    (lost,) = (r["failing_rows"] for r in found if not r["success"] and r["suite"] == "derivations")
    assert lost == ['{"cluster_id":"c","table":"epochs","rows":0,"expected":2}']


def test_old_results_are_superseded_by_newer_ones(spark: Any) -> None:
    """The newest result of each expectation is kept, however old, and so are all recent ones."""
    given = [("1", "a", 1), ("2", "a", 2), ("3", "a", 9), ("1", "b", 1), ("4", "c", 10), ("5", "c", 11)]
    rows = [
        a_row(tables.EXPECTATION_RESULTS, run_id=run, cluster_id=cluster, suite="s", loaded_at=at(hour))
        for run, cluster, hour in given
    ]
    frame = to_frame(spark, rows, tables.EXPECTATION_RESULTS.schema)
    old = {(row["run_id"], row["cluster_id"]) for row in superseded(frame, at(8)).toLocalIterator()}
    assert old == {("1", "a"), ("2", "a")}


def test_the_document_lists_every_expectation() -> None:
    lines = (Path(__file__).parents[3] / "docs" / "expectations.md").read_text().splitlines()
    listed = [tuple(line.strip("| ").split(" | ")) for line in lines if re.match(r"\| \w+\.\w+ \|", line)]
    common = {e.name for e in COMMON.expectations}
    assert listed == [
        (f"{suite}.{e.name}", e.sentence, e.severity, f"{e.allowed:g}" if e.measure else "0 rows")
        for suite in SUITES
        for e in SUITES[suite].expectations
        if e.name not in common
    ]
