"""restore against a real Kafka: the majority and its disks are destroyed, and everything is there again."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import read_controller_dir
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.image.differences import differences
from kraft_core.image.replica import CapturedReplica
from kraft_core.image.tables import CONTROLLERS
from kraft_core.restore.replay import replayed
from tests.kafka import LAB, RELEASE
from tests.kraft_core.image.kafka_shell import CHECKPOINT_OFFSET, DEFAULT_QUOTAS, SECRETS, as_meant, our_tree
from tests.kraft_core.image.test_kafka_shell_live import kafkas_tree
from tests.long.live_cluster import CombinedCluster, LiveCluster
from tests.long.live_quorum import LiveQuorum, kafka_tools
from tests.long.restoring import restored, three_controllers

MESSAGES = [f"message-{nth:04}" for nth in range(200)]
MORE = [f"message-{nth:04}" for nth in range(200, 300)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with three_controllers(tmp_path / "live", 29740) as live:
        yield live


def _fill(live: LiveCluster) -> None:
    """A topic of two replicas with acknowledged messages, a config, a user and a quota."""
    live.tool(
        "topics", "--create", "--topic", "orders", "--partitions", "2", "--replication-factor", "2", by=11
    )
    change = ("--alter", "--entity-type")
    live.tool(
        "configs",
        *change,
        "topics",
        "--entity-name",
        "orders",
        "--add-config",
        "retention.ms=77000000",
        by=11,
    )
    secret = "SCRAM-SHA-256=[iterations=4096,password=alice-pw]"
    live.tool("configs", *change, "users", "--entity-name", "alice", "--add-config", secret, by=11)
    live.produce("orders", MESSAGES, by=11)


def _state(live: LiveCluster) -> dict[str, str]:
    """What the tools say of topic, config and user."""
    described = live.tool("topics", "--describe", "--topic", "orders", by=11)
    topic_id = described.partition("TopicId: ")[2].split()[0]
    config = live.tool("configs", "--describe", "--entity-type", "topics", "--entity-name", "orders", by=11)
    user = live.tool("configs", "--describe", "--entity-type", "users", "--entity-name", "alice", by=11)
    return {"topic": topic_id, "config": config, "user": user}


def _destroy(live: LiveCluster) -> int:
    """Kill all; of the controllers one disk is left. Returns its node: the one that led, or another."""
    left = live.leader(1, 2, 3)
    for node in list(live.running):
        live.kill(node)
    for node in {1, 2, 3} - {left}:
        shutil.rmtree(live.folder(node))
    return left


def _destroy_all(live: LiveCluster) -> int:
    """Kill all, and destroy every controller's disk. Returns a broker."""
    time.sleep(3)  # brokers hold what was committed a moment ago
    for node in list(live.running):
        live.kill(node)
    for node in (1, 2, 3):
        shutil.rmtree(live.folder(node))
    return 12


@pytest.mark.long
@pytest.mark.parametrize("is_controller_left", [True, False])
def test_one_disk_is_left(cluster: LiveCluster, tmp_path: Path, is_controller_left: bool) -> None:
    """A controller's or a broker's: metadata, user and every acknowledged message are there again."""
    live = cluster
    _fill(live)
    before = _state(live)
    left = _destroy(live) if is_controller_left else _destroy_all(live)
    gone = [str(node) for node in sorted({1, 2, 3} - {left})]
    captures = live.capture("left", left)
    # Old controllers ask at the addresses of their own voter set only.
    port = live.ports[int(gone[0])]
    address = f"127.0.0.1:{port}"
    words = ("--voters", f"21@{address}", "--gone", *gone, "--controllers-stopped", "--brokers-stopped")
    made = restored(captures, tmp_path, *words)
    assert (made["verdict"], [loss["name"] for loss in made["losses"]]) == ("LOSES", ["unseen-records"])

    live.ports = {21: port, **{broker: live.ports[broker] for broker in live.brokers}}
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    assert live.leader(21) == 21
    assert int(live.status(21)["LeaderEpoch"]) > made["restored"]["written"]["leader_epoch"]
    for broker in live.brokers:
        live.start(broker)
    live.wait_for_brokers(by=11)
    assert _state(live) == before
    assert live.consumed("orders", len(MESSAGES) + 1, by=11) == MESSAGES
    live.produce("orders", MORE, by=11)
    assert live.consumed("orders", len(MESSAGES + MORE) + 1, by=12) == MESSAGES + MORE
    for broker in live.brokers:
        assert not list(live.folder(broker).glob("*-stray"))
    described = live.tool("topics", "--describe", "--topic", "orders", by=11)
    assert described.count("Isr: 11,12") + described.count("Isr: 12,11") == 2, described
    if is_controller_left:
        _old_controller_returns(live, left)


