"""The memo of a lake counts for the files that it was made of, and for no others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.leases import greatest_lease
from transforms.lake.seen import note, seen_lake, unseen
from transforms.lake.storage import prepare_lake
from transforms.lake.storage.listing import lake_listing
from transforms.lake.storage.memo import MOST_ANSWERS, NAME, Memo, read_memo
from transforms.lake.tables import CLUSTER_NAMES, RUNS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANSWER = {"counts": {"captures": 3}}


def row(run_id: str) -> dict[str, object]:
    empty = dict.fromkeys(RUNS.names)
    return {**empty, "run_id": run_id, "job": "run", "started_at": NOON, "counts": []}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake with two tables and a memo."""
    lake = tmp_path / "lake"
    prepare_lake(lake)
    writer = TableWriter(lake, None)
    for table in (RUNS, CLUSTER_NAMES):
        writer.create(table)
    writer.append(RUNS, [row("first")])
    writer.append(CLUSTER_NAMES, [{"cluster_id": "c", "name": "n", "environment": None, "owner": None}])
    note(unseen(lake), "asked", lambda _: ANSWER)
    return lake


def test_a_lake_as_it_was_is_known(lake: Path) -> None:
    seen = seen_lake(lake)
    assert seen.answer("asked") == ANSWER
    assert seen.answer("another question") is None
    assert seen.memo.unknown(seen.listed) == []


def committed_by_others(lake: Path) -> None:
    table = DeltaTable(lake / "cluster_names")
    table.delete("cluster_id = 'c'")


def of_equal_size(lake: Path) -> None:
    (log,) = (lake / "cluster_names/_delta_log").glob("*1.json")
    log.write_text(log.read_text().replace("kraftlake", "KRAFTLAKE"))
    os.utime(log, ns=(0, 0))


def lost_file(lake: Path) -> None:
    (file,) = (lake / "cluster_names").glob("*.parquet")
    file.unlink()


def short_file(lake: Path) -> None:
    (file,) = (lake / "cluster_names").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1])


def lost_commit(lake: Path) -> None:
    (lake / "cluster_names/_delta_log/00000000000000000000.json").unlink()


def new_table(lake: Path) -> None:
    (lake / "captures/_delta_log").mkdir(parents=True)
    (lake / "captures/_delta_log/00000000000000000000.json").write_text("{}")


def a_file_for_a_table(lake: Path) -> None:
    (lake / "captures").write_text("")


CHANGES = (
    committed_by_others,
    of_equal_size,
    lost_file,
    short_file,
    lost_commit,
    new_table,
    a_file_for_a_table,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_lake_that_is_another_is_not(lake: Path, change: Callable[[Path], None]) -> None:
    change(lake)
    seen = seen_lake(lake)
    assert seen.answer("asked") is None
    assert len(seen.memo.unknown(seen.listed)) == 1
    assert bool(seen.damage) == (change not in (committed_by_others, of_equal_size))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"of": 1}', "null", "[" * 10**5, "\udcff"])
def test_a_damaged_memo_is_none(lake: Path, content: str) -> None:
    (lake / NAME).write_text(content, errors="surrogateescape")
    assert read_memo(lake) == Memo()


def test_a_memo_of_another_version_is_none(lake: Path) -> None:
    held = json.loads((lake / NAME).read_text())
    (lake / NAME).write_text(json.dumps(held | {"of": "another"}))
    assert read_memo(lake) == Memo()


def test_nothing_is_noted_where_the_lake_changes_meanwhile(lake: Path) -> None:
    before = (lake / NAME).read_text()

    def answered(_: object) -> dict[str, object]:
        TableWriter(lake, None).append(RUNS, [row("another")])
        return ANSWER

    note(seen_lake(lake), "asked", answered)
    assert (lake / NAME).read_text() == before
    lost_file(lake)
    note(seen_lake(lake), "asked", lambda _: ANSWER)
    assert (lake / NAME).read_text() == before


def test_answers_of_one_state_are_kept(lake: Path) -> None:
    for number in range(MOST_ANSWERS + 3):
        note(seen_lake(lake), str(number), lambda _: ANSWER)
        TableWriter(lake, None).append(RUNS, [row(str(number))])
    note(seen_lake(lake), "last", lambda _: None)
    memo = read_memo(lake)
    assert set(memo.answers) == {str(n) for n in range(3, MOST_ANSWERS + 3)}
    TableWriter(lake, None).put(CLUSTER_NAMES, [{"cluster_id": "d", "name": "n"}], by="cluster_id")
    note(seen_lake(lake), "new", lambda _: ANSWER)
    assert set(read_memo(lake).answers) == {"new"}


def test_the_greatest_lease_is_known_of_the_same_tables(lake: Path) -> None:
    assert seen_lake(lake).greatest_lease() is None
    TableWriter(lake, 7).put(CLUSTER_NAMES, [{"cluster_id": "d", "name": "n"}], by="cluster_id")
    note(seen_lake(lake), "asked", lambda _: ANSWER, 7)
    seen = seen_lake(lake)
    assert seen.greatest_lease() == 7
    TableWriter(lake, None).append(RUNS, [row("another")])
    note(seen_lake(lake), "asked", lambda _: ANSWER)
    seen = seen_lake(lake)
    assert seen.greatest_lease() == greatest_lease(lake) == greatest_lease(lake, 7) == 7
    assert greatest_lease(lake, 0) == 0
    TableWriter(lake, 8).put(CLUSTER_NAMES, [{"cluster_id": "d", "name": "m"}], by="cluster_id")
    assert seen_lake(lake).greatest_lease() is None


def test_a_row_is_appended_to_a_table_that_is_not_opened(lake: Path) -> None:
    """As delta-rs would; and it is left to that where a checkpoint is due, or another commit comes first."""
    writer, made = TableWriter(lake, None), 0
    for number in range(30):
        listed = lake_listing(lake)
        appended = writer.append_next(RUNS, row(str(number)), listed)
        if appended is None:
            writer.append(RUNS, [row(str(number))])
            continue
        made += 1
        assert appended.fingerprint(RUNS) == lake_listing(lake).fingerprint(RUNS)
        assert writer.append_next(RUNS, row("late"), listed) is None
    assert made == 27
    assert {r["run_id"] for r in rows_with(lake, RUNS)} == {"first", *map(str, range(30))}
    assert DeltaTable(lake / "runs").get_add_actions().num_rows == 31
