"""Storage on a real server of S3's protocol: what makes, reads and lists a lake's files, without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobs.cli import main
from tests.long.processes import CHECKOUT
from tests.long.s3proxy import (
    S3Server,
    environment,
    faulty,
    forget_all,
    free_port,
    started,
    use,
)
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import LEASE, FencedError, TableWriter
from transforms.lake.delta_rs import exists, rows_with, unneeded_files
from transforms.lake.storage import NoLakeError, check_lake, objects, prepare_lake, table_folders
from transforms.lake.storage.conditions import UnsafeStoreError
from transforms.lake.storage.files import names_in, remove
from transforms.lake.storage.listing import lake_listing
from transforms.lake.storage.location import StoreUrl
from transforms.lake.storage.table_folders import delta_table, read_table
from transforms.lake.table_damage import damaged_tables
from transforms.lake.tables import CLUSTER_NAMES, RUNS

pytestmark = pytest.mark.long
LAKE = StoreUrl("bucket", "a/lake")
NAMES = [{"cluster_id": f"id-{n}", "name": f"n{n}", "environment": None, "owner": None} for n in range(3)]


@pytest.mark.usefixtures("s3")
def test_tables_are_made_written_and_read() -> None:
    with pytest.raises(NoLakeError, match="is not a lake"):
        check_lake(LAKE)
    prepare_lake(LAKE, {"a.config"})
    prepare_lake(LAKE, {"a.config"})
    with pytest.raises(NoLakeError, match="shown_configs"):
        prepare_lake(LAKE)
    with pytest.raises(NoLakeError, match="is not empty and not a lake"):
        prepare_lake(StoreUrl("bucket", "a"))
    assert not exists(LAKE, CLUSTER_NAMES)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    writer.append(CLUSTER_NAMES, NAMES[:2])
    writer.put(CLUSTER_NAMES, [NAMES[1] | {"owner": "us"}, NAMES[2]], by="cluster_id")
    rows = sorted(rows_with(LAKE, CLUSTER_NAMES), key=lambda row: row["name"])
    assert [row["owner"] for row in rows] == [None, "us", None]
    assert damaged_tables(LAKE, open_files=True) == {}
    assert len(unneeded_files(LAKE, CLUSTER_NAMES, 0)) == 1
    assert set(names_in(LAKE)) >= {"lake.json", "cluster_names"}


def test_a_table_is_opened_by_a_number_of_requests_that_does_not_grow(s3: S3Server) -> None:
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    for number in range(25):
        writer.append(CLUSTER_NAMES, [NAMES[0] | {"cluster_id": f"id-{number}"}])
    log = s3.data / "bucket/a/lake/cluster_names/_delta_log"
    assert sorted(int(file.name[:20]) for file in log.glob("*.checkpoint.parquet")) == [9, 19]
    with read_table(LAKE, CLUSTER_NAMES) as held:
        assert (held.version(), held.transaction_version(LEASE)) == (25, 1)
    TableWriter(LAKE, 2).put(CLUSTER_NAMES, NAMES, by="cluster_id")
    with read_table(LAKE, CLUSTER_NAMES) as held:
        assert (held.version(), held.transaction_version(LEASE)) == (26, 2)


@pytest.mark.usefixtures("s3")
def test_of_two_writers_one_commits_each_version() -> None:
    prepare_lake(LAKE)
    TableWriter(LAKE, 1).create(RUNS)
    TableWriter(LAKE, 1).create(CLUSTER_NAMES)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda row: TableWriter(LAKE, 1).append(CLUSTER_NAMES, [row]), NAMES * 4))
    assert len(rows_with(LAKE, CLUSTER_NAMES)) == 12


@pytest.mark.usefixtures("s3")
def test_a_fence_stops_the_writer_of_an_older_lease() -> None:
    prepare_lake(LAKE)
    old, new = TableWriter(LAKE, 1), TableWriter(LAKE, 2)
    old.append_once(CLUSTER_NAMES, NAMES[:1], "first")
    new.fence()
    for write in (old.append, lambda *words: old.append_once(*words, "second")):
        with pytest.raises(FencedError):
            write(CLUSTER_NAMES, NAMES[1:])
    new.append_once(CLUSTER_NAMES, NAMES[:1], "first")
    assert rows_with(LAKE, CLUSTER_NAMES) == NAMES[:1]


@pytest.mark.usefixtures("s3")
def test_requests_of_a_writer() -> None:
    """A log and a small file are fetched once, a commit takes a request, and a checkpoint three."""
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    writer.append(CLUSTER_NAMES, NAMES)

    def asked(work: Callable[[], object]) -> dict[str, int]:
        before = Counter(objects.requests())
        work()
        return dict(Counter(objects.requests()) - before)

    def put(number: int) -> None:
        writer.put(CLUSTER_NAMES, [NAMES[0] | {"owner": str(number)}], by="cluster_id")

    with table_folders.written_alone(LAKE, RUNS):
        assert asked(lambda: put(0)) == {"GET": 1, "PUT": 2}
        assert asked(lambda: [put(number) for number in range(1, 7)]) == {"GET": 6, "PUT": 12}
        assert asked(lambda: put(8)) == {"GET": 1, "PUT": 4, "LIST": 1}  # version 9: a checkpoint
        assert asked(lambda: rows_with(LAKE, CLUSTER_NAMES)) == {"GET": 1}
        assert asked(lambda: rows_with(LAKE, CLUSTER_NAMES)) == {}
    forget_all()
    with table_folders.as_listed(lake_listing(LAKE)):
        assert asked(lambda: rows_with(LAKE, CLUSTER_NAMES)) == {"GET": 3}
        assert asked(lambda: rows_with(LAKE, CLUSTER_NAMES)) == {}


@pytest.mark.usefixtures("s3")
def test_requests_of_nights_with_nothing_new() -> None:
    """Of 12, four are for the listing, lake.json and the memo: a night's row takes two, or seven."""
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, None)
    writer.create(RUNS)
    numbers = list(map(str, range(60)))
    counts: list[int | None] = []
    for number in numbers:
        forget_all()  # as a process that begins
        listed = lake_listing(LAKE)
        before = Counter(objects.requests())
        row = a_row(RUNS, run_id=number)
        appended = writer.append_next(RUNS, row, listed)
        if appended is None:
            writer.append(RUNS, [row])
            counts.append(None)
            continue
        counts.append((Counter(objects.requests()) - before).total())
        assert appended.fingerprint(RUNS) == lake_listing(LAKE).fingerprint(RUNS)
    assert counts[2:] == [7 if number % 2 == 0 else 2 for number in range(2, 48)] + [None] + [2, 7] * 5 + [2]
    assert sorted(row["run_id"] for row in rows_with(LAKE, RUNS)) == sorted(numbers)
    assert damaged_tables(LAKE, open_files=True) == {}


