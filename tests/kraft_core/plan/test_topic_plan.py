"""Plans about topics: verdicts, and that no answer is SAFE without its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change, RefusedRecord
from kraft_core.image.client_quotas import ClientQuota
from kraft_core.image.configs import Config
from kraft_core.image.effective_configs import BROKER_RESOURCE
from kraft_core.image.endpoints import EndPoint
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, CLIENT_QUOTAS, CONFIGS, CONTROLLERS, FEATURES, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.messages.releases import METADATA_VERSION
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import CapturedMetadata, gap_of
from kraft_core.plan.standings import Standing
from kraft_core.plan.topic_creation import CreateTopics
from kraft_core.plan.topic_plan import TopicQuestion, plan_topics
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.requests import NewTopic
from tests.kraft_core.plan.captured import metadata

ORDERS = NewTopic("orders", 3, 2, configs=(("min.insync.replicas", "1"),))
FILE: dict[str, str] = {}


def broker(node_id: int, **different: Any) -> Change:
    ends = (EndPoint("PLAINTEXT", f"host-{node_id}", 9092, 0),)
    made = Broker(node_id, 9, f"i{node_id}", ends, (), None, False, False, False, (f"dir-{node_id}",), None)
    return Change(BROKERS, (node_id,), replace(made, **different))


def cluster(*changes: Change) -> CapturedMetadata:
    """Three voters that follow each other, and brokers 11 to 13."""
    read = _read()
    assert read.image is not None
    assert read.committed is not None
    found = replace(read, image=read.image.copy(), committed=read.committed.copy())
    for image in (found.image, found.committed):
        put(image, *(broker(n) for n in (11, 12, 13)), *changes)
    return found


@cache
def _read() -> CapturedMetadata:
    return metadata("disk-failure/before-wipe")


def put(image: Image | None, *changes: Change) -> None:
    assert image is not None
    for change in changes:
        image.tables.put(change)


def create(
    found: CapturedMetadata, *topics: NewTopic, file: dict[str, str] | None = FILE, **more: Any
) -> Answer:
    return plan_topics(found, TopicQuestion(CreateTopics(topics or (ORDERS,), **more), file))


def test_a_topic_that_kafka_accepts() -> None:
    made = create(cluster())
    assert (made.verdict, made.missing) == ("safe", ())
    assert made.reason == "Kafka accepts it"
    servers = "--bootstrap-server host-11:9092,host-12:9092,host-13:9092"
    assert made.steps[0].command == (
        f"bin/kafka-topics.sh {servers} --create --topic orders --partitions 3 --replication-factor 2 "
        "--config min.insync.replicas=1"
    )
    assert [record["type"] for record in made.results[0]["records"]].count("PARTITION_RECORD") == 3


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_a_topic_of_kafkas_own(name: str) -> None:
    """Brokers create it compacted, or kept for ever; the defaults delete what is a week old. It was SAFE."""
    made = create(cluster(), replace(ORDERS, name=name))
    assert (made.verdict, [risk.name for risk in made.risks]) == ("risky", ["internal_topic"])


def test_a_request_to_validate_writes_nothing() -> None:
    made = create(cluster(), validate_only=True)
    assert (made.verdict, made.reason, made.steps) == ("safe", "Kafka accepts it, and writes nothing", ())


def test_kafkas_own_error() -> None:
    found = cluster(Change(TOPICS, ("id",), Topic("id", "orders")))
    made = create(found, file=None)
    assert (made.verdict, made.error) == ("refused", ErrorCode.TOPIC_ALREADY_EXISTS)
    assert (made.exception, made.error_text) == ("TopicExistsException", "Topic 'orders' already exists.")


def test_one_refused_of_two() -> None:
    made = create(cluster(), ORDERS, NewTopic("many", 1, 4))
    assert made.verdict == "refused"
    assert made.reason.startswith("Kafka refuses 1 of 2, many first: INVALID_REPLICATION_FACTOR: ")
    assert made.reason.endswith("; the others are accepted")


def test_what_the_files_say_must_be_given() -> None:
    made = create(cluster(), file=None)
    assert made.verdict == "not_known"
    assert made.missing[0].startswith(
        "alter.config.policy.class.name, create.topic.policy.class.name: the controllers' files "
    )
    assert create(cluster(), file={"create.topic.policy.class.name": "Policy"}).verdict == "not_known"
    # A refusal by the default of a file rests on that file.
    made = create(cluster(), NewTopic("t"), file=None)
    assert made.verdict == "not_known"


def test_min_isr_and_replicas_that_are_down() -> None:
    down = cluster(broker(13, fenced=True))
    made = create(down, NewTopic("t", 1, 3, configs=(("min.insync.replicas", "3"),)))
    assert [risk.name for risk in made.risks] == ["replicas_down", "under_min_isr"]
    made = create(cluster(), NewTopic("t", 1, 3, configs=(("min.insync.replicas", "3"),)))
    assert [risk.name for risk in made.risks] == ["no_spare_replica"]
    # Broker 13 is not needed for two replicas.
    assert create(down).verdict == "safe"


@pytest.mark.parametrize(("least", "risks"), [("2", []), ("3", ["no_spare_replica"])])
def test_min_isr_of_all_replicas_by_the_file(least: str, risks: list[str]) -> None:
    """No log shows what the brokers demand, but they are taken to have the file. It was SAFE."""
    key = (BROKER_RESOURCE, "", "min.insync.replicas")
    found = cluster(Change(CONFIGS, key, None))
    made = create(found, NewTopic("t", 1, 3), file={"min.insync.replicas": least})
    assert (made.verdict, [risk.name for risk in made.risks]) == ("risky" if risks else "safe", risks)
    made = create(found, NewTopic("t", 1, 2), file={"min.insync.replicas": least})
    assert [risk.name for risk in made.risks] == ["no_spare_replica"]
    assert create(found, NewTopic("t", 1, 3), file={}).verdict == "safe"


def test_names_that_collide_in_one_request() -> None:
    made = create(cluster(), replace(ORDERS, name="a.b"), replace(ORDERS, name="a_b"))
    assert (made.verdict, made.risks[0].name) == ("risky", "colliding_names")


def test_a_broker_in_controlled_shutdown() -> None:
    """Whether the controller knows of it from its heartbeats decides: then three brokers are too few."""
    found = cluster(broker(13, in_controlled_shutdown=True))
    made = create(found, NewTopic("t", 1, 3))
    assert made.verdict == "not_known"
    assert any("knows from heartbeats that 13 shut down" in words for words in made.missing)


def test_the_committed_part_must_agree() -> None:
    found = cluster()
    put(found.committed, Change(TOPICS, ("id",), Topic("id", "orders")))
    made = create(found)
    assert made.missing == ("it depends on records at the log's end that are not proven committed",)


Removal = Callable[[CapturedMetadata], CapturedMetadata]


def _both(*changes: Change) -> Removal:
    def remove(found: CapturedMetadata) -> CapturedMetadata:
        put(found.image, *changes)
        put(found.committed, *changes)
        return found

    return remove


def _without_leader(found: CapturedMetadata) -> CapturedMetadata:
    members = tuple(m for m in found.quorum.members if m.standing is not Standing.LEADER)
    return replace(found, quorum=replace(found.quorum, members=members))


def _gapped(found: CapturedMetadata) -> CapturedMetadata:
    """The leader's log does not begin at its start."""
    return replace(found, gap=gap_of(found.image, ["the log begins at offset 10"]))


