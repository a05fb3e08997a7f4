"""Partitions under min ISR and administrative operations, as the page asks the views for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dashboards.report import history_queries
from dashboards.report.aggregates import MOST_STEPS, partitions_together, under_min_isr_steps
from tests.dashboards.histories import (
    MOST_OFFSET,
    gone_by,
    known_since,
    partition,
    random_partitions,
    random_settings,
    setting,
    topic,
    version,
)
from tests.dashboards.small_lakes import write_for

Row = dict[str, Any]


def thin(
    lake: Path, partitions: list[Row], settings: list[Row], topics: Sequence[Row] = (topic("t", "orders", 0),)
) -> list[Row]:
    tables = {"partitions": partitions, "configs": settings, "topics": [*topics]}
    write_for(lake, "under_min_isr", tables)
    return history_queries.under_min_isr(lake)


def value_at(rows: list[Row], offset: int) -> Row | None:
    for row in rows:
        end = row["valid_to_offset"]
        if row["valid_from_offset"] <= offset and (end is None or offset < end):
            return row
    return None


def test_under_min_isr_at_every_offset(tmp_path: Path) -> None:
    random = Random(7)
    clusters: dict[str, tuple[list[Row], list[Row], list[Row]]] = {}
    for n in range(300):
        own, shared = random_settings(random, "orders"), random_settings(random, "")
        clusters[f"c{n}"] = random_partitions(random), own, shared
    for name, kinds in clusters.items():
        for row in (row for rows in kinds for row in rows):
            row["cluster_id"] = name
    spans = thin(
        tmp_path,
        [row for versions, _, _ in clusters.values() for row in versions],
        [row for _, own, shared in clusters.values() for row in (*own, *shared)],
        [topic("t", "orders", 0) | {"cluster_id": name} for name in clusters],
    )
    assert len(spans) > 100
    for name, (versions, own, shared) in clusters.items():
        ours = [s for s in spans if s["cluster_id"] == name]
        for offset in range(MOST_OFFSET + 2):
            standing = value_at(versions, offset)
            held = value_at(own, offset) or value_at(shared, offset)
            least = min(int(held["value"]) if held else 1, 3)
            is_thin = standing is not None and len(standing["isr"]) < least
            covering = [
                s for s in ours
                if s["from_offset"] <= offset and (s["to_offset"] is None or offset < s["to_offset"])
            ]  # fmt: skip
            assert len(covering) == is_thin
        assert not {s["to_offset"] for s in ours} & {s["from_offset"] for s in ours}
    assert all(
        s["to_offset"] is None or s["under_ms"] == 10 * (s["to_offset"] - s["from_offset"]) for s in spans
    )


def test_a_topic_of_another_name_or_cluster_has_its_own_setting(tmp_path: Path) -> None:
    settings = [setting(0, None, 3, topic="other"), setting(0, None, 3) | {"cluster_id": "b"}]
    assert thin(tmp_path, [partition(0, None, 1)], settings) == []


def test_fewer_replicas_than_the_setting_are_enough(tmp_path: Path) -> None:
    assert thin(tmp_path / "a", [partition(0, None, 1, replicas=1)], [setting(0, None, 2)]) == []
    (span,) = thin(tmp_path / "b", [partition(0, None, 1, replicas=2)], [setting(0, None, 3)])
    assert (span["min_isr"], span["to_at"], span["under_ms"]) == (2, None, None)


def test_a_setting_that_is_no_number_counts_as_none(tmp_path: Path) -> None:
    assert thin(tmp_path, [partition(0, None, 1)], [setting(0, None, "many")]) == []


def test_partitions_that_fare_alike_are_one_row(tmp_path: Path) -> None:
    versions = [partition(5, 9, 1) | {"partition_id": n} for n in (0, 1, 4)] + [
        partition(5, 8, 1) | {"partition_id": 2}
    ]
    spans = thin(tmp_path, versions, [setting(0, None, 2)])
    rows = partitions_together(sorted(spans, key=lambda s: (-s["to_offset"], s["partition_id"])))
    assert [(r["partitions"], r["to_at"]) for r in rows] == [([0, 1, 4], 90), ([2], 80)]


def test_steps_count_the_partitions() -> None:
    spans = [{"from_at": 10, "to_at": 50}, {"from_at": 20, "to_at": None}, {"from_at": 20, "to_at": 30}]
    assert under_min_isr_steps(spans) == [
        {"at": 10, "most": 1, "partitions": 1},
        {"at": 20, "most": 3, "partitions": 3},
        {"at": 30, "most": 2, "partitions": 2},
        {"at": 50, "most": 1, "partitions": 1},
    ]
    many = [{"from_at": n * 10, "to_at": n * 10 + 5} for n in range(5_000)]
    rows = under_min_isr_steps(many)
    assert len(rows) <= MOST_STEPS
    assert {row["most"] for row in rows} == {1}
    assert rows[-1]["partitions"] == 0
    assert under_min_isr_steps([]) == []


class Events:
    """Writes a lake of the given versions and asks for its events."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lakes = 0

    def rows(self, **versions: list[Row]) -> list[Row]:
        self._lakes += 1
        lake = self._folder / str(self._lakes)
        write_for(lake, "admin_events", versions)
        return history_queries.admin_events(lake)

    def __call__(self, **versions: list[Row]) -> list[tuple[int, str, str, str | None, str | None]]:
        found = self.rows(**versions)
        return [(e["offset"], e["operation"], e["subject"], e["before"], e["after"]) for e in found]


