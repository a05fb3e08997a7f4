"""Brokers that come back one by one, or never, against a real Kafka: every acknowledged message is there."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.live_cluster import LiveCluster, TwoDiskCluster
from tests.long.restoring import restored, three_controllers

MESSAGES = [f"message-{nth:04}" for nth in range(120)]
MORE = [f"message-{nth:04}" for nth in range(120, 180)]
BROKERS = (11, 12, 13)
PARTITIONS = 6


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with three_controllers(tmp_path / "live", 29900, *BROKERS, kind=TwoDiskCluster) as live:
        yield live


def _leaders(live: LiveCluster, by: int) -> dict[int, int | None]:
    described = live.tool("topics", "--describe", "--topic", "orders", by=by)
    found = re.findall(r"Partition: (\d+)\s+Leader: (\S+)", described)
    return {int(partition): None if leader in ("none", "-1") else int(leader) for partition, leader in found}


def _wait_for_all_in_sync(live: LiveCluster) -> None:
    described = ""
    for _ in range(60):
        described = live.tool("topics", "--describe", "--topic", "orders", by=11)
        isrs = [set(isr.split(",")) for isr in re.findall(r"Isr: ([\d,]*)", described)]
        if isrs == [{str(broker) for broker in BROKERS}] * PARTITIONS:
            return
        time.sleep(1)
    raise AssertionError(described)


@pytest.mark.long
@pytest.mark.parametrize("lost", [None, 13])
def test_brokers_come_back_one_by_one(cluster: LiveCluster, tmp_path: Path, lost: int | None) -> None:
    """Three replicas on two disks each, all killed: one comes, then the others; they alternate."""
    live = cluster
    shape = ("--partitions", str(PARTITIONS), "--replication-factor", "3")
    live.tool("topics", "--create", "--topic", "orders", *shape, by=11)
    live.produce("orders", MESSAGES, by=11)
    for node in list(live.running):
        live.kill(node)
    captures = live.capture("stopped", 1, 2, 3)
    port = live.ports[1]
    words = ["--voters", f"21@127.0.0.1:{port}", "--controllers-stopped"]
    if lost is not None:
        words += ["--lost-brokers", str(lost)]
        shutil.rmtree(live.folder(lost))
    made = restored(captures, tmp_path, *words)
    led_by_the_lost = ["unreplicated-messages"] if lost is not None else []
    assert [loss["name"] for loss in made["losses"]] == led_by_the_lost
    sure = {
        each["partition"]: each["sure_broker"]
        for each in made["restored"]["partitions"]
        if each["topic"] == "orders"
    }
    assert len(sure) == PARTITIONS
    assert lost not in sure.values()

    live.ports = {21: port, **{broker: live.ports[broker] for broker in BROKERS}}
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    assert live.leader(21) == 21
    live.brokers = {11}
    live.start(11)
    live.wait_for_brokers(by=11)
    assert _leaders(live, by=11) == {each: 11 if broker == 11 else None for each, broker in sure.items()}
    live.brokers = set(BROKERS)
    if lost is not None:
        live.format(lost)
    for broker in (12, 13):
        live.start(broker)
    live.wait_for_brokers(by=11)
    _wait_for_all_in_sync(live)
    assert live.consumed("orders", len(MESSAGES) + 1, by=12) == MESSAGES

    for nth, broker in enumerate(BROKERS):
        live.kill(broker)
        time.sleep(12)  # its session ends, and others lead
        by = BROKERS[nth - 1]
        live.produce("orders", MORE[nth * 20 : nth * 20 + 20], by=by)
        live.start(broker)
        live.wait_for_brokers(by=by)
        _wait_for_all_in_sync(live)
    assert live.consumed("orders", len(MESSAGES + MORE) + 1, by=13) == MESSAGES + MORE
    for broker in BROKERS:
        assert not list(live.folder(broker).glob("*/*-stray"))
