"""kraftlake check, and runs over a lake of which something was lost: what it was, and what brings it back."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.check import LakeLoss, lake_losses
from jobs.cli import main
from tests.jobs.lakes import content, opened, run
from transforms.lake.delta_rs import count_rows, rows_with
from transforms.lake.tables import DERIVATIONS, TABLES, VOTER_SETS

MINI = "roWi3HLRRCuDirielH5nnw"
DERIVED = [table.name for table in TABLES if table.recomputed]
READING = [
    *(["clusters"], ["metrics"], ["report", "--out", "{}/page.html"], ["shell", "ls", "/"]),
    *(["plan", "remove", "1"], ["explain", "--offset", "25"]),
]
LAKE_JSONS = [
    *("", "garbage", "[]", "\x00\xff", "[" * 50_000),
    '{"format_version": null}',
    *('{"format_version": 1, "shown_configs": 5}', '{"format_version": 1, "shown_configs": [5]}'),
]


@pytest.fixture(scope="module")
def captures(golden: Path) -> Path:
    return golden / "v4.4.0-mini"


@pytest.fixture(scope="module")
def whole(
    spark: Any, captures: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, list[str]]]]:
    """A lake that a run wrote, and its content; no test changes it."""
    path = tmp_path_factory.mktemp("whole") / "lake"
    assert run(path, captures) == 0
    before = content(opened(spark, path), MINI)
    yield path, before
    assert content(opened(spark, path), MINI) == before


@pytest.fixture
def before(whole: tuple[Path, dict[str, list[str]]]) -> dict[str, list[str]]:
    """The content of `lake` before it is damaged."""
    return whole[1]


@pytest.fixture
def lake(whole: tuple[Path, dict[str, list[str]]], tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole[0], tmp_path / "lake"))


def losses(lake: Path) -> list[LakeLoss]:
    return list(lake_losses(lake))


def data_file(lake: Path, table: str) -> Path:
    path = lake / table
    return path / DeltaTable(path).file_uris()[0].rsplit("/", 1)[1]


def last_commit(lake: Path, table: str) -> Path:
    return max((lake / table / "_delta_log").glob("*.json"))


def truncated(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def removed(file: Path) -> None:
    file.unlink()


def overwritten(file: Path) -> None:
    """As long as before."""
    file.write_bytes(bytes(file.stat().st_size))


def deleted(table: str, condition: str | None = None) -> Callable[[Path], None]:
    return lambda lake: DeltaTable(lake / table).delete(condition) and None


def all_deleted(*tables: str) -> Callable[[Path], None]:
    return lambda lake: [DeltaTable(lake / table).delete() for table in tables] and None


def test_a_lake_that_runs_wrote_is_whole(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--lake", str(lake)]) == 0
    assert capsys.readouterr().out == "nothing is lost\n"


def test_a_lake_of_every_kind_of_capture_is_whole(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What torn, damaged and unreadable ones lack is not lost by the lake."""
    path = tmp_path / "lake"
    run(path, golden / "corrupt", golden / "uncommitted-truncation")
    capsys.readouterr()
    assert losses(path) == []


@pytest.mark.parametrize("damage", [truncated, removed, overwritten])
@pytest.mark.parametrize("table", ["records", "voter_sets", "runs", "captures"])
def test_damaged_files(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str], table: str, damage: Callable[[Path], None]
) -> None:
    """Named by check with exit code 1; a run does not say that all is well; no verb shows a traceback."""
    damage(data_file(lake, table))
    capsys.readouterr()
    assert main(["check", "--lake", str(lake)]) == 1
    out = capsys.readouterr().out
    assert f"{table}: {table}/" in out
    (loss,) = losses(lake)
    assert loss.commands
    if damage is not overwritten:
        assert run(lake, captures) == 2
        assert "kraftlake check --lake" in capsys.readouterr().err


