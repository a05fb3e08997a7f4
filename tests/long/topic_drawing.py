"""Clusters and requests about their topics, drawn as JSON for TopicRequests.java."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from kraft_core.image.configs import TOPIC_RESOURCE
from kraft_core.image.effective_configs import BROKER_RESOURCE
from kraft_core.topic_control.config_types import TOPIC_CONFIGS

CONTROLLER = "1"
RACKS = (None, "a", "b", "c", "Aa", "BB", "r1", "r2", "zone-1", "zone-2", "zone-17", "é", "😀")
NAMES = (
    "orders",
    "clicks",
    "a.b",
    "a_b",
    "a.b_c",
    "a_b.c",
    "a_b_c",
    "x.y",
    "x_y",
    "__consumer_offsets",
    "logs-1",
    "a",
    "A",
    "t1",
    "t2",
    "t3",
    "t4",
    "t5",
    "1.2.3",
    "1_2.3",
)
BAD_NAMES = ("", ".", "..", "a" * 250, "b" * 249, "sp ace", "ümlaut", "😀" * 125, "a/b", "x.y z", "_", "a.b!")
VALUES: dict[str, tuple[str, ...]] = {
    "INT": ("0", "1", "2", "5", "17", "1048576", "1048575", "2147483648", " 7 ", "+3", "x", "", "-1", "1.5"),
    "LONG": (
        "-3",
        "-2",
        "-1",
        "0",
        "1",
        "1000",
        "86400000",
        "9223372036854775807",
        "9223372036854775808",
        "1e3",
    ),
    "DOUBLE": (
        "0",
        "0.5",
        "1",
        "1.5",
        "-0.1",
        "1e10",
        "1e-5",
        ".25",
        "NaN",
        "Infinity",
        "0x1p-1",
        "0.5d",
        "half",
    ),
    "BOOLEAN": ("true", "false", "TRUE", " False ", "yes", "", "1"),
    "STRING": ("gzip", "producer", "zstd", "CreateTime", "LogAppendTime", "none", "", " lz4 "),
    "LIST": (
        "",
        "delete",
        "compact",
        "delete,compact",
        "delete, delete",
        "compact,,",
        "*",
        "0:1,1:2",
        "a",
        " 1:1 , 2:3",
    ),
}


def cluster(rng: random.Random) -> dict[str, Any]:
    """Everything but the request."""
    level = rng.choice((30, 30, 30, 29, 25, 23, 22, 17, 16, 12, 7))
    asked: dict[str, Any] = {
        "metadataVersion": level,
        "elr": int(level >= 23 and rng.random() < 0.6),
        "seed": rng.getrandbits(48),
        "file": controller_file(rng),
    }
    ids = sorted(rng.sample(range(rng.choice((6, 6, 40, 200))), rng.choice((0, 1, 2, 3, 3, 4, 5, 6))))
    racks = rng.choice(((None,), RACKS[1:4], RACKS, RACKS[6:]))
    health = rng.choice((0.0, 0.1, 0.3, 0.6))
    asked["brokers"] = [broker(rng, each, racks, health) for each in ids]
    names = rng.sample(NAMES, rng.choice((0, 1, 3, 6, 12)))
    asked["topics"] = [topic(rng, name, asked) for name in names]
    asked["configs"] = configs(rng, names)
    return asked


def controller_file(rng: random.Random) -> dict[str, str]:
    choices = {
        "num.partitions": ("1", "3"),
        "default.replication.factor": ("1", "2", "3"),
        "remote.log.storage.system.enable": ("true", "false"),
        "log.cleaner.min.compaction.lag.ms": ("0", "1000"),
        "log.cleaner.max.compaction.lag.ms": ("5000", "86400000"),
        "log.retention.hours": ("1", "-1", "168"),
        "log.retention.minutes": ("30",),
        "log.retention.ms": ("1000",),
        "log.retention.bytes": ("100000", "-1"),
        "log.local.retention.ms": ("500",),
        "log.local.retention.bytes": ("5000",),
        "log.cleanup.policy": ("compact", "delete", "delete,compact"),
        "min.insync.replicas": ("1", "2"),
        "unclean.leader.election.enable": ("true", "false"),
    }
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.2}


def directory(broker_id: int, nth: int) -> str:
    """A valid Uuid of that log directory."""
    return f"AAAAAAAAAAAAAAA{broker_id:03d}{nth}xyA"


def broker(
    rng: random.Random, broker_id: int, racks: tuple[str | None, ...], health: float
) -> dict[str, Any]:
    dirs = [directory(broker_id, nth) for nth in range(rng.choice((0, 1, 1, 1, 2, 3)))]
    fenced, shutdown = rng.random() < health, rng.random() < health / 2
    cordoned = rng.choice((None, None, [], dirs[:1], dirs)) if rng.random() < 0.3 else None
    return {
        "id": broker_id,
        "rack": rng.choice(racks),
        "fenced": fenced,
        "inControlledShutdown": shutdown,
        "stopping": shutdown and not fenced and rng.random() < 0.7,
        "logDirs": dirs,
        "cordonedLogDirs": cordoned,
    }


def topic(rng: random.Random, name: str, asked: dict[str, Any]) -> dict[str, Any]:
    topic_id = f"TTTTTTTTTTTT{len(asked.get('topics', ())):02d}{NAMES.index(name):02d}xyzabA"
    known = [each["id"] for each in asked["brokers"]] or [0]
    factor = min(rng.choice((1, 2, 3, 3, 4)), len(known))
    count = rng.choice((1, 1, 2, 3, 6))
    return {
        "name": name,
        "id": topic_id,
        "partitions": [partition(rng, nth, rng.sample(known, factor), known, asked) for nth in range(count)],
    }


def partition(
    rng: random.Random, nth: int, replicas: list[int], known: list[int], asked: dict[str, Any]
) -> dict[str, Any]:
    """A state that a controller may have: the leader is in the ISR, the ELR is outside of it."""
    adding: list[int] = []
    removing: list[int] = []
    if rng.random() < 0.3:
        others = [each for each in known if each not in replicas]
        adding = rng.sample(others, min(len(others), rng.choice((0, 1, 2))))
        removing = rng.sample(replicas, min(len(replicas) - 1, rng.choice((0, 1, 2))))
        replicas = [*replicas, *adding]
    isr = [each for each in replicas if rng.random() < 0.7]
    if not isr and not asked["elr"]:
        isr = [rng.choice(replicas)]
    rng.shuffle(isr)
    outside = [each for each in replicas if each not in isr]
    elr = [each for each in outside if asked["elr"] and rng.random() < 0.4]
    last = (
        [rng.choice(outside)]
        if asked["elr"] and outside and not isr and not elr and rng.random() < 0.7
        else []
    )
    leader = rng.choice(isr) if isr and rng.random() < 0.8 else -1
    if asked["metadataVersion"] >= 17:
        assigned = [directory_of(rng, each, asked) for each in replicas]
    else:
        assigned = ["AAAAAAAAAAAAAAAAAAAAAA"] * len(replicas)
    return {
        "partitionId": nth,
        "replicas": replicas,
        "directories": assigned,
        "isr": isr,
        "removingReplicas": removing,
        "addingReplicas": adding,
        "eligibleLeaderReplicas": elr,
        "lastKnownElr": last,
        "leader": leader,
        "leaderRecoveryState": int(rng.random() < 0.1),
    }


def directory_of(rng: random.Random, broker_id: int, asked: dict[str, Any]) -> str:
    dirs = [dir_ for each in asked["brokers"] if each["id"] == broker_id for dir_ in each["logDirs"]]
    reserved = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAA"]
    return rng.choice(dirs * 4 + [*reserved, directory(broker_id, 9)])


def configs(rng: random.Random, topics: Sequence[str]) -> list[list[Any]]:
    """Dynamic configs that stand in the log: min ISR and unclean elections, and valid ones of topics."""
    found: list[list[Any]] = []
    for name, values in (
        ("min.insync.replicas", "123"),
        ("unclean.leader.election.enable", ("true", "false")),
    ):
        for resource in ("", CONTROLLER, "12"):
            if rng.random() < 0.15:
                found.append([BROKER_RESOURCE, resource, name, rng.choice(list(values))])
        for each in topics:
            if rng.random() < 0.3:
                found.append([TOPIC_RESOURCE, each, name, rng.choice(list(values))])
    valid = (
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "delete"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("retention.ms", "5000"),
        ("local.retention.ms", "1000"),
        ("remote.storage.enable", "true"),
        ("min.compaction.lag.ms", "2000"),
    )
    for each in topics:
        for name, value in valid:
            if rng.random() < 0.15 and not any(c[1:3] == [each, name] for c in found):
                found.append([TOPIC_RESOURCE, each, name, value])
    return found


def value_of(rng: random.Random, name: str) -> str | None:
    if rng.random() < 0.02:
        return None
    config = TOPIC_CONFIGS.get(name)
    kind = "STRING" if config is None else config.kind
    if rng.random() < 0.02:
        return "9" * rng.choice((32767, 32768))
    return rng.choice(VALUES[kind])


def some_configs(rng: random.Random) -> list[list[str | None]]:
    if rng.random() < 0.5:
        return []
    names = [*TOPIC_CONFIGS, "min.insync.replicas", "cleanup.policy", "compression.type", "retention.ms"]
    if rng.random() < 0.3:
        names = [name for name in names if "retention" in name or "remote" in name or "lag" in name]
    if rng.random() < 0.1:
        names += ["unknown.config", "retention.MS", "message.format.version", "x"] * 3
    chosen = [rng.choice(names) for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 20)))]
    likely = rng.random() < 0.7
    return [
        [name, fine_value(rng, name) if likely else value_of(rng, name)] for name in dict.fromkeys(chosen)
    ]


def fine_value(rng: random.Random, name: str) -> str | None:
    """Mostly one that the config takes by itself."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        return "1"
    by_name = {
        "compression.type": ("gzip", "zstd", "uncompressed"),
        "message.timestamp.type": ("CreateTime", "LogAppendTime"),
        "cleanup.policy": ("delete", "compact", "delete,compact", ""),
        "segment.bytes": ("1048576", "2097152"),
        "compression.gzip.level": ("-1", "5"),
        "min.cleanable.dirty.ratio": ("0.5", "0", "1"),
    }
    by_kind = {
        "INT": ("1", "2", "3", "4", "5", "17"),
        "LONG": ("1", "1000", "5000", "100000"),
        "BOOLEAN": ("true", "false"),
        "LIST": ("*", "0:1,1:2", ""),
    }
    values = by_name.get(name) or by_kind[config.kind]
    extra = ("-1", "-2") if "retention" in name else ()
    return rng.choice((*values, *extra))


