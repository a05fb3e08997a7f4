"""CreateTopics: names, configs, assignments, limits, and answers per topic of a request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, FEATURES, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.messages.releases import ELR_VERSION, METADATA_VERSION
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.controller import ActiveController
from kraft_core.topic_control.controller_file import (
    CREATE_POLICY,
    DEFAULT_PARTITIONS,
    DEFAULT_REPLICATION_FACTOR,
    ControllerFile,
)
from kraft_core.topic_control.creation import create_topics
from kraft_core.topic_control.java import JavaRandom
from kraft_core.topic_control.placement import UsableBroker, place
from kraft_core.topic_control.requests import NewTopic, RequestRefusedError, TopicResult
from kraft_core.topic_control.topic_names import colliding, invalid_name


def controller(
    *existing: str, elr: bool = False, properties: dict[str, str] | None = None
) -> ActiveController:
    """Brokers 1 to 3 are active."""
    image = Image()
    image.tables.put(Change(FEATURES, (METADATA_VERSION,), Feature(METADATA_VERSION, 30)))
    image.tables.put(Change(FEATURES, (ELR_VERSION,), Feature(ELR_VERSION, int(elr))))
    for node_id in (1, 2, 3):
        broker = Broker(node_id, 7, "i", (), (), None, False, False, False, (f"dir-{node_id}",), None)
        image.tables.put(Change(BROKERS, (node_id,), broker))
    for nth, name in enumerate(existing):
        image.tables.put(Change(TOPICS, (f"id-{nth}",), Topic(f"id-{nth}", name)))
    return ActiveController(image, 9, ControllerFile(properties), JavaRandom(1))


def asked(*topics: NewTopic, **given: Any) -> list[TopicResult]:
    return create_topics(controller("base", "a.b", properties=given.get("properties", {})), topics)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("base", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("ä", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 249, ErrorCode.NONE),
    ],
)
def test_names(name: str, error: ErrorCode) -> None:
    (result,) = asked(NewTopic(name, 1, 1))
    assert result.error is error


def test_a_collision_is_named_even_of_an_invalid_name() -> None:
    assert invalid_name("a b") is not None
    assert colliding("a.b", ["a_b", "c"]) == ["a_b"]
    assert colliding("ab", ["a_b", "ab"]) == []


def test_results_are_per_topic() -> None:
    results = asked(
        NewTopic("twice", 1, 1),
        NewTopic("twice", 1, 1),
        NewTopic("__cluster_metadata", 1, 1),
        NewTopic("good", 2, 3),
        NewTopic("many", 1, 4),
    )
    assert {each.name: each.error.name for each in results} == {
        "twice": "INVALID_REQUEST",
        "__cluster_metadata": "INVALID_REQUEST",
        "good": "NONE",
        "many": "INVALID_REPLICATION_FACTOR",
    }
    good = next(each for each in results if each.name == "good")
    assert [record.type for record in good.records] == [
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "PARTITION_RECORD",
    ]
    assert sorted(good.records[1].value["replicas"]) == [1, 2, 3]


def test_a_request_writes_ten_thousand_records_at_most() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        asked(NewTopic("t", 10_001, 1))
    assert refused.value.text == "Excessively large number of partitions per request."
    with pytest.raises(RequestRefusedError) as refused:
        asked(NewTopic("t", 10_000, 1))
    assert refused.value.text == "Unable to perform excessively large batch operation."
    assert len(asked(NewTopic("t", 9_999, 1))[0].records) == 10_000


def test_a_sum_that_does_not_fit_into_32_bits() -> None:
    wide = [NewTopic(name, (1 << 31) - 1, 1) for name in ("t", "u")]
    with pytest.raises(RequestRefusedError) as refused:
        asked(*wide)
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR
    # Existing topics are not placed.
    assert asked(replace(wide[0], name="base"), replace(wide[1], name="a.b"))[1].error.name.startswith(
        "TOPIC"
    )
    # Nor is a topic with more replicas than there are brokers.
    more = [replace(topic, replication_factor=4) for topic in wide]
    assert {answer.error for answer in asked(*more)} == {ErrorCode.INVALID_REPLICATION_FACTOR}
    with pytest.raises(RequestRefusedError) as refused:
        create_topics(replace(controller(), release="4.4"), wide)
    assert refused.value.error is ErrorCode.POLICY_VIOLATION


def test_min_isr_clears_elrs() -> None:
    topic = NewTopic("t", 1, 1, configs=(("min.insync.replicas", "1"),))
    (result,) = create_topics(controller(elr=True), [topic])
    assert [r.type for r in result.records][1:3] == ["CONFIG_RECORD", "CLEAR_ELR_RECORD"]


@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        (((0, ()),), "empty replica list"),
        (((0, (1, 9)),), "includes broker 9, but no such broker"),
        (((0, (1, 1)),), "includes the broker 1 more than once"),
        (((0, (1,)), (1, (1, 2))), "not consistent with previous partitions"),
        (((0, (1,)), (2, (2,))), "consecutive 0-based integer sequence"),
        (((0, (1,)), (0, (2,))), "multiple manual partition assignments for partition 0"),
    ],
)
def test_manual_assignments(assignments: Any, text: str) -> None:
    (result,) = asked(NewTopic("t", assignments=assignments))
    assert result.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert text in (result.text or "")


def test_what_the_controllers_file_decides_is_noted() -> None:
    (result,) = create_topics(controller(), [NewTopic("t")])
    assert result.assumed == (DEFAULT_PARTITIONS, DEFAULT_REPLICATION_FACTOR, CREATE_POLICY)
    file = {"num.partitions": "4", "default.replication.factor": "2"}
    (result,) = create_topics(controller(properties=file), [NewTopic("t")])
    assert (len(result.records), result.assumed) == (5, ())
    file = {CREATE_POLICY: "com.example.Policy"}
    (result,) = create_topics(controller(properties=file), [NewTopic("t")])
    assert result.assumed == (CREATE_POLICY,)


def test_each_rack_gets_a_replica_before_one_gets_two() -> None:
    brokers = [UsableBroker(n, rack, False) for n, rack in enumerate("aaabbc")]
    racks = {broker.broker_id: broker.rack for broker in brokers}
    for seed in range(50):
        for replicas in place(brokers, 12, 3, JavaRandom(seed)):
            assert {racks[each] for each in replicas} == {"a", "b", "c"}


def test_a_leader_is_never_fenced() -> None:
    brokers = [UsableBroker(n, None, n > 1) for n in range(5)]
    for seed in range(50):
        assert {replicas[0] for replicas in place(brokers, 9, 4, JavaRandom(seed))} <= {0, 1}
