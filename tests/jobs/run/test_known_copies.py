"""Copies of captures that the memo of a lake knows are not looked up; no other is ever taken for known."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.captures import new_captures as comparison
from jobs.captures import parts
from jobs.captures.known_copies import KnownCopies, copies_by_id
from jobs.captures.new_captures import new_captures
from jobs.captures.planning import Selection, plan
from tests.jobs.captured_logs import captured
from tests.jobs.lakes import report, run
from tests.kraft_core.batches import no_op_batch
from transforms.lake.arrow_rows import Row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.seen import seen_lake
from transforms.lake.storage.listing import lake_listing
from transforms.lake.storage.memo import NAME, read_memo, write_memo
from transforms.lake.tables import CAPTURES, CLUSTER_NAMES

CLUSTERS = ("a", "b", "c")
pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def first_run(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture of each cluster, and with a lake that holds them."""
    assert spark is not None
    folder = tmp_path_factory.mktemp("known")
    for cluster in CLUSTERS:
        captured(folder / "captures", cluster, log(3))
    run(folder / "lake", folder / "captures")
    assert unknown(folder / "lake", folder / "captures") == []
    return folder


@pytest.fixture
def captures(tmp_path: Path, first_run: Path) -> Path:
    """A capture of each cluster."""
    return Path(shutil.copytree(first_run / "captures", tmp_path / "captures"))


@pytest.fixture
def lake(tmp_path: Path, first_run: Path) -> Path:
    """A lake that holds them, with its memo: files that were copied are not those of which that was."""
    lake = Path(shutil.copytree(first_run / "lake", tmp_path / "lake"))
    write_memo(lake, read_memo(lake).moved(lake_listing(lake)))
    return lake


def log(batches: int) -> bytes:
    return b"".join(no_op_batch(n, records=1) for n in range(batches))


def grow(captures: Path, cluster: str, batches: int) -> None:
    (file,) = (captures / cluster).rglob("*.log")
    file.write_bytes(log(batches))


def remove(lake: Path, cluster: str) -> None:
    """Let another writer remove the captures of a cluster."""
    TableWriter(lake, None).replace_where(CAPTURES, among({"cluster_id": [cluster]}))


def remove_by_delta(lake: Path, cluster: str) -> None:
    """Let another program remove them, without Kraftlake."""
    DeltaTable(lake / CAPTURES.name).delete(f"cluster_id = '{cluster}'")


def unknown(lake: Path, captures: Path) -> list[str]:
    """The clusters whose captures have to be looked up."""
    copies = copies_by_id(plan(Selection((captures,))).captures)
    found = KnownCopies.of(seen_lake(lake)).unknown(lake, copies)
    return sorted(copy.who.cluster_id for some in found.values() for copy in some)


