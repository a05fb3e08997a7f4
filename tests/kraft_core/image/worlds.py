"""Lives of imaginary clusters: sequences of metadata records as a controller might write them.

A life is made from a list of steps, each an action and a number from which its details follow, so that
hypothesis can shorten it. Records refer to what exists at that moment; an image on the side knows what does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from kraft_core.image import tables
from kraft_core.image.change import MetadataRecord
from kraft_core.image.history import History, Version
from kraft_core.image.image import Image
from kraft_core.messages.uuid_text import uuid_text

Fields = dict[str, Any]
Made = tuple[str, Fields]


@dataclass(frozen=True)
class Row:
    """A record as the image takes it."""

    offset: int
    leader_epoch: int
    timestamp: int
    type: str
    value: Fields | None


def row(type_: str, value: Fields | None, offset: int = 0) -> Row:
    return Row(offset, 1, 1_000 + offset, type_, value)


def rows(made: Sequence[Made], first_offset: int = 0) -> list[Row]:
    return [row(type_, value, first_offset + position) for position, (type_, value) in enumerate(made)]


def replay(records: Sequence[Any], image: Image | None = None) -> Image:
    image = Image() if image is None else image
    for record in records:
        image.apply(record)
    return image


def uuid(random: Random) -> str:
    return uuid_text(random.randbytes(16))


def token_id(random: Random) -> str:
    """A uuid that no other thing of a life has: a test looks for it where it must not be."""
    return uuid_text(b"a token " + random.randbytes(8))


def topic_fields(name: str, topic_id: str) -> Fields:
    return {"name": name, "topicId": topic_id}


def partition_fields(topic_id: str, partition_id: int = 0, **changed: Any) -> Fields:
    return {
        "partitionId": partition_id,
        "topicId": topic_id,
        "replicas": [1, 2],
        "isr": [1, 2],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderRecoveryState": 0,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAQ"],
        "eligibleLeaderReplicas": None,
        "lastKnownElr": None,
    } | changed


def change_fields(topic_id: str, partition_id: int = 0, **changed: Any) -> Fields:
    return {
        "partitionId": partition_id,
        "topicId": topic_id,
        "isr": None,
        "leader": -2,
        "replicas": None,
        "removingReplicas": None,
        "addingReplicas": None,
        "leaderRecoveryState": -1,
        "directories": None,
        "eligibleLeaderReplicas": None,
        "lastKnownElr": None,
    } | changed


def broker_fields(broker_id: int, epoch: int, incarnation_id: str, **changed: Any) -> Fields:
    return {
        "brokerId": broker_id,
        "isMigratingZkBroker": False,
        "incarnationId": incarnation_id,
        "brokerEpoch": epoch,
        "endPoints": [{"name": "PLAINTEXT", "host": f"b{broker_id}", "port": 9092, "securityProtocol": 0}],
        "features": [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 30}],
        "rack": None,
        "fenced": True,
        "inControlledShutdown": False,
        "logDirs": [],
        "cordonedLogDirs": None,
    } | changed


class Life:
    """Owns the records so far, and an image that says what exists, inside of open transactions too."""

    def __init__(self) -> None:
        self.image = Image()
        self.records: list[Row] = []
        self.in_transaction = False

    def made(self, action: str, number: int) -> Made | None:
        """The record that an action would write; None where it has nothing to act upon."""
        return _ACTIONS[action](self, Random(number))

    def step(self, action: str, number: int) -> None:
        made = self.made(action, number)
        if made is not None:
            self.add(*made)

    def add(self, type_: str, value: Fields) -> None:
        offset = len(self.records)
        record = Row(offset, 1 + offset // 40, 1_700_000_000_000 + 10 * offset, type_, value)
        self.records.append(record)
        if type_ == "ABORT_TRANSACTION_RECORD":
            self.image = replay(self.records)
        elif type_ not in ("BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD"):
            self.image.apply(record)
        opened, closed = "BEGIN_TRANSACTION_RECORD", ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")
        self.in_transaction = type_ == opened or (self.in_transaction and type_ not in closed)

    def some(self, kind: str, random: Random) -> Any | None:
        values = [value for _, value in self.image.tables.items(kind)]
        return random.choice(values) if values else None


def _topic(life: Life, random: Random) -> Made | None:
    name = random.choice(["a", "b", "orders", "pay.ments", "x(y)"])
    if name in life.image.tables.topic_ids:
        return None
    return "TOPIC_RECORD", topic_fields(name, uuid(random))


def _remove_topic(life: Life, random: Random) -> Made | None:
    topic = life.some(tables.TOPICS, random)
    return None if topic is None else ("REMOVE_TOPIC_RECORD", {"topicId": topic.topic_id})


def _brokers(random: Random) -> list[int]:
    return random.sample([1, 2, 3, 4], random.randint(1, 3))


def _directories(random: Random, count: int) -> list[str]:
    if random.random() < 0.2:
        return ["A" * 22] * count
    return [random.choice(["A" * 21 + "Q", "A" * 21 + "g", uuid(random)]) for _ in range(count)]


def _some_of(random: Random, replicas: Sequence[int]) -> list[int]:
    return random.sample(list(replicas), random.randint(0, len(replicas)))


def _partition(life: Life, random: Random) -> Made | None:
    topic = life.some(tables.TOPICS, random)
    if topic is None:
        return None
    replicas = _brokers(random)
    return "PARTITION_RECORD", partition_fields(
        topic.topic_id,
        len(life.image.tables.group(tables.PARTITIONS, topic.topic_id)),
        replicas=replicas,
        isr=_some_of(random, replicas),
        leader=random.choice([-1, *replicas]),
        leaderRecoveryState=random.randint(0, 1),
        leaderEpoch=random.randint(0, 5),
        partitionEpoch=random.randint(0, 5),
        directories=random.choice([[], _directories(random, len(replicas))]),
        eligibleLeaderReplicas=random.choice([None, _some_of(random, replicas)]),
        lastKnownElr=random.choice([None, [1]]),
    )


def _change_partition(life: Life, random: Random) -> Made | None:
    partition = life.some(tables.PARTITIONS, random)
    if partition is None:
        return None
    replicas = list(partition.replicas)
    changed: Fields = {
        "isr": _some_of(random, replicas),
        "leader": random.choice([-1, *replicas]),
        "removingReplicas": _some_of(random, replicas),
        "addingReplicas": [4],
        "leaderRecoveryState": random.randint(0, 1),
        "directories": _directories(random, len(replicas)),
        "eligibleLeaderReplicas": _some_of(random, replicas),
        "lastKnownElr": _some_of(random, replicas),
    }
    kept = random.sample(sorted(changed), random.randint(0, 4))
    chosen = {name: changed[name] for name in kept}
    if random.random() < 0.2:
        chosen["replicas"] = _brokers(random)
        chosen["directories"] = _directories(random, len(chosen["replicas"]))
    return "PARTITION_CHANGE_RECORD", change_fields(partition.topic_id, partition.partition_id, **chosen)


def _clear_elr(life: Life, random: Random) -> Made:
    topic = life.some(tables.TOPICS, random)
    return "CLEAR_ELR_RECORD", {"topicName": random.choice(["", topic.name if topic else ""])}


def _end_points(random: Random) -> list[Fields]:
    return [
        {
            "name": name,
            "host": f"h{random.randint(0, 9)}",
            "port": 9092,
            "securityProtocol": random.randint(0, 3),
        }
        for name in random.sample(["PLAINTEXT", "SSL", "CONTROLLER"], random.randint(1, 3))
    ]


def _features(random: Random) -> list[Fields]:
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": low + random.randint(0, 3)}
        for name in random.sample(
            ["metadata.version", "group.version", "kraft.version"], random.randint(0, 3)
        )
        for low in [random.randint(0, 3)]
    ]


def _register_broker(_: Life, random: Random) -> Made:
    return "REGISTER_BROKER_RECORD", broker_fields(
        random.randint(1, 4),
        random.randint(1, 1000),
        uuid(random),
        endPoints=_end_points(random),
        features=_features(random),
        rack=random.choice([None, "r1", "Ω"]),
        fenced=random.random() < 0.5,
        inControlledShutdown=random.random() < 0.5,
        isMigratingZkBroker=random.random() < 0.1,
        logDirs=[uuid(random) for _ in range(random.randint(0, 3))],
        cordonedLogDirs=random.choice([None, [], [uuid(random)]]),
    )


def _unregister_broker(life: Life, random: Random) -> Made | None:
    broker = life.some(tables.BROKERS, random)
    if broker is None:
        return None
    return "UNREGISTER_BROKER_RECORD", {"brokerId": broker.broker_id, "brokerEpoch": broker.broker_epoch}


def _fence(life: Life, random: Random) -> Made | None:
    broker = life.some(tables.BROKERS, random)
    if broker is None:
        return None
    type_ = random.choice(["FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"])
    return type_, {"id": broker.broker_id, "epoch": broker.broker_epoch}


def _change_broker(life: Life, random: Random) -> Made | None:
    broker = life.some(tables.BROKERS, random)
    if broker is None:
        return None
    return "BROKER_REGISTRATION_CHANGE_RECORD", {
        "brokerId": broker.broker_id,
        "brokerEpoch": broker.broker_epoch,
        "fenced": random.randint(-1, 1),
        "inControlledShutdown": random.randint(0, 1),
        "logDirs": [uuid(random) for _ in range(random.randint(0, 2))],
        "cordonedLogDirs": random.choice([None, [], [uuid(random)]]),
    }


def _register_controller(_: Life, random: Random) -> Made:
    return "REGISTER_CONTROLLER_RECORD", {
        "controllerId": random.randint(1, 3),
        "incarnationId": uuid(random),
        "zkMigrationReady": random.random() < 0.5,
        "endPoints": _end_points(random),
        "features": _features(random),
    }


def _unregister_controller(_: Life, random: Random) -> Made:
    return "UNREGISTER_CONTROLLER_RECORD", {"controllerId": random.randint(1, 3)}


# Kafka 4.3's shell leaves out names that it does not know of these resources.
_CONFIG_NAMES = {
    2: ["retention.ms", "cleanup.policy", "min.insync.replicas"],
    4: ["log.retention.ms", "ssl.keystore.password"],
    16: ["interval.ms", "metrics"],
    32: ["consumer.session.timeout.ms"],
}


def _config(life: Life, random: Random) -> Made:
    topic = life.some(tables.TOPICS, random)
    resource = random.choice(
        [(2, topic.name if topic else "gone"), (4, ""), (4, "1"), (16, "sub"), (32, "g")]
    )
    return "CONFIG_RECORD", {
        "resourceType": resource[0],
        "resourceName": resource[1],
        "name": random.choice(_CONFIG_NAMES[resource[0]]),
        "value": random.choice([None, "", "1", "two words"]),
    }


def _acl(_: Life, random: Random) -> Made:
    return "ACCESS_CONTROL_ENTRY_RECORD", {
        "id": uuid(random),
        "resourceType": random.randint(2, 7),
        "resourceName": random.choice(["*", "orders"]),
        "patternType": random.randint(3, 4),
        "principal": "User:alice",
        "host": random.choice(["*", "10.0.0.1"]),
        "operation": random.randint(2, 14),
        "permissionType": random.randint(2, 3),
    }


def _remove_acl(life: Life, random: Random) -> Made | None:
    acl = life.some(tables.ACLS, random)
    return None if acl is None else ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": acl.id})


def _quota(life: Life, random: Random) -> Made:
    known = life.some(tables.CLIENT_QUOTAS, random)
    if known is not None and random.random() < 0.4:
        entity, key = [{"entityType": t, "entityName": n} for t, n in known.entity], known.key
    else:
        kinds = random.choice([["user"], ["client-id"], ["ip"], ["user", "client-id"]])
        entity = [{"entityType": t, "entityName": random.choice(["a", "b(c)", "d\\", None])} for t in kinds]
        key = random.choice(["producer_byte_rate", "request_percentage"])
    value = random.choice([0.0, 0.001, 12.5, 1e7, 123456789.125, 2.5e-5, 1e21, 9999999.0])
    return "CLIENT_QUOTA_RECORD", {
        "entity": entity,
        "key": key,
        "value": value,
        "remove": random.random() < 0.3,
    }


def _scram(_: Life, random: Random) -> Made:
    return "USER_SCRAM_CREDENTIAL_RECORD", {
        "name": random.choice(["alice", "bob", "c d"]),
        "mechanism": random.randint(1, 2),
        "salt": random.randbytes(4),
        "storedKey": random.randbytes(8),
        "serverKey": random.randbytes(8),
        "iterations": random.choice([4096, 8192]),
    }


def _remove_scram(life: Life, random: Random) -> Made | None:
    user = life.some(tables.SCRAM_USERS, random)
    if user is None:
        return None
    return "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": user.name, "mechanism": user.mechanism}


def _token(life: Life, random: Random) -> Made:
    known = life.some(tables.DELEGATION_TOKENS, random)
    renewed = known is not None and random.random() < 0.4
    return "DELEGATION_TOKEN_RECORD", {
        "owner": "User:alice",
        "requester": "User:admin",
        "renewers": random.choice([[], ["User:r1", "User:r2"]]),
        "issueTimestamp": 1,
        "maxTimestamp": 1000,
        "expirationTimestamp": random.randint(2, 1000),
        "tokenId": known.token_id if known is not None and renewed else token_id(random),
    }


def _remove_token(life: Life, random: Random) -> Made | None:
    token = life.some(tables.DELEGATION_TOKENS, random)
    return None if token is None else ("REMOVE_DELEGATION_TOKEN_RECORD", {"tokenId": token.token_id})


def _feature(_: Life, random: Random) -> Made:
    if random.random() < 0.3:
        return "FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": random.randint(7, 30)}
    name = random.choice(["group.version", "share.version", "kraft.version"])
    return "FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": random.randint(0, 2)}


def _producer_ids(_: Life, random: Random) -> Made:
    return "PRODUCER_IDS_RECORD", {
        "brokerId": random.randint(1, 4),
        "brokerEpoch": random.randint(1, 1000),
        "nextProducerId": random.randint(0, 10**6),
    }


def _zk_migration(_: Life, random: Random) -> Made:
    return "ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": random.randint(0, 3)}


def _begin(life: Life, _: Random) -> Made | None:
    return None if life.in_transaction else ("BEGIN_TRANSACTION_RECORD", {"name": "t"})


def _end(life: Life, _: Random) -> Made | None:
    return ("END_TRANSACTION_RECORD", {}) if life.in_transaction else None


def _abort(life: Life, _: Random) -> Made | None:
    return ("ABORT_TRANSACTION_RECORD", {"reason": None}) if life.in_transaction else None


def _no_op(_: Life, __: Random) -> Made:
    return "NO_OP_RECORD", {}


_ACTIONS: dict[str, Callable[[Life, Random], Made | None]] = {
    "topic": _topic,
    "partition": _partition,
    "change partition": _change_partition,
    "remove topic": _remove_topic,
    "clear elr": _clear_elr,
    "register broker": _register_broker,
    "unregister broker": _unregister_broker,
    "fence": _fence,
    "change broker": _change_broker,
    "register controller": _register_controller,
    "unregister controller": _unregister_controller,
    "config": _config,
    "acl": _acl,
    "remove acl": _remove_acl,
    "quota": _quota,
    "scram": _scram,
    "remove scram": _remove_scram,
    "token": _token,
    "remove token": _remove_token,
    "feature": _feature,
    "producer ids": _producer_ids,
    "zk migration": _zk_migration,
    "no op": _no_op,
    "begin": _begin,
    "end": _end,
    "abort": _abort,
}

ACTIONS = tuple(_ACTIONS)
# Without many topics and partitions there is little to change, and transactions should end.
OFTEN = ("topic", "partition", "change partition", "change partition", "end")


def life(steps: Sequence[tuple[str, int]]) -> list[Row]:
    """The records that the steps make; a step that has nothing to act upon makes none."""
    lived = Life()
    for action, number in steps:
        lived.step(action, number)
    return lived.records


steps = st.lists(
    st.tuples(st.sampled_from((*ACTIONS, *OFTEN)), st.integers(0, 1 << 32)), min_size=1, max_size=60
)
lives = steps.map(life)


def random_steps(seed: int, count: int, without: Sequence[str] = ()) -> list[tuple[str, int]]:
    """Steps that are the same for the same seed."""
    random = Random(seed)
    actions = [action for action in (*ACTIONS, *OFTEN) if action not in without]
    return [(random.choice(actions), random.getrandbits(32)) for _ in range(count)]


def history(records: Iterable[MetadataRecord], snapshot: Image | None = None) -> dict[str, list[Version]]:
    """The versions of every kind by the records that follow the snapshot, or that begin the log."""
    replayed = History()
    if snapshot is not None:
        replayed.load(snapshot)
    for record in records:
        replayed.apply(record)
    return {kind: replayed.versions(kind) for kind in tables.KINDS}
