"""Reading few bytes, Spark interprets its queries: compiling them would take longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.captures import ingest
from jobs.captures.scan import Scan, scan_files
from tests.jobs.lakes import content, opened, run
from transforms.ingest.known_files import IngestFiles

COMPILES = "spark.sql.codegen.wholeStage"
CLUSTER = "iWP35uOsShu1pFlBJh_E7w"


def test_interpreted_and_compiled_queries_read_the_same_rows(
    spark: SparkSession, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str | None] = []

    def noted(session: SparkSession, files: IngestFiles) -> Scan:
        compiled.append(session.conf.get(COMPILES))
        return scan_files(session, files)

    monkeypatch.setattr(ingest, "scan_files", noted)
    usual = spark.conf.get(COMPILES)
    rows = []
    for few in (ingest.FEW_BYTES, 0):
        monkeypatch.setattr(ingest, "FEW_BYTES", few)
        lake = tmp_path / str(few)
        assert run(lake, golden / "uncommitted-truncation", verb="ingest") == 0
        rows.append(content(opened(spark, lake), CLUSTER))
        del rows[-1]["derivations"]  # it names the run
    assert compiled == ["false", usual] == ["false", "true"]
    assert rows[0] == rows[1]
    assert rows[0]["records"]
    assert spark.conf.get(COMPILES) == usual
