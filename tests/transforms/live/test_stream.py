"""The stream reader by the calls that Spark makes, against simulated quorums on loopback."""

from __future__ import annotations

import json
import pickle
import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from kraft_core.simulation.actions import Crash, Elapse, SnapshotLog, Start, Write
from kraft_core.simulation.quorum import SimulatedQuorum
from tests.kraft_core.wire.test_follower import committed, formatted_anew, snapshotted, started
from tests.transforms.live.loopback import LoopbackQuorum, controllers, loopback
from transforms.live.kraft import KraftSource
from transforms.live.options import live_options
from transforms.live.stream import KraftStreamReader
from transforms.source.errors import SourceError


def opened(held: LoopbackQuorum, **options: str) -> KraftStreamReader:
    source = KraftSource({"bootstrap.controllers": controllers(held), **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, KraftStreamReader)
    return reader


def rows(reader: KraftStreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    """As Spark reads a batch: partitions and the reader reach the tasks as bytes."""
    task = pickle.loads(pickle.dumps(reader))
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(start, end)]
    return [row for part in parts for batch in task.read(part) for row in batch.to_pylist()]


def advanced(reader: KraftStreamReader, at: Any, limit: int = 5000) -> Any:
    """The end of the next trigger that has something; on a busy machine a trigger may have nothing."""
    for _ in range(30):
        end = checkpointed(reader.latestOffset(at, ReadMaxRows(limit)))
        if end != at:
            return end
    raise AssertionError(f"nothing after {at}")


def checkpointed(offset: Any) -> Any:
    return json.loads(json.dumps(offset))


def offsets(found: list[dict[str, Any]]) -> list[int]:
    return [row["offset"] for row in found if row["source"] == "log"]


def expected(quorum: SimulatedQuorum) -> list[int]:
    return [offset for base, end, _ in committed(quorum) for offset in range(base, end)]


def test_triggers_read_everything_once_however_they_are_cut() -> None:
    quorum = started()
    with loopback(quorum) as held:
        reader = opened(held, maxOffsetsPerTrigger="7")
        at = checkpointed(reader.initialOffset())
        found = []
        for _ in range(40):
            end = checkpointed(reader.latestOffset(at, reader.getDefaultReadLimit()))
            batch = rows(reader, at, end)
            assert rows(reader, at, end) == batch
            found += batch
            at = end
        assert offsets(found) == expected(quorum)
        assert {row["cluster_id"] for row in found} == {quorum.setup.cluster_id}
        assert at["cluster"]["offset"] == expected(quorum)[-1] + 1
        assert checkpointed(reader.latestOffset(at, ReadAllAvailable())) == at
        with held.lock:
            quorum.act(Write(2))
            quorum.act(Elapse(300))
        end = reader.latestOffset(at, ReadAllAvailable())
        found += rows(reader, at, end)
        assert offsets(found) == expected(quorum)
        reader.stop()


@pytest.mark.parametrize("seed", [3, pytest.param(11, marks=pytest.mark.long)])
def test_a_query_that_is_killed_anywhere_goes_on_without_loss(seed: int) -> None:
    """A batch whose end is in the checkpoint is read again, by a process that never saw it."""
    quorum, drawn = started(seed), random.Random(seed)
    with loopback(quorum) as held:
        reader = opened(held, maxOffsetsPerTrigger="9")
        at = checkpointed(reader.initialOffset())
        kept: dict[str, list[dict[str, Any]]] = {}
        for step in range(30):
            end = checkpointed(reader.latestOffset(at, ReadMaxRows(9)))
            moment = drawn.randrange(4)
            if moment == 0:
                reader.stop()
                reader = opened(held, maxOffsetsPerTrigger="9")
            batch = rows(reader, at, end)
            if moment == 1:
                reader.stop()
                reader = opened(held)
                assert rows(reader, at, end) == batch
            kept[str(at)] = batch
            at = end
            with held.lock:
                if step % 10 == 5:
                    quorum.act(Crash(quorum.leader().key.id - 1, 100))
                quorum.act(Write(1))
                quorum.act(Elapse(700))
                quorum.act(Start(0))
                quorum.act(Elapse(300))
        at_end = checkpointed(reader.latestOffset(at, ReadAllAvailable()))
        batch = rows(reader, at, at_end)
        found = [offset for each in (*kept.values(), batch) for offset in offsets(each)]
        assert quorum.failure is None
        assert found == expected(quorum)
        reader.stop()


def test_a_log_that_begins_later_comes_after_its_snapshot() -> None:
    quorum = snapshotted()
    with loopback(quorum) as held:
        reader = opened(held)
        at = reader.initialOffset()
        end = advanced(reader, at)
        found = rows(reader, at, end)
        snapshot = [row for row in found if row["source"] == "snapshot"]
        last = quorum.leader().log.latest_snapshot
        assert {row["type"] for row in snapshot} >= {"SnapshotHeader", "SnapshotFooter"}
        assert {(row["offset"], row["leader_epoch"]) for row in snapshot} == {
            (last.end_offset - 1, last.leader_epoch)
        }
        assert offsets(found) == expected(quorum)
        reader.stop()


def test_a_snapshot_s_batch_is_run_again_with_a_newer_one() -> None:
    """The log begins later than when the batch was planned, but not later than the first snapshot ended."""
    quorum = snapshotted()
    with loopback(quorum) as held:
        reader = opened(held)
        at = checkpointed(reader.initialOffset())
        planned = advanced(reader, at, 1)
        reader.stop()
        assert planned["cluster"]["offset"] == expected(quorum)[0] <= planned["cluster"]["snapshotEnd"]
        planned["cluster"]["offset"] -= 3
        reader = opened(held)
        assert {row["source"] for row in rows(reader, at, planned)} == {"snapshot"}
        end = advanced(reader, planned)
        assert offsets(rows(reader, planned, end)) == expected(quorum)
        reader.stop()
        # Another process goes on from there.
        assert offsets(rows(opened(held), planned, end)) == expected(quorum)
        planned["cluster"]["snapshotEnd"] -= 1
        with pytest.raises(SourceError, match=r"replaced by a snapshot"):
            rows(opened(held), at, planned)


def test_records_that_went_end_the_query_unless_loss_is_allowed() -> None:
    quorum = started()
    with loopback(quorum) as held:
        reader = opened(held)
        at = advanced(reader, reader.initialOffset(), 5)
        reader.stop()
        with held.lock:
            for node in range(3):
                quorum.act(SnapshotLog(node, delete_older=True))
            quorum.act(Write(1))
            quorum.act(Elapse(300))
        with pytest.raises(SourceError, match=r"replaced by a snapshot .* failOnDataLoss"):
            advanced(opened(held), at)
        reader = opened(held, failOnDataLoss="false")
        end = advanced(reader, at)
        found = rows(reader, at, end)
        assert {row["source"] for row in found} == {"snapshot", "log"}
        assert offsets(found) == expected(quorum)
        reader.stop()


def test_latest_begins_at_one_place_however_often_it_is_asked() -> None:
    """A first batch that is run again, by a process that finds a later latest, loses nothing after it."""
    quorum = started()
    with loopback(quorum) as held:
        reader = opened(held, startingOffsets="latest")
        start = checkpointed(reader.initialOffset())
        end = advanced(reader, start)
        begun = len(expected(quorum))
        assert end["cluster"]["offset"] == begun
        assert rows(reader, start, end) == []
        reader.stop()
        with held.lock:
            quorum.act(Write(3))
            quorum.act(Elapse(300))
        reader = opened(held, startingOffsets="latest")
        assert checkpointed(reader.initialOffset()) == start
        assert rows(reader, start, end) == []
        after = advanced(reader, end)
        assert offsets(rows(reader, end, after)) == expected(quorum)[begun:]
        reader.stop()


@pytest.mark.parametrize("start", [{"cluster": {"at": "earliest"}}, None])
def test_a_batch_whose_records_went_before_it_was_read_again(start: Any) -> None:
    quorum = started()
    with loopback(quorum) as held:
        reader = opened(held)
        if start is None:
            start = advanced(reader, reader.initialOffset(), 5)
        end = advanced(reader, start, 5)
        assert rows(reader, start, end)
        reader.stop()
        with held.lock:
            quorum.act(Write(5))
            quorum.act(Elapse(300))
            for node in range(3):
                quorum.act(SnapshotLog(node, delete_older=True))
            quorum.act(Write(1))
            quorum.act(Elapse(300))
        with pytest.raises(SourceError, match=r"replaced by a snapshot .* failOnDataLoss"):
            rows(opened(held), start, end)
        reader = opened(held, failOnDataLoss="false")
        assert rows(reader, start, end) == []
        found = rows(reader, end, advanced(reader, end))
        assert {row["source"] for row in found} == {"snapshot", "log"}
        assert offsets(found) == expected(quorum)
        reader.stop()


def test_available_now_ends_at_what_was_committed_then() -> None:
    quorum = started()
    with loopback(quorum) as held:
        reader = opened(held, maxOffsetsPerTrigger="6")
        reader.prepareForTriggerAvailableNow()
        wanted = expected(quorum)
        with held.lock:
            quorum.act(Write(5))
            quorum.act(Elapse(300))
        at, found = reader.initialOffset(), []
        while True:
            end = checkpointed(reader.latestOffset(at, reader.getDefaultReadLimit()))
            if end == at:
                break
            found += rows(reader, at, end)
            at = end
        assert offsets(found) == wanted
        reader.stop()


def test_the_clusters_of_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "kraftlake.toml"
    quorums = [started(seed) for seed in (1, 2)]
    with loopback(quorums[0]) as one, loopback(quorums[1]) as other:
        sections = [
            f'[clusters.{name}]\nid = "{held.quorum.setup.cluster_id}"\n'
            f'bootstrap_controllers = "{controllers(held)}"\n'
            for name, held in (("one", one), ("other", other))
        ]
        file.write_text("".join([*sections, '[clusters.captured]\nid = "a"\n']))
        source = KraftSource({"clusters": str(file)})
        reader: Any = source.streamReader(source.schema())
        at = checkpointed(reader.initialOffset())
        assert set(at) == {"one", "other"}
        found = rows(reader, at, checkpointed(reader.latestOffset(at, ReadMaxRows(5000))))
    for quorum in quorums:
        of_cluster = [row for row in found if row["cluster_id"] == quorum.setup.cluster_id]
        assert offsets(of_cluster) == expected(quorum)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "kraftlake.toml cannot be read: "),
        ("[clusters", "kraftlake.toml cannot be read: "),
        ("clusters = 3", "no section [clusters.NAME] has bootstrap_controllers"),
        ('[clusters.a]\nid = "a"\n', "no section [clusters.NAME] has bootstrap_controllers"),
    ],
)
def test_a_settings_file_without_clusters(content: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "kraftlake.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SourceError, match=re.escape(words)):
        live_options({"clusters": str(file)})


def test_many_clusters_in_one_query_and_one_that_is_away() -> None:
    quorums = [started(seed) for seed in (1, 2)]
    with loopback(quorums[0]) as one, loopback(quorums[1]) as other:
        clusters = {
            "one": {"bootstrap.controllers": controllers(one)},
            "other": {"bootstrap.controllers": controllers(other), "startingOffsets": "latest"},
            "away": {"bootstrap.controllers": "127.0.0.1:1"},
        }
        source = KraftSource({"clusters": json.dumps(clusters)})
        reader: Any = source.streamReader(source.schema())
        at, found = checkpointed(reader.initialOffset()), []
        before: list[int] = []
        for round_ in range(6):
            end = checkpointed(reader.latestOffset(at, ReadMaxRows(5000)))
            found += rows(reader, at, end)
            at = end
            with other.lock:
                before = before if round_ else expected(quorums[1])
                quorums[1].act(Write(1))
                quorums[1].act(Elapse(300))
        by_cluster = {
            quorum.setup.cluster_id: offsets(
                [row for row in found if row["cluster_id"] == quorum.setup.cluster_id]
            )
            for quorum in quorums
        }
        assert by_cluster[quorums[0].setup.cluster_id] == expected(quorums[0])
        seen = by_cluster[quorums[1].setup.cluster_id]
        assert seen == expected(quorums[1])[len(before) :][: len(seen)]
        assert len(seen) > 2
        assert at["away"] == {"at": "earliest"}
        reader.stop()


def test_another_cluster_at_the_same_address_is_refused() -> None:
    with loopback(started()) as held:
        reader = opened(held)
        at = advanced(reader, reader.initialOffset())
        with pytest.raises(SourceError, match="use a checkpoint of its own for each cluster"):
            advanced(opened(held, clusterId="x"), at)
        reader.stop()


@pytest.mark.parametrize(
    ("without", "fetch", "said"),
    [
        ({59}, (0, 18), "it is a broker, and brokers do not serve the metadata log"),
        (set(), (0, 12), "Kafka 3.9.2"),
    ],
)
def test_a_node_that_does_not_serve_the_log(without: set[int], fetch: tuple[int, int], said: str) -> None:
    with loopback(started()) as held:
        held.without, held.fetch_versions = without, fetch
        reader = opened(held)
        with pytest.raises(SourceError, match=said):
            advanced(reader, reader.initialOffset())


def test_a_node_that_has_just_started_is_asked_again() -> None:
    """It does not tell the cluster's id yet; others do."""
    quorum = started()
    with loopback(quorum) as held:
        held.starting |= quorum.replicas.keys()
        reader = opened(held)
        start = checkpointed(reader.initialOffset())
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        held.starting.clear()
        end = advanced(reader, start)
        assert offsets(rows(reader, start, end)) == expected(quorum)
        reader.stop()


def test_kafka_3_9_is_asked_in_its_version() -> None:
    quorum = started()
    with loopback(quorum) as held:
        held.fetch_versions = (0, 17)
        reader = opened(held)
        end = advanced(reader, reader.initialOffset())
        assert offsets(rows(reader, reader.initialOffset(), end)) == expected(quorum)
        assert {version for name, version in held.asked if name == "Fetch"} == {17}
        reader.stop()


def test_tasks_get_no_address_and_no_password() -> None:
    secret = "s3cret-word"
    jaas = (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{secret}";'
    )
    options = {
        "bootstrap.controllers": "h1:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": jaas,
    }
    source = KraftSource(options)
    reader: Any = source.streamReader(source.schema())
    assert secret.encode() not in pickle.dumps(reader)
    assert b"h1" not in pickle.dumps(reader)
    assert secret not in repr(reader._options)


def test_a_first_batch_that_is_run_again_must_be_of_the_same_quorum() -> None:
    """A quorum that was formatted again under the same id leads in the same epoch."""
    with loopback(started()) as held:
        reader = opened(held)
        begin = reader.initialOffset()
        end = advanced(reader, begin)
        reader.stop()
    with loopback(formatted_anew()) as held:
        reader = opened(held)
        with pytest.raises(SourceError, match="lost committed records"):
            rows(reader, begin, end)
        reader.stop()
