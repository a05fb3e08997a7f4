"""Spools of simulated quorums on loopback: the very batches of the leader, whatever happens to the reader."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kraft_core.findings.describe import parse_describe
from kraft_core.format.batch import read_header
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.simulation.actions import Crash, Elapse, SnapshotLog, Write
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.wire.apis import FETCH, FETCH_SNAPSHOT
from kraft_core.wire.batches import whole_batches
from tests.kraft_core.wire.test_follower import committed, formatted_anew, snapshotted, started
from tests.transforms.live.loopback import LoopbackQuorum, controllers, loopback
from transforms.live.connection import NodeConnection
from transforms.live.following import FollowedCluster, read_all
from transforms.live.options import live_options
from transforms.live.spool import Spool


def followed(held: LoopbackQuorum, root: Path) -> FollowedCluster:
    (cluster,) = live_options({"bootstrap.controllers": controllers(held)}).clusters
    return FollowedCluster(cluster, root)


def read(held: LoopbackQuorum, root: Path) -> FollowedCluster:
    """A process that reads once and ends."""
    cluster = followed(held, root)
    cluster.read(20)
    cluster.close()
    return cluster


def segments(root: Path) -> list[Path]:
    return sorted(root.glob("*/copy-*/__cluster_metadata-0/*.log"), key=lambda file: file.name)


def batches(root: Path) -> list[tuple[int, int, int]]:
    found = [batch for segment in segments(root) for batch in whole_batches(segment.read_bytes())]
    return [(batch.base_offset, batch.next_offset, batch.leader_epoch) for batch in found]


def go_on(quorum: SimulatedQuorum) -> None:
    quorum.act(Write(3))
    quorum.act(Elapse(300))


def test_what_was_read_is_gone_on_with(tmp_path: Path) -> None:
    quorum = started()
    with loopback(quorum) as held:
        assert read(held, tmp_path).refused is None
        assert batches(tmp_path) == committed(quorum)
        go_on(quorum)
        read(held, tmp_path)
        assert batches(tmp_path) == committed(quorum)
    assert [segment.name for segment in segments(tmp_path)] == ["00000000000000000000.log"]
    (directory,) = find_controller_dirs([tmp_path]).directories
    assert directory.followed
    assert directory.captured_at is not None
    assert not directory.faults


@pytest.mark.parametrize("cut", [1, 60, 100])
def test_a_torn_batch_is_read_again(cut: int, tmp_path: Path) -> None:
    quorum = started()
    with loopback(quorum) as held:
        read(held, tmp_path)
        (segment,) = segments(tmp_path)
        content = segment.read_bytes()
        segment.write_bytes(content[:-cut])
        read(held, tmp_path)
        assert segment.read_bytes() == content
        torn = bytearray(content + content[:cut])
        segment.write_bytes(torn)
        read(held, tmp_path)
        assert segment.read_bytes() == content


def test_a_damaged_batch_is_read_again_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    quorum = started()
    with loopback(quorum) as held:
        read(held, tmp_path)
        (segment,) = segments(tmp_path)
        content = segment.read_bytes()
        *_, third, second, last = whole_batches(content)
        for batch in (last, second):
            damaged = bytearray(content)
            damaged[batch.end - 1] ^= 1
            segment.write_bytes(damaged)
            read(held, tmp_path)
            assert segment.read_bytes() == content
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(": ")[0] for line in lines] == [
        f"{segment} is damaged at position {end}" for end in (second.end, third.end)
    ]
    assert f"the {len(content) - third.end} bytes from there on are read from the quorum again" in lines[1]


def test_a_damaged_copy_before_the_newest_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records behind the damage are in no other file, if the quorum has deleted them."""
    quorum = divided(tmp_path, monkeypatch)
    first, *_ = segments(tmp_path)
    damaged = bytearray(first.read_bytes())
    damaged[-1] ^= 1
    first.write_bytes(damaged)
    Spool(tmp_path, quorum.setup.cluster_id).prune(time.time() + 60, {})
    assert first.read_bytes() == damaged


