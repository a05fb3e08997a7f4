"""What a validation covers, and which failures are new; by small tables with the columns that are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transforms.quality.expectation_history import open_failures, unvalidated

Row = dict[str, Any]
TEXT, TIME = pa.string(), pa.timestamp("us", "UTC")
COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "runs": {"run_id": TEXT, "job": TEXT, "started_at": TIME, "finished_at": TIME},
    "captures": {"cluster_id": TEXT, "run_id": TEXT},
    "observations": {"cluster_id": TEXT, "run_id": TEXT},
    "derivations": {"cluster_id": TEXT, "run_id": TEXT, "failure": TEXT, "ingested_by": TEXT},
    "expectation_results": {
        **dict.fromkeys(("cluster_id", "suite", "expectation", "sentence", "severity", "run_id"), TEXT),
        "success": pa.bool_(),
        "observed": pa.float64(),
        "allowed": pa.float64(),
        "failing_rows": pa.list_(TEXT),
        "loaded_at": TIME,
    },
}


def at(hour: float) -> datetime:
    return datetime(2026, 11, 21, tzinfo=UTC) + timedelta(hours=hour)


def lake_of(path: Path, **tables: Sequence[Row]) -> Path:
    for name, rows in tables.items():
        schema = pa.schema(list(COLUMNS[name].items()))
        write_deltalake(path / name, pa.Table.from_pylist(list(rows), schema), mode="append")
    return path


def a_run(run_id: str, began: float, ended: float | None, job: str = "run") -> Row:
    finished = None if ended is None else at(ended)
    return {"run_id": run_id, "job": job, "started_at": at(began), "finished_at": finished}


def written_by(run_id: str, *clusters: str) -> list[Row]:
    return [{"cluster_id": cluster, "run_id": run_id} for cluster in clusters]


def result(run_id: str, cluster: str, hour: float, success: bool = True, **other: Any) -> Row:
    return {
        "cluster_id": cluster,
        "suite": "captures",
        "expectation": "key_is_unique",
        "success": success,
        "run_id": run_id,
        "loaded_at": at(hour),
        **other,
    }


def test_before_the_first_validation_nothing_is_validated(tmp_path: Path) -> None:
    runs = [a_run("first", 1, 2), a_run("second", 3, 4, "ingest")]
    captures = [*written_by("first", "a", "b"), *written_by("second", "b")]
    what = unvalidated(lake_of(tmp_path, runs=runs, captures=captures), "now")
    assert (what.clusters, what.run_ids) == (["a", "b"], {"first", "second"})
    assert what.underived == ["a", "b"]


def test_underived_clusters_are_only_ingested_or_failed(tmp_path: Path) -> None:
    """A run derives before it commits what it read."""
    runs = [a_run("read", 1, 2), a_run("ingest", 3, 4, "ingest"), a_run("derive", 5, 6, "derive")]
    derivations = [
        *written_by("read", "judged"),
        {"cluster_id": "ingested", "run_id": "read", "ingested_by": "ingest"},
        *written_by("derive", "derived"),
        {"cluster_id": "failed", "run_id": "derive", "failure": "OverflowError"},
    ]
    captures = [
        *written_by("read", "judged", "ingested", "derived", "failed"),
        *written_by("ingest", "ingested", "derived"),
    ]
    lake = lake_of(tmp_path, runs=runs, captures=captures, derivations=derivations)
    assert unvalidated(lake, "now").underived == ["failed", "ingested"]


def test_after_a_validation_only_newer_rows_are_unvalidated(tmp_path: Path) -> None:
    """Runs are ordered by their ends: `waited` started before the validation and waited for it."""
    runs = [
        a_run("first", 1, 2),
        a_run("validation", 4, 5, "validate"),
        a_run("waited", 3, 6),
        a_run("outputs", 7, 8),
        a_run("now", 9, None),
    ]
    captures = [*written_by("first", "a", "b", "c", "d"), *written_by("waited", "b"), *written_by("now", "c")]
    results = [result("validation", cluster, 4) for cluster in "abcd"]
    lake = lake_of(
        tmp_path,
        runs=runs,
        captures=captures,
        expectation_results=results,
        observations=written_by("outputs", "d"),
    )
    what = unvalidated(lake, "now")
    assert (what.clusters, what.run_ids) == (["b", "c", "d"], {"waited", "now", "outputs"})


def test_a_run_that_validates_covers_its_own_rows(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        runs=[a_run("both", 1, 2)],
        captures=written_by("both", "a"),
        expectation_results=[result("both", "a", 1)],
    )
    assert unvalidated(lake, "now").clusters == []


def test_evaluating_freshness_is_no_validation_of_a_cluster(tmp_path: Path) -> None:
    """Freshness is evaluated for all clusters, also those without new rows."""
    fresh = result("aged", "a", 3, expectation="newest_capture_is_fresh")
    lake = lake_of(
        tmp_path,
        runs=[a_run("first", 1, 2), a_run("aged", 3, 4, "validate")],
        captures=written_by("first", "a"),
        expectation_results=[fresh],
    )
    assert unvalidated(lake, "now").clusters == ["a"]


def test_a_failure_is_open_until_a_later_result_succeeds(tmp_path: Path) -> None:
    results = [
        result("1", "a", 1, success=False),
        result("1", "b", 1, success=False),
        result("1", "c", 1),
        result("2", "b", 2),
        result("2", "c", 2, success=False),
        result("3", "d", 3, success=False),
        result("3", "d", 3, success=True, suite="batches"),
    ]
    lake = lake_of(tmp_path, expectation_results=results)
    assert {(r["cluster_id"], r["run_id"]) for r in open_failures(lake)} == {
        ("a", "1"),
        ("c", "2"),
        ("d", "3"),
    }
    assert open_failures(tmp_path / "elsewhere") == []


def test_an_expectation_that_is_no_longer_declared_has_no_open_failure(tmp_path: Path) -> None:
    results = [result("1", "a", 1, success=False, expectation=name) for name in ("key_is_unique", "renamed")]
    lake = lake_of(tmp_path, expectation_results=results)
    assert [row["expectation"] for row in open_failures(lake)] == ["key_is_unique"]
