"""kafka-topics --describe by an image; tests/long/test_described_topics.py compares with Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_core.format.java_text import hash_bucket, hash_order
from kraft_core.image.image import Image
from kraft_core.kafka_tools.topic_configs import TOPIC_CONFIGS, brokers_with_own_configs, shown_configs
from kraft_core.kafka_tools.topics import describe_topics
from kraft_core.messages.configs import CONFIG_TYPES
from tests.kraft_core.image.worlds import broker_fields, partition_fields, replay, rows, topic_fields

ID = "AAAAAAAAAAAAAAAAAAAAAg"


def image_of(*configs: tuple[int, str, str, str], **partition: Any) -> Image:
    made = [("REGISTER_BROKER_RECORD", broker_fields(1, 5, ID, fenced=False))]
    made += [("TOPIC_RECORD", topic_fields("t", ID)), ("PARTITION_RECORD", partition_fields(ID, **partition))]
    for kind, name, key, value in configs:
        fields = {"resourceType": kind, "resourceName": name, "name": key, "value": value}
        made.append(("CONFIG_RECORD", fields))
    return replay(rows(made))


def test_a_topic_and_its_partition() -> None:
    image = image_of((2, "t", "retention.ms", "1"), (4, "", "min.insync.replicas", "1"), isr=[2, 1])
    assert list(describe_topics(image)) == [
        f"Topic: t\tTopicId: {ID}\tPartitionCount: 1\tReplicationFactor: 2"
        "\tConfigs: min.insync.replicas=1,retention.ms=1",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 2,1\tElr: \tLastKnownElr: ",
    ]


def test_a_partition_that_is_moved_and_one_without_a_leader() -> None:
    moved = {"replicas": [1, 2, 3], "addingReplicas": [3], "removingReplicas": [1], "directories": []}
    head, line = describe_topics(image_of(**moved, leader=-1, lastKnownElr=[1], eligibleLeaderReplicas=[2]))
    assert "ReplicationFactor: 2" in head
    assert "\tLeader: none\tReplicas: 1,2,3\tIsr: 1,2\tAdding Replicas: 3\tRemoving Replicas: 1" in line
    assert line.endswith("\tElr: 2\tLastKnownElr: 1")
    # A broker that is fenced or gone leads nothing.
    assert "Leader: none" in list(describe_topics(image_of(leader=2)))[1]


@pytest.mark.parametrize(("leader", "shown"), [(1, "1"), (2, "not known"), (-1, "none")])
def test_a_leader_whose_registration_may_be_missing_is_not_known(leader: int, shown: str) -> None:
    assert f"Leader: {shown}\t" in list(describe_topics(image_of(leader=leader), is_whole=False))[1]


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("retention.ms", " 007 ", "7"),
        ("preallocate", " TRUE", "true"),
        ("cleanup.policy", "compact , delete", "compact,delete"),
        ("leader.replication.throttled.replicas", " ", ""),
        ("min.cleanable.dirty.ratio", "0.50", "0.5"),
        ("compression.type", " zstd ", "zstd"),
        ("segment.bytes", "many", "many"),
        ("my.plugin.password", "hunter2", "null"),
    ],
)
def test_a_value_is_shown_as_a_broker_parses_it(name: str, value: str, shown: str) -> None:
    assert shown_configs(image_of((2, "t", name, value)), "t", None) == [(name, shown)]


def test_the_value_of_the_topic_then_of_the_broker_then_of_all() -> None:
    of_all, of_one = (4, "", "log.retention.ms", "1"), (4, "11", "log.retention.ms", "2")
    image = image_of(of_all, of_one)
    assert shown_configs(image, "t", None) == [("retention.ms", "1")]
    assert shown_configs(image, "t", 11) == [("retention.ms", "2")]
    assert shown_configs(image, "t", 12) == [("retention.ms", "1")]
    assert brokers_with_own_configs(image) == [11]
    assert shown_configs(image_of(of_all, of_one, (2, "t", "retention.ms", "3")), "t", 11)[0][1] == "3"
    assert brokers_with_own_configs(image_of((4, "11", "log.cleaner.threads", "2"))) == []


def test_configs_are_in_the_order_of_java_and_have_types() -> None:
    """As LogConfig of Kafka 4.3.1 lists them."""
    names = [config.name for config in TOPIC_CONFIGS]
    assert names == hash_order(names, 64)
    assert set(names) <= set(CONFIG_TYPES)


def test_topics_are_in_the_order_of_java() -> None:
    """ "Aa" and "BB" have one hash code; of a character beyond 16 bits, both of its units count."""
    assert (hash_bucket("Aa", 1 << 31), hash_bucket("BB", 1 << 31)) == (2112, 2112)
    assert hash_bucket("🦊", 1 << 31) == (31 * 0xD83E + 0xDD8A) ^ ((31 * 0xD83E + 0xDD8A) >> 16)
    assert hash_order(["BB", "Aa", "b", "a"]) == ["BB", "Aa", "a", "b"]
    image = Image()
    assert list(describe_topics(image)) == []