# The file is referred to until the end of the process.
UNFINISHED = """
import pyarrow as pa
from transforms.lake.storage.location import StoreUrl
from transforms.lake.table_files import TableFile
schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
file = TableFile(StoreUrl("bucket", "a/lake/records"), schema)
file.add(pa.table({"n": [1]}, schema=schema))
file.add(pa.table({"n": pa.array([None], pa.int64())}, schema=schema))
"""


@pytest.mark.usefixtures("s3")
def test_a_process_ends_that_has_not_finished_a_file() -> None:
    """Arrow would wait for threads that are gone."""
    command = [sys.executable, "-c", UNFINISHED]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "pyarrow.lib.ArrowInvalid: Column 'n' is declared non-null"
    )
    assert "ignored" not in done.stderr


@pytest.mark.usefixtures("s3")
def test_old_commits_are_removed_with_a_checkpoint(s3: S3Server) -> None:
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    for _ in range(15):
        writer.append(CLUSTER_NAMES, NAMES[:1])
    log = s3.data / "bucket/a/lake/cluster_names/_delta_log"
    for file in log.iterdir():
        os.utime(file, (0, 0))
    for _ in range(4):
        writer.append(CLUSTER_NAMES, NAMES[:1])
    left = sorted(int(file.name[:20]) for file in log.glob("0*"))
    assert left == [9, *range(9, 20), 19]
    forget_all()
    assert len(rows_with(LAKE, CLUSTER_NAMES)) == 19
    assert damaged_tables(LAKE, open_files=True) == {}
    # Who knows the table only as it was long ago finds a checkpoint in its place.
    assert delta_table(LAKE, CLUSTER_NAMES, 10).version() == 10


