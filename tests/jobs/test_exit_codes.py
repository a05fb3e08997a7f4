"""How a verb ends where it cannot go on: one line of what, where and what to do, and a code of its own."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from jobs.cli import main
from jobs.metrics import put
from jobs.runtime.crash import exit_code_of, failure_of, internal, must_be_writable
from jobs.runtime.java import java_of
from jobs.runtime.lease import held_lease
from jobs.runtime.outcome import MEANINGS, WORTH_ANOTHER_TRY, ExitCode, Failure
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from tests.jobs.test_cli import kraftlake
from tests.unprivileged import public_folder, unprivileged
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage import NoLakeError, prepare_lake
from transforms.lake.tables import RUNS

CHECKOUT = Path(__file__).parents[2]
NODE = CHECKOUT / "tests/golden/dynamic-membership/node-1"


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_help_and_docs_list_the_codes_that_are_declared(capsys):
    assert set(MEANINGS) == set(ExitCode)
    every = ", ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())
    for page in ("README.md", "schedules/README.md"):
        assert f"Exit codes: {every}. " in one_line((CHECKOUT / page).read_text())
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out.split("exit codes:\n")[1]
    assert re.findall(r"^  (\d+) +(.*)$", listed, re.MULTILINE) == [
        (str(code.value), meaning) for code, meaning in MEANINGS.items()
    ]


def test_schedules_retry_what_may_succeed_the_next_time():
    retried = tuple(int(code) for code in WORTH_ANOTHER_TRY)
    airflow = (CHECKOUT / "schedules/airflow/kraftlake_dag.py").read_text()
    assert f"WORTH_ANOTHER_TRY = {retried}" in airflow
    never = [code.value for code in ExitCode if code not in (0, 130) and code not in WORTH_ANOTHER_TRY]
    assert f"values: {never}" in (CHECKOUT / "schedules/kubernetes/cronjob.yaml").read_text()
    assert f"Only {retried[0]}, {retried[1]} and {retried[2]} are worth a retry." in one_line(
        (CHECKOUT / "schedules/README.md").read_text()
    )


# --- Java ---


def java_home(folder: Path, release: str | None, says: str = "") -> Path:
    """A JAVA_HOME of a Java that only says its version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{says}\n")
    java.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    return folder


@pytest.mark.parametrize(
    ("release", "says", "found"),
    [
        ("17.0.15", "", None),
        ("21", "", None),
        ("1.8.0_392", "", "is Java 8"),
        ("11.0.2", "", "is Java 11"),
        (None, "echo 'openjdk version \"25.0.1\" 2025-10-21' >&2", None),
        (None, "echo 'java version \"1.8.0_392\"' >&2", "is Java 8"),
        (None, "exit 1", "cannot be run"),
        (None, "echo hello", "cannot be run"),
    ],
)
def test_an_old_java_is_named(tmp_path, release, says, found):
    home = java_home(tmp_path / "jdk", release, says)
    for environ in ({"JAVA_HOME": str(home)}, {"PATH": str(home / "bin")}):
        if found is None:
            java_of(environ | {"PATH": f"{home / 'bin'}:/bin"})
            continue
        with pytest.raises(
            Failure, match=f"{home}/bin/java {found}: Spark needs Java 17 or later; install "
        ) as failed:
            java_of(environ)
        assert failed.value.exit_code == ExitCode.ENVIRONMENT


