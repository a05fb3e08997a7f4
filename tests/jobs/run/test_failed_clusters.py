"""A cluster that fails costs itself only; it is named, and tried again by the next run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.runtime.outcome import ExitCode
from tests.jobs.lakes import content, opened, report, run
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import DERIVATIONS, RECORDS, REPLAYS, RUNS

MINI = "v4.4.0-mini/node-1"
FAILING = "failing"


@pytest.fixture
def captures(golden: Path, tmp_path: Path) -> Path:
    """Two clusters of the same bytes."""
    shutil.copytree(golden / MINI, tmp_path / "captures" / "sound")
    copy = Path(shutil.copytree(golden / MINI, tmp_path / "captures" / FAILING))
    with (copy / "meta.properties").open("a") as meta:
        meta.write(f"\ncluster.id={FAILING}\n")
    return tmp_path / "captures"


def clusters_of(lake: Path) -> set[str]:
    return {row["cluster_id"] for row in rows_with(lake, DERIVATIONS, ["cluster_id"])}


def failures(lake: Path) -> dict[str, str]:
    rows = rows_with(lake, DERIVATIONS, ["cluster_id", "failure"])
    return {row["cluster_id"]: row["failure"] for row in rows if row["failure"] is not None}


def test_histories_that_cannot_be_made(
    spark: Any,
    captures: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The lake has a time of a topic that no calendar knows; both clusters are replayed anew."""
    lake = tmp_path / "lake"
    assert run(lake, captures) == ExitCode.FINE
    (sound,) = clusters_of(lake) - {FAILING}
    before = {cluster: content(opened(spark, lake), cluster) for cluster in (sound, FAILING)}
    version = DeltaTable(lake / RECORDS.name).version()
    spark.sql(
        f"UPDATE delta.`{lake}/records` SET appended_at = TIMESTAMP'+12026-01-01 00:00:00' "
        f"WHERE cluster_id = '{FAILING}' AND type = 'TOPIC_RECORD'"
    )
    DeltaTable(lake / REPLAYS.name).delete()
    capsys.readouterr()
    assert run(lake, captures) == ExitCode.FOUND
    said = capsys.readouterr()
    words = "could not be derived: its histories could not be made: OverflowError: "
    assert f"kraftlake run: cluster {FAILING} {words}" in said.err
    assert "Traceback" not in said.out + said.err
    (failure,) = failures(lake).items()
    assert failure[0] == FAILING
    assert failure[1].startswith(words.partition(": ")[2])
    (noted,) = rows_with(lake, RUNS, ["failed_clusters"], run_id=[report(said.out)["run_id"]])
    assert [cluster for cluster, _ in noted["failed_clusters"]] == [FAILING]
    assert content(opened(spark, lake), sound) == before[sound]

    DeltaTable(lake / RECORDS.name).restore(version)
    assert run(lake, captures) == ExitCode.FINE
    assert f"cluster {FAILING}: derived, which an earlier run could not" in capsys.readouterr().err
    assert failures(lake) == {}
    assert {cluster: content(opened(spark, lake), cluster) for cluster in before} == before
