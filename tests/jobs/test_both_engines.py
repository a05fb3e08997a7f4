"""Views that Spark and the page's engine run: they give the same rows of random histories."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from dashboards import embedded_sql
from dashboards.report.plain_rows import plain
from tests.dashboards.histories import random_histories
from tests.dashboards.small_lakes import write_for
from tests.jobs.lakes import asking
from transforms.lake.spark_rows import to_rows


def same(embedded: pa.Table | None, spark: list[dict[str, Any]]) -> bool:
    """Whether both engines gave the same rows of the same columns; times in ms."""
    assert embedded
    return texts(embedded.to_pylist()) == texts(spark)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(plain(row)) for row in rows)


def test_both_engines_agree_on_random_histories(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(20)
    tables: dict[str, list[dict[str, Any]]] = {}
    for n in range(150):
        for name, rows in random_histories(random, f"c{n}").items():
            tables.setdefault(name, []).extend(rows)
    write_for(tmp_path, "admin_events", tables)
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    views = ("admin_events", "under_min_isr", "reassignments", "partition_batches")
    ask = asking(spark, tmp_path)
    wanted = {view: to_rows(ask(f"SELECT * FROM {view}")) for view in views}
    clusters = sorted({row["cluster_id"] for row in tables["partitions"]})
    # Conditions on the clusters, and tables that are read from their files, are planned in other ways.
    for most_held, some in product((embedded_sql.MOST_BYTES, 0), ((), clusters)):
        monkeypatch.setattr(embedded_sql, "MOST_BYTES", most_held)
        for view, rows in wanted.items():
            assert same(embedded_sql.query(tmp_path, view, f"SELECT * FROM {view}", some), rows), view
    operations = {row["operation"] for row in wanted["admin_events"]}
    assert {"add partitions", "elect leader", "elect unclean leader", "reassign partition"} <= operations
    assert {"cancel reassignment", "fence broker", "register broker", "controlled shutdown"} <= operations
    states = {"requested", "immediate", "completed", "cancelled", "superseded"}
    assert states <= {row["state"] for row in wanted["reassignments"]}
