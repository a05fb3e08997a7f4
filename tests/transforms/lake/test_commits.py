"""Commits under a lease: a writer of an older lease changes nothing, whatever it loaded and whenever."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import CommitProperties, DeltaTable, Field
from deltalake.exceptions import CommitFailedError

from tests.test_tidy import CHECKOUT, product_files
from transforms.lake import commits
from transforms.lake.arrow_rows import to_arrow
from transforms.lake.commits import COMMIT_ID, LEASE, FencedError, TableWriter, has_landed
from transforms.lake.delta_rs import among, rows_with, unneeded_files
from transforms.lake.leases import lease_state
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import CLIENT_QUOTAS, CLUSTER_NAMES, RUNS, TABLES
from transforms.lake.tables.declaration import CHECKPOINT_EVERY

ROWS = [{"cluster_id": c, "name": n, "environment": None, "owner": None} for c, n in ("a1", "b2", "c3")]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
OTHER = {"cluster_id": "d", "name": "4", "environment": "test", "owner": None}
OF_A = among({"cluster_id": ["a"]})

SAMPLES = {"STRING": "x", "BIGINT": 1, "INT": 1, "BOOLEAN": True, "TIMESTAMP": NOON}

WRITES: dict[str, Callable[[TableWriter], object]] = {
    "append": lambda w: w.append(CLUSTER_NAMES, [OTHER]),
    "append once": lambda w: w.append_once(CLUSTER_NAMES, [OTHER], "load"),
    "add files": lambda w: w.add_files(CLUSTER_NAMES, files(w.lake), "load"),
    "put": lambda w: w.put(CLUSTER_NAMES, [OTHER | {"cluster_id": "a"}], by="cluster_id"),
    "replace": lambda w: w.replace_where(CLUSTER_NAMES, OF_A, [OTHER | {"cluster_id": "a"}]),
    "remove": lambda w: w.remove_where(CLUSTER_NAMES, OF_A),
    "compact": lambda w: w.compact(CLUSTER_NAMES),
    "add columns": lambda w: w.add_columns(CLUSTER_NAMES, [Field("more", "string")]),
}


def files(lake: Path) -> list[dict[str, Any]]:
    folder = lake / CLUSTER_NAMES.name
    return commits.StoredTable(folder, DeltaTable(folder)).written([OTHER])


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake whose table cluster_names has two files, written under lease 1."""
    prepare_lake(tmp_path / "lake")
    writer = TableWriter(tmp_path / "lake", 1)
    writer.create(CLUSTER_NAMES)
    writer.append(CLUSTER_NAMES, ROWS[:1])
    writer.append(CLUSTER_NAMES, ROWS[1:])
    return tmp_path / "lake"


def names(lake: Path) -> set[tuple[str, str]]:
    return {(row["cluster_id"], row["name"]) for row in rows_with(lake, CLUSTER_NAMES)}


def newest(lake: Path) -> DeltaTable:
    return DeltaTable(lake / CLUSTER_NAMES.name)