def test_no_java_and_a_wrong_java_home(tmp_path):
    with pytest.raises(Failure, match=r"^Java was not found: Spark needs Java 17 or later"):
        java_of({"PATH": str(tmp_path)})
    with pytest.raises(Failure, match=rf"^JAVA_HOME is {tmp_path}, which has no bin/java: "):
        java_of({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    "verb", [["sql", "SELECT 1"], ["derive"], ["run", "--captures", NODE]], ids=lambda words: words[0]
)
def test_every_job_says_so_before_spark_starts(tmp_path, verb):
    prepare_lake(tmp_path / "lake")
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", *map(str, verb), "--lake", str(tmp_path / "lake")],
        cwd=CHECKOUT,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 78, done.stderr
    report = json.loads(done.stdout) if done.stdout else {}
    assert report.get("exit_code") == (None if verb[0] == "sql" else 78)
    said = [line for line in done.stderr.splitlines() if line.startswith("kraftlake")]
    assert said == [
        f"kraftlake {verb[0]}: JAVA_HOME is /nowhere, which has no bin/java: Spark needs Java 17 or "
        "later; install one, and set JAVA_HOME to its folder"
    ]
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


# --- a folder that cannot be written ---


def ended(words: list[object]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a verb, in a process that may be a fork."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def test_a_lake_where_none_may_be_written():
    with public_folder() as folder:
        lake = folder / "lake"

        def made() -> tuple[int, str]:
            try:
                prepare_lake(lake)
            except NoLakeError as error:
                failure = failure_of(error, lake)
                return (0, "") if failure is None else (int(failure.exit_code), str(failure))
            return 0, ""

        assert unprivileged(made) == (78, f"permission denied for {lake}: run as the user that owns it")


def test_a_page_where_none_may_be_written_is_refused_before_anything_is_read():
    with public_folder() as folder:
        shutil.copytree(NODE, folder / "node-1")
        (folder / "lakes").mkdir()
        (folder / "lakes").chmod(0o777)
        words = ["run", "--captures", folder / "node-1", "--lake", folder / "lakes/lake", "--dry-run"]
        assert unprivileged(lambda: ended(words))[0] == 0
        page = ["--report", folder / "pages/page.html"]
        code, out, err = unprivileged(lambda: ended([*words, *page]))
        assert (code, out) == (78, "")
        assert err == f"kraftlake run: permission denied for {folder}: run as the user that owns it\n"


def delta_error(path: Path) -> BaseException:
    """What delta-rs raises when it writes a table there."""
    try:
        write_deltalake(str(path), pa.table({"x": [os.urandom(8).hex() for _ in range(40_000)]}))
    except BaseException as error:
        return error
    raise AssertionError("it was written")


def test_delta_rs_may_not_write():
    with public_folder() as folder:
        text = unprivileged(lambda: str(failure_of(delta_error(folder / "t"), folder)))
        assert text == f"permission denied for {folder}: run as the user that owns it"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root can mount one")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk(small_disk):
    failure = failure_of(delta_error(small_disk / "t"), small_disk)
    assert failure is not None
    assert failure.exit_code == ExitCode.TRY_AGAIN
    assert str(failure) == f"no space left to write {small_disk}: free some, then run the same command again"


def test_a_copy_to_a_full_disk(small_disk):
    code, out, err = ended(["capture", NODE, "--to", small_disk / "to"])
    assert (code, out) == (75, "")
    assert re.fullmatch(
        r"kraftlake capture: no space left to write .+: free some, then run the same command again\n", err
    )
    assert [path for path in small_disk.rglob("*") if path.is_file()] == []


def test_a_read_only_disk(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    failure = failure_of(delta_error(small_disk / "t"), small_disk)
    assert failure is not None
    assert failure.exit_code == ExitCode.ENVIRONMENT
    assert str(failure) == f"{small_disk} is on a read-only file system: mount it writable"
    code, _, err = ended(["run", "--captures", NODE, "--lake", small_disk / "lake"])
    assert code == 78
    assert err.endswith("is on a read-only file system: mount it writable\n")


def test_a_lake_on_a_read_only_disk_is_refused_before_spark_starts(small_disk):
    prepare_lake(small_disk / "lake")
    must_be_writable(small_disk / "lake")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = kraftlake("derive", "--lake", small_disk / "lake")
    assert done.returncode == 78
    assert done.stderr == (
        f"kraftlake derive: {small_disk}/lake is on a read-only file system: mount it writable\n"
    )


def test_a_lake_that_another_user_owns_is_refused():
    with public_folder() as folder:
        prepare_lake(folder / "lake")

        def refused() -> str:
            try:
                must_be_writable(folder / "lake")
            except Failure as failure:
                return f"{int(failure.exit_code)} {failure}"
            return ""

        assert (
            unprivileged(refused) == f"78 permission denied for {folder}/lake: run as the user that owns it"
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("format_", ["jsonl", "kafka"])
def test_output_to_a_full_disk(format_):
    words = ["dump", "--format", format_, str(NODE)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jobs.cli", *words],
            cwd=CHECKOUT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 75
    assert done.stderr == (
        "kraftlake dump: no space left to write the output: free some, then run the same command again\n"
    )


def test_a_metrics_file_on_a_full_disk(small_disk):
    with pytest.raises(Failure) as failed:
        put(small_disk / "x.prom", "x" * 400_000)
    assert failed.value.exit_code == ExitCode.TRY_AGAIN
    assert str(failed.value).startswith(f"no space left to write {small_disk}/x.prom: ")
    assert [path.name for path in small_disk.iterdir() if "x.prom" in path.name] == []


# Python would leave cut files of the modules that it compiles, for whoever imports them next.
LIMITED = """
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from jobs.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_file_that_may_not_grow(tmp_path):
    """As a quota ends it; any user can try."""
    words = ["capture", str(NODE), "--to", str(tmp_path / "to")]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *words], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 75, done.stderr
    assert "no space left to write" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# --- the JSON line ---


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["run", "--captures", "EMPTY"], 3, "no controller directory"),
        (["ingest", "--captures", "NOWHERE"], 2, "does not exist"),
        (["derive"], 2, "is not a lake"),
        (["validate"], 2, "is not a lake"),
        (["maintain"], 2, "is not a lake"),
        (["forget", "--cluster", "c"], 2, "is not a lake"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_a_job_that_fails_says_how_on_its_last_line(tmp_path, words, code, error):
    """On stdout, and in the log, as a job that ends well does."""
    (tmp_path / "empty").mkdir()
    named = {"EMPTY": tmp_path / "empty", "NOWHERE": tmp_path / "nowhere"}
    log = tmp_path / "log.jsonl"
    words = [*(named.get(word, word) for word in words), "--lake", tmp_path / "lake", "--log", log]
    ended_with, out, err = ended(words)
    assert ended_with == code
    (line,) = out.splitlines()
    report = json.loads(line)
    assert (report["job"], report["exit_code"]) == (words[0], code)
    assert error in report["error"]
    assert report["error"] in err
    logged = json.loads(log.read_text().splitlines()[-1])
    assert (logged["event"], logged["exit_code"], logged["run_id"]) == ("ended", code, report["run_id"])


def test_what_is_no_job_has_no_such_line(tmp_path):
    for words in (
        ["sql", "SELECT 1", "--lake", tmp_path],
        ["metrics", "--lake", tmp_path],
        ["run", "--captures", tmp_path / "nowhere", "--lake", tmp_path / "lake", "--dry-run"],
    ):
        code, out, _ = ended(words)
        assert (code, out) == (2, ""), words


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_line_that_nobody_takes_does_not_change_the_code(tmp_path):
    words = ["derive", "--lake", str(tmp_path)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jobs.cli", *words],
            cwd=CHECKOUT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


# --- everything else ---


def test_what_led_to_an_error_explains_it():
    error = RuntimeError("while committing")
    error.__cause__ = OSError(28, "No space left on device", "/data/x")
    assert str(failure_of(error, None)).startswith("no space left to write /data/x: ")
    assert exit_code_of(error, None) == ExitCode.TRY_AGAIN


def failed_when_interrupted() -> RuntimeError:
    """As of PySpark, which asks the JVM for the result of a query even where Ctrl-C has just ended it."""
    error = RuntimeError("An error occurred while calling o235.getResult.")
    error.__context__ = KeyboardInterrupt()
    return error


def test_what_fails_after_ctrl_c_is_no_error_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr("jobs.version.run", Mock(side_effect=failed_when_interrupted()))
    assert main(["version"]) == 130
    assert capsys.readouterr().err == "kraftlake version: interrupted\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (failed_when_interrupted(), 130),
        (MemoryError(), 75),
        (ConnectionRefusedError(111, "Connection refused"), 75),
        (OSError("Generic S3 error: Error performing PUT"), 75),
        (Failure("no such lake"), 2),
        (ValueError("no cause that is known"), 70),
        (
            RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."),
            78,
        ),
    ],
)
def test_the_code_that_a_run_records(error, code):
    assert exit_code_of(error, None) == code


def test_a_lake_that_was_moved_away_meanwhile_is_no_internal_error(tmp_path, monkeypatch, capsys):
    lake = tmp_path / "lake"
    lost = FileNotFoundError(2, "No such file or directory", str(lake / "records"))
    monkeypatch.setattr("jobs.metrics.run", Mock(side_effect=lost))
    assert main(["metrics", "--lake", str(lake)]) == 75
    assert f"{lake} was moved or deleted while it was in use: run the same command" in capsys.readouterr().err
    monkeypatch.setattr("jobs.metrics.run", Mock(side_effect=ValueError("no cause that is known")))
    assert main(["metrics", "--lake", str(lake)]) == 70


def test_an_internal_error_is_one_line(capsys, monkeypatch):
    failure = internal(ValueError("two\nlines"))
    assert failure.exit_code == 70
    assert str(failure) == (
        "internal error, please report it: ValueError: two (KRAFTLAKE_TRACEBACK=1 shows where)"
    )
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("KRAFTLAKE_TRACEBACK", "1")
    internal(ValueError("two"))
    assert "ValueError: two" in capsys.readouterr().err


@pytest.mark.parametrize("times", [1, 2, 3])
def test_ctrl_c_however_often(tmp_path, times):
    """Of a verb whose reader does not read on: it is busy until it is interrupted."""
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes((NODE / "__cluster_metadata-0" / log.name).read_bytes())
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs.cli", "dump", str(log)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == "{"
    time.sleep(0.3)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert process.wait(20) == 130
    assert process.stderr is not None
    assert process.stderr.read() == "kraftlake dump: interrupted\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (OSError(28, "No space left on device"), 75),
        (Failure("nothing to do", ExitCode.NOTHING_READABLE), 3),
        (ValueError("no cause that is known"), 70),
    ],
)
def test_a_run_records_the_code_that_its_error_is(tmp_path, error, code):
    """Its lease is not given back: a write may be under way."""
    lake = tmp_path / "lake"
    prepare_lake(lake)
    TableWriter(lake, None).create(RUNS)
    record = RunRecord("run", Progress())
    with pytest.raises(type(error)), held_lease(lake, record, 0, lambda _: None):
        raise error
    (row,) = rows_with(lake, RUNS)
    assert (row["run_id"], row["exit_code"]) == (record.run_id, code)
    assert row["finished_at"] is not None
    with held_lease(lake, RunRecord("run", Progress()), 0, lambda _: None) as lease:
        lease.end(0)
    assert sorted(row["exit_code"] for row in rows_with(lake, RUNS)) == sorted([0, code])
