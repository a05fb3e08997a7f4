"""A lake on a server of S3's protocol: its tables are those of a local one, whatever happens to its writers.

Runs take a minute each on two cores, most of it the session.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.fs as fs
import pytest

from tests.jobs.sql.test_serve import Server
from tests.long.processes import Started, commits, run, tables
from tests.long.s3proxy import KEY, SECRET, S3Server, environment, faulty, started, use
from transforms.lake.delta_rs import count_rows, rows_with
from transforms.lake.leases import lease_state
from transforms.lake.storage.location import StoreUrl
from transforms.lake.storage.objects import arrow_files
from transforms.lake.table_damage import damaged_tables
from transforms.lake.tables import CAPTURES, DERIVATIONS, RECORDS, RUNS

pytestmark = pytest.mark.long
LAKE = StoreUrl("bucket", "nightly/lake")
CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
# Verbs that need no Spark.
ASKED = (
    ("check",),
    ("clusters",),
    ("findings", "list"),
    ("explain", "--cluster", CLUSTER, "--offset", "300"),
    ("explain", "--cluster", CLUSTER, "--recovery"),
    ("plan", "add", "9", "--cluster", CLUSTER),
    ("diff", "--from", "10", "--to", "end", "--cluster", "roWi3HLRRCuDirielH5nnw"),
    ("shell", "ls", "/image/topics/byName", "--cluster", "roWi3HLRRCuDirielH5nnw"),
)
# A task is killed in an upload: two parts are there.
UPLOAD = """
import os, time
from obstore import open_writer
from transforms.lake.storage.objects import _store
writer = open_writer(_store("bucket"), "nightly/lake/records/part-1.parquet", buffer_size=5 * 1024**2)
writer.write(bytes(12 * 1024**2))
writer.flush()
time.sleep(1)
os._exit(9)
"""
# How long the proxy holds back a commit.
LATE_SECONDS = 8.0
# How long a server that is restarted is away.
DOWN_SECONDS = 3.0
KILLS = int(os.environ.get("KRAFTLAKE_KILLS", "10"))


def verb_says(out: Path, lake: Path | StoreUrl, *words: str) -> tuple[int, str]:
    """The exit code of a verb, and what it printed, the lake unnamed."""
    done = Started(out, *words, "--lake", str(lake))
    return done.ended(), done.out.read_text().replace(str(lake), "LAKE")


def kraftlake(out: Path, *words: str | Path | StoreUrl) -> str:
    """Run a verb to its end. Returns what it printed."""
    done = Started(out, *map(str, words))
    assert done.ended() == 0, done.err.read_text()
    return done.out.read_text()


@pytest.mark.usefixtures("s3")
def test_loaded_and_asked(golden: Path, tmp_path: Path) -> None:
    """Captures in two runs, then nothing new; questions; and copies, which are the same lake."""
    family, mini = golden / "uncommitted-truncation", golden / "v4.4.0-mini"
    here = tmp_path / "here"
    assert run(tmp_path / "local", here, [family, mini]).ended() == 0
    for captures in (family, mini):
        loaded = run(tmp_path / captures.name, LAKE, [captures])
        assert loaded.ended() == 0, loaded.err.read_text()
    assert tables(LAKE) == tables(here)
    again = run(tmp_path / "again", "s3a://bucket/nightly/lake/", [mini, family])
    assert again.ended() == 0, again.err.read_text()
    assert "nothing new" in again.out.read_text()
    noted = [dict(row["counts"]) for row in rows_with(LAKE, RUNS, ["counts"])]
    assert sorted(counts["put_requests"] > 0 for counts in noted) == [False, True, True]
    assert all(counts["list_requests"] > 0 and counts["get_requests"] > 0 for counts in noted)
    assert not any("list_requests" in dict(row["counts"]) for row in rows_with(here, RUNS, ["counts"]))

    asked = "SELECT count(*) AS n FROM captures"
    answer = kraftlake(tmp_path / "sql", "sql", asked, "--lake", LAKE, "--format", "json")
    assert json.loads(answer) == {"n": count_rows(here, CAPTURES)}
    server = Server(LAKE, tmp_path)
    assert server.asked("SELECT count(*) FROM captures") == [str(count_rows(here, CAPTURES))]
    assert server.stopped() == 0
    kraftlake(tmp_path / "page", "report", "--lake", LAKE, "--out", tmp_path / "page.html")
    assert CLUSTER in (tmp_path / "page.html").read_text()
    for words in ASKED:
        local, stored = (verb_says(tmp_path / words[0], lake, *words) for lake in (here, LAKE))
        assert stored == local, words
        assert local[0] in (0, 1), words

    copy, back = tmp_path / "copy", StoreUrl("bucket", "back")
    fs.copy_files(f"{LAKE.bucket}/{LAKE.key}", str(copy), source_filesystem=arrow_files())
    fs.copy_files(str(copy), f"{back.bucket}/{back.key}", destination_filesystem=arrow_files())
    for lake in (copy, back):
        assert tables(lake) == tables(here)
        assert damaged_tables(lake, open_files=True) == {}


def test_no_key_is_written(s3: S3Server, golden: Path, tmp_path: Path) -> None:
    """Not to the lake, nor to what a run and questions print, log, or let Spark log of settings and plans."""
    events = tmp_path / "events"
    events.mkdir()
    logged = {"enabled": "true", "compress": "false", "dir": f"file://{events}"}
    settings = tmp_path / "kraftlake.toml"
    lines = (f'"spark.eventLog.{name}" = "{value}"\n' for name, value in logged.items())
    settings.write_text("".join(["[spark]\n", *lines]))
    more = ("--config", settings, "--log", tmp_path / "log")
    loaded = run(tmp_path / "loaded", LAKE, [golden / "v4.4.0-mini"], *more)
    assert loaded.ended() == 0, loaded.err.read_text()
    for number, asked in enumerate((("EXPLAIN EXTENDED SELECT * FROM captures",), ("--write", "SET -v"))):
        kraftlake(tmp_path / f"sql-{number}", "sql", *asked, "--lake", LAKE, *more)
    await_whole(events)
    written = [path for folder in (tmp_path, s3.data) for path in folder.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(events) for path in written)
    assert any(path.is_relative_to(s3.data) for path in written)
    keys = KEY.encode(), SECRET.encode()
    assert [path for path in written if any(key in path.read_bytes() for key in keys)] == []


def await_whole(events: Path) -> None:
    """Wait until Spark's event logs are closed: its JVM may end after the verb."""
    give_up = time.monotonic() + 60
    while any(events.rglob("*.inprogress*")):
        assert time.monotonic() < give_up
        time.sleep(0.1)


