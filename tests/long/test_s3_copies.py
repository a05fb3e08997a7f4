"""Tables of a store as a process knows them, compared with the store itself, whatever others do to them."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from deltalake import CommitProperties
from deltalake.exceptions import DeltaError

from tests.long.processes import CHECKOUT
from tests.long.s3proxy import S3Server, forget_all
from transforms.lake.commits import COMMIT_ID, TableWriter, has_landed
from transforms.lake.delta_rs import among, newest_version, rows_with
from transforms.lake.storage import objects, prepare_lake, table_folders
from transforms.lake.storage.files import remove
from transforms.lake.storage.listing import commit_name, lake_listing
from transforms.lake.storage.location import StoreUrl
from transforms.lake.storage.table_copies import TableCopy
from transforms.lake.storage.table_folders import committed, delta_table, read_table
from transforms.lake.tables import CLUSTER_NAMES
from transforms.lake.tables.declaration import CHECKPOINT_EVERY

pytestmark = pytest.mark.long
LAKE = StoreUrl("bucket", "lake")
FOLDER = LAKE / CLUSTER_NAMES.name
LOG = "bucket/lake/cluster_names/_delta_log"
STEPS, CLUSTERS = 120, 4


def row(name: str, cluster: str = "c") -> dict[str, str | None]:
    return {"cluster_id": cluster, "name": name, "environment": None, "owner": None}


@pytest.fixture
def writer(s3: S3Server) -> TableWriter:
    """Of a lake with the table, empty."""
    assert s3.environment
    prepare_lake(LAKE)
    made = TableWriter(LAKE, 1)
    made.create(CLUSTER_NAMES)
    return made


def names() -> list[str]:
    return sorted(row["name"] for row in rows_with(LAKE, CLUSTER_NAMES))


def names_in_store() -> list[str]:
    """As delta-rs reads them from the store itself, without a copy."""
    found = delta_table(LAKE, CLUSTER_NAMES).to_pyarrow_table(columns=["name"])
    return sorted(found["name"].to_pylist())


def commit_of_another() -> None:
    """delta-rs commits to the store itself."""
    held = delta_table(LAKE, CLUSTER_NAMES)
    once = CommitProperties(max_commit_retries=0)
    held.create_write_transaction([], "append", held.schema(), commit_properties=once)


@pytest.mark.parametrize("commits", [8, 9, 10, 18, 19, 25])
def test_a_copy_begins_at_a_checkpoint(s3: S3Server, writer: TableWriter, commits: int) -> None:
    """What is committed next is the store's next version, also where older commits are removed."""
    for number in range(commits):
        writer.append(CLUSTER_NAMES, [row(f"{number:02}")])
    log = s3.data / LOG
    checkpoints = sorted(int(file.name[:20]) for file in log.glob("*.checkpoint.parquet"))
    for version in range(checkpoints[-1] if checkpoints else 0):
        (log / commit_name(version)).unlink()
    forget_all()
    writer.append(CLUSTER_NAMES, [row("next")])
    wanted = [*(f"{number:02}" for number in range(commits)), "next"]
    assert names() == names_in_store() == wanted
    assert newest_version(LAKE, CLUSTER_NAMES) == delta_table(LAKE, CLUSTER_NAMES).version() == commits + 1
    forget_all()
    assert names() == wanted


def test_a_checkpoint_without_its_commit(s3: S3Server, writer: TableWriter) -> None:
    """It can be read, and the next commit is the store's, or fails."""
    for number in range(9):
        writer.append(CLUSTER_NAMES, [row(str(number))])
    for version in range(10):
        (s3.data / LOG / commit_name(version)).unlink()
    forget_all()
    wanted = [str(number) for number in range(9)]
    with pytest.raises((DeltaError, OSError)):
        writer.append(CLUSTER_NAMES, [row("next")])
    assert names_in_store() == wanted
    commits = list((s3.data / LOG).glob("*[0-9].json"))
    assert commits == []


def test_a_commit_that_is_not_made_is_no_success(writer: TableWriter) -> None:
    writer.append(CLUSTER_NAMES, [row("a")])

    def commit(times: int) -> None:
        with read_table(LAKE, CLUSTER_NAMES) as held, committed(FOLDER):
            for _ in range(times):
                held.create_write_transaction([], "append", held.schema())
                held.update_incremental()

    for times in (0, 2):
        with pytest.raises(OSError, match="no version 2 of s3://bucket/lake/cluster_names was made"):
            commit(times)
    assert delta_table(LAKE, CLUSTER_NAMES).version() == 1
    writer.append(CLUSTER_NAMES, [row("b")])
    assert names() == names_in_store() == ["a", "b"]