def test_a_copy_without_a_batch_is_begun_again(tmp_path: Path) -> None:
    quorum = started()
    with loopback(quorum) as held:
        read(held, tmp_path)
        (segment,) = segments(tmp_path)
        segment.write_bytes(segment.read_bytes()[:10])
        (tmp_path / quorum.setup.cluster_id / ".begun").mkdir()
        read(held, tmp_path)
        assert batches(tmp_path) == committed(quorum)
    assert len(list((tmp_path / quorum.setup.cluster_id).iterdir())) == 2


def test_where_the_log_was_deleted_another_copy_begins_with_the_snapshot(tmp_path: Path) -> None:
    quorum = started()
    with loopback(quorum) as held:
        read(held, tmp_path)
        before = batches(tmp_path)
        go_on(quorum)
        quorum.act(SnapshotLog(quorum.leader().key.id - 1, delete_older=True))
        go_on(quorum)
        assert quorum.leader().log.start_offset > before[-1][1]
        read(held, tmp_path)
    first, second = segments(tmp_path)
    assert first.parent != second.parent
    later = [batch for batch in committed(quorum) if batch not in before]
    assert sorted(batches(tmp_path)) == [*before, *later]
    assert read_header(second.read_bytes(), 0).base_offset == quorum.leader().log.start_offset
    assert len(list(second.parent.glob("*.checkpoint"))) == 1


def test_a_log_that_begins_with_a_snapshot(tmp_path: Path) -> None:
    quorum = snapshotted()
    with loopback(quorum) as held:
        read(held, tmp_path)
        go_on(quorum)
        read(held, tmp_path)
    assert batches(tmp_path) == committed(quorum)
    (segment,) = segments(tmp_path)
    assert len(list(segment.parent.glob("*.checkpoint"))) == 1


