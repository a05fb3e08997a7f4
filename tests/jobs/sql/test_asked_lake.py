"""What a statement names is registered when it is named, as the newest version's files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dashboards.catalog import AskedLake
from transforms.lake.commits import TableWriter
from transforms.lake.tables import CLUSTER_NAMES

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
