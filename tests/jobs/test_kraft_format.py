"""spark.read.format("kraft") in a real session: what it reads is what the lake holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kraft_core.columnar.schema import message_columns
from transforms.lake.lake import Lake
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS
from transforms.source.columns import PLAIN
from transforms.source.options import OF_FILES

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ENVELOPE = ("type", "version", "is_control", "appended_at")
# Each golden record has one of these; their structs are compared whole.
TYPES = tuple(message.column for message in message_columns())


@pytest.fixture(params=["false", "true"], ids=["pushdown off", "pushdown on"])
def pushdown(spark: Any, request: pytest.FixtureRequest) -> Any:
    spark.conf.set(PUSHDOWN, request.param)
    yield request.param
    spark.conf.unset(PUSHDOWN)


def source(spark: Any, paths: list[Path], schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("kraft").options(**options)
    return (reader.schema(schema) if schema else reader).load([str(path) for path in paths])


def texts(frame: DataFrame, columns: list[str]) -> set[str]:
    """The distinct rows as text, so that any two can be compared."""
    rows = frame.select(F.to_json(F.struct(*columns)).alias("text")).toArrow()
    return set(rows["text"].to_pylist())


def test_its_records_are_those_of_the_lake(spark: Any, lake: Lake, golden_captures: list[Path]) -> None:
    """Every field of every distinct record of the log, by cluster, offset and epoch."""
    every = [*("cluster_id", "offset", "leader_epoch", *ENVELOPE), *TYPES]
    held = lake.read(RECORDS)
    ddl = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in held.schema if f.name in every)
    read = source(spark, golden_captures, f"{ddl}, source STRING", include="log").where("source = 'log'")
    ours, theirs = texts(read, every), texts(held, every)
    assert len(theirs) > 5000
    assert ours == theirs


def test_its_snapshots_are_those_of_the_lake(spark: Any, lake: Lake, golden_captures: list[Path]) -> None:
    """Every field of every distinct record of each snapshot, by its last offset and epoch."""
    every = [*("cluster_id", "offset", "leader_epoch", *ENVELOPE), *TYPES]
    held = lake.read(SNAPSHOT_RECORDS).withColumn("offset", F.expr("end_offset - 1"))
    ddl = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in held.schema if f.name in every)
    read = source(spark, golden_captures, ddl, include="checkpoints")
    ours, theirs = texts(read, every), texts(held, every)
    assert len(theirs) > 1000
    assert ours == theirs


def test_a_query_answers_alike_with_and_without_pushdown(spark: Any, golden: Path, pushdown: str) -> None:
    frame = source(spark, [golden / "uncommitted-truncation" / "after"])
    found = frame.where("type = 'KRaftVoters' AND offset > 20 AND node_id IN (1, 2) AND source = 'log'")
    rows = found.orderBy("node_id", "offset").select("node_id", "offset", "value").collect()
    assert [(row.node_id, row.offset) for row in rows] == [(1, 25), (1, 28), (2, 25), (2, 28)], pushdown
    assert [len(json.loads(row.value)["voters"]) for row in rows] == [2, 3, 2, 3]


def test_sql(spark: Any, golden: Path) -> None:
    path = golden / "uncommitted-truncation" / "after"
    views = {name: f"{name}_view" for name in ("kraft", "kraft_quorum")}
    try:
        for name, view in views.items():
            spark.sql(f"CREATE TEMP VIEW {view} USING {name} OPTIONS (path '{path}')")
        count = "SELECT count(DISTINCT topic_name) AS topics FROM kraft_view WHERE type = 'TOPIC_RECORD'"
        assert spark.sql(count).first().topics > 0
        leaders = spark.sql("SELECT node_id, leader_id FROM kraft_quorum_view ORDER BY node_id").collect()
        assert [tuple(row) for row in leaders] == [(1, 2), (2, 2), (3, 2), (4, 2)]
    finally:  # the session is shared
        for view in views.values():
            spark.catalog.dropTempView(view)


def test_errors_end_with_one_sentence(spark: Any, golden: Path, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=r"SourceError: unknown option typ; did you mean types"):
        source(spark, [golden], typ="TopicRecord")
    with pytest.raises(PySparkException, match=r"SourceError: .*gone does not exist: give a folder"):
        source(spark, [tmp_path / "gone"]).count()


PAGE = (Path(__file__).parents[2] / "docs/format.md").read_text()
README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", re.DOTALL)


def test_the_page_runs(
    spark: Any, golden: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks, in order, in one program; then its SQL, and the README's example."""
    monkeypatch.chdir(golden.parents[1])
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```python") >= 3
    program: dict[str, Any] = {"spark": spark}
    readme = [found for found in BLOCK.findall(README) if "readStream" not in found[0]]
    for code, shown in [*blocks, *readme]:
        capsys.readouterr()
        exec(code, program)
        if shown:
            assert capsys.readouterr().out == shown
    (statements,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for statement in statements.replace("/backup/controllers", str(golden / "v4.4.0-mini")).split(";"):
        if statement.strip():
            spark.sql(statement).collect()
    spark.catalog.dropTempView("captured")


def test_the_page_lists_the_columns_and_the_options() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([A-Z]+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert listed == [(name, type_.partition("<")[0], comment) for name, (type_, comment) in PLAIN.items()]
    table = PAGE.partition("## Options")[2].partition("\n\nFilters")[0]
    options = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
    assert options == [name for name in OF_FILES if name not in ("path", "paths")]