def test_validated_and_removed(s3: S3Server, golden: Path, tmp_path: Path) -> None:
    """maintain deletes what no version needs, forget the rows of a cluster."""
    loaded = run(tmp_path / "loaded", LAKE, [golden / "v4.4.0-mini"], "--validate")
    assert loaded.ended() == 0, loaded.err.read_text()
    stored = s3.data / LAKE.bucket / LAKE.key
    orphans = [stored / "records/part-orphan.snappy.parquet", stored / ".lake.json-orphan"]
    week = time.time() - 8 * 24 * 3600
    for orphan in orphans:
        orphan.write_bytes(b"never committed")
        os.utime(orphan, (week, week))
    assert subprocess.run([sys.executable, "-c", UPLOAD], check=False).returncode == 9
    begun = [path for path in s3.data.rglob("*") if "mpu" in str(path)]
    assert begun
    for path in begun:
        os.utime(path, (week, week))
    maintained = kraftlake(tmp_path / "maintain", "maintain", "--lake", LAKE)
    assert "aborted: 1 uploads" in maintained
    assert not any(path.exists() for path in (*orphans, *begun))
    (cluster,) = {row["cluster_id"] for row in rows_with(LAKE, CAPTURES)}
    kraftlake(tmp_path / "forget", "forget", "--lake", LAKE, "--cluster", cluster)
    assert rows_with(LAKE, CAPTURES) == rows_with(LAKE, RECORDS) == []