def test_nothing_is_committed_over_what_the_copy_alone_has(writer: TableWriter) -> None:
    writer.append(CLUSTER_NAMES, [row("a")])
    copy = table_folders._copies[FOLDER]
    content = (copy.place / "_delta_log" / commit_name(1)).read_bytes()
    (copy.place / "_delta_log" / commit_name(2)).write_bytes(content)
    with pytest.raises((OSError, DeltaError)):
        writer.append(CLUSTER_NAMES, [row("b")])
    assert delta_table(LAKE, CLUSTER_NAMES).version() == 1


def test_another_commit_comes_in_between(writer: TableWriter) -> None:
    writer.append(CLUSTER_NAMES, [row("a")])
    with read_table(LAKE, CLUSTER_NAMES) as held:
        known = held.version()
    commit_of_another()
    assert not writer.append_after(CLUSTER_NAMES, row("b"), known)
    assert names() == names_in_store() == ["a"]
    with table_folders.as_listed(lake_listing(LAKE)):
        assert names() == ["a"]
        commit_of_another()
        assert newest_version(LAKE, CLUSTER_NAMES) == known + 1
        writer.append(CLUSTER_NAMES, [row("b")])
    assert newest_version(LAKE, CLUSTER_NAMES) == delta_table(LAKE, CLUSTER_NAMES).version() == known + 3
    assert names() == names_in_store() == ["a", "b"]


@pytest.mark.parametrize("commits", [7, 8, 9, 18])
def test_the_version_of_a_checkpoint_is_another_commit(writer: TableWriter, commits: int) -> None:
    """Of a commit that loses the race, the copy keeps neither the checkpoint nor the hint that names it."""
    for number in range(commits):
        writer.append(CLUSTER_NAMES, [row(f"{number:02}")])
    with table_folders.as_listed(lake_listing(LAKE)):
        assert newest_version(LAKE, CLUSTER_NAMES) == commits
        commit_of_another()
        writer.append(CLUSTER_NAMES, [row("next")])
        assert names() == names_in_store() == [*(f"{number:02}" for number in range(commits)), "next"]
    assert newest_version(LAKE, CLUSTER_NAMES) == delta_table(LAKE, CLUSTER_NAMES).version() == commits + 2


