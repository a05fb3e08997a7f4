"""A cluster that fails costs itself only; it is named, and tried again by the next run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from jobs.captures import ingest, load
from jobs.cli import main
from jobs.derivation import derive_histories
from jobs.runtime.outcome import ExitCode
from jobs.runtime.progress import Progress
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.messages.control import LEADER_CHANGE
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import content, move_beyond_the_calendar, opened, report, run
from tests.kraft_core.batches import control_batch, no_op_batch
from transforms.ingest import failing_files
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import (
    CAPTURES,
    DERIVATIONS,
    FINDINGS,
    QUARANTINE,
    RECORDS,
    REPLAYS,
    RUNS,
    TABLES,
    VOTER_CHANGES,
)

MINI = "v4.4.0-mini/node-1"
FAILING = "failing"
FILE = f"{LOG_DIR_NAME}/{0:020d}.log"


@pytest.fixture(scope="module")
def first_run(spark: Any, golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with captures of two clusters of the same bytes, and with a lake that holds them."""
    folder = tmp_path_factory.mktemp("failed")
    assert spark.sparkContext is not None
    shutil.copytree(golden / MINI, folder / "captures" / "sound")
    copy = Path(shutil.copytree(golden / MINI, folder / "captures" / FAILING))
    with (copy / "meta.properties").open("a") as meta:
        meta.write(f"\ncluster.id={FAILING}\n")
    assert run(folder / "lake", folder / "captures") == ExitCode.FINE
    return folder


@pytest.fixture
def captures(first_run: Path) -> Path:
    return first_run / "captures"


@pytest.fixture
def lake(first_run: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(first_run / "lake", tmp_path / "lake"))


def clusters_of(lake: Path) -> set[str]:
    return {row["cluster_id"] for row in rows_with(lake, DERIVATIONS, ["cluster_id"])}


def failures(lake: Path) -> dict[str, str]:
    rows = rows_with(lake, DERIVATIONS, ["cluster_id", "failure"])
    return {row["cluster_id"]: row["failure"] for row in rows if row["failure"] is not None}