def create(rng: random.Random) -> dict[str, Any]:
    asked = cluster(rng)
    many = rng.random() < 0.02
    topics: dict[str, dict[str, Any]] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        made = creatable(rng, asked, many=many)
        topics[made["name"]] = made
    if rng.random() < 0.002:
        # In 32 bits their sum is negative.
        for made in topics.values():
            made["partitions"] = (1 << 31) - 1
    return asked | {
        "ask": "create",
        "request": {"topics": list(topics.values()), "validateOnly": rng.random() < 0.1},
    }


def creatable(rng: random.Random, asked: dict[str, Any], *, many: bool) -> dict[str, Any]:
    name = rng.choice(BAD_NAMES) if rng.random() < 0.15 else rng.choice((*NAMES, "n1", "n2", "n3", "n4"))
    made: dict[str, Any] = {
        "name": name,
        "partitions": rng.choice((-1, 1, 2, 3, 7, 13)),
        "replicationFactor": rng.choice((-1, 1, 1, 2, 2, 3, 3, 4)),
        "assignments": [],
        "configs": some_configs(rng),
    }
    if rng.random() < 0.05:
        made["partitions"] = rng.choice((0, -2, -1000))
    if many:
        made["partitions"] = rng.choice((1000, 4998, 5000, 9999, 10000, 10001))
    if rng.random() < 0.05:
        made["replicationFactor"] = rng.choice((0, -2, 7, 32767, -32768))
    if rng.random() < 0.25:
        made["assignments"] = assignments(rng, asked)
        if rng.random() < 0.9:
            made["partitions"] = made["replicationFactor"] = -1
    return made


