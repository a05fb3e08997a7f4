"""What an interrupted run left half done, the next run completes: it never says that there is nothing new."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.captures.ingest import PendingCommit
from jobs.cli import main
from jobs.derivation.derive_tables import derive
from jobs.maintenance.removal import OF_CLUSTERS, remove_cluster, remove_rows
from jobs.runtime.lease import begun, now
from jobs.runtime.outcome import ExitCode
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from tests.jobs.lakes import content, opened, run
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.lake import Lake
from transforms.lake.leases import lease_state
from transforms.lake.tables import (
    CAPTURES,
    DERIVATIONS,
    EXPIRED_CAPTURES,
    FEATURES,
    LOADED,
    OBSERVATIONS,
    RECORDS,
    RUNS,
    VOTER_SETS,
)
from transforms.quality.derived_counts import begin_change, begin_removal
from transforms.quality.derived_counts import begun as begun_by

# A cluster of the golden lake, the captures of it there, and those of another cluster.
CLUSTER, OURS = "roWi3HLRRCuDirielH5nnw", "v4.4.0-mini"
OTHER, THEIRS = "6H0D77QjTmKI23eYS_Y-Kw", "election-storm"
NAMES = [c.name for c in EXPIRED_CAPTURES.columns if c not in LOADED]


@pytest.fixture(scope="module")
def of_golden(lake: Lake) -> dict[str, list[str]]:
    """The content of CLUSTER in the golden lake, and so at first in every copy of it."""
    return content(lake, CLUSTER)


@pytest.fixture
def copied(lake: Lake, tmp_path: Path) -> Lake:
    """The golden lake; its runs ended in order."""
    return opened(lake.spark, Path(shutil.copytree(lake.path, tmp_path / "lake")))


def interrupted(verb: str, lake: Lake, work: Callable[[Lake, RunRecord], object]) -> None:
    """A verb that began something, and was killed: its lease has expired and was not given back."""
    record, last = RunRecord(verb, Progress()), lease_state(lake.path)
    expired = {"host": "h", "process": "another-boot pid:[1] 1", "until": now()}
    number = last.number + 1
    assert TableWriter(lake.path, number).append_after(RUNS, begun(record, expired), last.version)
    work(Lake(lake.spark, lake.path, number), record)
    assert not lease_state(lake.path).given_back
    assert begun_by(lake.path).keys() == (set() if work is forgotten else {CLUSTER})


def half_replaced(lake: Lake, record: RunRecord) -> None:
    """A derivation from captures that were not committed: rows are others, and as many."""
    begin_change(lake.writer, [CLUSTER], record.columns)
    for table, column in ((VOTER_SETS, "commit_status"), (FEATURES, "commit_status")):
        rows = rows_with(lake.path, table, cluster_id=[CLUSTER])
        assert rows
        lake.writer.replace_where(table, among({"cluster_id": [CLUSTER]}), [r | {column: "?"} for r in rows])


def half_derived(lake: Lake, record: RunRecord) -> None:
    """A derivation with other captures, of which none was committed."""
    (some, *_) = rows_with(lake.path, CAPTURES, cluster_id=[CLUSTER])
    other = some | {"capture_id": "never committed", "log_end_offset": 1, "epoch_ranges": []}
    derive(lake, [CLUSTER], PendingCommit({other["capture_id"]: other}), record)


def half_expired(lake: Lake, record: RunRecord) -> None:
    """Recorded as expired, and not removed."""
    begin_change(lake.writer, [CLUSTER], record.columns)
    held = rows_with(lake.path, CAPTURES, NAMES, cluster_id=[CLUSTER])
    oldest = min(held, key=lambda capture: capture["captured_at"])
    lake.put(EXPIRED_CAPTURES, [oldest | record.columns], by="capture_id")


def half_forgotten(lake: Lake, record: RunRecord) -> None:
    begin_removal(lake.writer, [CLUSTER], record.columns)
    remove_rows(lake.writer, OF_CLUSTERS[:4], [CLUSTER])


def forgotten(lake: Lake, record: RunRecord) -> None:
    """Killed before it could say that it is done."""
    begin_change(lake.writer, [CLUSTER], record.columns)
    remove_cluster(lake.writer, CLUSTER)


@pytest.mark.parametrize(
    ("verb", "work"),
    [
        ("run", half_replaced),
        pytest.param("derive", half_derived, marks=pytest.mark.long),  # as test_every_verb_completes_it
        ("forget", half_forgotten),
    ],
)
def test_the_next_run_completes_it(
    copied: Lake,
    golden: Path,
    capsys: pytest.CaptureFixture[str],
    of_golden: dict[str, list[str]],
    verb: str,
    work: Callable[[Lake, RunRecord], object],
) -> None:
    """Also where all captures are known; the run after it finds nothing new."""
    lake = copied
    interrupted(verb, lake, work)
    for says in (False, True):
        assert run(lake.path, golden / OURS, flags=("--fail-on", "never")) == ExitCode.FINE
        assert ("nothing new" in capsys.readouterr().out) is says
        assert begun_by(lake.path) == {}
        assert lease_state(lake.path).given_back
        assert content(lake, CLUSTER) == of_golden


@pytest.mark.long
def test_a_run_with_other_captures_completes_it(
    copied: Lake, golden: Path, of_golden: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """By default test_derived_rows_of_no_capture_are_removed: what was forgotten by half is gone."""
    lake = copied
    interrupted("maintain", lake, half_expired)
    assert run(lake.path, golden / THEIRS) == ExitCode.FINE
    expired = {row["capture_id"] for row in rows_with(lake.path, EXPIRED_CAPTURES)}
    assert len(expired) == 1
    assert not expired & {row["capture_id"] for row in rows_with(lake.path, CAPTURES)}
    assert begun_by(lake.path) == {}
    assert content(lake, CLUSTER) != of_golden

    interrupted("forget", lake, half_forgotten)
    assert rows_with(lake.path, RECORDS, ["offset"], cluster_id=[CLUSTER])
    assert run(lake.path, golden / THEIRS) == ExitCode.FINE
    assert not any(content(lake, CLUSTER).values())
    assert run(lake.path, golden / THEIRS) == ExitCode.FINE
    assert "nothing new" in capsys.readouterr().out


@pytest.mark.parametrize("work", [half_forgotten, forgotten])
def test_forget_completes_itself(
    copied: Lake, work: Callable[[Lake, RunRecord], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """Repeated after it was killed, it ends well; and not where the cluster was gone before."""
    lake = copied
    interrupted("forget", lake, work)
    forget = ["forget", "--lake", str(lake.path), "--cluster", CLUSTER]
    assert main(forget) == ExitCode.FINE
    assert f"nothing of cluster {CLUSTER} is left" in capsys.readouterr().out
    assert not any(content(lake, CLUSTER).values())
    assert begun_by(lake.path) == {}
    assert lease_state(lake.path).given_back
    assert main(forget) == ExitCode.USAGE
    assert f"has nothing of cluster {CLUSTER}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("ingest", "--captures", THEIRS), marks=pytest.mark.long),
        ("forget", "--cluster", OTHER),
        ("derive", "--cluster", OTHER),
        pytest.param(("validate", "--cluster", OTHER, "--rules-only"), marks=pytest.mark.long),
        pytest.param(("maintain",), marks=pytest.mark.long),
    ],
    ids=lambda words: words[0],
)
def test_every_verb_completes_it(
    copied: Lake, golden: Path, of_golden: dict[str, list[str]], words: tuple[str, ...]
) -> None:
    """Whatever else it is asked to do."""
    lake = copied
    interrupted("derive", lake, half_derived)
    changed = {table for table, rows in content(lake, CLUSTER).items() if rows != of_golden[table]}
    assert changed - {DERIVATIONS.name}  # more than the mark that it has begun
    verb, *flags = [str(golden / word) if word == THEIRS else word for word in words]
    assert main([verb, "--lake", str(lake.path), *flags]) == ExitCode.FINE
    assert begun_by(lake.path) == {}
    assert content(lake, CLUSTER) == of_golden


def test_derived_rows_of_no_capture_are_removed(copied: Lake, golden: Path) -> None:
    """A first load that was killed before it committed its captures; records stay for its next attempt."""
    lake = copied

    def first(lake: Lake, record: RunRecord) -> None:
        begin_change(lake.writer, [CLUSTER], record.columns)
        remove_rows(lake.writer, [CAPTURES, OBSERVATIONS], [CLUSTER])

    interrupted("run", lake, first)
    assert run(lake.path, golden / THEIRS) == ExitCode.FINE
    found = content(lake, CLUSTER)
    assert found[RECORDS.name]
    assert not [table.name for table in OF_CLUSTERS if table.recomputed and found[table.name]]
    assert not found[DERIVATIONS.name]
    assert begun_by(lake.path) == {}


def test_a_mark_keeps_what_the_table_says(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path, None)
    stamp = {"run_id": "first", "loaded_at": datetime(2026, 11, 21, tzinfo=UTC)}
    begin_change(writer, ["a", "b"], stamp)
    assert begun_by(tmp_path) == {"a": "first", "b": "first"}
    writer.put(DERIVATIONS, [{"cluster_id": "a", "failure": "why"} | stamp], by="cluster_id")
    begin_change(writer, ["a"], stamp | {"run_id": "second"})
    (row,) = rows_with(tmp_path, DERIVATIONS, cluster_id=["a"])
    assert (row["run_id"], row["failure"], row["begun_by"]) == ("first", "why", "second")
    assert begun_by(tmp_path) == {"a": "second", "b": "first"}