@pytest.mark.parametrize("verb", READING)
@pytest.mark.parametrize("damage", [truncated, removed, overwritten])
def test_a_verb_that_reads_a_damaged_file_names_it(
    lake: Path, capsys: pytest.CaptureFixture[str], verb: list[str], damage: Callable[[Path], None]
) -> None:
    """In one line, whatever else it would have written."""
    for table in ("captures", "epochs", "voter_sets", "findings", "recoveries", "voter_changes"):
        for file in (lake / table).glob("*.parquet"):
            damage(file)
    assert main([*(word.format(lake.parent) for word in verb), "--lake", str(lake)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "kraftlake check --lake" in err
    assert "cannot be written" not in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("verb", ["clusters", "metrics"])
def test_a_table_without_its_delta_log_is_not_an_empty_one(
    lake: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    shutil.rmtree(lake / "captures/_delta_log")
    assert main([verb, "--lake", str(lake)]) == 2
    assert "captures/_delta_log has no commit" in capsys.readouterr().err


def test_what_is_no_folder_is_not_an_empty_table(lake: Path) -> None:
    shutil.rmtree(lake / "runs")
    (lake / "runs").symlink_to("runs")
    assert [loss.lost for loss in losses(lake)] == ["runs is not a folder"]


@pytest.mark.parametrize("table", ["records", "voter_sets"])
def test_a_missing_commit_of_a_delta_log(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    DeltaTable(lake / table).delete("false")
    (lake / table / "_delta_log" / f"{0:020d}.json").unlink()
    (loss,) = losses(lake)
    assert loss.lost == f"{table}/_delta_log/{0:020d}.json is missing"
    assert run(lake, captures) == 2
    assert loss.lost in capsys.readouterr().err


def test_a_garbled_commit_of_a_delta_log(
    lake: Path, captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last_commit(lake, "captures").write_text("{garbage")
    (loss,) = losses(lake)
    assert loss.lost.startswith("captures/_delta_log cannot be read")
    assert run(lake, captures) == 2
    assert "captures/_delta_log" in capsys.readouterr().err


@pytest.mark.parametrize("text", LAKE_JSONS)
@pytest.mark.parametrize("verb", ["check", "clusters", "metrics"])
def test_a_garbled_lake_json(lake: Path, capsys: pytest.CaptureFixture[str], text: str, verb: str) -> None:
    (lake / "lake.json").write_bytes(text.encode("latin-1"))
    assert main([verb, "--lake", str(lake)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--lake ANOTHER" in line or "into a new lake" in line


@pytest.mark.long
@pytest.mark.parametrize("table", ["records", "batches", "snapshots", "snapshot_records"])
def test_lost_rows_of_what_was_read(
    lake: Path, before: dict[str, list[str]], captures: Path, spark: Any, table: str
) -> None:
    """The commands that check names bring them back."""
    deleted(table)(lake)
    found = losses(lake)
    assert found
    assert table in {loss.table for loss in found}
    assert {loss.cluster_id for loss in found} == {MINI}
    carried_out(max((loss.commands for loss in found), key=len), captures)
    assert losses(lake) == []
    assert content(opened(spark, lake), MINI) == before


def carried_out(commands: tuple[str, ...], captures: Path) -> None:
    for command in commands:
        words = shlex.split(command.replace("...", shlex.quote(str(captures))))
        assert words[0] == "kraftlake"
        assert main(words[1:]) == 0


@pytest.mark.parametrize(
    ("table", "condition", "words"),
    [
        ("records", "offset = 100", "of offsets 100 to 101, some or all are gone"),
        (
            "batches",
            "base_offset <= 100 AND last_offset >= 100",
            "offsets 100 to 101, epoch 1 of node 1, are gone",
        ),
        ("snapshot_records", "position = 0", "records of the snapshot at"),
        ("snapshots", "end_offset = 289", "the snapshot at 289 is gone"),
        ("captures", "node_id = 2", "of node 2, are in no capture"),
        ("captures", None, "are in no capture"),
    ],
)
def test_each_lost_row_is_told(lake: Path, table: str, condition: str | None, words: str) -> None:
    deleted(table, condition)(lake)
    assert any(words in loss.lost for loss in losses(lake)), losses(lake)


@pytest.mark.long
def test_batches_of_vanished_captures(lake: Path, captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run brings the captures back."""
    all_deleted("captures", "segments")(lake)
    found = [loss for loss in losses(lake) if loss.table == "batches"]
    assert found
    carried_out(found[0].commands, captures)
    capsys.readouterr()
    assert losses(lake) == []


@pytest.mark.parametrize("table", DERIVED)
def test_lost_derived_rows_are_told(lake: Path, table: str) -> None:
    expected = count_rows(lake, next(t for t in TABLES if t.name == table), cluster_id=[MINI])
    if not (lake / table).exists():
        assert expected == 0
        return
    deleted(table)(lake)
    lost = [(loss.table, loss.lost) for loss in losses(lake)]
    assert lost == ([(table, f"0 rows of {expected} that were derived")] if expected else [])


def test_a_run_derives_again_what_was_lost(
    lake: Path,
    before: dict[str, list[str]],
    captures: Path,
    spark: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Though every capture is known: no run ends well without voters."""
    all_deleted("voter_sets", "topics")(lake)
    capsys.readouterr()
    assert run(lake, captures) == 0
    out = capsys.readouterr().out
    assert "nothing new" not in out
    assert "voters: " in out
    assert content(opened(spark, lake), MINI) == before
    assert run(lake, captures) == 0
    assert "nothing new" in capsys.readouterr().out


def test_a_damaged_derived_table_is_derived_again(
    lake: Path, before: dict[str, list[str]], spark: Any
) -> None:
    truncated(data_file(lake, "voter_sets"))
    (loss,) = losses(lake)
    remove, derive = loss.commands
    assert shlex.split(remove) == ["rm", "-r", str(lake / "voter_sets")]
    shutil.rmtree(lake / "voter_sets")
    carried_out((derive,), lake)
    assert content(opened(spark, lake), MINI) == before
    assert losses(lake) == []


def test_a_derivation_of_an_earlier_version_says_nothing_of_its_rows(lake: Path) -> None:
    """Rows without counts are neither lost nor derived again."""
    DeltaTable(lake / "derivations").update({"derived_rows": "NULL"})
    deleted(VOTER_SETS.name)(lake)
    assert [row["derived_rows"] for row in rows_with(lake, DERIVATIONS)] == [None]
    assert losses(lake) == []


def test_json(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deleted("voter_sets")(lake)
    assert main(["check", "--lake", str(lake), "--format", "jsonl"]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "table": "voter_sets",
        "cluster_id": MINI,
        "lost": "0 rows of 3 that were derived",
        "commands": [f"kraftlake derive --cluster {MINI} --lake {lake}"],
    }
