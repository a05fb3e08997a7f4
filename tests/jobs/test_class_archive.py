"""Spark's JVM: started as Spark's launcher would, with the class archive, or without where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.runtime import class_archive
from jobs.runtime.class_archive import archive_of, failed, folder, make, options_of
from jobs.runtime.java import java_of
from jobs.runtime.outcome import Failure
from jobs.runtime.session import local_command, settings_in_force
from jobs.runtime.spark_jvm import MODULE_OPTIONS, JavaCommand, needs_submit, spark_home

CHECKOUT = Path(__file__).parents[2]
SESSION = """
import sys
from jobs.runtime.session import open_session
own = {"spark.driver.extraJavaOptions": " ".join(sys.argv[1:])}
spark = open_session("local[1]", quick=True, own=own)
print(spark.sql("SELECT COUNT(*) FROM RANGE(7)").first()[0])
"""


def session(*options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A session in a process of its own that prints 7. options: of its JVM."""
    return subprocess.run(
        [sys.executable, "-c", SESSION, *options],
        cwd=CHECKOUT,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def command() -> JavaCommand:
    """The command of a short job."""
    options = settings_in_force({})["spark.kraftlake.quickJavaOptions"]
    return local_command(java_of(), {"spark.driver.extraJavaOptions": options})


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No folder for archives can be made: neither in the environment nor in the user's cache."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, where a folder would be needed")
    monkeypatch.setattr(sys, "prefix", str(blocked / "environment"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    return blocked


def test_a_session_takes_sparks_classes_from_the_archive(command: JavaCommand, tmp_path: Path) -> None:
    assert options_of(command), failed(archive_of(command))
    log = tmp_path / "classes.log"
    done = session(f"-Xlog:class+load:file={log}")
    assert done.stdout == "7\n", done.stderr
    lines = [line for line in log.read_text().splitlines() if " org.apache.spark." in line]
    assert not [line for line in lines if " org.apache.spark.ml." in line]
    loaded = [line for line in lines if "$$Lambda" not in line]  # made while it runs
    archived = [line for line in loaded if line.endswith("source: shared objects file (top)")]
    assert len(archived) > 0.8 * len(loaded) > 1000


def test_a_jvm_started_directly_has_what_sparks_launcher_passes() -> None:
    home = spark_home()
    jars, launcher = home / "jars" / "*", "org.apache.spark.launcher.Main"
    words = [java_of(), "-cp", jars, launcher, "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    asked = subprocess.run(
        list(map(str, words)),
        env=os.environ | {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        text=True,
        check=True,
    )
    passed = {word for word in asked.stdout.split("\0") if word.startswith("-")} - {"-cp"}
    left_out = {"--add-modules=jdk.incubator.vector", "-Dderby.connection.requireAuthentication=false"}
    assert passed - {"-Xmx1g"} - left_out == set(MODULE_OPTIONS)


@pytest.mark.parametrize(
    ("master", "own", "environ", "why"),
    [
        ("local[*]", {"spark.driver.memory": "4g"}, {}, None),
        ("spark://host:7077", {}, {}, "the master is spark://host:7077"),
        ("local[2]", {"spark.jars.packages": "a:b:1"}, {}, "spark.jars.packages is set"),
        ("local[2]", {}, {"SPARK_CONF_DIR": "/etc/spark"}, "SPARK_CONF_DIR is set"),
    ],
)
def test_what_only_spark_submit_heeds_is_left_to_it(
    master: str, own: dict[str, str], environ: dict[str, str], why: str | None
) -> None:
    assert needs_submit(master, own, environ) == why


def test_another_java_or_another_jar_has_another_archive(command: JavaCommand, tmp_path: Path) -> None:
    assert archive_of(command) == archive_of(command)
    jar = tmp_path / "other.jar"
    jar.write_bytes(b"")
    with_jar = JavaCommand(command.java, command.options, (*command.class_path, jar))
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("")
    other_java = JavaCommand(java, command.options, command.class_path)
    assert len({archive_of(each) for each in (command, with_jar, other_java)}) == 3
    os.utime(jar, (1, 1))
    assert archive_of(with_jar) != archive_of(command)


@pytest.mark.long
def test_where_it_cannot_be_made_nothing_breaks(command: JavaCommand, read_only: Path) -> None:
    said: list[str] = []
    assert options_of(command, said.append) == ()
    assert len(said) == 1
    done = session(XDG_CACHE_HOME=str(read_only))
    assert done.stdout == "7\n", done.stderr


def test_a_failure_is_noted_and_not_repeated(
    command: JavaCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(class_archive, "TRAINING", "no.such.module")
    said: list[str] = []
    assert options_of(command, said.append) == options_of(command, said.append) == ()
    assert len(said) == 1
    assert "no.such" in (failed(archive_of(command)) or "")
    with pytest.raises(Failure, match=r"^no archive of Spark's classes: .*no\.such"):
        make(archive_of(command))
    assert list(folder().glob("*.jsa")) == []


@pytest.mark.long
@pytest.mark.parametrize("option", ["-Xshare:off", "-XX:+UseG1GC"])
def test_options_for_every_java_are_heeded(option: str) -> None:
    done = session(JAVA_TOOL_OPTIONS=option)
    assert done.stdout == "7\n", done.stderr


@pytest.mark.long
def test_an_archive_of_another_kind_is_ignored(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsa"
    wrong.write_bytes(b"no archive")
    done = session(f"-XX:SharedArchiveFile={wrong}", "-Xshare:auto")
    assert done.stdout == "7\n", done.stderr


@pytest.mark.long
def test_the_heap_of_a_process_that_mostly_waits_stays_small() -> None:
    """It may grow as far as that of others, but does not take it all before it collects."""
    asked = SESSION.replace("quick=True, own=own", "resident=True").replace("local[1]", "local[2]")
    heap = "spark._jvm.java.lang.Runtime.getRuntime()"
    asked += f"print({heap}.totalMemory() >> 20, {heap}.maxMemory() >> 20)"
    done = subprocess.run(
        [sys.executable, "-c", asked], cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False
    )
    counted, heap_mb = done.stdout.splitlines()
    assert counted == "7", done.stderr
    taken, most = map(int, heap_mb.split())
    assert taken < 200
    assert most > 1900


@pytest.mark.long
def test_a_full_session_leaves_nothing_to_later_ones() -> None:
    """What Spark's launcher is told would keep a short job's JVM from the archive."""
    asked = SESSION.replace("quick=True, ", "") + "import os; print(os.environ.get('SPARK_CONF_DIR'))"
    done = subprocess.run(
        [sys.executable, "-c", asked, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "7\nNone\n", done.stderr