def divided(root: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedQuorum:
    """A quorum of which a spool has several copies."""
    monkeypatch.setattr("transforms.live.spool.SEGMENT_BYTES", 300)
    quorum = started()
    with loopback(quorum) as held:
        for _ in range(3):
            read(held, root)
            go_on(quorum)
        read(held, root)
    return quorum


def test_long_logs_have_several_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = divided(tmp_path, monkeypatch)
    found = segments(tmp_path)
    assert len({segment.parent for segment in found}) == len(found) > 2
    assert batches(tmp_path) == committed(quorum)
    assert all(int(s.stem) == read_header(s.read_bytes(), 0).base_offset for s in found)
    directories = find_controller_dirs([tmp_path]).directories
    assert len(directories) == len(found)
    assert not [fault for directory in directories for fault in directory.faults]


def test_old_copies_go_once_they_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before, and never the newest: the spool goes on from its end."""
    quorum = divided(tmp_path, monkeypatch)
    found, cluster = segments(tmp_path), quorum.setup.cluster_id
    (directory_id,) = {
        directory.meta.directory_id
        for directory in find_controller_dirs([tmp_path]).directories
        if directory.meta is not None
    }
    held = [
        range(int(segment.stem), list(whole_batches(segment.read_bytes()))[-1].next_offset)
        for segment in found
    ]
    Spool(tmp_path, cluster).prune(0, {directory_id: held})
    Spool(tmp_path, cluster).prune(time.time() + 60, {"another": held})
    assert segments(tmp_path) == found
    partly = [held[0], held[1][:-1]]
    Spool(tmp_path, cluster).prune(time.time() + 60, {directory_id: partly})
    assert segments(tmp_path) == found[1:]
    Spool(tmp_path, cluster).prune(time.time() + 60, {directory_id: held})
    assert segments(tmp_path) == found[-1:]
    position = Spool(tmp_path, cluster).position
    assert position is not None
    assert position.offset == committed(quorum)[-1][1]
    assert not list((tmp_path / cluster).glob(".*"))


def test_samples_are_describe_outputs(tmp_path: Path) -> None:
    quorum = started()
    with loopback(quorum) as held:
        cluster = followed(held, tmp_path)
        cluster.read(20)
        outputs = cluster.outputs()
        cluster.close()
    found = [one for file in outputs for one in parse_describe(file.name, file.read_text(), None, "id")]
    (status,) = (one for one in found if one.kind == "status")
    leader = quorum.leader()
    assert (status.node_id, status.leader_epoch) == (leader.key.id, leader.epoch)
    assert status.high_watermark == committed(quorum)[-1][1]
    assert status.cluster_id == quorum.setup.cluster_id
    replicas = {one.node_id: one.log_end_offset for one in found if one.kind == "replication"}
    assert replicas == {node: replica.log.end_offset for node, replica in quorum.replicas.items()}
    assert [one.status for one in found if one.node_id == leader.key.id] == ["Leader", "Leader"]


def test_one_that_refuses_or_is_silent_costs_itself_only(tmp_path: Path) -> None:
    quorum, broker, silent = started(), started(2), started(3)
    with loopback(quorum) as held, loopback(broker) as refusing, loopback(silent) as without_leader:
        refusing.without |= {FETCH.key, FETCH_SNAPSHOT.key}
        silent.act(Crash(silent.leader().key.id - 1, 100))
        clusters = [followed(each, tmp_path) for each in (held, refusing, without_leader)]
        read_all(clusters, 20)
        for cluster in clusters:
            cluster.close()
    assert [cluster.refused is None for cluster in clusters] == [True, False, True]
    assert batches(tmp_path) == committed(quorum)
    assert "it is a broker, and brokers do not serve the metadata log" in (clusters[1].refused or "")


def files(root: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in root.glob("**/*") if file.is_file()}


def test_a_quorum_that_was_formatted_anew_adds_nothing(tmp_path: Path) -> None:
    """It has the id and the epoch of the one that was read: neither its records nor its samples are kept."""
    with loopback(started()) as held:
        read(held, tmp_path)
    before = files(tmp_path)
    with loopback(formatted_anew()) as held:
        cluster = read(held, tmp_path)
    assert "lost committed records" in (cluster.refused or "")
    assert f"move {tmp_path / held.quorum.setup.cluster_id} out of the spool" in (cluster.refused or "")
    assert files(tmp_path) == before


def test_another_cluster_at_the_address_adds_nothing(tmp_path: Path) -> None:
    with loopback(started(2)) as held:
        (own,) = live_options({"bootstrap.controllers": controllers(held), "clusterId": "A" * 22}).clusters
        cluster = FollowedCluster(own, tmp_path)
        cluster.read(5)
        cluster.close()
    assert "the node belongs to another cluster" in (cluster.refused or "")
    assert files(tmp_path) == {}


def test_a_connection_that_was_idle_for_too_long_is_opened_again(tmp_path: Path) -> None:
    """Kafka closes one after connections.max.idle.ms, and whenever it stops."""
    quorum = started()
    with loopback(quorum) as held:
        cluster = followed(held, tmp_path)
        cluster.read(20)
        held.hang_up()
        go_on(quorum)
        cluster.read(20)
        cluster.close()
        assert len(cluster.outputs()) == 4
    assert batches(tmp_path) == committed(quorum)


def test_a_spool_begins_where_nothing_was_read(tmp_path: Path) -> None:
    assert Spool(tmp_path, "id").position is None


@pytest.mark.parametrize("name", ["", ".", "..", "../outside", "/outside"])
def test_a_reported_cluster_id_leads_nowhere_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that begin with a dot are removed in a spool: they must be its own."""
    root, told = tmp_path / "root", str(tmp_path / "outside") if name == "/outside" else name
    kept = tmp_path / "outside" / ".kept"
    kept.mkdir(parents=True)
    monkeypatch.setattr(NodeConnection, "cluster_id", lambda _: told)
    with loopback(started()) as held:
        assert "cannot be a folder name" in (read(held, root).refused or "")
    assert kept.exists()
    assert list(root.glob("**/*")) == []
