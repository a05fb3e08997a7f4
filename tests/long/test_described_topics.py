"""`describe topics` beside the classes of Kafka's tool and of its brokers, for clusters that are drawn.

Needs `make kafka`, and no cluster. KRAFTLAKE_SEED draws others.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from kraft_core.image.image import Image
from kraft_core.image.names import CONFIG_RESOURCE_TYPES
from kraft_core.kafka_tools.topic_configs import TOPIC_CONFIGS
from kraft_core.kafka_tools.topics import describe_topics
from kraft_core.messages.configs import CONFIG_TYPES
from kraft_core.messages.uuid_text import uuid_text
from tests.kafka import RELEASE
from tests.kafka.java_programs import ask
from tests.kraft_core.image.worlds import broker_fields, partition_fields, replay, rows, topic_fields

pytestmark = pytest.mark.long

CLUSTERS = 300
BROKERS = range(1, 8)
# Configs that release 4.3 does not define, or for which any value of their type is not valid.
LATER = ("errors.deadletterqueue.group.enable", "remote.copy.lag.bytes", "remote.copy.lag.ms")
EARLIER = ("message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms")
NOT_DRAWN = (*LATER, *EARLIER, "max.decompressed.message.bytes", "remote.storage.enable")
DRAWN = tuple(config for config in TOPIC_CONFIGS if config.name not in NOT_DRAWN)
# Kafka takes them from brokers' files alone.
OF_FILES = ("compression.gzip.level", "compression.lz4.level", "compression.zstd.level")
VALUES = {
    "cleanup.policy": ("compact", "delete", "compact , delete", "delete,compact"),
    "compression.type": ("zstd", " gzip", "producer"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime"),
    "leader.replication.throttled.replicas": ("*", "0:1,1:2", ""),
    "follower.replication.throttled.replicas": ("*", "0:1 , 1:2"),
    "compression.gzip.level": ("1", "9"),
    "compression.lz4.level": ("3", "17"),
    "compression.zstd.level": ("3", "-5"),
    "min.cleanable.dirty.ratio": ("0.5", "0.250", "1", "1e-2", ".5"),
    "local.retention.ms": ("-2", "7"),
    "local.retention.bytes": ("-2", "007"),
    "segment.bytes": ("1048576", "104857600 "),
}
OF_TYPE = {
    "boolean": ("true", "FALSE", " True "),
    "int": ("1000000", "2000001"),
    "long": ("100", " 77777", "+5"),
}


def drawn_value(seed: random.Random, name: str) -> str:
    return seed.choice(VALUES.get(name) or OF_TYPE[CONFIG_TYPES[name]])


def drawn_cluster(seed: random.Random) -> dict[str, Any]:
    synonyms = [c for c in DRAWN if c.synonym is not None and c.name not in OF_FILES]
    count = seed.choice((0, 1, 2, 3, 6, 12, 13, 24, 25, 60))
    names = {f"{seed.choice('abcXYZ._-')}{seed.randint(0, 10 ** seed.randint(1, 9))}" for _ in range(count)}
    return {
        "broker": seed.choice(BROKERS),
        "of_all": {c.synonym: drawn_value(seed, c.name) for c in seed.sample(synonyms, 4)},
        "of_broker": {c.synonym: drawn_value(seed, c.name) for c in seed.sample(synonyms, 2)},
        "topics": [drawn_topic(seed, name) for name in names],
    }


def drawn_topic(seed: random.Random, name: str) -> dict[str, Any]:
    configs = seed.sample(DRAWN, seed.choice((0, 1, 3, len(DRAWN))))
    return {
        "name": name,
        "id": uuid_text(seed.randbytes(16)),
        "configs": {config.name: drawn_value(seed, config.name) for config in configs},
        "partitions": [drawn_partition(seed) for _ in range(seed.randint(1, 4))],
    }


def drawn_partition(seed: random.Random) -> dict[str, Any]:
    replicas = seed.sample(BROKERS, seed.randint(1, 5))

    def some() -> list[int]:
        return seed.sample(replicas, seed.randint(0, len(replicas)))

    isr, moves = some(), seed.random() < 0.2
    return {
        "replicas": replicas,
        "isr": isr,
        "leader": isr[0] if isr and seed.random() < 0.9 else -1,
        "elr": some(),
        "last_known_elr": some(),
        "adding": some()[:1] if moves else [],
        "removing": some()[:1] if moves else [],
    }


def image_of(cluster: dict[str, Any]) -> Image:
    made = [("REGISTER_BROKER_RECORD", broker_fields(b, 1, "A" * 22, fenced=False)) for b in BROKERS]
    made += config_records("BROKER", "", cluster["of_all"])
    made += config_records("BROKER", str(cluster["broker"]), cluster["of_broker"])
    for topic in cluster["topics"]:
        made.append(("TOPIC_RECORD", topic_fields(topic["name"], topic["id"])))
        for number, each in enumerate(topic["partitions"]):
            fields = partition_fields(
                topic["id"],
                number,
                replicas=each["replicas"],
                isr=each["isr"],
                leader=each["leader"],
                addingReplicas=each["adding"],
                removingReplicas=each["removing"],
                eligibleLeaderReplicas=each["elr"],
                lastKnownElr=each["last_known_elr"],
                directories=[],
            )
            made.append(("PARTITION_RECORD", fields))
        made += config_records("TOPIC", topic["name"], topic["configs"])
    image = replay(rows(made))
    assert image.refusals == []
    return image


def config_records(kind: str, name: str, configs: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    (number,) = (number for number, word in CONFIG_RESOURCE_TYPES.items() if word == kind)
    fields = {"resourceType": number, "resourceName": name}
    return [("CONFIG_RECORD", {**fields, "name": key, "value": value}) for key, value in configs.items()]


def test_what_kafkas_classes_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = random.Random(os.environ.get("KRAFTLAKE_SEED", "1"))
    clusters = [drawn_cluster(seed) for _ in range(CLUSTERS)]
    source = Path(__file__).with_name("DescribedTopics.java")
    main = "org.apache.kafka.tools.DescribedTopics"
    printed = ask(source, main, RELEASE, map(json.dumps, clusters), tmp_path).stdout
    answers = printed.split("end\n")
    assert len(answers) == CLUSTERS + 1
    for cluster, answer in zip(clusters, answers, strict=False):
        ours = "".join(f"{line}\n" for line in describe_topics(image_of(cluster), cluster["broker"]))
        assert ours == answer
    with capsys.disabled():
        lines = printed.count("\n") - CLUSTERS
        print(f"{CLUSTERS} clusters, {lines} lines, {printed.count('=')} configs: equal")
