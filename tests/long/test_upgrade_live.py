"""Upgrades planned from captures of a running Kafka, then really asked of it, and compared.

Needs `make kafka`, and `tests/kafka/bin/get 3.9.2` for the broker that blocks. KRAFTLAKE_SEED draws others.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.messages.releases import (
    KRAFT_VERSION,
    METADATA_VERSION,
    OTHER_FEATURES,
    RELEASES,
    metadata_level,
)
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import CapturedMetadata, metadata_of
from kraft_core.plan.captured_quorum import quorum_of
from kraft_core.plan.registrations import registered
from kraft_core.plan.upgrade import FeatureUpgrade, plan_upgrade, release_upgrade
from tests.long.live_quorum import LiveQuorum, Tool, kafka_tools

CASES = int(os.environ.get("KRAFTLAKE_CASES", "12"))
RELEASE_4_3 = RELEASES["4.3"]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveQuorum]:
    """One controller of Kafka 4.3.1 with the features of 3.9."""
    quorum = LiveQuorum(kafka_tools(), tmp_path / "quorum", 29320)
    quorum.address(1)
    quorum.format(1, "--standalone", "--release-version", "3.9-IV0", "--feature", "kraft.version=1")
    try:
        quorum.start(1)
        quorum.leader(1)
        time.sleep(5)
        yield quorum
    finally:
        quorum.close()


def captured(quorum: LiveQuorum, label: str) -> CapturedMetadata:
    directories = find_controller_dirs([quorum.capture(label, 1)]).directories
    (cluster,) = collect_lives(directories, None)
    standing = quorum_of(conclude(cluster.facts), registered(directories))
    assert standing is not None
    by_capture = {c.capture_id: d for c, d in zip(cluster.facts.captures, cluster.directories, strict=True)}
    return metadata_of(standing, by_capture)


def planned(quorum: LiveQuorum, label: str, upgrade: FeatureUpgrade) -> Answer:
    """The answer by a capture taken now; once more where it shows the leader between two records."""
    for attempt in range(3):
        made = plan_upgrade(captured(quorum, f"{label}-{attempt}"), upgrade)
        if made.verdict != "not_known":
            break
    return made


def agree(made: Answer, done: Tool, asked: str) -> None:
    assert made.verdict != "not_known", f"{asked}: {made.reason}"
    if made.verdict == "refused":
        assert done.code != 0, f"{asked}: refused here, not by Kafka: {done.printed}"
        assert (made.error_text or "-") in done.printed, f"{asked}: {made.error_text}\n{done.printed}"
    else:
        assert done.code == 0, f"{asked}: {made.verdict} here, Kafka: {done.printed}"


def drawn(rng: random.Random) -> tuple[str, int]:
    """A feature and a level."""
    feature = rng.choice([METADATA_VERSION, METADATA_VERSION, *OTHER_FEATURES])
    if feature == METADATA_VERSION:
        return feature, rng.choice([7, 14, 20, 21, 22, 23, 25, 29, 30, 31, 33])
    high = RELEASE_4_3.features[feature].high
    return feature, rng.randint(0, high + 1)


@pytest.mark.long
def test_drawn_upgrades(live: LiveQuorum) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    verdicts = set[str]()
    for nth in range(CASES):
        feature, level = drawn(rng)
        asked = f"seed {seed}, case {nth}: {feature} {level}"
        made = planned(live, f"case-{nth}", FeatureUpgrade({feature: level}))
        current = levels(live).get(feature, 0)
        verb = "downgrade" if level < current or not level else "upgrade"  # the client asks no upgrade to 0
        done = live.features(verb, "--feature", f"{feature}={level}", by=1)
        agree(made, done, asked)
        verdicts.add(made.verdict)
        if done.code == 0:
            assert levels(live).get(feature, 0) == level, asked
    assert {"refused"} < verdicts


@pytest.mark.long
def test_a_ghost_of_an_older_release_blocks_until_it_is_unregistered(live: LiveQuorum) -> None:
    old = kafka_tools("3.9.2")
    config = live.path / "broker.properties"
    data = live.path / "broker"
    config.write_text(
        "process.roles=broker\nnode.id=12\nlisteners=PLAINTEXT://127.0.0.1:29360\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers={live.address(1)}\nlog.dirs={data}\n"
    )
    words = ("storage", "format", "--cluster-id", live.cluster_id, "--config", str(config))
    subprocess.run(
        [str(old / "k"), "3.9.2", *words, "--no-initial-controllers"], check=True, capture_output=True
    )
    with (live.path / "broker.out").open("wb") as log:
        broker = subprocess.Popen([str(old / "k"), "3.9.2", "server", str(config)], stdout=log, stderr=log)
    try:
        for _ in range(120):
            if "12" in str(blockers(live)):
                break
            time.sleep(1)
        to_4_3 = release_upgrade(RELEASE_4_3)
        made = planned(live, "broker-up", to_4_3)
        assert "Broker 12 only supports versions 1-21" in (made.error_text or made.reason)
        done = live.features("upgrade", "--release-version", "4.3-IV0", by=1)
        agree(made, done, "with the broker")
    finally:
        broker.kill()
        broker.wait()
    made = planned(live, "broker-gone", to_4_3)
    agree(made, live.features("upgrade", "--release-version", "4.3-IV0", by=1), "with the ghost")
    live.k("cluster", "unregister", "--bootstrap-controller", live.address(1), "--id", "12")
    made = planned(live, "unregistered", to_4_3)
    assert made.verdict == "risky"
    agree(made, live.features("upgrade", "--release-version", "4.3-IV0", by=1), "without it")
    assert levels(live)[METADATA_VERSION] == 30


def blockers(quorum: LiveQuorum) -> list[int]:
    metadata = captured(quorum, f"look-{time.monotonic_ns()}")
    assert metadata.image is not None
    return sorted(key[0] for key, _ in metadata.image.tables.items("brokers"))


def levels(quorum: LiveQuorum) -> dict[str, int]:
    """The finalized levels by describe."""
    done = quorum.features("describe", by=1)
    found: dict[str, int] = {}
    for name, level in re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", done.printed):
        number = metadata_level(level) if name == METADATA_VERSION else int(level)
        assert number is not None
        found[name] = number
    assert KRAFT_VERSION in found, done.printed
    return found