def _old_controller_returns(live: LiveCluster, old: int) -> None:
    """It fetches the new snapshot, drops its log, and is an observer: leader, epoch and voters stay."""
    before = live.status(21)
    live.ports[old] = live.port + old
    live.start(old)
    for _ in range(20):
        if f'"id": {old}' in live.status(21).get("CurrentObservers", ""):
            break
        time.sleep(1)
    after = live.status(21)
    assert f'"id": {old}' in after["CurrentObservers"], after
    assert {name: after[name] for name in ("LeaderId", "LeaderEpoch")} == {
        name: before[name] for name in ("LeaderId", "LeaderEpoch")
    }
    assert {node for node, _ in live.voters(21)} == {21}
    live.kill(old)
    log = replayed(read_controller_dir(live.folder(old) / LOG_DIR_NAME))
    assert log.voters is not None
    assert log.voters.ids == (21,)


@pytest.mark.long
def test_brokers_keep_running(cluster: LiveCluster, tmp_path: Path) -> None:
    """All disks were copied when the controllers had stopped: the same brokers go on with a new quorum."""
    live = cluster
    _fill(live)
    before = _state(live)
    controllers = (1, 2, 3)
    for node in controllers:
        live.kill(node)
    captures = live.capture("stopped", *controllers)
    for node in controllers:
        shutil.rmtree(live.folder(node))
    # Running brokers know the old addresses only.
    made = restored(captures, tmp_path, "--voters", f"21@{live.address(1)}", "--controllers-stopped")
    assert (made["verdict"], made["losses"]) == ("SAFE", [])
    live.ports = {21: live.ports[1], **{broker: live.ports[broker] for broker in live.brokers}}
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    assert live.leader(21) == 21
    live.wait_for_brokers(by=11)
    assert all(live.running[broker].poll() is None for broker in live.brokers)
    assert _state(live) == before
    live.produce("orders", MORE, by=12)
    assert live.consumed("orders", len(MESSAGES + MORE) + 1, by=11) == MESSAGES + MORE
    for broker in live.brokers:
        assert not list(live.folder(broker).glob("*-stray"))
        assert not list(live.folder(broker).glob("*-delete"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("moment", "is_static", "release", "words"),
    [
        ("uncommitted-truncation/after", False, RELEASE, ()),
        ("uncommitted-truncation/after", False, "4.4.0", ()),
        ("static-upgrade/at-3.9.2", True, RELEASE, ()),
        ("static-upgrade/at-3.9.2", False, RELEASE, ("--kraft-version", "1")),
        ("static-upgrade/at-3.9.2", True, "3.9.2", ()),
        ("static-upgrade/at-3.9.2", False, "3.9.2", ("--kraft-version", "1")),
    ],
)
def test_three_voters_boot_at_once(
    golden: Path, tmp_path: Path, moment: str, is_static: bool, release: str, words: tuple[str, ...]
) -> None:
    """From recorded captures, kraft.version 1, 0, and 0 into 1: three voters hold the planned metadata."""
    live = LiveCluster(kafka_tools(release), tmp_path / "live", 29760, static=is_static, release=release)
    live.ports = {node: live.port + node for node in (21, 22, 23)}
    voters = [f"{node}@{live.address(node)}" for node in live.ports]
    made = restored(golden / moment, tmp_path, "--voters", *voters, "--controllers-stopped", *words)
    assert (made["verdict"], made["restored"]["kraft_version"]) == ("SAFE", 0 if is_static else 1)
    live.cluster_id = made["cluster_id"]
    for node in live.ports:
        shutil.copytree(tmp_path / f"new/node-{node}", live.folder(node))
        live.start(node)
    try:
        leader = live.leader(*live.ports)
        written = made["restored"]["written"]
        assert int(live.status(leader)["LeaderEpoch"]) > written["leader_epoch"]
        assert live.watermark(leader) > written["end_offset"]
        # Killed while they start or run, and started again, they go on.
        for node in live.ports:
            live.kill(node)
            live.start(node)
        leader = live.leader(*live.ports)
        time.sleep(2)
    finally:
        live.close()
    planned = replayed(read_controller_dir(tmp_path / "new/node-21" / LOG_DIR_NAME))
    for node in live.ports:
        log = replayed(read_controller_dir(live.folder(node) / LOG_DIR_NAME))
        assert {each.kind for each in differences(planned.image, log.image)} <= {CONTROLLERS}
        assert log.image.tables.count(CONTROLLERS) == 3
        assert log.end_offset > written["end_offset"]


@pytest.mark.long
@pytest.mark.parametrize("moment", ["uncommitted-truncation/after", "static-upgrade", "dynamic-membership"])
def test_kafka_reads_the_checkpoint_as_we_do(golden: Path, tmp_path: Path, moment: str) -> None:
    words = ("--voters", "21@127.0.0.1:29781", "--controllers-stopped", "--brokers-stopped")
    made = restored(golden / moment, tmp_path, *words)
    file = tmp_path / "new/node-21" / LOG_DIR_NAME / made["restored"]["checkpoint"]
    given = ["--cluster-metadata-decoder", "--files", str(file)]
    kafka = [kafka_tools() / "k", RELEASE, "dump-log", *given]
    ours = [sys.executable, "-m", "jobs.cli", "dump", "--show-secrets", *given]
    printed = [subprocess.run(each, capture_output=True, check=True).stdout for each in (kafka, ours)]
    assert printed[0] == printed[1]
    assert printed[0].count(b"payload: {") >= sum(made["restored"]["counts"].values())


@pytest.mark.long
@pytest.mark.parametrize("moment", ["uncommitted-truncation/after", "static-upgrade", "dynamic-membership"])
def test_kafkas_shell_shows_what_ours_shows(golden: Path, tmp_path: Path, moment: str) -> None:
    """The tree that kafka-metadata-shell makes of the checkpoint: the same but for what is meant."""
    words = ("--voters", "21@127.0.0.1:29781", "--controllers-stopped", "--brokers-stopped")
    made = restored(golden / moment, tmp_path, *words)
    kafka_tools()
    file = tmp_path / "new/node-21" / LOG_DIR_NAME / made["restored"]["checkpoint"]
    image = CapturedReplica.of_file(file).image_at()
    meant, _ = as_meant(kafkas_tree(file), image, (*SECRETS, DEFAULT_QUOTAS, CHECKPOINT_OFFSET))
    assert our_tree(image) == meant


@pytest.mark.long
@pytest.mark.parametrize("moment", ["uncommitted-truncation/after", "static-upgrade/at-3.9.2"])
def test_kafkas_raft_log_opens_it(golden: Path, tmp_path: Path, moment: str) -> None:
    """KafkaRaftLog of the released jars: it begins and ends where the checkpoint ends, in its epoch."""
    words = ("--voters", "21@127.0.0.1:29781", "--controllers-stopped", "--brokers-stopped")
    written = restored(golden / moment, tmp_path, *words)["restored"]["written"]
    kafka_tools()
    jars, source = LAB / f"kafka-{RELEASE}/libs/*", Path(__file__).with_name("OpenRaftLog.java")
    command = ["java", "-cp", str(jars), str(source), str(tmp_path / "new/node-21" / LOG_DIR_NAME)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    end, epoch = written["end_offset"], written["leader_epoch"]
    assert done.stdout.split()[-5:] == list(map(str, (end, end, epoch, end, epoch)))


@pytest.mark.long
def test_an_old_checkpoint_alone(golden: Path, tmp_path: Path) -> None:
    """No segment is left, nor any newer file: a voter boots with the metadata that the checkpoint holds."""
    held = golden / "uncommitted-truncation/after/node-1"
    log_dir = tmp_path / "captures/node-1" / LOG_DIR_NAME
    log_dir.mkdir(parents=True)
    shutil.copy2(held / "meta.properties", log_dir.parent)
    checkpoints = sorted((held / LOG_DIR_NAME).glob("*.checkpoint"))
    oldest = next(file for file in checkpoints if int(file.name.partition("-")[0]))
    shutil.copy2(oldest, log_dir)
    live = LiveQuorum(kafka_tools(), tmp_path / "live", 29790)
    words = ("--voters", f"21@{live.address(21)}", "--gone", "2", "3")
    stated = ("--controllers-stopped", "--brokers-stopped")
    made = restored(log_dir.parent.parent, tmp_path, *words, *stated)
    assert made["restored"]["source_end_offset"] == int(oldest.name.partition("-")[0])
    assert "unseen-records" in {loss["name"] for loss in made["losses"]}
    live.cluster_id = made["cluster_id"]
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    try:
        assert live.leader(21) == 21
        assert int(live.status(21)["LeaderEpoch"]) > made["restored"]["written"]["leader_epoch"]
    finally:
        live.close()
    planned = replayed(read_controller_dir(tmp_path / "new/node-21" / LOG_DIR_NAME))
    log = replayed(read_controller_dir(live.folder(21) / LOG_DIR_NAME))
    assert log.end_offset > planned.end_offset
    assert {each.kind for each in differences(planned.image, log.image)} <= {CONTROLLERS}


@pytest.mark.long
def test_a_combined_node_is_left(tmp_path: Path) -> None:
    """Of three nodes that are controllers and brokers one is left: it keeps directory and messages."""
    live = CombinedCluster(kafka_tools(), tmp_path / "live", 29800, brokers={1, 2, 3})
    directories = {node: live.random_uuid() for node in (1, 2, 3)}
    voters = ",".join(f"{node}@{live.address(node)}:{id_}" for node, id_ in directories.items())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda node: live.format(node, "--initial-controllers", voters), directories))
    try:
        for node in directories:
            live.start(node)
        live.leader(*directories)
        live.wait_for_brokers(by=1)
        live.tool("topics", "--create", "--topic", "orders", "--replication-factor", "3", by=1)
        live.produce("orders", MESSAGES, by=1)
        for node in directories:
            live.kill(node)
        captures = live.capture("left", 1)
        words = ("--voters", f"1@{live.address(1)}", "--gone", "2", "3", "--lost-brokers", "2", "3")
        made = restored(captures, tmp_path, *words, "--controllers-stopped", "--brokers-stopped")
        assert made["restored"]["brokers_too"] == [1]
        assert made["restored"]["first_brokers"] == {"1": 1}
        log_dir = live.folder(1) / LOG_DIR_NAME
        shutil.rmtree(log_dir)
        shutil.copytree(tmp_path / "new/node-1" / LOG_DIR_NAME, log_dir)
        live.ports, live.brokers = {1: live.ports[1]}, {1}
        live.start(1)
        assert live.leader(1) == 1
        live.wait_for_brokers(by=1)
        assert live.consumed("orders", len(MESSAGES) + 1, by=1) == MESSAGES
        live.produce("orders", MORE, by=1)
        assert live.consumed("orders", len(MESSAGES + MORE) + 1, by=1) == MESSAGES + MORE
    finally:
        live.close()