def actions(lake: Path) -> list[dict[str, Any]]:
    """Of the newest commit of cluster_names."""
    log = lake / CLUSTER_NAMES.name / "_delta_log"
    return [json.loads(line) for line in max(log.glob("*.json")).read_text().splitlines()]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_commit_carries_its_lease(lake: Path, write: Callable[[TableWriter], object]) -> None:
    before = newest(lake).version()
    write(TableWriter(lake, 7))
    assert newest(lake).version() == before + 1
    found = actions(lake)
    assert {"appId": LEASE, "version": 7} in [a["txn"] for a in found if "txn" in a]
    assert all(a["commitInfo"][COMMIT_ID] for a in found if "commitInfo" in a)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_writer_that_loaded_the_table_before_the_fence(
    lake: Path, write: Callable[[TableWriter], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sleeps between its load and its commit; the commit fails, and the next load stops it."""
    loaded = TableWriter._loaded
    loads: list[int | None] = []

    def asleep(writer: TableWriter, table: Any) -> DeltaTable:
        held = loaded(writer, table)
        loads.append(writer.lease)
        if loads == [1]:
            TableWriter(lake, 2).fence()
        return held

    monkeypatch.setattr(TableWriter, "_loaded", asleep)
    with pytest.raises(FencedError):
        write(TableWriter(lake, 1))
    assert loads[0] == 1
    assert loads.count(1) == 1
    assert 2 in loads
    assert newest(lake).transaction_version(LEASE) == 2
    assert names(lake) == {("a", "1"), ("b", "2"), ("c", "3")}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_writer_that_loads_the_table_after_the_fence(
    lake: Path, write: Callable[[TableWriter], object]
) -> None:
    TableWriter(lake, 2).fence()
    version = newest(lake).version()
    with pytest.raises(FencedError):
        write(TableWriter(lake, 1))
    assert newest(lake).version() == version
    write(TableWriter(lake, 2))
    assert newest(lake).version() == version + 1


def test_tables_that_did_not_exist_are_fenced(lake: Path) -> None:
    """The fence makes them, so that no older writer can; what there was is only fenced."""
    old, new = TableWriter(lake, 1), TableWriter(lake, 2)
    new.fence()
    for table in TABLES:
        held = DeltaTable(lake / table.name)
        assert (held.version(), held.transaction_version(LEASE)) == (3 if table is CLUSTER_NAMES else 0, 2)
        old.create(table)
        with pytest.raises(FencedError):
            old.replace_where(table, ds.scalar(True))
    assert all(DeltaTable(lake / t.name).version() <= 3 for t in TABLES)


def test_a_table_that_is_made_and_fenced_at_once(tmp_path: Path) -> None:
    """Whoever makes it, the older writer commits nothing to it after the fence has returned."""
    for attempt in range(20):
        lake = tmp_path / str(attempt)
        prepare_lake(lake)

        def old(lake: Path = lake) -> None:
            writer = TableWriter(lake, 1)
            for row in ROWS:
                writer.replace_where(CLUSTER_NAMES, among({"cluster_id": [row["cluster_id"]]}), [row])

        with ThreadPoolExecutor(1) as thread:
            woken = thread.submit(old)
            TableWriter(lake, 2)._fence(CLUSTER_NAMES)
            version = newest(lake).version()
            error = woken.exception()
        assert error is None or isinstance(error, FencedError)
        assert newest(lake).version() == version
        assert newest(lake).transaction_version(LEASE) == 2


def test_a_fence_is_repeated_after_a_commit_in_between(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = TableWriter._loaded
    woken = [TableWriter(lake, 1)]

    def slow(writer: TableWriter, table: Any) -> DeltaTable:
        held = loaded(writer, table)
        if writer.lease == 2 and woken:
            woken.pop().append(CLUSTER_NAMES, [OTHER])
        return held

    monkeypatch.setattr(TableWriter, "_loaded", slow)
    TableWriter(lake, 2)._fence(CLUSTER_NAMES)
    assert ("d", "4") in names(lake)
    assert newest(lake).transaction_version(LEASE) == 2
    with pytest.raises(FencedError):
        TableWriter(lake, 1).append(CLUSTER_NAMES, [OTHER])


@pytest.mark.parametrize("error", [CommitFailedError("Concurrent transaction failed"), OSError("timed out")])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_lost_answer_is_no_lost_race(
    lake: Path, write: Callable[[TableWriter], object], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is in the log, by its id: it is neither repeated nor reported as failed."""
    commit_once = TableWriter._commit_once

    def answer_lost(
        writer: TableWriter, table: Any, held: DeltaTable, write: Callable[[Any], object], name: str
    ) -> Exception | None:
        def landed(how: Any) -> None:
            write(how)
            raise error

        return commit_once(writer, table, held, landed, name)

    version = newest(lake).version()
    monkeypatch.setattr(TableWriter, "_commit_once", answer_lost)
    write(TableWriter(lake, 1))
    assert newest(lake).version() == version + 1


def test_an_answer_that_is_lost_without_a_commit(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost race is run again; of another error nobody knows, and it is reported."""
    properties = TableWriter._properties

    def fail(writer: TableWriter, name: str, error: Exception, times: list[int]) -> Any:
        def how(others: Sequence[Any]) -> CommitProperties:
            if times.pop(0):
                raise error
            return properties(writer, name)(others)

        return how

    times = [1, 1, 0]
    lost = CommitFailedError("lost")
    monkeypatch.setattr(TableWriter, "_properties", lambda w, name: fail(w, name, lost, times))
    TableWriter(lake, 1).append(CLUSTER_NAMES, [OTHER])
    assert times == []
    assert ("d", "4") in names(lake)
    unknown = OSError("reset")
    monkeypatch.setattr(TableWriter, "_properties", lambda w, name: fail(w, name, unknown, [1]))
    with pytest.raises(OSError, match="reset"):
        TableWriter(lake, 1).append(CLUSTER_NAMES, [OTHER])


def test_the_next_version_belongs_to_one(lake: Path) -> None:
    """As for the row of `runs` that takes the lease."""
    TableWriter(lake, None).create(RUNS)
    for n in range(10):
        version = DeltaTable(lake / RUNS.name).version()

        def take(who: int, n: int = n, version: int = version) -> bool:
            row = {"run_id": f"{n}-{who}", "started_at": None}
            return TableWriter(lake, n + 1).append_after(RUNS, row | {"started_at": NOON}, version)

        with ThreadPoolExecutor(4) as threads:
            assert sorted(threads.map(take, range(4))) == [False, False, False, True]
        assert lease_state(lake).number == n + 1
        assert len(rows_with(lake, RUNS)) == n + 1


def test_a_commit_is_the_very_next_version(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one without a lease: delta-rs itself would append after the other, and report success."""
    written, writer = commits.StoredTable.written, TableWriter(lake, None)
    others = [{"cluster_id": "between"}]

    def slow(stored: Any, rows: Any) -> list[dict[str, Any]]:
        while others:
            writer.append(CLUSTER_NAMES, [others.pop() | {"name": ""}])
        return written(stored, rows)

    monkeypatch.setattr(commits.StoredTable, "written", slow)
    version = newest(lake).version()
    assert not writer.append_after(CLUSTER_NAMES, OTHER, version)
    assert newest(lake).version() == version + 1
    assert writer.append_after(CLUSTER_NAMES, OTHER, version + 1)


def test_a_lease_is_given_back(lake: Path) -> None:
    TableWriter(lake, None).create(RUNS)
    assert (lease_state(lake).number, lease_state(lake).given_back) == (0, True)
    row = {"run_id": "r", "started_at": NOON}
    assert TableWriter(lake, 1).append_after(RUNS, row, 0)
    TableWriter(lake, None).append(RUNS, [{"run_id": "found nothing new", "started_at": NOON}])
    TableWriter(lake, 1).put(RUNS, [row], by="run_id")
    assert (lease_state(lake).number, lease_state(lake).given_back) == (1, False)
    TableWriter(lake, 1).put(RUNS, [row | {"finished_at": NOON}], by="run_id", gives_back=True)
    assert (lease_state(lake).number, lease_state(lake).given_back) == (1, True)
    assert [r["run_id"] for r in lease_state(lake).unfinished] == ["found nothing new"]
    assert not TableWriter(lake, 2).append_after(RUNS, row, 1)


# --- what the writes do ---


def test_rows_are_replaced_where_they_meet_a_condition(lake: Path) -> None:
    """Files without such rows stay as they are; of others the rest is kept."""
    before = set(newest(lake).file_uris())
    writer = TableWriter(lake, 1)
    writer.replace_where(CLUSTER_NAMES, among({"cluster_id": ["c", "d"]}), [OTHER])
    assert names(lake) == {("a", "1"), ("b", "2"), ("d", "4")}
    assert len(before & set(newest(lake).file_uris())) == 1
    (stored,) = rows_with(lake, CLUSTER_NAMES, cluster_id=["d"])
    assert stored == OTHER
    rows = to_arrow([OTHER | {"name": "5"}], CLUSTER_NAMES.arrow_schema)
    writer.replace_where(CLUSTER_NAMES, among({"cluster_id": ["d"]}), rows)
    writer.replace_where(CLUSTER_NAMES, OF_A, files=files(lake))
    assert names(lake) == {("b", "2"), ("d", "4"), ("d", "5")}
    version = newest(lake).version()
    writer.replace_where(CLUSTER_NAMES, OF_A)
    assert newest(lake).version() == version
    writer.replace_where(CLUSTER_NAMES, ds.scalar(True))
    assert names(lake) == set()


def test_a_load_comes_once_until_rows_are_removed(lake: Path) -> None:
    writer = TableWriter(lake, 1)
    for load, count in (("x", 1), ("x", 1), ("y", 2), ("x", 2)):
        writer.append_once(CLUSTER_NAMES, [OTHER], load)
        assert len(rows_with(lake, CLUSTER_NAMES, cluster_id=["d"])) == count
        assert writer.is_loaded(CLUSTER_NAMES, load)
    writer.remove_where(CLUSTER_NAMES, among({"cluster_id": ["d"]}))
    assert not writer.is_loaded(CLUSTER_NAMES, "x")
    writer.append_once(CLUSTER_NAMES, [OTHER], "x")
    assert names(lake) == {("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")}


def test_a_load_comes_again_where_its_rows_were_gone_before_they_were_removed(lake: Path) -> None:
    writer = TableWriter(lake, 1)
    writer.append_once(CLUSTER_NAMES, [OTHER], "x")
    newest(lake).delete("cluster_id = 'd'")
    writer.remove_where(CLUSTER_NAMES, among({"cluster_id": ["d"]}))
    writer.append_once(CLUSTER_NAMES, [OTHER], "x")
    assert ("d", "4") in names(lake)


def test_a_log_forgets_commits_of_more_than_a_week_ago(lake: Path) -> None:
    """kraftlake follow makes thousands a day. The ids of loads stay, and the number of the lease."""
    writer = TableWriter(lake, 7)
    writer.append_once(CLUSTER_NAMES, [OTHER], "load")
    log = lake / CLUSTER_NAMES.name / "_delta_log"

    def go_on(versions: int) -> None:
        for _ in range(versions):
            writer.append(CLUSTER_NAMES, [OTHER])

    go_on(2 * CHECKPOINT_EVERY)
    assert len(list(log.glob("*.checkpoint.parquet"))) == 2
    for file in log.iterdir():
        os.utime(file, (0, 0))
    go_on(CHECKPOINT_EVERY)
    assert min(int(file.name.split(".")[0]) for file in log.glob("*.json")) > CHECKPOINT_EVERY
    assert newest(lake).transaction_version(LEASE) == 7
    assert TableWriter(lake, 8).is_loaded(CLUSTER_NAMES, "load")
    writer.append_once(CLUSTER_NAMES, [OTHER], "load")
    assert len(rows_with(lake, CLUSTER_NAMES, cluster_id=["d"])) == 1 + 3 * CHECKPOINT_EVERY


def test_files_are_joined(lake: Path) -> None:
    writer = TableWriter(lake, 1)
    before = names(lake)
    writer.compact(CLUSTER_NAMES)
    assert len(newest(lake).file_uris()) == 1
    assert names(lake) == before
    assert not any(a["add"]["dataChange"] for a in actions(lake) if "add" in a)
    version = newest(lake).version()
    writer.compact(CLUSTER_NAMES)
    assert newest(lake).version() == version
    old = unneeded_files(lake, CLUSTER_NAMES, 0)
    assert len(old) == 2
    assert all(path.is_file() for path in old)
    for path in old:
        os.utime(path, (0, 0))  # of old files it counts when they were replaced
    assert unneeded_files(lake, CLUSTER_NAMES, 1) == []
    (lake / CLUSTER_NAMES.name / "part-orphan.parquet").touch()
    assert len(unneeded_files(lake, CLUSTER_NAMES, 0)) == 3
    os.utime(lake / CLUSTER_NAMES.name / "part-orphan.parquet", (0, 0))
    assert [p.name for p in unneeded_files(lake, CLUSTER_NAMES, 1)] == ["part-orphan.parquet"]


def test_a_commit_is_found_by_its_id(lake: Path) -> None:
    version = newest(lake).version()
    assert not has_landed(lake, CLUSTER_NAMES, "x", version)
    TableWriter(lake, 1).append(CLUSTER_NAMES, [OTHER])
    (info,) = (a["commitInfo"] for a in actions(lake) if "commitInfo" in a)
    assert has_landed(lake, CLUSTER_NAMES, info[COMMIT_ID], version)
    assert not has_landed(lake, CLUSTER_NAMES, info[COMMIT_ID], version + 1)
    assert not has_landed(lake, CLUSTER_NAMES, "x", version)


def test_infinity_is_found(tmp_path: Path) -> None:
    """JSON does not have it: the log stays readable, and the rows are found."""
    values = [1.5, float("inf"), None, float("nan"), -2.0]
    writer, of_c = TableWriter(tmp_path, 1), among({"cluster_id": ["c"]})
    for n, value in enumerate(values):
        filled = {c.name: SAMPLES[c.type] for c in CLIENT_QUOTAS.columns if not c.nullable}
        row = filled | {"cluster_id": "c", "value": value, "valid_from_offset": n}
        writer.create(CLIENT_QUOTAS)
        writer.append(CLIENT_QUOTAS, [row])
    writer.compact(CLIENT_QUOTAS)
    assert len(rows_with(tmp_path, CLIENT_QUOTAS, where=of_c)) == len(values)
    for least, count in ((1.0, 2), (-3.0, 3), (2.0, 1)):
        assert len(rows_with(tmp_path, CLIENT_QUOTAS, where=ds.field("value") > least)) == count


# --- the only way ---

# What commits to a table, and who may make a writer: under the lease, or of `runs` alone.
COMMITTING = re.compile(
    r"write_deltalake|delta\.tables|\.write\.|\.save\(|saveAsTable|create_write_transaction|DeltaTable\.create"
    r"|\.alter\.|\.optimize\.|\.merge\(|MERGE INTO|VACUUM|OPTIMIZE |DELETE FROM|INSERT INTO|UPDATE delta"
    r"|(?<!def )put_commit\("
)
WRITERS = {
    "jobs/runtime/lease.py": "TableWriter(lake, greatest + 1)",
    "transforms/lake/lake.py": "TableWriter(self.path, self.lease)",
    "jobs/job.py": "TableWriter(lake.path, None).create(RUNS)",
    "jobs/clusters.py": "TableWriter(lake, None).create(RUNS)",
    "jobs/no_new_captures.py": "writer = TableWriter(seen.lake, None)",
    "jobs/maintenance/compaction.py": "TableWriter(lake, None).compact(table)",
    "jobs/restore_rehearsal.py": "TableWriter(lake, None).create(RUNS)",
}


def texts() -> dict[str, str]:
    """The files of the product that know of tables."""
    return {n: (CHECKOUT / n).read_text() for n in product_files() if not n.startswith("kraft_core/")}


def test_nothing_else_commits() -> None:
    found = {name: COMMITTING.findall(text) for name, text in texts().items()}
    assert {name for name, words in found.items() if words} == {"transforms/lake/commits.py"}


def test_who_writes_without_a_lease() -> None:
    """Runs that only note themselves, and who takes the lease."""
    made = {name: text.count("TableWriter(") for name, text in texts().items() if "TableWriter(" in text}
    assert made == dict.fromkeys(WRITERS, 1)
    assert all(words in texts()[name] for name, words in WRITERS.items())
