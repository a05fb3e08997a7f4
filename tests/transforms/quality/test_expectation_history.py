"""What a validation looks at, and which failures are news; by tables that hold what was asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transforms.quality.expectation_history import news, standing, unseen

Row = dict[str, Any]
TEXT, TIME = pa.string(), pa.timestamp("us", "UTC")
COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "runs": {"run_id": TEXT, "job": TEXT, "started_at": TIME, "finished_at": TIME},
    "captures": {"cluster_id": TEXT, "run_id": TEXT},
    "observations": {"cluster_id": TEXT, "run_id": TEXT},
    "derivations": {"cluster_id": TEXT, "run_id": TEXT, "failure": TEXT},
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


def brought(run_id: str, *clusters: str) -> list[Row]:
    return [{"cluster_id": cluster, "run_id": run_id} for cluster in clusters]


def answer(run_id: str, cluster: str, hour: float, success: bool = True, **other: Any) -> Row:
    return {
        "cluster_id": cluster,
        "suite": "captures",
        "expectation": "key_is_unique",
        "success": success,
        "run_id": run_id,
        "loaded_at": at(hour),
        **other,
    }


def test_before_the_first_validation_everything_is_unseen(tmp_path: Path) -> None:
    runs = [a_run("first", 1, 2), a_run("second", 3, 4, "ingest")]
    captures = [*brought("first", "a", "b"), *brought("second", "b")]
    what = unseen(lake_of(tmp_path, runs=runs, captures=captures), "now")
    assert (what.clusters, what.run_ids) == (["a", "b"], {"first", "second"})
    assert what.unjudged == ["a", "b"]


def test_unjudged_is_what_was_not_derived_since_it_came(tmp_path: Path) -> None:
    """Read by ingest alone, or its derivation failed; a run derives before it commits what it read."""
    runs = [a_run("read", 1, 2), a_run("ingest", 3, 4, "ingest"), a_run("derive", 5, 6, "derive")]
    derivations = [
        *brought("read", "judged", "ingested"),
        *brought("derive", "derived"),
        {"cluster_id": "failed", "run_id": "derive", "failure": "OverflowError"},
    ]
    captures = [
        *brought("read", "judged", "ingested", "derived", "failed"),
        *brought("ingest", "ingested", "derived"),
    ]
    lake = lake_of(tmp_path, runs=runs, captures=captures, derivations=derivations)
    assert unseen(lake, "now").unjudged == ["failed", "ingested"]


def test_after_one_only_what_came_since(tmp_path: Path) -> None:
    """Runs follow each other by their ends: `waited` began before the validation, and waited for it."""
    runs = [
        a_run("first", 1, 2),
        a_run("validation", 4, 5, "validate"),
        a_run("waited", 3, 6),
        a_run("outputs", 7, 8),
        a_run("now", 9, None),
    ]
    captures = [*brought("first", "a", "b", "c", "d"), *brought("waited", "b"), *brought("now", "c")]
    asked = [answer("validation", cluster, 4) for cluster in "abcd"]
    lake = lake_of(
        tmp_path,
        runs=runs,
        captures=captures,
        expectation_results=asked,
        observations=brought("outputs", "d"),
    )
    what = unseen(lake, "now")
    assert (what.clusters, what.run_ids) == (["b", "c", "d"], {"waited", "now", "outputs"})


def test_a_run_that_validates_has_seen_what_it_brought(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        runs=[a_run("both", 1, 2)],
        captures=brought("both", "a"),
        expectation_results=[answer("both", "a", 1)],
    )
    assert unseen(lake, "now").clusters == []


def test_the_freshness_of_a_cluster_is_no_validation_of_it(tmp_path: Path) -> None:
    """Freshness is asked of clusters that nothing else is asked of."""
    fresh = answer("aged", "a", 3, expectation="newest_capture_is_fresh")
    lake = lake_of(
        tmp_path,
        runs=[a_run("first", 1, 2), a_run("aged", 3, 4, "validate")],
        captures=brought("first", "a"),
        expectation_results=[fresh],
    )
    assert unseen(lake, "now").clusters == ["a"]


def test_a_failure_stands_until_it_is_asked_again_and_held(tmp_path: Path) -> None:
    asked = [
        answer("1", "a", 1, success=False),
        answer("1", "b", 1, success=False),
        answer("1", "c", 1),
        answer("2", "b", 2),
        answer("2", "c", 2, success=False),
        answer("3", "d", 3, success=False),
        answer("3", "d", 3, success=True, suite="batches"),
    ]
    lake = lake_of(tmp_path, expectation_results=asked)
    assert {(r["cluster_id"], r["run_id"]) for r in standing(lake)} == {("a", "1"), ("c", "2"), ("d", "3")}
    assert standing(tmp_path / "elsewhere") == []


def test_a_failure_is_news_once(tmp_path: Path) -> None:
    asked = [
        answer("1", "a", 1, success=False),
        answer("1", "b", 1),
        answer("2", "a", 2, success=False),
        answer("2", "b", 2, success=False),
        answer("2", "c", 2, success=False),
    ]
    lake = lake_of(tmp_path, expectation_results=asked)
    assert [r["cluster_id"] for r in news(lake, "2", standing(lake))] == ["b", "c"]