def test_histories_that_cannot_be_made(
    spark: Any,
    captures: Path,
    lake: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The lake has a time of a topic that no calendar knows; both clusters are replayed anew."""
    (sound,) = clusters_of(lake) - {FAILING}
    before = {cluster: content(opened(spark, lake), cluster) for cluster in (sound, FAILING)}
    version = DeltaTable(lake / RECORDS.name).version()
    move_beyond_the_calendar(lake, FAILING, type=["TOPIC_RECORD"])
    DeltaTable(lake / REPLAYS.name).delete()
    capsys.readouterr()
    assert run(lake, captures) == ExitCode.FOUND
    said = capsys.readouterr()
    words = "could not be derived: replaying its histories failed: OverflowError: "
    assert f"kraftlake run: cluster {FAILING} {words}" in said.err
    assert "Traceback" not in said.out + said.err
    (failure,) = failures(lake).items()
    assert failure[0] == FAILING
    assert failure[1].startswith(words.partition(": ")[2])
    (noted,) = rows_with(lake, RUNS, ["failed_clusters"], run_id=[report(said.out)["run_id"]])
    assert [cluster for cluster, _ in noted["failed_clusters"]] == [FAILING]
    assert content(opened(spark, lake), sound) == before[sound]

    # Spark's tasks name the same fault.
    with monkeypatch.context() as patch:
        patch.setattr(derive_histories, "OTHERS_IN_DRIVER", 0)
        patch.setattr(derive_histories, "PARTITIONS_IN_DRIVER", 0)
        by_tasks = derive_histories.derive_histories(
            opened(spark, lake), [sound, FAILING], Progress(None), whole=[sound, FAILING]
        )
    assert by_tasks.failed == {FAILING: failure[1]}
    assert content(opened(spark, lake), sound) == before[sound]

    DeltaTable(lake / RECORDS.name).restore(version)
    assert run(lake, captures) == ExitCode.FINE
    assert f"cluster {FAILING}: derived, after an earlier run failed to" in capsys.readouterr().err
    assert failures(lake) == {}
    assert {cluster: content(opened(spark, lake), cluster) for cluster in before} == before


@pytest.mark.long
@pytest.mark.parametrize("flags", [(), ("--validate",)])
def test_a_page_that_cannot_show_a_cluster(
    captures: Path, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    """The run says so, and fails for it; the page has the other cluster."""
    page = tmp_path / "page.html"
    assert run(lake, captures, flags=("--report", str(page))) == ExitCode.FINE
    held = DeltaTable(lake / VOTER_CHANGES.name).to_pyarrow_table()
    kinds = pc.if_else(pc.equal(held["cluster_id"], FAILING), "eaten", held["kind"])
    eaten = held.set_column(held.column_names.index("kind"), "kind", kinds)
    TableWriter(lake, None).replace_where(VOTER_CHANGES, ds.scalar(True), eaten)
    capsys.readouterr()
    assert run(lake, captures, flags=("--report", str(page), *flags)) == ExitCode.FOUND
    said = capsys.readouterr()
    assert f"cluster {FAILING} could not be shown on the page: KeyError: 'eaten'" in said.err
    assert "Traceback" not in said.out + said.err
    noted = report(said.out)
    assert (noted["exit_code"], noted["failed_clusters"]) == (ExitCode.FOUND, 1)
    (held,) = rows_with(lake, RUNS, ["exit_code", "failed_clusters"], run_id=[noted["run_id"]])
    assert (held["exit_code"], [cluster for cluster, _ in held["failed_clusters"]]) == (1, [FAILING])
    assert "1 of 2 clusters needs action" in page.read_text()

    assert main(["report", "--lake", str(lake), "--out", str(page)]) == ExitCode.FOUND
    said = capsys.readouterr()
    assert f"kraftlake report: cluster {FAILING} could not be shown on the page: KeyError" in said.err
    assert report(said.out)["failed_clusters"] == 1


TOPIC, CONFIG = 2, 4
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
LEADER = {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}], "grantingVoters": [{"voterId": 1}]}
BROKEN = "broken.setting"
SOUND = control_batch(0, 1, LEADER_CHANGE, LEADER) + metadata(
    1, [(TOPIC, 0, {"name": "t", "topicId": TOPIC_ID})]
)


def test_a_file_that_fails_its_reader(
    spark: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No bytes are known to fail it: the names that settings allow raise when asked for one of them."""

    class Raising(Set[str]):
        def __contains__(self, name: object) -> bool:
            if name == BROKEN:
                raise ValueError(f"the value of {name} is hunter2")
            return False

        def __iter__(self) -> Iterator[str]:
            return iter(())

        def __len__(self) -> int:
            return 0

    lake, alone, captures = tmp_path / "lake", tmp_path / "alone", tmp_path / "captures"
    captured(captures, "sound", SOUND)
    config = {"resourceType": 2, "resourceName": "t", "name": BROKEN, "value": "hunter2"}
    log = metadata(1, [(TOPIC, 0, {"name": "t", "topicId": TOPIC_ID}), (CONFIG, 0, config)])
    captured(captures, FAILING, control_batch(0, 1, LEADER_CHANGE, LEADER) + log)
    for module in (load, ingest):
        monkeypatch.setattr(module, "shown_configs", lambda _: Raising())
    reason = "ValueError (__contains__, line "
    for _ in range(2):
        assert run(lake, captures) == ExitCode.FOUND
        said = capsys.readouterr()
        assert f"kraftlake run: cluster {FAILING} could not be read: {FILE}: {reason}" in said.err
        assert "Traceback" not in said.out + said.err
        (noted,) = rows_with(lake, RUNS, ["failed_clusters"], run_id=[report(said.out)["run_id"]])
        assert [cluster for cluster, _ in noted["failed_clusters"]] == [FAILING]
        (lost,) = rows_with(lake, QUARANTINE)
        assert (lost["cluster_id"], lost["file"]) == (FAILING, FILE)
        assert lost["reason"].startswith(f"unreadable: {reason}")
        (capture,) = rows_with(lake, CAPTURES, ["log_readable"], cluster_id=[FAILING])
        assert capture["log_readable"] is False
        assert rows_with(lake, RECORDS, ["offset"], cluster_id=[FAILING]) == []
        stored = [rows_with(lake, table) for table in TABLES]
        assert "hunter2" not in f"{said.err}{said.out}{stored}"

    monkeypatch.undo()
    assert run(lake, captures) == ExitCode.FINE
    assert run(alone, captures) == ExitCode.FINE
    assert rows_with(lake, QUARANTINE) == []
    errors = rows_with(lake, FINDINGS, ["state"], cluster_id=[FAILING], severity=["error"])
    assert [row["state"] for row in errors] == ["resolved"]
    for cluster in clusters_of(alone):
        mended, never_failed = content(opened(spark, lake), cluster), content(opened(spark, alone), cluster)
        for table in mended.keys() - {
            CAPTURES.name,
            FINDINGS.name,
            DERIVATIONS.name,
        }:  # of the resolved fault
            assert mended[table] == never_failed[table]


def test_a_log_of_too_many_epochs(
    spark: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first files are read, up to the limit; the sound cluster beside it is as if alone."""
    lake, alone, captures = tmp_path / "lake", tmp_path / "alone", tmp_path / "captures"
    captured(captures, "sound", SOUND)
    epochs = [no_op_batch(offset, epoch=offset + 1) for offset in range(9)]
    captured(captures, FAILING, b"".join(epochs[:3]))
    for start in (3, 6):
        file = captures / FAILING / LOG_DIR_NAME / f"{start:020d}.log"
        file.write_bytes(b"".join(epochs[start : start + 3]) + b"damaged")
    monkeypatch.setattr(failing_files, "MOST_RANGES", 6)
    assert run(lake, captures) == ExitCode.FOUND
    assert "more than 6 epoch ranges in one log" in capsys.readouterr().err
    rows = rows_with(lake, QUARANTINE, cluster_id=[FAILING])
    (refused,) = (row for row in rows if row["reason"].startswith("unreadable"))
    assert (refused["file"], refused["lost_from_offset"]) == (f"{LOG_DIR_NAME}/{6:020d}.log", 6)
    assert refused["reason"].startswith("unreadable: disordered: more than 6")
    assert len(rows) == 2  # damage is no range
    (capture,) = rows_with(lake, CAPTURES, cluster_id=[FAILING])
    assert len(capture["epoch_ranges"]) == 6
    assert len(rows_with(lake, RECORDS, ["offset"], cluster_id=[FAILING])) == 6
    run(alone, captures / "sound")
    (sound,) = clusters_of(alone)
    assert content(opened(spark, lake), sound) == content(opened(spark, alone), sound)