@pytest.mark.usefixtures("s3")
def test_killed_at_random_moments(golden: Path, tmp_path: Path) -> None:
    captures = [golden / "v4.4.0-mini"]
    seed = random.randrange(10**6)
    rnd = random.Random(seed)
    here = tmp_path / "here"
    clean = run(tmp_path / "clean", here, captures)
    assert clean.ended() == 0
    stages = json.loads(clean.out.read_text().splitlines()[-1])["stage_seconds"]
    stages.pop("session")
    for attempt in range(KILLS):
        stage = rnd.choice(list(stages))
        lake = LAKE if attempt % 3 else StoreUrl("bucket", f"lake-{attempt}")
        killed = run(tmp_path / f"run-{attempt}", lake, captures, "--wait", "600")
        if killed.until(stage):
            killed.kill_after(rnd.uniform(0, 2 * stages[stage]), rnd.random() < 0.5)
    last = run(tmp_path / "last", LAKE, captures, "--wait", "600")
    assert last.ended() == 0, (seed, last.err.read_text())
    assert tables(LAKE) == tables(here), seed


def test_a_stopped_writer(s3: S3Server, golden: Path, tmp_path: Path) -> None:
    """A run sleeps beyond its lease, in the middle of its commits; another one ends; the first wakes."""
    family, mini = golden / "uncommitted-truncation", golden / "v4.4.0-mini"
    here, stored = tmp_path / "here", s3.data / LAKE.bucket / LAKE.key
    assert run(tmp_path / "clean", here, [family, mini]).ended() == 0
    sleeper = run(tmp_path / "sleeper", LAKE, [mini], lease_seconds=10.0)
    assert sleeper.stop_at_commit(stored, 12) is not None
    other = run(tmp_path / "other", LAKE, [family, mini], "--wait", "600")
    assert other.ended() == 0, other.err.read_text()
    whole, done = tables(LAKE), commits(stored)
    sleeper.wake()
    assert sleeper.ended() == 4, sleeper.err.read_text()
    assert "another run took over" in sleeper.err.read_text()
    assert commits(stored) == done
    assert tables(LAKE) == whole == tables(here)