@pytest.fixture
def events(tmp_path: Path) -> Events:
    return Events(tmp_path)


def test_topics_are_created_and_deleted(events: Events) -> None:
    rows = [topic("x", "orders", 5, 9), topic("y", "orders", 12)]
    made = partition(12, None, 3) | {"topic_id": "y", "record_type": "PARTITION_RECORD"}
    assert events(topics=rows, partitions=[made]) == [
        (12, "create topic", "orders", None, "1 partition, replication factor 3"),
        (9, "delete topic", "orders", "x", None),
        (5, "create topic", "orders", None, None),
    ]


def test_partitions_are_added_and_led_by_others(events: Events) -> None:
    def led(n: int, start: int, end: int | None, leader: int, kind: str = "PARTITION_RECORD") -> Row:
        return partition(start, end, 3) | {"partition_id": n, "leader": leader, "record_type": kind}

    changed = "PARTITION_CHANGE_RECORD"
    broker = version(1, None, broker_id=1, broker_epoch=1, fenced=False, in_controlled_shutdown=False)
    rows = [led(0, 5, 8, 0), led(1, 5, None, 1), led(2, 7, 9, 1), led(0, 8, None, 1, changed),
            led(2, 9, None, 0, changed)]  # fmt: skip
    brokers = [broker, broker | {"broker_id": 0}]
    found = events.rows(topics=[topic("t", "orders", 5)], partitions=rows, brokers=brokers)
    names = ("offset", "operation", "subject", "before", "after", "times")
    assert [tuple(e[n] for n in names) for e in found] == [
        (9, "elect leader", "orders-2", "1", "0", 2),
        (7, "add partitions", "orders", "2 partitions", "3 partitions", 1),
        (5, "create topic", "orders", None, "2 partitions, replication factor 3", 1),
        (1, "register broker", "0", None, "epoch 1", 1),
        (1, "register broker", "1", None, "epoch 1", 1),
    ]


def test_a_config_is_altered_and_then_deleted_and_secrets_stay_secret(events: Events) -> None:
    def config(start: int, end: int | None, value: str | None, redacted: bool = False) -> Row:
        return version(
            start, end, resource_type="TOPIC", resource_name="orders", name="retention.ms", value=value,
            redacted=redacted, record_type="CONFIG_RECORD", ended_by="CONFIG_RECORD",
        )  # fmt: skip

    resource = "orders retention.ms"
    assert events(configs=[config(1, 4, "10"), config(4, 6, "20"), config(8, None, None, redacted=True)]) == [
        (8, "alter config", resource, None, "(secret)"),
        (6, "alter config", resource, "20", None),
        (4, "alter config", resource, "10", "20"),
    ]


def test_a_reassignment_is_one_event_however_the_isr_goes_meanwhile(events: Events) -> None:
    def moving(start: int, end: int | None) -> Row:
        return partition(start, end, 3) | {
            "partition_id": 3, "replicas": [2, 3, 4, 1], "adding_replicas": [4], "removing_replicas": [1],
        }  # fmt: skip

    def settled(start: int, end: int | None, *replicas: int) -> Row:
        return partition(start, end, 3) | {"partition_id": 3, "replicas": list(replicas)}

    rows = [settled(1, 5, 1, 2, 3), moving(5, 7), moving(7, 9), settled(9, 20, 2, 3, 4),
            settled(20, None, 4, 2, 3)]  # fmt: skip
    first, second = events.rows(partitions=rows[:4])[0], events.rows(partitions=rows)[0]
    names = ("offset", "operation", "subject", "before", "after", "times", "since")
    assert [first[n] for n in names] == [
        5, "reassign partition", "orders-3", "[1,2,3]", "[2,3,4]", 1, 50,
    ]  # fmt: skip
    assert [second[n] for n in names] == [
        20, "reassign partition", "orders-3", "[2,3,4]", "[4,2,3]", 2, 50,
    ]  # fmt: skip


