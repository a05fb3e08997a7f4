"""What a statement names is registered when it is named, as the newest version's files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from dashboards import evaluated_views
from dashboards.catalog import AskedLake, define
from dashboards.view_columns import VIEWS
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.lake import existing_lake
from transforms.lake.tables import CLUSTER_NAMES, LOG_RANGES

ROWS = [{"cluster_id": f"c{n}", "name": f"n{n}", "environment": None, "owner": None} for n in range(3)]
ASKED = "SELECT COUNT(*) FROM cluster_names"


@pytest.fixture
def writable(lake: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lake.path, tmp_path / "copy"))


def count(lake: Any, asked: AskedLake, sql: str = ASKED) -> int:
    asked.register(sql)
    return lake.spark.sql(sql).first()[0]


def test_rows_that_a_run_writes_later_are_seen(lake: Any, writable: Path) -> None:
    """Also where it replaced files, which lie in the folder still."""
    writer = TableWriter(writable, None)
    writer.create(CLUSTER_NAMES)
    asked = AskedLake(lake.spark, writable)
    assert count(lake, asked) == 0
    writer.put(CLUSTER_NAMES, ROWS[:1], by="cluster_id")
    assert count(lake, asked) == 1
    writer.put(CLUSTER_NAMES, [ROWS[0] | {"name": "other"}, *ROWS[1:]], by="cluster_id")
    assert len(list((writable / "cluster_names").glob("*.parquet"))) > 1
    assert count(lake, asked) == 3


def test_earlier_versions_are_deltas(lake: Any, writable: Path) -> None:
    asked = AskedLake(lake.spark, writable)
    assert count(lake, asked, "SELECT COUNT(*) FROM captures") == 55
    assert count(lake, asked, "SELECT COUNT(*) FROM captures VERSION AS OF 0") == 0
    assert count(lake, asked, "SELECT COUNT(*) FROM captures") == 55


def test_columns_keep_their_comments(lake: Any, writable: Path) -> None:
    asked = AskedLake(lake.spark, writable)
    asked.register("DESCRIBE TABLE voter_sets")
    described = {row.col_name: row.comment for row in lake.spark.sql("DESCRIBE TABLE voter_sets").collect()}
    assert described["voter_ids"]
    assert lake.spark.table("voter_sets").inputFiles()[0].endswith(".parquet")


def test_a_folder_whose_name_spark_would_take_for_a_pattern(lake: Any, tmp_path: Path) -> None:
    odd = tmp_path / "a[b]{c}*"
    shutil.copytree(lake.path, odd)
    assert count(lake, AskedLake(lake.spark, odd), "SELECT COUNT(*) FROM captures") == 55


ENDS = "SELECT COUNT(*) FROM committed_ends"


def plan(lake: Any, sql: str) -> str:
    return lake.spark.sql(sql)._jdf.queryExecution().optimizedPlan().toString()


def is_evaluated(lake: Any, sql: str = ENDS) -> bool:
    """Whether a query reads rows that were evaluated, and no table."""
    return " parquet" not in plan(lake, sql)


@pytest.fixture
def asked(lake: Any) -> Iterator[AskedLake]:
    asked = AskedLake(lake.spark, lake.path)
    yield asked
    asked.register("DESCRIBE committed_ends")  # leaves no view of these tests to others


def add_cluster(lake: Path) -> None:
    """One more of which something is committed."""
    (row, *_) = rows_with(lake, LOG_RANGES, commit_status=["committed"])
    TableWriter(lake, None).put(LOG_RANGES, [row | {"cluster_id": "another"}], by="cluster_id")


def test_a_view_of_small_tables_is_evaluated_without_spark(lake: Any, asked: AskedLake) -> None:
    by_spark = count(lake, asked, "SELECT COUNT(*) FROM kraft.committed_ends")
    assert not is_evaluated(lake, "SELECT COUNT(*) FROM kraft.committed_ends")
    assert count(lake, asked, ENDS) == by_spark == 7
    assert is_evaluated(lake)
    assert {f.name: f.metadata["comment"] for f in lake.spark.table("committed_ends").schema} == VIEWS[
        "committed_ends"
    ]


def test_rows_of_an_evaluated_view_are_those_of_its_tables_now(lake: Any, writable: Path) -> None:
    asked = AskedLake(lake.spark, writable)
    before = count(lake, asked, ENDS)
    add_cluster(writable)
    assert count(lake, asked, ENDS) == before + 1
    assert is_evaluated(lake)
    asked.register("DESCRIBE committed_ends")


@pytest.mark.parametrize(
    "other",
    [
        "DESCRIBE TABLE committed_ends",
        "EXPLAIN SELECT * FROM committed_ends",
        "SELECT * FROM committed_ends, kraft.clusters",
        "SELECT * FROM `kraft`.`committed_ends`",
    ],
)
def test_what_is_asked_of_the_definition_sees_the_definition(lake: Any, asked: AskedLake, other: str) -> None:
    """Spark refuses to define a view over one that was evaluated."""
    asked.register(ENDS)
    asked.register(other)
    lake.spark.sql(other).schema  # noqa: B018
    assert not is_evaluated(lake)
    assert "committed_ends" in {
        row.viewName for row in lake.spark.sql("SHOW VIEWS").collect() if not row.isTemporary
    }


def test_views_of_large_tables_are_sparks(
    lake: Any, asked: AskedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluated_views, "MOST_BYTES", 1000)
    assert count(lake, asked, ENDS) == 7
    assert not is_evaluated(lake)


def test_views_of_another_lake_are_not_in_the_way(lake: Any, asked: AskedLake, writable: Path) -> None:
    """Of two lakes in one session, no view of the one is taken for the other's, or defined over."""
    add_cluster(writable)
    for sql in (ENDS, "SELECT COUNT(*) FROM committed_ends UNION SELECT COUNT(*) FROM kraft.committed_ends"):
        assert count(lake, asked, ENDS) == 7
        assert count(lake, AskedLake(lake.spark, writable), sql) == 8
    assert count(lake, asked, ENDS) == 7
    define(existing_lake(lake.spark, writable), {"log_ranges", "committed_ends"})
    assert lake.spark.sql(ENDS).first()[0] == 8


def test_what_the_engine_cannot_read_is_sparks(lake: Any, writable: Path) -> None:
    """It says which file is missing."""
    for file in (writable / "log_ranges").glob("*.parquet"):
        file.unlink()
    with pytest.raises(pa.ArrowException):
        evaluated_views.evaluated(writable, "committed_ends")
    with pytest.raises(AnalysisException, match="PATH_NOT_FOUND"):
        AskedLake(lake.spark, writable).register(ENDS)
