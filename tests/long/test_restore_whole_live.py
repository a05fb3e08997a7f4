"""A whole cluster against a real Kafka: rights, users, quotas, and producers that go on meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kafka import LAB, RELEASE
from tests.long.live_cluster import AuthorizedCluster, LiveCluster
from tests.long.restoring import restored, three_controllers

TOPICS = ("orders", "plain", "together")
PREFIXED = ("--resource-pattern-type", "prefixed")
MESSAGES = [f"message-{nth:06}" for nth in range(100)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[AuthorizedCluster]:
    with three_controllers(tmp_path / "live", 29960, kind=AuthorizedCluster) as live:
        assert isinstance(live, AuthorizedCluster)
        _fill(live)
        yield live


def _fill(live: LiveCluster) -> None:
    for topic in TOPICS:
        live.tool("topics", "--create", "--topic", topic, "--replication-factor", "2", by=11)
    may, denied = ("--add", "--allow-principal", "User:alice"), ("--add", "--deny-principal", "User:bob")
    live.tool("acls", *may, "--operation", "Read", "--topic", "orders", by=11)
    live.tool("acls", *denied, "--operation", "Write", "--topic", "or", *PREFIXED, by=11)
    secret = "SCRAM-SHA-512=[iterations=4096,password=alice-pw]"
    user = ("--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config")
    live.tool("configs", *user, secret, by=11)
    live.tool("configs", *user, "consumer_byte_rate=123456", by=11)
    topic = ("--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config")
    live.tool("configs", *topic, "retention.ms=77000000", by=11)
    live.produce("orders", MESSAGES, by=11)


def _state(live: LiveCluster) -> list[str]:
    """What the tools say of topics, configs, rights, users, quotas and features, but for who leads."""
    topics = live.tool("topics", "--describe", by=11).splitlines()
    ids = sorted(line.partition("PartitionCount")[0] for line in topics if "TopicId: " in line)
    described = ("--describe", "--entity-type")
    acls = sorted(line.strip() for line in live.tool("acls", "--list", by=11).splitlines())
    configs = live.tool("configs", *described, "topics", "--entity-name", "orders", by=11)
    users = live.tool("configs", *described, "users", by=11)
    assert "consumer_byte_rate=123456" in users
    assert "SCRAM-SHA-512" in users
    assert "principal=User:bob" in " ".join(acls)
    return [*ids, *acls, configs, *sorted(users.splitlines())]


@contextmanager
def _producing(live: LiveCluster) -> Iterator[subprocess.Popen[str]]:
    """KeepProducing, once it has begun to."""
    servers = ",".join(live.broker_address(broker) for broker in sorted(live.brokers))
    jars, source = LAB / f"kafka-{RELEASE}/libs/*", Path(__file__).with_name("KeepProducing.java")
    command = ["java", "-Xmx128m", "-cp", str(jars), str(source), servers]
    errors = (live.path / "producing.out").open("w")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
    ) as process:
        try:
            live.consumed("together", 20, by=11)
            yield process
        finally:
            process.kill()


def _check_messages(live: LiveCluster, process: subprocess.Popen[str]) -> None:
    """Every acknowledged message is there, once; new producers are given ids that none had."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, (live.path / "producing.out").read_text()
    acknowledged, committed = map(int, printed.split())
    assert acknowledged > 100
    assert committed > 50
    for topic, count in (("plain", acknowledged), ("together", committed)):
        expected = [f"message-{nth:06}" for nth in range(count)]
        assert live.consumed(topic, count + 1, 12, "--isolation-level", "read_committed") == expected
    assert live.consumed("orders", len(MESSAGES) + 1, by=12) == MESSAGES
    live.produce("orders", ["message-new"], by=11)
    assert live.consumed("orders", len(MESSAGES) + 2, by=12) == sorted([*MESSAGES, "message-new"])
    for broker in live.brokers:
        assert not list(live.folder(broker).glob("*-stray"))
        assert not list(live.folder(broker).glob("*-delete"))


@pytest.mark.long
def test_three_voters_at_once_under_running_brokers(cluster: AuthorizedCluster, tmp_path: Path) -> None:
    """The newest metadata: brokers and producers never stop, and go on with a new quorum."""
    live = cluster
    with _producing(live) as process:
        before = _state(live)
        old = {node: live.ports[node] for node in (1, 2, 3)}
        for node in old:
            live.kill(node)
        captures = live.capture("stopped", *old)
        for node in old:
            shutil.rmtree(live.folder(node))
        addresses = {20 + node: port for node, port in old.items()}
        voters = [f"{voter}@127.0.0.1:{port}" for voter, port in addresses.items()]
        made = restored(captures, tmp_path, "--voters", *voters, "--controllers-stopped")
        assert (made["verdict"], made["losses"]) == ("SAFE", [])
        live.ports = addresses | {broker: live.ports[broker] for broker in live.brokers}
        for voter in addresses:
            shutil.copytree(tmp_path / f"new/node-{voter}", live.folder(voter))
            live.start(voter)
        live.leader(*addresses)
        live.wait_for_brokers(by=11)
        time.sleep(10)
        assert _state(live) == before
        _check_messages(live, process)
    assert all(live.running[broker].poll() is None for broker in live.brokers)


@pytest.mark.long
def test_one_voter_and_two_that_are_added(cluster: AuthorizedCluster, tmp_path: Path) -> None:
    """One disk is left, all brokers are killed, addresses are new; two are added, and the first removed."""
    live = cluster
    with _producing(live) as process:
        before = _state(live)
        left = live.leader(1, 2, 3)
        for node in list(live.running):
            live.kill(node)
        captures = live.capture("left", left)
        gone = sorted({1, 2, 3} - {left})
        for node in (1, 2, 3):
            shutil.rmtree(live.folder(node))
        moved = {voter: live.port + voter for voter in (21, 22, 23)}
        words = ("--voters", f"21@127.0.0.1:{moved[21]}", "--gone", *map(str, gone))
        restored(captures, tmp_path, *words, "--controllers-stopped", "--brokers-stopped")
        live.ports = {21: moved[21], **{broker: live.ports[broker] for broker in live.brokers}}
        shutil.copytree(tmp_path / "new/node-21", live.folder(21))
        live.start(21)
        assert live.leader(21) == 21
        for broker in live.brokers:
            live.start(broker)
        live.wait_for_brokers(by=11)
        time.sleep(10)
        assert _state(live) == before
        _add_two(live, moved)
        assert _state(live) == before
        _check_messages(live, process)


def _add_two(live: LiveCluster, ports: dict[int, int]) -> None:
    for voter in (22, 23):
        live.ports[voter] = ports[voter]
        live.format(voter, "--no-initial-controllers")
        live.start(voter)
        for _ in range(60):
            if f'"id": {voter}' in live.status(21).get("CurrentObservers", ""):
                break
            time.sleep(1)
        added = live.add(voter, by=21)
        assert added.code == 0, added.printed
    assert {node for node, _ in live.voters(21)} == {21, 22, 23}
    for broker in live.brokers:  # they look for another leader at the addresses that they are given
        live.stop(broker)
        live.start(broker)
        live.wait_for_brokers(by=broker)
    first = live.directory_id(21)
    live.kill(21)
    leader = live.leader(22, 23, but=21)
    removed = live.remove(21, first, by=leader)
    assert removed.code == 0, removed.printed
    assert {node for node, _ in live.voters(leader)} == {22, 23}
