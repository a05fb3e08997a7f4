"""An earlier state against a real Kafka: what docs/restore.md says became of it, message by message."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_core.restore.restoration import BROKERS_DELETE
from tests.long.live_cluster import LiveCluster
from tests.long.restoring import planned, restored, started_anew, strays, three_controllers

EARLIER = [f"message-{nth:04}" for nth in range(50)]
LATER = [f"message-{nth:04}" for nth in range(50, 90)]
SECRET = "SCRAM-SHA-256=[iterations=4096,password=a-pw]"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with three_controllers(tmp_path / "live", 29820) as live:
        yield live


def _create(live: LiveCluster, topic: str, *how: str) -> None:
    live.tool("topics", "--create", "--topic", topic, *(how or ("--replication-factor", "2")), by=11)


def _alter(live: LiveCluster, kind: str, name: str, *change: str) -> None:
    live.tool("configs", "--alter", "--entity-type", kind, "--entity-name", name, *change, by=11)


def _topic_id(live: LiveCluster, topic: str) -> str:
    described = live.tool("topics", "--describe", "--topic", topic, by=11)
    return described.partition("TopicId: ")[2].split()[0]


def _before(live: LiveCluster) -> dict[str, str]:
    """Topics with messages, a config, a user. Returns the topics' ids."""
    for topic in ("kept", "removed", "again", "grown"):
        _create(live, topic)
    _create(live, "moved", "--replica-assignment", "11")
    for topic in ("kept", "removed", "again", "grown", "moved"):
        live.produce(topic, EARLIER, by=11)
    _alter(live, "topics", "kept", "--add-config", "retention.ms=77000000")
    _alter(live, "users", "alice", "--add-config", SECRET)
    return {topic: _topic_id(live, topic) for topic in ("kept", "removed", "again", "grown", "moved")}


def _after(live: LiveCluster) -> None:
    """All that an older state undoes."""
    for topic in ("removed", "again"):
        live.tool("topics", "--delete", "--topic", topic, by=11)
    time.sleep(1)
    _create(live, "again")
    _create(live, "later")
    live.tool("topics", "--alter", "--topic", "grown", "--partitions", "2", by=11)
    for topic in ("kept", "again", "later"):
        live.produce(topic, LATER, by=11)
    plan = live.path / "moved.json"
    moved = {"topic": "moved", "partition": 0, "replicas": [12]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    live.tool("reassign", "--reassignment-json-file", str(plan), "--execute", by=11)
    for _ in range(30):
        if "complete" in live.tool("reassign", "--reassignment-json-file", str(plan), "--verify", by=11):
            break
        time.sleep(1)
    live.produce("moved", LATER, by=11)
    _alter(live, "topics", "kept", "--add-config", "retention.ms=88000000")
    _alter(live, "users", "alice", "--delete-config", "SCRAM-SHA-256")
    _alter(live, "users", "bob", "--add-config", SECRET)


@pytest.mark.long
@pytest.mark.parametrize("placement", ["newest", "as-of"])
def test_an_earlier_moment(cluster: LiveCluster, tmp_path: Path, placement: str) -> None:
    live = cluster
    ids = _before(live)
    time.sleep(1)
    moment = time.time_ns() // 1_000_000
    time.sleep(1)
    _after(live)
    for broker in live.brokers:
        live.stop(broker)
    for node in (1, 2, 3):
        live.kill(node)
    captures = live.capture("stopped", 1, 2, 3)
    port = live.ports[1]
    words = ("--voters", f"21@127.0.0.1:{port}", "--controllers-stopped", "--at", f"@{moment}")
    assert planned(captures, tmp_path / "running.json", *words)["refusals"] == [BROKERS_DELETE]
    made = restored(captures, tmp_path, *words, "--brokers-stopped", "--placement", placement)
    names = ["topics-unknown", "topics-return", "rights-return", "rights-missing", "settings-return"]
    returned = ["placement-returns"] if placement == "as-of" else []
    assert sorted(loss["name"] for loss in made["losses"]) == sorted([*names, *returned])
    foretold = made["restored"]["stray"]
    assert {name for held in foretold.values() for name in held} == {"again-0", "grown-1", "later-0"} | (
        {"moved-0"} if returned else set()
    )
    for node in (1, 2, 3):
        shutil.rmtree(live.folder(node))

    started_anew(live, tmp_path / "new", 21, port)
    assert {topic: _topic_id(live, topic) for topic in ids} == ids
    listed = live.tool("topics", "--list", by=11).split()
    assert "later" not in listed
    assert live.consumed("kept", 91, by=11) == EARLIER + LATER
    assert live.consumed("grown", 51, by=11) == EARLIER
    assert live.consumed("removed", 1, by=11) == []
    assert live.consumed("again", 1, by=11) == []
    assert live.consumed("moved", 91, by=11) == ([] if returned else EARLIER + LATER)
    assert strays(live) == foretold
    described = live.tool("configs", "--describe", "--entity-type", "users", by=11)
    assert "alice" in described
    assert "bob" not in described
    config = live.tool("configs", "--describe", "--entity-type", "topics", "--entity-name", "kept", by=11)
    assert "retention.ms=77000000" in config
    for topic in ("kept", "removed", "again"):
        live.produce(topic, [f"message-{nth:04}" for nth in range(900, 910)], by=12)
    assert len(live.consumed("kept", 101, by=11)) == 100
    assert len(live.consumed("again", 11, by=11)) == 10


@pytest.mark.long
def test_from_a_controller_that_is_behind(cluster: LiveCluster, tmp_path: Path) -> None:
    """What brokers' directories prove missing is what is missing; all else is there."""
    live = cluster
    _create(live, "early")
    live.produce("early", EARLIER, by=11)
    behind = next(node for node in (1, 2, 3) if node != live.leader(1, 2, 3))
    live.kill(behind)
    _create(live, "late")
    live.produce("late", LATER, by=11)
    live.produce("early", LATER, by=11)
    time.sleep(3)
    for node in list(live.running):
        live.kill(node)
    gone = [node for node in (1, 2, 3) if node != behind]
    for node in gone:
        shutil.rmtree(live.folder(node))
    data = [shutil.copytree(live.folder(b), tmp_path / f"data-{b}") for b in sorted(live.brokers)]
    for folder in data:
        shutil.rmtree(folder / "__cluster_metadata-0")
    captures = live.capture("behind", behind)
    port = live.ports[gone[0]]
    words = ("--voters", f"21@127.0.0.1:{port}", "--gone", *map(str, gone), "--controllers-stopped")
    words = (*words, "--brokers-stopped", "--broker-dirs", *map(str, data))
    made = restored(captures, tmp_path, *words)
    assert sorted({loss["name"] for loss in made["losses"]}) == ["topics-unknown", "unseen-records"]
    assert made["restored"]["stray"] == {"11": ["late-0"], "12": ["late-0"]}

    started_anew(live, tmp_path / "new", 21, port)
    assert "late" not in live.tool("topics", "--list", by=11).split()
    assert live.consumed("early", 91, by=11) == EARLIER + LATER
    assert strays(live) == made["restored"]["stray"]