SNAPSHOT_FIRST = {
    "features": [version(5, None, name="metadata.version", level=7)],
    "topics": [topic("t", "orders", 5)],
    "partitions": [partition(5, None, 3) | {"record_type": "PARTITION_RECORD", "adding_replicas": [4]}],
    "configs": [version(5, None, resource_type="TOPIC", resource_name="orders", name="retention.ms",
                        value="10", record_type="CONFIG_RECORD", redacted=False)],
    "client_quotas": [version(5, None, entity_name="user=bob", key="rate", value=1.0)],
    "scram_users": [version(5, None, mechanism="SCRAM-SHA-256", name="bob")],
    "delegation_tokens": [version(5, None, token_digest="d", owner="User:bob", expiration_timestamp=1)],
    "acls": [version(5, None, id="i", resource_type="TOPIC", resource_name="orders", host="*")],
}  # fmt: skip


def test_what_was_first_read_from_a_snapshot_happened_at_or_before(events: Events) -> None:
    """An ACL of 09:35:01 that only a snapshot of 09:36:26 shows was not created at 09:36:26."""
    found = events.rows(**{name: [known_since(row) for row in rows] for name, rows in SNAPSHOT_FIRST.items()})
    assert {(e["operation"], e["subject"], e["after"]) for e in found} == {
        ("update feature", "metadata.version", "7"),
        ("create topic", "orders", "1 partition, replication factor 3"),
        ("reassign partition", "orders-0", "[0,1,2]"),
        ("alter config", "orders retention.ms", "10"),
        ("alter client quota", "user=bob rate", "1.0"),
        ("alter SCRAM credential", "bob SCRAM-SHA-256", "set"),
        ("create delegation token", "User:bob", "1970-01-01 00:00:00.001"),
        ("create ACL", "orders", "from *"),
    }
    names = ("offset", "changed_at", "is_exact", "earliest_offset", "earliest_at")
    assert {tuple(e[name] for name in names) for e in found} == {(5, 50, False, None, None)}
    assert {(e["is_exact"], e["earliest_offset"]) for e in events.rows(**SNAPSHOT_FIRST)} == {(True, None)}


def test_what_a_snapshot_over_a_gap_shows_happened_in_the_gap(events: Events) -> None:
    """After the log before the gap, and at or before the snapshot's last offset."""
    topics = [
        topic("x", "kept", 0),
        gone_by(topic("y", "lost", 0, 9), 4),
        known_since(topic("z", "new", 9), 4),
    ]
    config = {"resource_type": "TOPIC", "resource_name": "lost", "name": "retention.ms", "value": "1",
              "record_type": "CONFIG_RECORD", "redacted": False}  # fmt: skip
    made = [partition(0, 9, 3) | {"topic_id": "x", "topic_name": "kept"},
            known_since(partition(9, None, 2) | {"topic_id": "x", "topic_name": "kept"}, 4),
            known_since(partition(9, None, 1) | {"topic_id": "z", "topic_name": "new"}, 4)]  # fmt: skip
    made = [gone_by(made[0], 4), *made[1:]]
    found = events.rows(
        topics=topics,
        partitions=[row | {"record_type": "PARTITION_RECORD"} for row in made],
        configs=[gone_by(version(1, 9, **config), 4)],
        brokers=[gone_by(version(2, 9, broker_id=7, broker_epoch=2, fenced=False), 4)],
        acls=[gone_by(version(3, 9, id="i", resource_type="TOPIC", resource_name="a"), 4)],
    )
    over_the_gap = [e for e in found if not e["is_exact"]]
    assert sorted((e["operation"], e["subject"]) for e in over_the_gap) == [
        ("create topic", "new"), ("delete ACL", "a"), ("delete topic", "lost"), ("unregister broker", "7"),
    ]  # fmt: skip
    names = ("offset", "changed_at", "earliest_offset", "earliest_at")
    assert {tuple(e[name] for name in names) for e in over_the_gap} == {(9, 90, 4, 40)}
    exact = [(e["operation"], e["offset"]) for e in found if e["is_exact"]]
    assert exact == [
        ("create ACL", 3),
        ("register broker", 2),
        ("alter config", 1),
        ("create topic", 0),
        ("create topic", 0),
    ]


def test_who_led_over_a_gap_was_not_elected_unlawfully(events: Events) -> None:
    """Between the leader before a gap and the one behind it the ISR may have changed."""
    rows = [gone_by(partition(1, 9, 1), 4), known_since(partition(9, None, 1) | {"leader": 2}, 4)]
    assert events(partitions=rows) == []
    exact = [rows[0] | {"valid_to_exact": True}, partition(9, None, 1) | {"leader": 2}]
    assert [operation for _, operation, *_ in events(partitions=exact)] == ["elect unclean leader"]


