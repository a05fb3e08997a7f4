"""--catalog and --database: a lake in a Hive metastore, asked by a Spark that knows nothing of Kraftlake.

The metastore is a real one, a process of its own over a database on disk.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from jobs.runtime.jars import jars, jars_of
from tests.long.processes import CHECKOUT, LONGEST, Started, run
from tests.long.s3proxy import REGION, S3Server
from transforms.lake.delta_rs import count_rows, rows_with
from transforms.lake.storage.location import StoreUrl
from transforms.lake.tables import CAPTURES, VOTER_SETS

SPARK = Path(pyspark.__file__).parent
METASTORE = "org.apache.hadoop.hive.metastore.HiveMetaStore"
MINI = "roWi3HLRRCuDirielH5nnw"
# Statements from stdin, a line each; the rows of each as a line of JSON, apart from what the JVM prints. What
# a session has looked up before it may remember, so each statement has its own.
PLAIN = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").enableHiveSupport()
for setting, value in json.loads(sys.argv[1]).items():
    builder = builder.config(setting, value)
spark = builder.getOrCreate()
assert "jobs" not in sys.modules and "dashboards" not in sys.modules
for line in sys.stdin:
    rows = spark.newSession().sql(line).collect()
    print(json.dumps([list(row) for row in rows], default=str), file=answers, flush=True)
"""


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[str]:
    """The address of a Hive metastore on loopback."""
    with started_metastore(tmp_path / "metastore", {}, ()) as address:
        yield address