@pytest.mark.usefixtures("s3")
def test_a_copy_far_behind_is_brought_up() -> None:
    prepare_lake(LAKE)
    writer = TableWriter(LAKE, 1)
    writer.create(CLUSTER_NAMES)
    writer.append(CLUSTER_NAMES, NAMES[:1])
    behind = table_folders._copies.pop(LAKE / CLUSTER_NAMES.name)
    for _ in range(22):
        writer.append(CLUSTER_NAMES, NAMES[1:2])
    for version in range(2, 12):
        remove(LAKE / CLUSTER_NAMES.name / "_delta_log" / f"{version:020d}.json")
    table_folders._copies[LAKE / CLUSTER_NAMES.name] = behind
    assert len(rows_with(LAKE, CLUSTER_NAMES)) == 23
    with read_table(LAKE, CLUSTER_NAMES) as held:
        assert held.version() == 23


@pytest.mark.usefixtures("s3")
def test_a_writer_that_believes_to_be_alone_is_fenced() -> None:
    """It does not look for commits of others; its next one fails all the same."""
    prepare_lake(LAKE)
    old, new = TableWriter(LAKE, 1), TableWriter(LAKE, 2)
    old.append_once(CLUSTER_NAMES, NAMES[:1], "first")
    held = table_folders._copies

    def stored() -> list[dict[str, str | None]]:
        return sorted(rows_with(LAKE, CLUSTER_NAMES), key=lambda row: row["name"])

    with table_folders.written_alone(LAKE, RUNS):
        old.append_once(CLUSTER_NAMES, NAMES[1:2], "second")
        assert stored() == NAMES[:2]
        mine = dict(held)
        held.clear()  # as if another process did it
        new.fence()
        new.append_once(CLUSTER_NAMES, NAMES[2:], "third")
        held.clear()
        held.update(mine)
        table_folders._newest.add(LAKE / CLUSTER_NAMES.name)
        assert stored() == NAMES[:2]
        with pytest.raises(FencedError):
            old.append(CLUSTER_NAMES, NAMES[:1])
    assert stored() == NAMES