def test_a_checkpoint_is_not_put(writer: TableWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit has landed; the checkpoint can be put later."""
    for number in range(8):
        writer.append(CLUSTER_NAMES, [row(str(number))])
    put = objects.put

    def failing(place: StoreUrl, content: bytes) -> str:
        if "checkpoint" in place.name:
            raise OSError("no checkpoint")
        return put(place, content)

    with monkeypatch.context() as patched:
        patched.setattr(objects, "put", failing)
        writer.append(CLUSTER_NAMES, [row("8")])
    assert newest_version(LAKE, CLUSTER_NAMES) == 9
    made = table_folders.put_checkpoint(lake_listing(LAKE), CLUSTER_NAMES)
    assert [name.rsplit("/")[-1] for name in sorted(made)] == [
        f"{9:020d}.checkpoint.parquet",
        "_last_checkpoint",
    ]
    assert names() == names_in_store() == [str(number) for number in range(9)]


def test_an_answer_is_lost_and_another_commit_follows(
    writer: TableWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is found in the store's log, though it is not the newest."""
    writer.append(CLUSTER_NAMES, [row("a")])
    put_new = objects.put_new

    def losing(place: StoreUrl, content: bytes) -> str | None:
        put_new(place, content)
        commit_of_another()
        raise OSError("the answer is lost")

    with monkeypatch.context() as patched:
        patched.setattr(objects, "put_new", losing)
        writer.append(CLUSTER_NAMES, [row("b")])
    assert names() == names_in_store() == ["a", "b"]
    assert newest_version(LAKE, CLUSTER_NAMES) == 3
    name = delta_table(LAKE, CLUSTER_NAMES).history()[1][COMMIT_ID]
    assert has_landed(LAKE, CLUSTER_NAMES, name, 1)
    assert not has_landed(LAKE, CLUSTER_NAMES, name, 2)


@pytest.mark.parametrize("commits", [1, 3, 12])
def test_a_lake_that_is_made_anew(s3: S3Server, writer: TableWriter, commits: int) -> None:
    """Whoever knows the old one sees the new one, however many versions it has."""
    for number in range(3):
        writer.append(CLUSTER_NAMES, [row(f"old {number}")])
    assert len(names()) == 3
    shutil.rmtree(s3.data / "bucket/lake")
    old = dict(table_folders._copies)
    forget_all()
    prepare_lake(LAKE)
    writer.create(CLUSTER_NAMES)
    for number in range(commits):
        writer.append(CLUSTER_NAMES, [row(f"new {number:02}")])
    table_folders._copies.update(old)
    assert names() == names_in_store() == [f"new {number:02}" for number in range(commits)]
    table_folders._copies.update({FOLDER: _behind(old[FOLDER])})
    with table_folders.as_listed(lake_listing(LAKE)):
        assert names() == names_in_store()


def _behind(copy: TableCopy) -> TableCopy:
    """A copy that believes to know the first version."""
    copy.version, copy._commit, copy._table = 0, None, None
    return copy


@dataclass
class Process:
    """What a process knows of the store."""

    known: dict[StoreUrl, TableCopy] = field(default_factory=dict)

    @contextmanager
    def running(self) -> Iterator[None]:
        table_folders._copies.clear()
        table_folders._copies.update(self.known)
        yield
        self.known = dict(table_folders._copies)


@pytest.mark.usefixtures("writer")
def test_any_order_of_writers(s3: S3Server) -> None:
    """Several processes write and read in any order; one begins, commits expire, a writer is fenced."""
    seed = random.randrange(10**6)
    print("seed", seed)
    rnd = random.Random(seed)
    processes, rows, lease = [Process() for _ in range(3)], dict[str, str](), 1

    def append(number: int) -> None:
        TableWriter(LAKE, lease).append(CLUSTER_NAMES, [row(f"{number:03}", rnd_cluster())])

    def rnd_cluster() -> str:
        cluster = f"c{rnd.randrange(CLUSTERS)}"
        rows[f"{number:03}"] = cluster
        return cluster

    def put(number: int) -> None:
        cluster = f"c{rnd.randrange(CLUSTERS)}"
        for name in [name for name, of in rows.items() if of == cluster]:
            del rows[name]
        rows[f"{number:03}"] = cluster
        some = [row(f"{number:03}", cluster)]
        TableWriter(LAKE, lease).replace_where(CLUSTER_NAMES, among({"cluster_id": [cluster]}), some)

    def compact(_: int) -> None:
        TableWriter(LAKE, lease).compact(CLUSTER_NAMES)

    def begin(_: int) -> None:
        table_folders._copies.clear()

    def alone(number: int) -> None:
        with table_folders.written_alone(LAKE):
            append(number)
            assert names() == sorted(rows)

    def expire(_: int) -> None:
        held = [file.name for file in (s3.data / LOG).glob("*.checkpoint.parquet")]
        for version in range(max((int(name[:20]) for name in held), default=0)):
            remove(FOLDER / "_delta_log" / commit_name(version))

    def other(_: int) -> None:
        commit_of_another()

    steps: list[Callable[[int], None]] = [append, append, put, put, compact, begin, alone, expire, other]
    for number in range(STEPS):
        with rnd.choice(processes).running():
            rnd.choice(steps)(number)
            assert names() == sorted(rows), (seed, number)
            if number % 5 == 0:
                assert names_in_store() == sorted(rows), (seed, number)
    forget_all()
    assert names() == names_in_store() == sorted(rows), seed


APPENDING = """
import sys
from deltalake.exceptions import CommitFailedError
from tests.long.test_s3_copies import CLUSTER_NAMES, LAKE, row
from transforms.lake.commits import TableWriter

writer, number = TableWriter(LAKE, 1), 0
while number < int(sys.argv[2]):
    try:
        writer.append(CLUSTER_NAMES, [row(f"{sys.argv[1]} {number:03}")])
    except CommitFailedError:  # after ten lost races
        continue
    number += 1
"""


@pytest.mark.usefixtures("writer")
def test_processes_race_for_every_version(s3: S3Server) -> None:
    """A row is there once, or its writer has CommitFailedError; also where a checkpoint's version is lost."""
    commits, names_of_processes = 40, "abc"
    processes = [
        subprocess.Popen([sys.executable, "-c", APPENDING, name, str(commits)], cwd=CHECKOUT)
        for name in names_of_processes
    ]
    assert [process.wait(300) for process in processes] == [0] * len(processes)
    wanted = [f"{name} {number:03}" for name in names_of_processes for number in range(commits)]
    assert names() == names_in_store() == wanted
    assert newest_version(LAKE, CLUSTER_NAMES) == len(wanted)
    assert len(list((s3.data / LOG).glob("*.checkpoint.parquet"))) >= len(wanted) // CHECKPOINT_EVERY
