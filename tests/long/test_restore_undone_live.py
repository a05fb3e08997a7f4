"""An earlier state, and back again, against a real Kafka: no message of either period is lost."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.long.live_cluster import AuthorizedCluster, LiveCluster
from tests.long.restoring import restored, started_anew, strays, three_controllers

EARLIER = [f"message-{nth:04}" for nth in range(50)]
LATER = [f"message-{nth:04}" for nth in range(50, 90)]
LATEST = [f"message-{nth:04}" for nth in range(90, 120)]
RIGHT = ("--allow-principal", "User:alice", "--operation", "Read", "--topic", "kept")
# Brokers first apply retention 30 s after their start (log.initial.task.delay.ms).
RETENTION_S = 40
STATED = ("--controllers-stopped", "--brokers-stopped")


@dataclass(slots=True)
class SlowlyDeletingCluster(AuthorizedCluster):
    """Directories of deleted topics stay as `-delete` for ten minutes."""

    def configure(self, node: int) -> str:
        file = AuthorizedCluster.configure(self, node)
        with Path(file).open("a") as written:
            written.write("\nlog.segment.delete.delay.ms=600000")
        return file


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with three_controllers(tmp_path / "live", 29680, kind=SlowlyDeletingCluster) as live:
        yield live


def _create(live: LiveCluster, topic: str) -> None:
    live.tool("topics", "--create", "--topic", topic, "--replication-factor", "2", by=11)


def _wait_for_isr(live: LiveCluster, topic: str, *isr: int) -> None:
    described = ""
    for _ in range(60):
        described = live.tool("topics", "--describe", "--topic", topic, by=11)
        found = re.findall(r"Isr: ([\d,]+)", described)
        if [{int(broker) for broker in each.split(",")} for each in found] == [set(isr)]:
            return
        time.sleep(1)
    raise AssertionError(described)


def _rename(live: LiveCluster, partition: str, mark: str) -> None:
    """On the stopped brokers PARTITION.<uuid>-MARK becomes PARTITION again, as docs/restore.md says."""
    for broker in live.brokers:
        (held,) = live.folder(broker).glob(f"{partition}.*-{mark}")
        back = held.rename(live.folder(broker) / partition)
        for index in (*back.glob("*.index"), *back.glob("*.timeindex")):
            index.unlink()


def _wait_until_deleted(live: LiveCluster, partition: str) -> None:
    for _ in range(60):
        if all(list(live.folder(broker).glob(f"{partition}.*-delete")) for broker in live.brokers):
            return
        time.sleep(1)
    raise AssertionError(f"{partition} was not deleted")


def _later(live: LiveCluster) -> None:
    """A topic is deleted, one is created, a right is taken away; then 12 leaves the ISR of `shrunk`."""
    live.tool("topics", "--delete", "--topic", "removed", by=11)
    live.tool("acls", "--remove", "--force", *RIGHT, by=11)
    _create(live, "later")
    live.produce("later", LATER, by=11)
    live.produce("kept", LATER, by=11)
    _wait_until_deleted(live, "removed-0")
    live.kill(12)
    _wait_for_isr(live, "shrunk", 11)
    live.produce("shrunk", LATER, by=11)


def _stop_all(live: LiveCluster) -> None:
    """The brokers while a controller answers, then the controllers."""
    for broker in sorted(live.brokers & set(live.running)):
        live.stop(broker)
    for node in list(live.running):
        live.kill(node)


@pytest.mark.long
def test_an_earlier_moment_and_back_again(cluster: LiveCluster, tmp_path: Path) -> None:
    """What docs/restore.md says of renamed directories, of an ISR that shrank, of ACLs, and of undoing."""
    live = cluster
    for topic in ("kept", "removed", "shrunk"):
        _create(live, topic)
        live.produce(topic, EARLIER, by=11)
    live.tool("acls", "--add", *RIGHT, by=11)
    time.sleep(1)
    moment = time.time_ns() // 1_000_000
    time.sleep(1)
    _later(live)
    _stop_all(live)
    captures, port = live.capture("stopped", 1, 2, 3), live.ports[1]
    first = tmp_path / "first"
    first.mkdir()
    made = restored(captures, first, "--voters", f"21@127.0.0.1:{port}", "--at", f"@{moment}", *STATED)
    names = {loss["name"] for loss in made["losses"]}
    assert names == {"topics-unknown", "topics-return", "rights-return"}
    sure = {each["topic"]: each["sure_broker"] for each in made["restored"]["partitions"]}
    assert sure["shrunk"] == 11
    for node in (1, 2, 3):
        shutil.rmtree(live.folder(node))
    _rename(live, "removed-0", "delete")

    started_anew(live, first / "new", 21, port)
    assert strays(live) == made["restored"]["stray"] == {"11": ["later-0"], "12": ["later-0"]}
    _wait_for_isr(live, "shrunk", 11, 12)
    time.sleep(RETENTION_S)
    assert live.consumed("removed", 51, by=12) == EARLIER
    for topic in ("kept", "shrunk"):
        assert live.consumed(topic, 91, by=12) == EARLIER + LATER
    assert "User:alice" in live.tool("acls", "--list", by=11)
    _create(live, "latest")
    for topic in ("kept", "latest", "removed"):
        live.produce(topic, LATEST, by=11)

    _stop_all(live)
    live.capture("stopped", 21)
    shutil.rmtree(live.folder(21))
    line = f"{made['restored']['source_leader_epoch']}@{made['restored']['source_end_offset']}"
    again = tmp_path / "again"
    again.mkdir()
    undone = restored(captures, again, "--voters", f"31@127.0.0.1:{port}", "--line", line, *STATED)
    names = {loss["name"] for loss in undone["losses"]}
    assert {"committed-records", "other-line", "topics-unknown"} <= names
    assert {loss for loss in names if loss.startswith("rights-")} == {"rights-missing"}
    _rename(live, "later-0", "stray")
    started_anew(live, again / "new", 31, port)
    assert (
        strays(live)
        == undone["restored"]["stray"]
        == {str(broker): ["__consumer_offsets-0", "latest-0", "removed-0"] for broker in (11, 12)}
    )
    for topic in ("kept", "shrunk", "later"):
        _wait_for_isr(live, topic, 11, 12)
    time.sleep(RETENTION_S)
    assert live.consumed("kept", 121, by=12) == EARLIER + LATER + LATEST
    assert live.consumed("shrunk", 91, by=12) == EARLIER + LATER
    assert live.consumed("later", 41, by=12) == LATER
    assert "User:alice" not in live.tool("acls", "--list", by=11)
    listed = live.tool("topics", "--list", by=11).split()
    assert not {"removed", "latest"} & set(listed)
    live.produce("later", ["message-last"], by=12)
    assert live.consumed("later", 42, by=11) == [*LATER, "message-last"]