def test_the_server_goes_in_the_middle_of_a_run(
    s3proxy_jar: Path, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run says so in a sentence; when the server is there again, the same command completes the lake."""
    captures = [golden / "v4.4.0-mini"]
    with started(s3proxy_jar, tmp_path / "s3") as server:
        use(server.environment, monkeypatch)
        broken = run(tmp_path / "broken", LAKE, captures)
        assert broken.until("derive"), broken.err.read_text()
    assert broken.ended() == 75, broken.err.read_text()
    said = broken.err.read_text()
    *_, last = said.splitlines()
    assert " ERROR " not in said
    assert f"the store of {LAKE} answers with errors: run the same command again" in last
    assert not any(word in said for word in ("<", "Traceback", "\x1b"))
    with started(s3proxy_jar, tmp_path / "again") as again:
        shutil.rmtree(again.data)
        server.data.rename(again.data)
        use(again.environment, monkeypatch)
        done = run(tmp_path / "done", LAKE, captures, "--wait", "600")
        assert done.ended() == 0, done.err.read_text()
        assert damaged_tables(LAKE, open_files=True) == {}
        assert run(tmp_path / "local", tmp_path / "here", captures).ended() == 0
        assert tables(LAKE) == tables(tmp_path / "here")


@pytest.mark.parametrize(
    "words", [("maintain",), ("forget", "--cluster", CLUSTER)], ids=lambda words: words[0]
)
def test_the_server_is_restarted(
    words: tuple[str, ...],
    s3proxy_jar: Path,
    golden: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A verb ends well, or asks to be run again; its lake is then that of the verb on this machine."""
    here, there = tmp_path / "here", tmp_path / "there"
    for number, some in enumerate(("uncommitted-truncation/before", "uncommitted-truncation", "v4.4.0-mini")):
        assert run(tmp_path / f"loaded-{number}", here, [golden / some]).ended() == 0
    shutil.copytree(here, there)
    kraftlake(tmp_path / "done", *words, "--lake", there)
    made = commits(there) - commits(here)
    with started(s3proxy_jar, tmp_path / "s3") as server:
        use(server.environment, monkeypatch)
        for at in (1, made // 3, 2 * made // 3, made - 1):
            lake = StoreUrl("bucket", f"lake-{at}")
            fs.copy_files(str(here), f"{lake.bucket}/{lake.key}", destination_filesystem=arrow_files())
            verb = Started(tmp_path / f"{at}", *words, "--lake", str(lake))
            stored = server.data / lake.bucket / lake.key
            while commits(stored) < commits(here) + at and verb.is_running():
                time.sleep(0.01)
            server.end()
            time.sleep(DOWN_SECONDS)
            server.start()
            code, said = verb.ended(), verb.err.read_text()
            print(f"restarted at commit {at} of {made}: ended with {code}", flush=True)
            assert code in (0, 75), said
            assert not any(word in said for word in ("<", "Traceback", "\x1b"))
            server.await_answer()
            if code == 75:
                kraftlake(tmp_path / f"again-{at}", *words, "--lake", lake, "--wait", "600")
            assert tables(lake) == tables(there)
            assert damaged_tables(lake, open_files=True) == {}


@pytest.mark.parametrize("fault", ["lost", "lost by reset", "failed", "reset", "refused", "slow", "late"])
def test_commits_of_a_run_fail(
    fault: str, s3: S3Server, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends well or asks to be run again, not as if another run had taken the lake; nothing is doubled."""
    captures, left = [golden / "v4.4.0-mini"], tmp_path / "left"
    assert run(tmp_path / "clean", tmp_path / "here", captures).ended() == 0
    with faulty(s3.port, fault, left) as port:
        use(environment(port), monkeypatch)
        left.write_text("4")
        first = run(tmp_path / "first", LAKE, captures)
        code, said = first.ended(), first.err.read_text()
        print(f"{fault}: ended with {code}, {left.read_text()} faults left", flush=True)
        assert code in (0, 75), said
        assert "Traceback" not in said
        left.write_text("0")
        time.sleep(LATE_SECONDS if fault == "late" else 0)
        again = run(tmp_path / "again", LAKE, captures, "--wait", "600")
        assert again.ended() == 0, again.err.read_text()
    use(s3.environment, monkeypatch)
    assert tables(LAKE) == tables(tmp_path / "here")
    assert damaged_tables(LAKE, open_files=True) == {}


def test_credentials_expire_in_the_middle_of_a_run(
    s3: S3Server, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cluster is blamed for what the store says, and nothing is changed but that the run had begun."""
    loaded = run(tmp_path / "loaded", LAKE, [golden / "v4.4.0-mini"])
    assert loaded.ended() == 0, loaded.err.read_text()
    whole = tables(LAKE)
    with faulty(s3.port, "expired", tmp_path / "left") as port:
        use(environment(port), monkeypatch)
        derived = Started(tmp_path / "expired", "derive", "--lake", str(LAKE))
        assert derived.ended() == 78, derived.err.read_text()
    said = derived.err.read_text()
    expired = f"the credentials for {LAKE} have expired: fetch new ones (AWS_SESSION_TOKEN)"
    assert said.splitlines()[-1] == f"kraftlake derive: {expired}"
    assert "<" not in said
    use(s3.environment, monkeypatch)
    held = tables(LAKE)
    (begun,) = rows_with(LAKE, DERIVATIONS)
    assert begun["begun_by"] is not None
    assert begun["failure"] is None
    assert {name for name in whole if held[name] != whole[name]} == {DERIVATIONS.name}
    again = Started(tmp_path / "again", "derive", "--lake", str(LAKE))
    assert again.ended() == 0, again.err.read_text()
    assert tables(LAKE) == whole


@pytest.mark.usefixtures("s3")
def test_two_writers_at_once(golden: Path, tmp_path: Path) -> None:
    family, mini = golden / "uncommitted-truncation", golden / "v4.4.0-mini"
    here = tmp_path / "here"
    assert run(tmp_path / "clean", here, [family, mini]).ended() == 0
    both = [
        run(tmp_path / f"run-{n}", LAKE, [some], "--wait", "600") for n, some in enumerate((family, mini))
    ]
    assert [each.ended() for each in both] == [0, 0], [each.err.read_text() for each in both]
    assert tables(LAKE) == tables(here)
    assert lease_state(LAKE).unfinished == []