def test_a_lost_file_is_found(s3: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    prepare_lake(LAKE)
    TableWriter(LAKE, 1).append_once(CLUSTER_NAMES, NAMES, "all")
    (file,) = (s3.data / "bucket/a/lake/cluster_names").glob("*.parquet")
    file.write_bytes(b"short")
    assert "has 5 of" in damaged_tables(LAKE)[CLUSTER_NAMES][0]
    file.unlink()
    assert damaged_tables(LAKE)[CLUSTER_NAMES][0].endswith("is missing")
    assert main(["check", "--lake", str(LAKE)]) == 1
    commands = capsys.readouterr().out.splitlines()
    assert "    aws s3 rm --recursive s3://bucket/a/lake/cluster_names" in commands


def test_a_lost_lake_json_is_written_again(s3: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    prepare_lake(LAKE, {"a.plugin.config"})
    TableWriter(LAKE, 1).append_once(CLUSTER_NAMES, NAMES, "all")
    (s3.data / "bucket/a/lake/lake.json").unlink()
    forget_all()
    assert main(["clusters", "--lake", str(LAKE)]) == 2
    said = "has tables but no lake.json: kraftlake check --restore --lake s3://bucket/a/lake writes it again"
    assert capsys.readouterr().err.splitlines()[-1].endswith(said)
    assert main(["check", "--restore", "--lake", str(LAKE)]) == 0
    forget_all()
    assert main(["clusters", "--lake", str(LAKE)]) == 0


def test_a_server_that_is_gone_is_no_damage(
    s3proxy_jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(s3proxy_jar, tmp_path / "s3") as server:
        use(server.environment, monkeypatch)
        prepare_lake(LAKE)
        TableWriter(LAKE, 1).append_once(CLUSTER_NAMES, NAMES, "all")
        stored = lake_listing(LAKE)
    forget_all()
    with pytest.raises(OSError, match="Generic S3 error"):
        damaged_tables(LAKE, stored=stored)


def test_a_store_without_conditions_is_refused(
    s3proxy_jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before lake.json, and before the first commit to a lake that was copied there."""
    with (
        started(s3proxy_jar, tmp_path / "s3", "none") as server,
        faulty(server.port, "unconditional", tmp_path / "left") as port,
    ):
        use(environment(port), monkeypatch)
        with pytest.raises(NoLakeError, match="If-None-Match"):
            prepare_lake(LAKE)
        assert names_in(LAKE) == []
        with pytest.raises(UnsafeStoreError, match="If-None-Match"):
            TableWriter(LAKE, 1).create(RUNS)
        use(environment(server.port), monkeypatch)
        prepare_lake(LAKE)
        TableWriter(LAKE, 1).create(RUNS)
        use(environment(port), monkeypatch)
        with pytest.raises(UnsafeStoreError):
            TableWriter(LAKE, 1).append(RUNS, [])


def test_a_store_that_may_only_be_read(
    s3: S3Server,
    golden: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepare_lake(LAKE)
    TableWriter(LAKE, 1).create(RUNS)
    with faulty(s3.port, "read-only", tmp_path / "left") as port:
        use(environment(port), monkeypatch)
        lake = "s3://bucket/another"
        assert main(["run", "--captures", str(golden / "v4.4.0-mini"), "--lake", lake]) == 78
        (line,) = capsys.readouterr().err.splitlines()
        assert f"permission denied for {lake}: this user needs permission to list" in line
        assert main(["clusters", "--lake", str(LAKE)]) == 0


def test_a_bucket_in_another_region(
    s3: S3Server,
    golden: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with faulty(s3.port, "elsewhere", tmp_path / "left") as port:
        use(environment(port), monkeypatch)
        for verb in (("clusters",), ("run", "--captures", str(golden / "v4.4.0-mini"))):
            assert main([*verb, "--lake", str(LAKE)]) == 78
            (line,) = capsys.readouterr().err.splitlines()
            assert "bucket bucket is not in region us-east-1: set AWS_DEFAULT_REGION" in line


NO_KEYS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
REFUSALS = (
    ("s3://no-such-bucket/lake", {}, 2, "there is no bucket no-such-bucket"),
    ("s3://bucket/lake", {}, 2, "s3://bucket/lake is not a lake"),
    ("s3://bucket/lake", {"AWS_SECRET_ACCESS_KEY": "wrong"}, 78, "rejects the key"),
    ("s3://bucket/lake", {"AWS_ACCESS_KEY_ID": "nobody"}, 78, "rejects the key"),
    ("s3://bucket/lake", NO_KEYS, 78, "no credentials"),
    ("s3://bucket/lake", {**NO_KEYS, "AWS_PROFILE": "nobody"}, 78, "profile nobody has no keys"),
    ("s3://bucket/lake", {"AWS_ENDPOINT_URL": "gone"}, 75, "run the same command again"),
    (
        "s3://bucket/lake",
        {"AWS_ENDPOINT_URL": "127.0.0.1:9000"},
        78,
        "AWS_ENDPOINT_URL is not the URL of a server",
    ),
    (
        "s3://bucket/lake",
        {"AWS_ENDPOINT_URL_S3": "https://"},
        78,
        "AWS_ENDPOINT_URL_S3 is not the URL of a server",
    ),
)


@pytest.mark.parametrize(("lake", "changed", "code", "words"), REFUSALS)
def test_one_sentence(
    s3: S3Server,
    lake: str,
    changed: dict[str, str],
    code: int,
    words: str,
    golden: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    variables = s3.environment | {name: gone if value == "gone" else value for name, value in changed.items()}
    use({name: value for name, value in variables.items() if value}, monkeypatch)
    verbs = [("clusters",), ("report", "--out", "page.html")]
    if "not a lake" not in words:  # which a run makes
        verbs.append(("run", "--captures", str(golden / "v4.4.0-mini")))
    for verb in verbs:
        assert main([*verb, "--lake", lake]) == code, verb
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
        assert "<" not in line
        assert "wrong" not in line
    assert main(["doctor", "--lake", lake]) == 78
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("WRONG"))
    assert words in line
    assert "<" not in line
