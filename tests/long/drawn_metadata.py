"""Metadata drawn by a seed, with names and values that tools may split, trim or refuse."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Thing = dict[str, Any]

TOPIC_CONFIGS = {
    "cleanup.policy": ("compact", "delete", "compact, delete"),
    "compression.type": ("zstd", "producer"),
    "retention.ms": ("-1", "86400000", " 1000001 "),
    "min.insync.replicas": ("1", "2"),
    "message.timestamp.type": ("LogAppendTime",),
    "leader.replication.throttled.replicas": ("*", "0:11,1:12", ""),
    "preallocate": ("TRUE", "false"),
    "min.cleanable.dirty.ratio": ("0.250", "0.5"),
    "unclean.leader.election.enable": ("true",),
}
NAMES = (
    "alice",
    "CN=a b,O=c'd\"e",
    "$(touch owned)",
    "`id`;x|y&z",
    "back\\slash",
    "tab\there",
    "line\nend",
    "escape\x1b[31m",
    "Jörg-好-🦊",
    "-dash",
    "--add",
    "a=b,c=[d]",
    "#hash!",
    "{brace}~",
    "<default>",
)
RESOURCES = {
    "TOPIC": ("READ", "WRITE", "DESCRIBE", "ALTER_CONFIGS", "ALL", "CLUSTER_ACTION"),
    "GROUP": ("READ", "DELETE", "DESCRIBE_CONFIGS"),
    "TRANSACTIONAL_ID": ("WRITE", "TWO_PHASE_COMMIT"),
    "USER": ("CREATE_TOKENS", "DESCRIBE_TOKENS"),
    "CLUSTER": ("ALTER", "IDEMPOTENT_WRITE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS"),
}
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")


def drawn_metadata(seed: random.Random, brokers: tuple[int, ...]) -> Iterator[Thing]:
    """Things as MakeMetadata.java takes them."""
    for nth in range(10):
        name = seed.choice(("t", "-t", "a.b", "T_", ".", "x" * 200)) + str(nth)
        factor = seed.randint(1, len(brokers))
        yield {
            "make": "topic",
            "name": name,
            "assignment": [seed.sample(brokers, factor) for _ in range(seed.randint(1, 5))],
            "configs": drawn(seed, TOPIC_CONFIGS, 4),
        }
    internal = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
    offsets = [seed.sample(brokers, 2) for _ in range(3)]
    yield {"make": "topic", "name": "__consumer_offsets", "assignment": offsets, "configs": internal}
    yield from drawn_configs(seed, brokers)
    yield from drawn_quotas(seed)
    for _ in range(30):
        yield drawn_acl(seed)
    for name in seed.sample(NAMES, 4):
        mechanism = seed.choice(("SCRAM-SHA-256", "SCRAM-SHA-512"))
        yield {"make": "user", "name": name, "mechanism": mechanism, "iterations": seed.randint(4096, 9000)}


def drawn(seed: random.Random, values: dict[str, tuple[str, ...]], most: int) -> dict[str, str]:
    names = seed.sample(sorted(values), seed.randint(0, min(most, len(values))))
    return {name: seed.choice(values[name]) for name in names}


def drawn_configs(seed: random.Random, brokers: tuple[int, ...]) -> Iterator[Thing]:
    of_brokers = {
        "log.cleaner.threads": ("1", "2"),
        "max.connections.per.ip.overrides": ("127.0.0.1:100,127.0.0.2:90",),
        "log.retention.ms": ("7200000",),
    }
    cluster = {"log.retention.ms": "3600000"} | drawn(seed, of_brokers, 2)
    yield {"make": "configs", "type": "BROKER", "name": "", "configs": cluster}
    broker = {"log.cleaner.threads": "2"} | drawn(seed, of_brokers, 2)
    yield {"make": "configs", "type": "BROKER", "name": str(seed.choice(brokers)), "configs": broker}
    for name in seed.sample(NAMES, 3):
        group = {"consumer.session.timeout.ms": str(seed.randint(45000, 60000))}
        yield {"make": "configs", "type": "GROUP", "name": name, "configs": group}
    metrics = {
        "metrics": seed.choice(("*", "org.apache.kafka.consumer.,org.apache.kafka.producer.")),
        "interval.ms": "60000",
        "match": "client_software_name=apache-.*,client_id=[ab].*",
    }
    yield {"make": "configs", "type": "CLIENT_METRICS", "name": "sub-1", "configs": metrics}


def drawn_quotas(seed: random.Random) -> Iterator[Thing]:
    names = seed.sample(NAMES, 4)
    entities: list[dict[str, str | None]] = [
        {"user": names[0]},
        {"user": names[1], "client-id": names[2]},
        {"user": names[1], "client-id": None},
        {"user": None, "client-id": names[3]},
        {"client-id": names[3]},
        {"user": None},
        {"client-id": None},
    ]
    for entity in seed.sample(entities, 5):
        held = {key: seed.choice((1024.0, 1e7, 0.5, 12345678.9)) for key in seed.sample(QUOTAS, 2)}
        yield {"make": "quotas", "entity": entity, "quotas": held}
    for ip in seed.sample(("127.0.0.9", None), seed.randint(1, 2)):
        yield {"make": "quotas", "entity": {"ip": ip}, "quotas": {"connection_creation_rate": 10.0}}


def drawn_acl(seed: random.Random) -> Thing:
    kind = seed.choice(sorted(RESOURCES))
    is_cluster = kind == "CLUSTER"
    named = seed.choice((*NAMES, "*", "orders"))
    return {
        "make": "acl",
        "resource_type": kind,
        "resource_name": "kafka-cluster" if is_cluster else f"User:{named}" if kind == "USER" else named,
        "pattern_type": "LITERAL" if is_cluster else seed.choice(("LITERAL", "PREFIXED")),
        "principal": f"User:{seed.choice((*NAMES, '*'))}",
        "host": seed.choice(("*", "10.0.0.1", "2001:db8::1")),
        "operation": seed.choice(RESOURCES[kind]),
        "permission_type": seed.choice(("ALLOW", "DENY")),
    }