@contextmanager
def started_metastore(folder: Path, more: dict[str, str], classpath: Sequence[Path]) -> Iterator[str]:
    """A metastore with further settings and jars. Yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.async.log.enabled": "false",
        **more,
    }
    given = [word for name, value in settings.items() for word in ("--hiveconf", f"{name}={value}")]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [SPARK / "bin/spark-class", METASTORE, "-p", str(port), *given],
            cwd=folder,
            env=os.environ
            | {"SPARK_HOME": str(SPARK), "SPARK_DIST_CLASSPATH": ":".join(map(str, classpath))},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    give_up = time.monotonic() + 300
    while not answers(port):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < give_up, log.read_text()
        time.sleep(0.2)
    yield f"thrift://127.0.0.1:{port}"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Plain:
    """A process of plain PySpark with Delta and the metastore, far from the checkout."""

    def __init__(
        self, folder: Path, metastore: str, more: dict[str, str] | None = None, classpath: Sequence[Path] = ()
    ) -> None:
        folder.mkdir()
        settings = {
            **(more or {}),
            "spark.jars": ",".join(map(str, [*jars(), *classpath])),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.hive.metastore.uris": metastore,
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
        }
        self.log = folder / "log"
        with self.log.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PLAIN, json.dumps(settings)],
                cwd=folder,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    def asked(self, statement: str) -> list[list[Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statement}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self.log.read_text()
        return json.loads(answer)

    def end(self) -> None:
        self._process.communicate(timeout=LONGEST)


@pytest.fixture
def plain(tmp_path: Path, metastore: str) -> Iterator[Plain]:
    started = Plain(tmp_path / "plain", metastore)
    yield started
    started.end()


@pytest.mark.long
def test_a_lake_on_s3(s3: S3Server, golden: Path, tmp_path: Path) -> None:
    """A run registers it, and plain Spark with the connector sees a table, a view and a function."""
    defaults = (line.split(None, 1) for line in (CHECKOUT / "spark-defaults.conf").read_text().splitlines())
    settings = {words[0]: words[1] for words in defaults if len(words) == 2}
    excluded = {"spark.jars.excludes": settings["spark.kraftlake.s3aExcludes"]}
    connector = jars_of(settings["spark.kraftlake.s3aPackages"], settings | excluded)
    name = "fs.s3a.aws.credentials.provider"
    hadoop = {
        "fs.s3a.endpoint": s3.environment["AWS_ENDPOINT_URL"],
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.path.style.access": "true",
        name: settings[f"spark.hadoop.{name}"],
    }
    spark = {f"spark.hadoop.{setting}": value for setting, value in hadoop.items()}
    lake = StoreUrl("bucket", "lake")
    with started_metastore(tmp_path / "metastore", hadoop, connector) as metastore:
        config = tmp_path / "kraftlake.toml"
        config.write_text(
            'catalog = "spark_catalog"\ndatabase = "quorums"\n[spark]\n'
            '"spark.sql.catalogImplementation" = "hive"\n'
            f'"spark.hive.metastore.uris" = "{metastore}"\n'
        )
        done = run(tmp_path / "run", lake, [golden / "v4.4.0-mini"], "--config", config)
        assert done.ended() == 0, done.err.read_text()
        plain = Plain(tmp_path / "plain", metastore, spark, connector)
        captures, sets = count_rows(lake, CAPTURES), count_rows(lake, VOTER_SETS)
        assert plain.asked("SELECT count(*) FROM spark_catalog.quorums.captures") == [[captures]]
        assert plain.asked("SELECT count(*) FROM spark_catalog.quorums.voter_history") == [[sets]]
        stood = f"SELECT count(*) FROM spark_catalog.quorums.brokers_as_of('{MINI}', 1000)"
        assert plain.asked(stood) == plain.asked("SELECT count(*) FROM spark_catalog.quorums.brokers_now")
        plain.end()


@pytest.mark.long
def test_a_lake_in_a_metastore(metastore: str, plain: Plain, golden: Path, tmp_path: Path) -> None:
    """A run registers it, later ones need not; a moved lake is registered again, another one is refused."""
    config, lake = tmp_path / "kraftlake.toml", tmp_path / "lake"
    config.write_text(
        'catalog = "spark_catalog"\ndatabase = "quorums"\n[spark]\n'
        '"spark.sql.catalogImplementation" = "hive"\n'
        f'"spark.hive.metastore.uris" = "{metastore}"\n'
    )
    calls = iter(range(9))

    def kraftlake(*words: str | Path) -> Started:
        call = Started(tmp_path / f"call-{next(calls)}", *words, "--config", config)
        call.ended()
        return call

    def run(*captures: Path) -> dict[str, Any]:
        done = kraftlake("run", "--lake", lake, "--fail-on", "never", "--captures", *captures)
        assert done.ended() == 0, done.err.read_text()
        return json.loads(done.out.read_text().splitlines()[-1])

    def is_shown(path: Path) -> None:
        """Plain Spark sees what lies in the folder: by a table, a view and a function."""
        assert plain.asked("SELECT lake FROM spark_catalog.quorums.registration") == [[str(path)]]
        sets = rows_with(path, VOTER_SETS, ["cluster_id", "offset", "voter_ids", "commit_status"])
        wanted = sorted(([*row.values()] for row in sets), key=str)
        columns = "cluster_id, `offset`, voter_ids, commit_status"
        for name in ("voter_sets", "voter_history"):
            found = plain.asked(f"SELECT {columns} FROM spark_catalog.quorums.{name}")
            assert sorted(found, key=str) == wanted
        stood = f"SELECT count(*) FROM spark_catalog.quorums.brokers_as_of('{MINI}', 1000)"
        assert plain.asked(stood) == plain.asked("SELECT count(*) FROM spark_catalog.quorums.brokers_now")

    first = run(golden / "v4.4.0-mini/node-1")
    assert "register" in first["stage_seconds"]
    print("registered in", first["stage_seconds"]["register"], "s")
    is_shown(lake)

    second = run(golden / "v4.4.0-mini")
    print("looked at in", second["stage_seconds"]["register"], "s")
    assert second["captures_read"] > 0
    assert plain.asked("SELECT count(*) FROM spark_catalog.quorums.captures") == [
        [count_rows(lake, CAPTURES, cluster_id=[MINI])]
    ]
    unchanged = run(golden / "v4.4.0-mini")
    assert unchanged["captures_read"] == 0

    other = tmp_path / "other"
    shutil.copytree(lake, other)
    refused = kraftlake("sql", "SELECT 1", "--lake", other)
    assert refused.ended() == 2
    assert f"`spark_catalog`.`quorums` shows the lake {lake}: choose another" in refused.err.read_text()
    shutil.rmtree(lake)
    assert kraftlake("sql", "SELECT 1", "--lake", other).ended() == 0
    is_shown(other)
    foreign = kraftlake("sql", "SELECT 1", "--lake", other, "--database", "nowhere", "--catalog", "nothing")
    assert foreign.ended() == 2
    assert "nothing" in foreign.err.read_text()
