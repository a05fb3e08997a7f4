"""Versions of metadata, as the histories of a lake hold them; those of one thing follow each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Row = dict[str, Any]
# Random histories lie on offsets up to this one.
MOST_OFFSET = 20
# Of tokens, in ms; the last ones lie outside of every calendar.
EXPIRATIONS = (1_795_252_516_632, 200, -1, -(1 << 63), (1 << 63) - 1)
# Engines write them in their own ways.
QUOTAS = (
    0.0, -0.0, 0.5, 55.55, 0.1 + 0.2, 0.0005, 1e-5, 1e-7, 1048576.0, 12345678.9, 2e9, 1e15, 1e16, 2.0**63,
    1e36, -1e308, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip


def time_at(offset: int) -> datetime:
    """Ten milliseconds an offset."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=offset * 10)


def version(start: int, end: int | None, **more: Any) -> Row:
    """A version of anything, from one offset to another, exclusive."""
    row = {
        "cluster_id": "a",
        "valid_from_offset": start,
        "valid_to_offset": end,
        "valid_from_at": time_at(start),
        "valid_to_at": None if end is None else time_at(end),
        "valid_from_exact": True,
        "valid_to_exact": None if end is None else True,
        "record_offset": start,
        "record_type": "RECORD",
        "ended_by": None,
        "commit_status": "committed",
        "end_commit_status": None if end is None else "committed",
    }
    return row | more


def known_since(row: Row, earliest: int | None = None) -> Row:
    """The version as a snapshot at the start of it shows it first, over a gap that begins at `earliest`."""
    bounds = {
        "earliest_from_offset": earliest,
        "earliest_from_at": None if earliest is None else time_at(earliest),
    }
    known = {"valid_from_exact": False, "known_from_offset": row["valid_from_offset"], "record_offset": None}
    return row | bounds | known


def gone_by(row: Row, earliest: int) -> Row:
    """The version as a snapshot at the end of it no longer has it, over a gap that begins at `earliest`."""
    return row | {"valid_to_exact": False, "ended_by": "snapshot", "earliest_to_offset": earliest,
                  "earliest_to_at": time_at(earliest)}  # fmt: skip


def topic(topic_id: str, name: str, start: int, end: int | None = None) -> Row:
    return version(start, end, topic_id=topic_id, topic_name=name, record_type="TOPIC_RECORD",
                   ended_by=None if end is None else "REMOVE_TOPIC_RECORD")  # fmt: skip


def partition(start: int, end: int | None, isr: int, replicas: int = 3) -> Row:
    return version(
        start, end, topic_id="t", topic_name="orders", partition_id=0, leader=0,
        isr=list(range(isr)), replicas=list(range(replicas)), adding_replicas=[], removing_replicas=[],
        eligible_leader_replicas=[], leader_recovery_state="RECOVERED", record_type="PARTITION_CHANGE_RECORD",
    )  # fmt: skip


def setting(start: int, end: int | None, value: int | str, topic: str = "orders") -> Row:
    """A version of min.insync.replicas; of the cluster-wide default, if the topic has no name."""
    return version(
        start, end, resource_type="TOPIC" if topic else "BROKER", resource_name=topic,
        name="min.insync.replicas", value=str(value), redacted=False, record_type="CONFIG_RECORD",
        ended_by=None if end is None else "CONFIG_RECORD",
    )  # fmt: skip


def successive(random: Random, make: Callable[[int, int | None], Row | None]) -> list[Row]:
    """Up to six versions one after the other; where None is made, there is a gap."""
    starts = sorted(random.sample(range(MOST_OFFSET + 1), random.randrange(7)))
    made = (make(start, end) for start, end in zip(starts, [*starts[1:], None], strict=False))
    return [row for row in made if row is not None]


def random_partitions(random: Random) -> list[Row]:
    return successive(random, lambda start, end: partition(start, end, random.randrange(4)))


def random_settings(random: Random, topic: str) -> list[Row]:
    return successive(
        random, lambda start, end: setting(start, end, random.randint(1, 4), topic) if random.random() < 0.8
        else None,
    )  # fmt: skip


