"""plan start-broker against Kafka's LogManager: drawn log directories, which it loads by a drawn assignment.

Compared are the directories that become stray, and the message where one partition is in two directories
(their order in it is that of a scan). KRAFTLAKE_SEED draws others.
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.image.change import Change
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.messages.uuid_text import uuid_text
from kraft_core.plan.broker_start import BrokerStart, duplicates, plan_start
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.held_partitions import is_stray
from kraft_core.restore.broker_dirs import broker_log_dir
from tests.kafka.java_programs import ask
from tests.kraft_core.plan.captured import metadata
from tests.kraft_core.plan.test_broker_start import hold, partition
from tests.kraft_core.plan.test_migration import broker

pytestmark = pytest.mark.long

CASES = 60
BROKER_ID = 7
STRAYS = ("stray_replica", "other_topic_id", "unknown_topic")


class DrawnBroker:
    """A broker with one to three log directories, and the partitions of the cluster."""

    def __init__(self, rng: random.Random, folder: Path, cluster_id: str) -> None:
        self.topics = {f"t{n}": uuid_text(rng.randbytes(16)) for n in range(3)}
        self.replicas = {
            (topic_id, n): tuple(rng.sample((7, 8, 9), rng.choice([1, 2, 3])))
            for topic_id in self.topics.values()
            for n in range(3)
        }
        self.dirs = [folder / name for name in "abc"[: rng.choice([1, 2, 2, 3])]]
        self.ids = [uuid_text(rng.randbytes(16)) for _ in self.dirs]
        for path, directory_id in zip(self.dirs, self.ids, strict=True):
            path.mkdir(parents=True)
            meta = f"version=1\nnode.id={BROKER_ID}\ncluster.id={cluster_id}\ndirectory.id={directory_id}\n"
            (path / "meta.properties").write_text(meta)
            for name, topic_id in self.topics.items():
                for n in range(4):
                    if rng.random() < 0.25:
                        stated = topic_id if rng.random() < 0.8 else uuid_text(rng.randbytes(16))
                        hold(path, f"{name}-{n}", stated)
                    if rng.random() < 0.05:
                        hold(path, f"{name}-{n}.{'0' * 32}-future", topic_id)
            if rng.random() < 0.2:
                hold(path, "gone-0", uuid_text(rng.randbytes(16)))

    def line(self) -> str:
        assigned = [f"{t}:{n}={','.join(map(str, held))}" for (t, n), held in self.replicas.items()]
        return " ".join([str(BROKER_ID), ",".join(map(str, self.dirs)), *assigned])

    def known(self) -> CapturedMetadata:
        found = metadata("disk-failure/before-wipe")
        for image in (found.image, found.committed):
            assert image is not None
            self._put(image)
        return found

    def _put(self, image: Image) -> None:
        for kind in (BROKERS, PARTITIONS, TOPICS):
            for key in [key for key, _ in image.tables.items(kind)]:
                image.tables.put(Change(kind, key, None))
        change = broker(BROKER_ID, migrating=False)
        assert change.value is not None
        image.tables.put(Change(BROKERS, change.key, replace(change.value, log_dirs=tuple(sorted(self.ids)))))
        for name, topic_id in self.topics.items():
            image.tables.put(Change(TOPICS, (topic_id,), Topic(topic_id, name)))
        names = {topic_id: name for name, topic_id in self.topics.items()}
        for (topic_id, n), held in self.replicas.items():
            image.tables.put(partition(topic_id, names[topic_id], n, held))


def test_directories_become_stray_as_it_is_said(tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED", "0")) or random.randrange(1 << 32)
    rng = random.Random(seed)
    cluster_id = metadata("disk-failure/before-wipe").quorum.cluster_id
    brokers = [DrawnBroker(rng, tmp_path / f"n{nth}", cluster_id) for nth in range(CASES)]
    judged = [judge(each, cluster_id) for each in brokers]
    classes = tmp_path / "classes"
    classes.mkdir()
    source = Path(__file__).with_name("StrayAnswers.java")
    done = ask(source, "StrayAnswers", "4.3.1", (each.line() for each in brokers), classes)
    answers = [line[2:] for line in done.stdout.splitlines() if line.startswith("= ")]
    assert len(answers) == CASES
    refused = 0
    for drawn, (messages, stray), answer in zip(brokers, judged, answers, strict=True):
        refused += bool(messages)
        if not messages:
            assert answer.split() == stray, (seed, drawn.line())
        else:
            expected = {alike(f"threw java.lang.IllegalStateException: {text}") for text in messages}
            assert alike(answer) in expected, (seed, answer, messages)
    assert 5 < refused < CASES - 5, (seed, refused)
    print(f"seed {seed}: {CASES} brokers, {refused} end")


def judge(drawn: DrawnBroker, cluster_id: str) -> tuple[list[str], list[str]]:
    """What Kafka may say as the broker ends, and what becomes stray where it does not."""
    known = drawn.known()
    log_dirs = {str(path): broker_log_dir(path, cluster_id) for path in drawn.dirs}
    answer = plan_start(BrokerStart(known, log_dirs), BROKER_ID)
    assert answer.verdict != "not_known", answer
    image = known.image
    assert image is not None
    # A future copy and the one it is to replace have one name.
    stray = sorted(
        {
            f"{each.name}@{Path(path).name}"
            for path, log_dir in log_dirs.items()
            for each in log_dir.held
            if is_stray(each, BROKER_ID, image)
        }
    )
    assert bool(stray) == any(risk.name in STRAYS for risk in answer.risks)
    messages = list(duplicates(log_dirs, BROKER_ID, image))
    assert (answer.verdict == "refused") == bool(messages)
    return messages, stray


def alike(message: str) -> str:
    """Without which partition was met first, and in which directory; of future copies, without more."""
    short = re.sub(r"t\d-\d", "T-N", re.sub(r"/\S*/n\d+/[abc]/", "/", message))
    return re.sub(r"\.\w+-future", "", short)
