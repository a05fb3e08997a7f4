"""format("kraft_quorum") as a stream, by the calls that Spark makes, against simulated quorums."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kraft_core.simulation.actions import Crash, Elapse
from kraft_core.simulation.directories import START_TIME
from kraft_core.wire.apis import FETCH, FETCH_SNAPSHOT
from tests.kraft_core.wire.test_follower import started
from tests.transforms.live.loopback import LoopbackQuorum, controllers, loopback
from transforms.lake.arrow_rows import moment
from transforms.live import quorum as module
from transforms.live.quorum import KraftQuorumSource, QuorumStreamReader
from transforms.source.errors import SourceError


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_INTERVAL", 0.0)
    monkeypatch.setattr(module, "PATIENCE", 20.0)


def opened(**options: str) -> QuorumStreamReader:
    source = KraftQuorumSource(options)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, QuorumStreamReader)
    return reader


def of(held: LoopbackQuorum, **options: str) -> QuorumStreamReader:
    return opened(**{"bootstrap.controllers": controllers(held)}, **options)


def next_offset(reader: QuorumStreamReader, start: Any) -> Any:
    return json.loads(json.dumps(reader.latestOffset(start, ReadAllAvailable())))


def rows(reader: QuorumStreamReader, start: Any, end: Any) -> list[dict[str, Any]]:
    task = pickle.loads(pickle.dumps(reader))
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(start, end)]
    return [row for part in parts for batch in task.read(part) for row in batch.to_pylist()]


def test_a_row_a_replica_every_trigger() -> None:
    quorum = started()
    with loopback(quorum) as held:
        reader = of(held)
        first = next_offset(reader, reader.initialOffset())
        found = rows(reader, {}, first)
        leader = quorum.leader()
        ends = {node: replica.log.end_offset for node, replica in quorum.replicas.items()}
        assert {row["node_id"]: row["log_end_offset"] for row in found} == ends
        assert {row["node_id"] for row in found if row["is_voter"]} == set(leader.voters.ids)
        (own,) = (row for row in found if row["node_id"] == leader.key.id)
        assert own["directory_id"] == leader.key.directory_id
        assert (own["leader_id"], own["leader_epoch"]) == (leader.key.id, leader.epoch)
        assert own["high_watermark"] == leader.state.progress.high_watermark
        assert own["lag_records"] == 0
        assert own["last_caught_up_at"] == moment(START_TIME + quorum.now)
        assert [end["port"] for end in own["listeners"]] == [leader.endpoints[0].port]
        assert {row["cluster_id"] for row in found} == {quorum.setup.cluster_id}
        assert {row["error"] for row in found} == {None}
        second = next_offset(reader, first)
        assert second != first
        assert len(rows(reader, first, second)) == len(found)
        # A batch that is run again, by another process, has the same rows.
        assert rows(of(held), {}, first) == found
        reader.stop()


def test_a_quorum_without_a_leader_is_a_row_that_says_so() -> None:
    quorum = started()
    with loopback(quorum) as held:
        reader = of(held)
        first = next_offset(reader, {})
        with held.lock:
            quorum.act(Crash(quorum.leader().key.id - 1, 100))
        second = next_offset(reader, first)
        (row,) = rows(reader, first, second)
        assert "no leader answers" in row["error"]
        assert "is not the leader" in row["error"]
        assert {row[name] for name in ("leader_id", "leader_epoch", "high_watermark", "node_id")} == {None}
        with held.lock:
            quorum.act(Elapse(8000))
        third = next_offset(reader, second)
        assert {row["error"] for row in rows(reader, second, third)} == {None}
        reader.stop()


def test_a_node_that_has_just_started_tells_all_but_the_id() -> None:
    quorum = started()
    with loopback(quorum) as held:
        held.starting |= quorum.replicas.keys()
        reader = of(held)
        first = next_offset(reader, {})
        found = rows(reader, {}, first)
        assert {(row["cluster_id"], row["error"]) for row in found} == {(None, None)}
        held.starting.clear()
        second = next_offset(reader, first)
        assert {row["cluster_id"] for row in rows(reader, first, second)} == {quorum.setup.cluster_id}
        reader.stop()


def test_available_now_is_one_sample() -> None:
    with loopback(started()) as held:
        reader = of(held)
        reader.prepareForTriggerAvailableNow()
        first = next_offset(reader, {})
        assert rows(reader, {}, first)
        assert next_offset(reader, first) == first
        reader.stop()


def test_one_of_many_that_is_away_costs_itself_only() -> None:
    with loopback(started()) as held:
        clusters = {
            "one": {"bootstrap.controllers": controllers(held)},
            "away": {"bootstrap.servers": "127.0.0.1:1"},
        }
        reader = opened(clusters=json.dumps(clusters))
        found = rows(reader, {}, next_offset(reader, {}))
        assert len([row for row in found if row["error"] is None]) >= 3
        (away,) = (row for row in found if row["error"] is not None)
        assert "127.0.0.1:1: Connection refused" in away["error"]
        reader.stop()


def test_what_no_stream_takes() -> None:
    with pytest.raises(SourceError, match="unknown option startingOffsets"):
        opened(**{"bootstrap.controllers": "h:1", "startingOffsets": "latest"})
    with pytest.raises(SourceError, match=r"give controllers in option bootstrap.controllers, or brokers"):
        opened(path="/backup")


@pytest.mark.parametrize("host", ["controller..example.org", "c" * 64])
def test_an_address_without_a_host_name_costs_itself_only(host: str) -> None:
    with loopback(started()) as held:
        clusters = {
            "one": {"bootstrap.controllers": controllers(held)},
            "mistyped": {"bootstrap.controllers": f"{host}:9093"},
        }
        reader = opened(clusters=json.dumps(clusters))
        found = rows(reader, {}, next_offset(reader, {}))
        (mistyped,) = (row["error"] for row in found if row["error"] is not None)
        assert f"{host}:9093: that is no host name" in mistyped
        reader.stop()


@pytest.mark.parametrize("without", [set(), {FETCH.key, FETCH_SNAPSHOT.key}])
def test_a_node_of_another_cluster_is_refused(without: set[int]) -> None:
    """A controller compares the id of a Fetch; a broker reports its own."""
    with loopback(started()) as held:
        held.without |= without
        reader = of(held, clusterId="A" * 22)
        with pytest.raises(SourceError, match="the node belongs to another cluster"):
            next_offset(reader, {})
        reader.stop()