def random_histories(random: Random, cluster: str) -> dict[str, list[Row]]:
    """Versions of everything that the views on metadata are made of, by table."""

    def flip() -> bool:
        return random.random() < 0.5

    def some(make: Callable[[int, int | None], Row], gaps: bool = True) -> list[Row]:
        return successive(random, lambda s, e: None if gaps and random.random() < 0.3 else make(s, e))

    def member(values: Sequence[Any]) -> Any:
        return random.choice(values)

    def changing(start: int, end: int | None, n: int) -> Row:
        moving = random.random() < 0.3
        return partition(start, end, random.randrange(4)) | {
            "partition_id": n,
            "leader": member((-1, 0, 1, 2)),
            "replicas": member(([0, 1, 2], [2, 1, 0], [1, 2], [1, 2, 3], [1, 2, 3, 0])),
            "adding_replicas": [3] if moving else [],
            "removing_replicas": [0] if moving and flip() else [],
            "eligible_leader_replicas": [2] if flip() else [],
            "leader_recovery_state": member(("RECOVERED", "RECOVERED", "RECOVERING")),
            "record_type": member(("PARTITION_RECORD", "PARTITION_CHANGE_RECORD")),
            "record_offset": member((start, start, start, None)),
            "commit_status": member(("committed", "uncommitted")),
        }

    def config(start: int, end: int | None, name: str, secret: bool) -> Row:
        value = None if secret else member(("1", "2", "many", "\x0b2\x7f"))
        ended_by = member(("CONFIG_RECORD", "REMOVE_TOPIC_RECORD"))
        return setting(start, end, "") | {
            "name": name, "value": value, "redacted": secret, "ended_by": ended_by if end else None,
            "record_offset": member((start, start, None)),
        }  # fmt: skip

    histories: dict[str, list[Row]] = {
        "topics": [topic("t", "orders", 0, member((None, MOST_OFFSET)))],
        "partitions": [row for n in range(3)
                       for row in some(lambda s, e, n=n: changing(s, e, n), gaps=False)],
        "brokers": [row for n in range(3) for row in some(
            lambda s, e, n=n: version(s, e, broker_id=n, broker_epoch=member((1, s)), fenced=flip(),
                                      in_controlled_shutdown=flip(),
                                      ended_by=member((None, "UNREGISTER_BROKER_RECORD")) if e else None))],
        "configs": [*some(lambda s, e: config(s, e, "min.insync.replicas", False)),
                    *some(lambda s, e: config(s, e, "ssl.keystore.password", True)),
                    *random_settings(random, "")],
        "client_quotas": some(lambda s, e: version(s, e, entity_name="user=bob", key="producer_byte_rate",
                                                   value=member(QUOTAS))),
        "scram_users": some(lambda s, e: version(s, e, name="bob", mechanism="SCRAM-SHA-256")),
        "delegation_tokens": some(lambda s, e: version(
            s, e, token_digest="d", owner="User:bob", expiration_timestamp=member(EXPIRATIONS))),
        "acls": some(lambda s, e: version(
            s, e, id="i", resource_type="TOPIC", resource_name="orders", permission_type="ALLOW",
            principal="User:bob", operation="READ", pattern_type="LITERAL", host=member(("*", None)))),
        "features": some(lambda s, e: version(s, e, name="metadata.version", level=member((7, 25)),
                                              record_offset=member((s, None)))),
    }  # fmt: skip
    over_gaps = {name: [_over_a_gap(random, row) for row in rows] for name, rows in histories.items()}
    for row in (row for rows in over_gaps.values() for row in rows):
        row["cluster_id"] = cluster
    return over_gaps


def _over_a_gap(random: Random, row: Row) -> Row:
    """Now and then only a snapshot shows where it begins, or ends."""
    earliest = random.choice((None, max(row["valid_from_offset"] - 2, 0)))
    row = known_since(row, earliest) if random.random() < 0.2 else row
    end = row["valid_to_offset"]
    return row if end is None or random.random() < 0.8 else gone_by(row, max(end - 2, 0))
