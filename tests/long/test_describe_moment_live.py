"""What Kafka's tools print of a running cluster, and what `describe` prints of captures taken afterwards.

Topics, configs and which broker is down are drawn; KRAFTLAKE_SEED draws others. Needs `make kafka`.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest

from jobs.cli import main
from tests.long.drawn_metadata import drawn_metadata
from tests.long.made_cluster import BROKERS, MadeCluster

pytestmark = pytest.mark.long

CONTROLLERS = (1, 16)
ROUNDS = 6
# Of the status of a quorum, what a log holds.
KNOWN = ("ClusterId", "LeaderId", "LeaderEpoch", "CurrentVoters")


@dataclass(slots=True)
class Printed:
    """What the tools printed while the metadata did not change. offset: of the last record, by the tool."""

    broker: int
    offset: int
    topics: str
    cluster: str
    by_broker: str
    by_controller: str
    status: str
    replication: str


def tools_print(made: MadeCluster, broker: int) -> Printed:
    live = made.live
    topics = ""
    for _ in range(30):
        before, topics = topics, live.tool("topics", "--describe", by=broker)
        if before == topics:
            break
        time.sleep(1)
    where = ("--bootstrap-server", live.broker_address(broker))
    endpoints = ("list-endpoints", *where, "--include-fenced-brokers")
    cluster = live.k("cluster", "cluster-id", *where).printed + live.k("cluster", *endpoints).printed
    by_broker = live.tool("features", "describe", by=broker)
    return Printed(
        broker,
        epoch_of(by_broker),
        topics,
        cluster,
        by_broker,
        live.features("describe", by=CONTROLLERS[0]).printed,
        live.quorum_tool("describe", "--status", by=CONTROLLERS[0]).printed,
        live.quorum_tool("describe", "--replication", by=CONTROLLERS[0]).printed,
    )


def epoch_of(features: str) -> int:
    (epoch,) = set(re.findall(r"Epoch: (\d+)", features))
    return int(epoch)


def change(made: MadeCluster, seed: random.Random, down: set[int], folder: Path) -> None:
    """Stop or start a broker. A partition moves to a killed one before its session ends."""
    live = made.live
    if down:
        live.start(down.pop())
        time.sleep(10)
        return
    broker = seed.choice(BROKERS[1:])
    down.add(broker)
    if seed.random() < 0.3:
        live.stop(broker)
    else:
        live.kill(broker)
        move = {"make": "move", "topic": "moved", "partition": 0, "replicas": [11, broker]}
        assert made.make([move], folder) == [move]
    # Until its session has ended.
    time.sleep(12)


def test_what_the_tools_printed_is_what_captures_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.Random(os.environ.get("KRAFTLAKE_SEED", "1"))
    made = MadeCluster.at(tmp_path / "live", 29520, CONTROLLERS)
    moments: list[Printed] = []
    down: set[int] = set()
    try:
        moved = {"make": "topic", "name": "moved", "assignment": [[11], [11, 12]], "configs": {}}
        made.make([moved], tmp_path)
        for nth in range(ROUNDS):
            if nth % 2:
                change(made, seed, down, tmp_path)
            else:
                kinds = ("topic", "configs")
                things = [each for each in drawn_metadata(seed, BROKERS) if each["make"] in kinds]
                made.make(
                    [t | {"name": f"r{nth}{t['name']}"} if t["make"] == "topic" else t for t in things],
                    tmp_path,
                )
            up = sorted(set(BROKERS) - down)
            moments.append(tools_print(made, seed.choice(up)))
        captured = made.live.capture("after", CONTROLLERS[0]) / f"node-{CONTROLLERS[0]}"
    finally:
        made.live.close()
    different = [line for moment in moments for line in differences(moment, captured, capsys)]
    with capsys.disabled():
        shown = sum(moment.topics.count("\n") for moment in moments)
        moving = sum(moment.topics.count("Adding Replicas") for moment in moments)
        none = sum(moment.topics.count("Leader: none") for moment in moments)
        configs = sum(moment.topics.count("=") for moment in moments)
        print(f"{len(moments)} moments, {shown} lines, {configs} configs, {moving} moving, {none} leaderless")
    assert different == []


def differences(moment: Printed, captured: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """Lines that the tools printed and `describe` does not print, or the other way round."""

    def described(*words: object) -> str:
        capsys.readouterr()
        given = [*map(str, words), "--at", str(moment.offset), "--captures", str(captured)]
        code = main(["describe", *given])
        said = capsys.readouterr()
        assert code == 0, (given, said.err)
        return said.out

    yield from diff(moment.topics, described("topics", "--node", moment.broker))
    yield from diff(moment.cluster, described("cluster"))
    yield from diff(moment.by_broker, described("features", "--node", moment.broker))
    levels = described("features", "--node", CONTROLLERS[0])
    yield from diff(re.sub(r"Epoch: \d+", "Epoch: not known", moment.by_controller), levels)
    status, ours = (named(text) for text in (moment.status, described("quorum")))
    only_known = {name: value if name in KNOWN else "not known" for name, value in status.items()}
    yield from diff(repr(only_known), repr(ours))
    replication = described("quorum", "--replication")
    yield from diff(replicas(moment.replication, len(CONTROLLERS)), replicas(replication, len(CONTROLLERS)))


def diff(printed: str, ours: str) -> Iterator[str]:
    return unified_diff(printed.splitlines(), ours.splitlines(), "Kafka", "described", lineterm="", n=0)


def named(status: str) -> dict[str, str]:
    return {name: value.strip() for name, value in (line.split(":", 1) for line in status.splitlines())}


def replicas(replication: str, voters: int) -> str:
    """Of the header and the voters: node, directory and status."""
    rows = [line.split("\t") for line in replication.splitlines()][: voters + 1]
    return "\n".join(f"{row[0]} {row[1]} {row[6].strip()}" for row in rows)