def _with_refusal(found: CapturedMetadata) -> CapturedMetadata:
    assert found.image is not None
    found.image.refusals.append(RefusedRecord(3, 1, "TOPIC_RECORD", None, "", "unreadable value"))
    return replace(found, gap=gap_of(found.image, []))


QUOTA = ClientQuota((("user", None),), "controller_mutation_rate", 1.0)
WITHOUT: dict[str, Removal] = {
    "leader": _without_leader,
    "log start": _gapped,
    "a record": _with_refusal,
    "committed": lambda found: replace(found, committed=None),
    "image": lambda found: replace(found, image=None),
    "brokers": _both(*(Change(BROKERS, (n,), None) for n in (11, 12, 13))),
    "two brokers": _both(*(Change(BROKERS, (n,), None) for n in (11, 12))),
    "metadata.version": _both(Change(FEATURES, (METADATA_VERSION,), None)),
    "controllers": _both(*(Change(CONTROLLERS, (n,), None) for n in (1, 2, 3))),
    "room in the quota": _both(Change(CLIENT_QUOTAS, (QUOTA.entity, QUOTA.key), QUOTA)),
    "newer": lambda found: replace(
        found, quorum=replace(found.quorum, superseded_by="a later epoch is known")
    ),
    "contested": lambda found: replace(found, quorum=replace(found.quorum, contested=(1,))),
}


@given(st.sets(st.sampled_from(sorted(WITHOUT)), min_size=1), st.integers(0, 1 << 48))
def test_without_evidence_nothing_is_safe(names: set[str], seed: int) -> None:
    found = cluster()
    for name in sorted(names):
        if name in ("image", "committed") or found.image is not None:
            found = WITHOUT[name](found) if found.image is not None and found.committed is not None else found
    question = TopicQuestion(CreateTopics((ORDERS,)), FILE, seed)
    assert plan_topics(found, question).verdict in ("not_known", "refused")


@pytest.mark.parametrize("name", WITHOUT)
def test_each_piece_is_needed(name: str) -> None:
    assert create(WITHOUT[name](cluster())).verdict in ("not_known", "refused")


def test_a_dynamic_config_wins_over_the_file() -> None:
    key = (BROKER_RESOURCE, "", "log.cleaner.max.compaction.lag.ms")
    found = cluster(Change(CONFIGS, key, Config(*key, "5")))
    topic = replace(ORDERS, configs=(*ORDERS.configs, ("min.compaction.lag.ms", "1000")))
    assert create(cluster(), topic).verdict == "safe"
    assert create(found, topic).verdict == "not_known"


def test_a_request_too_large_for_one_batch() -> None:
    configs = tuple((name, "9" * 30_000) for name in ("leader.replication.throttled.replicas",))
    fine = (("leader.replication.throttled.replicas", "0:" + "1" * 30_000),)
    topics = tuple(NewTopic(f"t{nth}", 1, 1, configs=fine) for nth in range(300))
    assert "8 MiB" in create(cluster(), *topics).missing[0]
    assert create(cluster(), replace(ORDERS, configs=configs)).verdict == "refused"


def test_every_set_of_brokers_that_shut_down_is_tried() -> None:
    """In rack b there are only such brokers."""
    racks = [broker(n, rack="a") for n in (14, 15, 16)]
    down = [broker(n, rack="b", in_controlled_shutdown=True) for n in (12, 13)]
    found = cluster(broker(11, rack="a"), *down, *racks)
    made = create(found, NewTopic("t", 1, 4, configs=(("min.insync.replicas", "1"),)))
    assert made.verdict == "not_known"
    many = [broker(n, in_controlled_shutdown=True) for n in range(20, 25)]
    assert create(cluster(*many)).verdict == "not_known"
