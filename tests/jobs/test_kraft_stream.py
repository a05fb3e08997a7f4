"""format("kraft") and format("kraft_quorum") as streams in a real session, of simulated quorums."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from kraft_core.simulation.actions import Elapse, Write
from tests.kraft_core.wire.test_follower import started
from tests.transforms.live.loopback import controllers, loopback
from tests.transforms.live.test_stream import expected
from transforms.live.options import CONTROLLERS, OF_STREAM
from transforms.live.quorum_rows import SAMPLES

PAGE = (Path(__file__).parents[2] / "docs/live.md").read_text()
README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
HOSTS = "h1:9093,h2:9093,h3:9093"


# Spark gives the process of a stream ten seconds to start, which a busy machine may exceed.
TOO_SLOW, TRIES = "Python worker failed to connect back", 10


@pytest.fixture(autouse=True)
def _few_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    """What Delta makes of a few rows is not compiled, nor told by columns: of a log these are hundreds."""
    if "spark" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("interpreted")
    conf, name = request.getfixturevalue("spark").conf, "spark.databricks.delta.stats.collect"
    conf.set(name, "false")
    yield
    conf.unset(name)


def available_now(frame: Any, out: Path) -> None:
    writer = frame.writeStream.format("delta").option("checkpointLocation", f"{out}.checkpoint")
    for left in reversed(range(TRIES)):
        try:
            writer.trigger(availableNow=True).start(str(out)).awaitTermination()
            return
        except StreamingQueryException as error:
            if not left or TOO_SLOW not in str(error):
                raise


def test_a_query_goes_on_where_the_one_before_ended(spark: Any, tmp_path: Path) -> None:
    quorum = started()
    out = tmp_path / "rows"
    with loopback(quorum) as held:
        log = spark.readStream.format("kraft").option(CONTROLLERS, controllers(held))
        log = log.option("maxOffsetsPerTrigger", "20").load()
        available_now(log, out)
        with held.lock:
            quorum.act(Write(3))
            quorum.act(Elapse(300))
        available_now(log, out)
        available_now(log, out)
        rows = spark.read.format("delta").load(str(out)).orderBy("offset").collect()
        assert [row.offset for row in rows] == expected(quorum)
        assert {row.cluster_id for row in rows} == {quorum.setup.cluster_id}
        assert {(row.file, row.position, row.node_id) for row in rows} == {(None, None, None)}


def test_a_first_batch_without_rows(spark: Any, tmp_path: Path) -> None:
    with loopback(started()) as held:
        options = {CONTROLLERS: controllers(held), "startingOffsets": "latest"}
        log = spark.readStream.format("kraft").options(**options).load()
        available_now(log, tmp_path / "rows")
        assert spark.read.format("delta").load(str(tmp_path / "rows")).count() == 0


def test_what_ends_a_query_is_one_sentence_without_the_password(spark: Any, tmp_path: Path) -> None:
    with loopback(started()) as held:
        held.without = {59}
        jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="s3c";'
        options = {CONTROLLERS: controllers(held), "kafka.sasl.jaas.config": jaas}
        log = spark.readStream.format("kraft").options(**options).load()
        with pytest.raises(StreamingQueryException, match="brokers do not serve the metadata log") as raised:
            available_now(log, tmp_path / "rows")
        assert "s3c" not in str(raised.value)
        for file in (tmp_path / "rows.checkpoint").rglob("*"):
            assert not file.is_file() or b"s3c" not in file.read_bytes()


@pytest.mark.long
def test_the_page_runs(spark: Any, tmp_path: Path) -> None:
    """Its blocks and the README's that follow a quorum, with a quorum and a folder that are there."""
    blocks = [*BLOCK.findall(PAGE), *(code for code in BLOCK.findall(README) if "readStream" in code)]
    assert len(blocks) == PAGE.count("```python") + 1 >= 4
    quorum = started()
    with loopback(quorum) as held:
        program: dict[str, Any] = {"spark": spark}
        for code in blocks:
            assert HOSTS in code
            exec(code.replace(HOSTS, controllers(held)).replace("/data/", f"{tmp_path}/"), program)
    for name in ("topics", "lag", "records"):
        assert (tmp_path / name / "_delta_log").is_dir()
    lag = spark.read.format("delta").load(str(tmp_path / "lag")).collect()
    assert {row.node_id for row in lag} == set(quorum.replicas)
    records = spark.read.format("delta").load(str(tmp_path / "records"))
    assert records.count() == len(expected(quorum))


def test_the_page_lists_the_columns_and_the_options() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([A-Z]+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert listed == [(name, type_.partition("<")[0], comment) for name, (type_, comment) in SAMPLES.items()]
    table = PAGE.partition("## Options of the log")[2].partition("\n\nA cluster that")[0]
    options = re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)
    assert sorted(options) == sorted(OF_STREAM)