def assignments(rng: random.Random, asked: dict[str, Any]) -> list[list[Any]]:
    count = rng.choice((1, 1, 2, 3))
    ids = list(range(count))
    if rng.random() < 0.1:
        ids = rng.choice(([0, 0], [1], [0, 2], [1, 0], [-1]))
    replicas = replica_lists(rng, asked, len(ids))
    return [[nth, each] for nth, each in zip(ids, replicas, strict=True)]


def replica_lists(
    rng: random.Random, asked: dict[str, Any], count: int, factor: int | None = None
) -> list[list[int]]:
    known = [each["id"] for each in asked["brokers"]]
    wanted = min(len(known), factor or rng.choice((1, 2, 3)))
    found = [rng.sample(known, wanted) for _ in range(count)]
    for each in found:
        if rng.random() < 0.08:
            each[:] = rng.choice(([], [*each, 999], [*each, *each[:1]], each[:-1], [*each, *known[:1]]))
    return found


def some_topics(rng: random.Random, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Existing topics, and now and then one that does not exist."""
    if rng.random() < 0.001 and asked["topics"]:
        # More than one request may change.
        wide = asked["topics"][0]
        wide["partitions"] = [wide["partitions"][0] | {"partitionId": nth} for nth in range(10_005)]
        return [wide]
    chosen = rng.sample(asked["topics"], min(len(asked["topics"]), rng.choice((1, 1, 1, 2, 3))))
    if rng.random() < 0.1 or not chosen:
        name = rng.choice(("missing", *BAD_NAMES))
        chosen.append({"name": name, "id": "MMMMMMMMMMMMMMMMMMMMMA", "partitions": []})
    rng.shuffle(chosen)
    return chosen


def add_partitions(rng: random.Random) -> dict[str, Any]:
    asked = cluster(rng)
    topics: list[dict[str, Any]] = []
    for each in some_topics(rng, asked):
        held = len(each["partitions"])
        count = held + rng.choice((-1, 0, 1, 1, 2, 3, 7))
        if rng.random() < 0.003:
            count = rng.choice((-5, 4000, 9_999, 10_001, 12_000))
        lists = None
        if rng.random() < 0.3 and each["partitions"]:
            factor = len(each["partitions"][0]["replicas"])
            number = max(count - held, 0) if rng.random() < 0.9 else rng.choice((0, 1, 2))
            lists = replica_lists(rng, asked, min(number, 20), factor if rng.random() < 0.9 else None)
        topics.append({"name": each["name"], "count": count, "assignments": lists})
    return asked | {"ask": "add-partitions", "request": {"topics": topics}}


def delete(rng: random.Random) -> dict[str, Any]:
    asked = cluster(rng)
    ids = [each["id"] for each in some_topics(rng, asked)]
    return asked | {"ask": "delete", "request": {"topics": ids}}


def configure(rng: random.Random) -> dict[str, Any]:
    asked = cluster(rng)
    topics: list[dict[str, Any]] = []
    for each in some_topics(rng, asked):
        held = [
            name for kind, resource, name, _ in asked["configs"] if resource == each["name"] and kind == 2
        ]
        named = [name for name, _ in some_configs(rng)] + ([rng.choice(held)] if held else [])
        changes = [change_of(rng, str(name)) for name in dict.fromkeys(named)]
        if rng.random() < 0.3:
            changes.append([rng.choice(("APPEND", "SUBTRACT")), "cleanup.policy", rng.choice(VALUES["LIST"])])
        by_name = {name: [op, name, value] for op, name, value in changes}
        topics.append({"name": each["name"], "changes": list(by_name.values())})
    return asked | {"ask": "configure", "request": {"topics": topics}}


def change_of(rng: random.Random, name: str) -> list[str | None]:
    op = rng.choice(("SET", "SET", "SET", "DELETE", "APPEND", "SUBTRACT"))
    config = TOPIC_CONFIGS.get(name)
    if op in ("APPEND", "SUBTRACT") and rng.random() < 0.9 and not (config and config.is_list):
        op = "SET"
    value = fine_value(rng, name) if rng.random() < 0.7 else value_of(rng, name)
    return [op, name, None if op == "DELETE" else value or "1"]


def elect(rng: random.Random) -> dict[str, Any]:
    asked = cluster(rng)
    topics = [
        {"name": each["name"], "partitions": [p["partitionId"] for p in each["partitions"]] or [0]}
        for each in some_topics(rng, asked)
    ]
    if rng.random() < 0.1:
        topics[0]["partitions"].append(99)
    return asked | {"ask": "elect", "request": {"topics": topics, "electionType": rng.choice((0, 0, 1))}}


def reassign(rng: random.Random) -> dict[str, Any]:
    asked = cluster(rng)
    topics: list[dict[str, Any]] = []
    for each in some_topics(rng, asked):
        moves = [
            {"partitionId": p["partitionId"], "replicas": wanted_replicas(rng, asked, p)}
            for p in each["partitions"] or [{"partitionId": 0, "replicas": [0]}]
            if rng.random() < 0.9
        ]
        topics.append({"name": each["name"], "partitions": moves})
    request = {"topics": topics, "allowReplicationFactorChange": rng.random() < 0.7}
    return asked | {"ask": "reassign", "request": request}


def wanted_replicas(rng: random.Random, asked: dict[str, Any], held: dict[str, Any]) -> list[int] | None:
    """Others, the same in another order, a part of them, or None to give a reassignment up."""
    if rng.random() < 0.25:
        return None
    same = list(held["replicas"])
    rng.shuffle(same)
    if rng.random() < 0.3:
        return same[: rng.choice((len(same), max(1, len(same) - 1)))]
    (found,) = replica_lists(rng, asked, 1, rng.choice((len(same), None)))
    return found


ASKS = {
    "create": create,
    "add-partitions": add_partitions,
    "delete": delete,
    "configure": configure,
    "elect": elect,
    "reassign": reassign,
}
