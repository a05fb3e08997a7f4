"""Real clusters that are restored: three controllers with brokers, and what a plan makes of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs.cli import main
from tests.long.live_cluster import LiveCluster
from tests.long.live_quorum import kafka_tools


@contextmanager
def three_controllers(
    path: Path, port: int, *brokers: int, kind: type[LiveCluster] = LiveCluster
) -> Iterator[LiveCluster]:
    """Voters 1, 2 and 3, and brokers, by default 11 and 12, all of them running."""
    live = kind(kafka_tools(), path, port, brokers=set(brokers or (11, 12)))
    directories = {node: live.random_uuid() for node in (1, 2, 3)}
    voters = ",".join(f"{node}@{live.address(node)}:{id_}" for node, id_ in directories.items())
    for broker in live.brokers:
        live.address(broker)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda node: live.format(node, "--initial-controllers", voters), directories))
        list(pool.map(live.format, live.brokers))
    for node in directories:
        live.start(node)
    try:
        live.leader(*directories)
        for broker in live.brokers:
            live.start(broker)
        live.wait_for_brokers(by=11)
        yield live
    finally:
        live.close()


def planned(captures: Path, plan: Path, *words: str) -> dict[str, Any]:
    """The plan that is written to a new file."""
    main(["restore", "plan", "--captures", str(captures), *words, "--out", str(plan)])
    made: dict[str, Any] = json.loads(plan.read_text())
    return made


def restored(captures: Path, out: Path, *words: str) -> dict[str, Any]:
    """The plan, after it was applied to out/new and verified."""
    plan = out / "plan.json"
    made = planned(captures, plan, *words)
    assert made["verdict"] in ("SAFE", "LOSES"), made["refusals"]
    accepted = sorted({loss["name"] for loss in made["losses"]})
    flags = ["--accept-loss", *accepted] if accepted else []
    assert main(["restore", "apply", str(plan), "--to", str(out / "new"), *flags]) == 0
    assert main(["restore", "verify", str(out / "new"), "--against", str(plan)]) == 0
    return made


def started_anew(live: LiveCluster, new: Path, voter: int, port: int) -> None:
    """The cluster's only controller is a restored one, at a port of an old one; the brokers start."""
    live.ports = {voter: port, **{broker: live.ports[broker] for broker in live.brokers}}
    shutil.copytree(new / f"node-{voter}", live.folder(voter))
    live.start(voter)
    assert live.leader(voter) == voter
    for broker in live.brokers:
        live.start(broker)
    live.wait_for_brokers(by=11)


def strays(live: LiveCluster) -> dict[str, list[str]]:
    """By broker the partitions whose directories Kafka renamed to *-stray."""
    found = {
        str(broker): sorted(path.name.rpartition(".")[0] for path in live.folder(broker).glob("*-stray"))
        for broker in sorted(live.brokers)
    }
    return {broker: names for broker, names in found.items() if names}