def read(lake: Path, captures: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """How many captures a run reads."""
    capsys.readouterr()
    run(lake, captures)
    return report(capsys.readouterr().out)["captures_read"]


def test_what_a_run_has_read_or_found_is_known(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unknown(lake, captures) == []
    grow(captures, "b", 5)
    assert unknown(lake, captures) == ["b"]
    assert read(lake, captures, capsys) == 1
    assert unknown(lake, captures) == []
    grow(captures, "a", 6)
    grow(captures, "c", 7)
    monkeypatch.setattr(parts, "MOST_CAPTURES", 1)
    assert read(lake, captures, capsys) == 2
    assert unknown(lake, captures) == []


def test_a_copy_that_says_more_is_not_known(lake: Path, captures: Path) -> None:
    """Of a capture that is: its time."""
    for file in (captures / "a").rglob("*"):
        os.utime(file, (0, 0))
    assert unknown(lake, captures) == ["a"]
    run(lake, captures)
    assert rows_with(lake, CAPTURES, ["captured_at"], cluster_id=["a"])[0]["captured_at"].year == 1970


def test_none_is_known_once_others_have_changed_the_tables(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    TableWriter(lake, None).create(CLUSTER_NAMES)
    assert unknown(lake, captures) == []
    remove_by_delta(lake, "b")
    assert unknown(lake, captures) == [*CLUSTERS]
    assert read(lake, captures, capsys) == 1
    assert unknown(lake, captures) == []


def test_none_is_known_that_was_found_by_other_versions(lake: Path, captures: Path) -> None:
    """As where another run comes in between what a run sees first and its lease."""
    copies = copies_by_id(plan(Selection((captures,))).captures)
    known = KnownCopies.of(seen_lake(lake))
    assert known.unknown(lake, copies) == {}
    with known.kept(lake):
        TableWriter(lake, None).compact(CAPTURES)
    assert known.unknown(lake, copies) == {}
    remove(lake, "b")
    with known.kept(lake):
        remove(lake, "c")
    assert known.among(lake, plan(Selection((captures,)))) == []
    assert known.unknown(lake, copies) == copies


def test_none_is_known_where_others_change_a_table_while_the_run_does(lake: Path, captures: Path) -> None:
    copies = copies_by_id(plan(Selection((captures,))).captures)
    known = KnownCopies.of(seen_lake(lake))
    assert known.unknown(lake, copies) == {}
    with known.kept(lake):
        remove_by_delta(lake, "b")
        TableWriter(lake, None).compact(CAPTURES)
    assert known.among(lake, plan(Selection((captures,)))) == []
    assert known.unknown(lake, copies) == copies


def test_what_a_killed_run_has_committed_is_looked_up(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It dies after its commits, before it writes the memo."""
    memo = (lake / NAME).read_bytes()
    grow(captures, "b", 5)
    run(lake, captures)
    (lake / NAME).write_bytes(memo)
    assert unknown(lake, captures) == [*CLUSTERS]
    assert read(lake, captures, capsys) == 0
    assert unknown(lake, captures) == []


def test_a_damaged_memo_names_none(lake: Path, captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = json.loads((lake / NAME).read_text())
    for copies in (held["copies"] + "?", 7, None):
        (lake / NAME).write_text(json.dumps(held | {"copies": copies}))
        assert unknown(lake, captures) == [*CLUSTERS]
    assert read(lake, captures, capsys) == 0


def test_what_is_new_is_looked_up_once(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the lease, and for each part, not again; at the end among the rows that the run has written."""
    looked_up: list[list[str]] = []
    each_row = comparison.each_row

    def noted(*args: Any, **wanted: Any) -> Iterator[Row]:
        looked_up.append(sorted(wanted["cluster_id"]))
        return each_row(*args, **wanted)

    monkeypatch.setattr(comparison, "each_row", noted)
    grow(captures, "b", 5)
    assert read(lake, captures, capsys) == 1
    assert looked_up == [["b"], ["b"]]
    looked_up.clear()
    grow(captures, "a", 6)
    grow(captures, "c", 7)
    monkeypatch.setattr(parts, "MOST_CAPTURES", 1)
    assert read(lake, captures, capsys) == 2
    assert looked_up == [["a", "c"], ["c"], ["a", "c"]]


def test_what_others_have_loaded_meanwhile_is_not_new(lake: Path, captures: Path) -> None:
    grow(captures, "b", 5)
    planned = plan(Selection((captures,)))
    known = KnownCopies.of(seen_lake(lake))
    for _ in range(2):
        assert [copy.who.cluster_id for copy in new_captures(lake, planned, known).unread] == ["b"]
        assert [*known.absent()] == [copy.capture_id for copy in new_captures(lake, planned, known).unread]
    run(lake, captures)
    assert new_captures(lake, planned, known).unread == ()
    assert not known.absent()


def test_what_a_run_has_loaded_itself_is_not_new(lake: Path, captures: Path) -> None:
    """Nor is anything still absent of which the run loads a part."""
    grow(captures, "b", 5)
    planned = plan(Selection((captures,)))
    known = KnownCopies.of(seen_lake(lake))
    assert len(new_captures(lake, planned, known).unread) == 1
    with known.kept(lake):
        run(lake, captures)
    assert not known.absent()
    assert new_captures(lake, planned, known).unread == ()