def test_under_min_isr_of_a_snapshot_began_at_or_before(tmp_path: Path) -> None:
    rows = [known_since(partition(5, 9, 1), 2), partition(9, 12, 1)]
    (span,) = thin(tmp_path / "a", rows, [setting(0, None, 2)])
    assert (span["from_offset"], span["from_exact"], span["to_offset"], span["to_exact"]) == (
        5,
        False,
        12,
        True,
    )
    before, after = thin(
        tmp_path / "b",
        [gone_by(partition(1, 9, 1), 4), known_since(partition(9, None, 1), 4)],
        [setting(0, None, 2)],
    )
    assert (before["from_exact"], before["to_offset"], before["to_exact"]) == (True, 9, False)
    assert (after["from_offset"], after["from_exact"], after["to_exact"]) == (9, False, None)
    (known,) = thin(tmp_path / "c", [partition(1, None, 1)], [known_since(setting(3, None, 2))])
    assert (known["from_offset"], known["from_exact"]) == (3, False)


def test_tokens_acls_quotas_and_credentials(events: Events) -> None:
    token = {"token_digest": "d", "owner": "User:bob", "expiration_timestamp": 1_795_252_516_632}
    later = token | {"expiration_timestamp": 1_795_252_517_000}
    acl = {"id": "i", "resource_type": "TOPIC", "resource_name": "orders", "permission_type": "ALLOW",
           "principal": "User:bob", "operation": "READ", "pattern_type": "LITERAL", "host": "*"}  # fmt: skip
    words = "ALLOW User:bob READ LITERAL from *"
    expires, renewed = "2026-11-21 09:15:16.632", "2026-11-21 09:15:17.000"
    assert events(
        delegation_tokens=[version(1, 2, **token), version(2, 3, **later)],
        acls=[version(4, 5, **acl)],
        client_quotas=[version(6, None, entity_name="user=bob", key="producer_byte_rate", value=1e8)],
        scram_users=[version(7, None, mechanism="SCRAM-SHA-256", name="bob")],
    ) == [
        (7, "alter SCRAM credential", "bob SCRAM-SHA-256", None, "set"),
        (6, "alter client quota", "user=bob producer_byte_rate", None, "100000000.0"),
        (5, "delete ACL", "orders", words, None),
        (4, "create ACL", "orders", None, words),
        (3, "expire delegation token", "User:bob", renewed, None),
        (2, "renew delegation token", "User:bob", expires, renewed),
        (1, "create delegation token", "User:bob", None, expires),
    ]


@pytest.mark.parametrize("value", [1e308, -1e308, math.inf, -math.inf, math.nan, 2.0**63])
def test_a_quota_may_be_any_number(events: Events, value: float) -> None:
    """Kafka writes what the admin client sends, and one cluster's must not cost the page of all."""
    ((_, operation, _, _, after),) = events(
        client_quotas=[version(6, None, entity_name="user=bob", key="producer_byte_rate", value=value)]
    )
    assert operation == "alter client quota"
    assert float(after or "") == value or math.isnan(value)


@pytest.mark.parametrize("at", [-(1 << 63), -1, 253_402_300_800_000, (1 << 63) - 1])
def test_a_token_may_expire_at_any_time(events: Events, at: int) -> None:
    token = {"token_digest": "d", "owner": "User:bob", "expiration_timestamp": at}
    ((*_, after),) = events(delegation_tokens=[version(1, None, **token)])
    assert after == f"{at} ms"


def test_the_same_again_and_again_is_one_row(events: Events) -> None:
    rows = [
        version(n, n + 1, resource_type="TOPIC", resource_name="orders", name="retention.ms", value=str(n),
                redacted=False, record_type="CONFIG_RECORD", ended_by="CONFIG_RECORD")
        for n in range(30)
    ]  # fmt: skip
    found = events.rows(configs=rows, topics=[topic("x", "other", 15)])
    assert [(e["offset"], e["operation"], e["after"], e["times"], e["since"]) for e in found] == [
        (30, "alter config", None, 1, 300),
        (29, "alter config", "29", 15, 150),
        (15, "create topic", None, 1, 150),
        (14, "alter config", "14", 15, 0),
    ]


def test_only_the_newest_are_asked_for(events: Events) -> None:
    found = events(topics=[topic(str(n), f"t{n}", n) for n in range(200)])
    assert [offset for offset, *_ in found] == list(range(199, 139, -1))


def test_a_lake_without_histories_has_no_events(tmp_path: Path) -> None:
    """Captures were ingested, but nothing derived."""
    assert history_queries.admin_events(tmp_path) == []
    assert history_queries.under_min_isr(tmp_path) == []


def test_names_of_clusters_are_text(tmp_path: Path) -> None:
    name = "it's; DROP TABLE topics"
    write_for(tmp_path / "lake", "admin_events", {"topics": [topic("x", "t", 1) | {"cluster_id": name}]})
    assert len(history_queries.admin_events(tmp_path / "lake", [name])) == 1
    assert history_queries.admin_events(tmp_path / "lake", ["it"]) == []
