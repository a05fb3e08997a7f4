"""Plans about topics that exist: more partitions, configs, deletion, elections, reassignments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.image.change import Change
from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.effective_configs import BROKER_RESOURCE, MIN_ISR
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import CONFIGS, PARTITIONS, TOPICS
from kraft_core.image.topics import Topic
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.topic_configuration import ConfigureTopics
from kraft_core.plan.topic_creation import CreateTopics
from kraft_core.plan.topic_deletion import DeleteTopics
from kraft_core.plan.topic_election import ElectLeaders
from kraft_core.plan.topic_partitions import AddPartitions
from kraft_core.plan.topic_plan import TopicChange, TopicQuestion, plan_topics
from kraft_core.plan.topic_reassignment import ReassignPartitions
from kraft_core.protocol.errors import ErrorCode
from kraft_core.topic_control.partition_change import ElectionType
from kraft_core.topic_control.reassignments import PartitionMove
from kraft_core.topic_control.requests import NewPartitions, NewTopic
from tests.kraft_core.plan.test_topic_plan import FILE, ORDERS, WITHOUT, broker, cluster

TOPIC = Change(TOPICS, ("id",), Topic("id", "orders"))
MIN_ISR_1 = Change(CONFIGS, (BROKER_RESOURCE, "", MIN_ISR), Config(BROKER_RESOURCE, "", MIN_ISR, "1"))
WITHOUT_MIN_ISR = Change(CONFIGS, (BROKER_RESOURCE, "", MIN_ISR), None)


def partition(nth: int, replicas: tuple[int, ...] = (11, 12), **different: Any) -> Change:
    directories = tuple(f"dir-{each}" for each in replicas)
    made = Partition(
        "id", "orders", nth, replicas, directories, replicas, (), (), (), (), replicas[0], 0, 0, 0
    )
    return Change(PARTITIONS, ("id", nth), replace(made, **different))


def topic_config(name: str, value: str) -> Change:
    key = (TOPIC_RESOURCE, "orders", name)
    return Change(CONFIGS, key, Config(*key, value))


def broker_config(name: str, value: str, broker_id: str = "") -> Change:
    """Of one broker; without an id, of the cluster."""
    key = (BROKER_RESOURCE, broker_id, name)
    return Change(CONFIGS, key, Config(*key, value))


def loaded(*changes: Change) -> CapturedMetadata:
    """Topic orders of two partitions on brokers 11 and 12."""
    return cluster(TOPIC, partition(0), partition(1), MIN_ISR_1, *changes)


def asked(change: TopicChange, *changes: Change) -> Answer:
    return plan_topics(loaded(*changes), TopicQuestion(change, FILE))


def add(count: int, *changes: Change, **more: Any) -> Answer:
    return asked(AddPartitions((NewPartitions("orders", count, **more),)), *changes)


def configure(name: str, value: str | None, *changes: Change) -> Answer:
    return asked(ConfigureTopics(("orders",), {name: value}), *changes)


def elect(election: ElectionType, *changes: Change) -> Answer:
    return asked(ElectLeaders(election, {"orders": (0,)}), *changes)


def reassign(replicas: tuple[int, ...] | None, *changes: Change) -> Answer:
    return asked(ReassignPartitions((PartitionMove("orders", 0, replicas),)), *changes)


def names(made: Answer) -> list[str]:
    return [risk.name for risk in made.risks]


def test_kafka_topics_takes_no_lists_of_different_lengths() -> None:
    made = add(3, partition(1, (11,)), assignments=((12, 13),))
    assert made.verdict != "refused"
    assert made.steps[0].command is None
    assert "kafka-topics takes no lists" in (made.steps[0].expect or "")


def test_more_partitions() -> None:
    made = add(4, assignments=((11, 12), (12, 13)))
    assert (made.verdict, made.missing) == ("safe", ())
    servers = "--bootstrap-server host-11:9092,host-12:9092,host-13:9092"
    assert made.steps[0].command == (
        f"bin/kafka-topics.sh {servers} --alter --topic orders --partitions 4 "
        "--replica-assignment 11:12,11:12,11:12,12:13"
    )
    assert "orders-3: replicas 12, 13, ISR 12, 13, leader 12" in made.evidence
    assert add(2).error_text == "Topic already has 2 partition(s)."
    assert names(add(3, topic_config("cleanup.policy", "compact"))) == ["keys_move"]


def test_partitions_that_kafka_writes_before_it_refuses() -> None:
    """Its list of records is full: an unknown fault for the client, and partitions all the same."""
    made = add(10_003)
    assert (made.verdict, made.error) == ("refused", ErrorCode.UNKNOWN_SERVER_ERROR)
    assert names(made) == ["half_written"]
    assert made.evidence[0] == "orders: UNKNOWN_SERVER_ERROR, and yet 10,000 PARTITION_RECORD"


def test_configs() -> None:
    made = configure("max.message.bytes", "5")
    assert (made.verdict, made.risks) == ("safe", ())
    assert (made.steps[0].command or "").endswith("--entity-name orders --add-config max.message.bytes=5")
    made = configure("cleanup.policy", "compact,delete")
    assert names(made) == ["records_deleted"]
    assert (made.steps[0].command or "").endswith("--add-config 'cleanup.policy=[compact,delete]'")
    made = configure("retention.ms", "x")
    assert (made.verdict, made.error) == ("refused", ErrorCode.INVALID_CONFIG)
    assert made.error_text == "Invalid value x for configuration retention.ms: Not a number of type LONG"
    assert configure("retention.ms", None).reason == "nothing would change"
    assert names(configure("retention.ms", "5")) == ["records_deleted"]
    assert names(configure("retention.ms", "-1")) == []


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
        ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    ],
)
def test_what_compaction_keeps_for_less_long(name: str, default: str) -> None:
    """Values that later ones replace, and tombstones, are removed sooner. It was SAFE."""
    compacted, own = topic_config("cleanup.policy", "compact"), topic_config(name, "90000000")
    assert names(configure(name, "5", compacted, own)) == ["records_deleted"]
    assert names(configure(name, None, compacted, own)) == ["records_deleted"]
    assert names(configure(name, "90000001", compacted, own)) == []
    assert names(configure(name, "5", own)) == []
    by_cluster = (broker_config("log.cleanup.policy", "compact"), broker_config(default, "90000000"))
    assert names(configure(name, "5", *by_cluster)) == ["records_deleted"]
    change = ConfigureTopics(("orders",), {name: "5"})
    made = plan_topics(loaded(own), TopicQuestion(change))
    assert any(each.startswith("log.cleanup.policy: ") for each in made.missing)
    made = plan_topics(loaded(compacted), TopicQuestion(change))
    assert any(each.startswith(f"{default}: ") for each in made.missing)


def test_a_greater_min_isr() -> None:
    shrunken = partition(0, isr=(11,), eligible_leader_replicas=(12,))
    after = names(configure(MIN_ISR, "2", shrunken))
    assert after == ["under_min_isr", "no_spare_replica", "elr_cleared"]
    assert names(configure(MIN_ISR, "1")) == []
    offline = partition(0, leader=-1, isr=(), eligible_leader_replicas=(12,))
    after = names(configure(MIN_ISR, "2", offline))
    assert after == ["no_spare_replica", "elr_cleared", "partitions_offline"]


@pytest.mark.parametrize(
    ("value", "is_risky"), [("1", False), ("2", False), ("3", True), ("4", True), ("\x01+3\x1f", True)]
)
def test_min_isr_of_all_replicas_is_as_risky_as_in_a_new_topic(value: str, is_risky: bool) -> None:
    """Configuring an existing topic was SAFE."""
    three = [partition(nth, (11, 12, 13), leader=11, isr=(11, 12, 13)) for nth in range(2)]
    made = configure(MIN_ISR, value, *three)
    new = CreateTopics((NewTopic("new", 2, 3, configs=((MIN_ISR, value),)),))
    expected = ["no_spare_replica"] if is_risky else []
    assert names(made) == names(asked(new)) == expected
    assert made.verdict == ("risky" if is_risky else "safe")
    if is_risky:
        least = value.strip("\x01\x1f+")
        words = f"every replica of orders 0-1 must be in sync for acks=all ({MIN_ISR} {least})"
        assert [risk.sentence for risk in made.risks] == [words]


def test_unclean_elections_that_follow() -> None:
    waiting = partition(0, isr=(), leader=-1, last_known_elr=(13,))
    assert names(configure("unclean.leader.election.enable", "true", waiting)) == ["unclean_election"]


def test_configs_below_which_is_the_default_of_the_cluster() -> None:
    """What applied before, or applies then, is a broker's config: by the log, else by the file."""
    forever = broker_config("log.retention.ms", "-1")
    assert names(configure("retention.ms", "604800000", forever)) == ["records_deleted"]
    assert names(configure("retention.ms", "604800000")) == []
    for_a_minute = broker_config("log.retention.ms", "60000", "12")
    own = topic_config("retention.ms", "3600000")
    assert names(configure("retention.ms", None, for_a_minute, own)) == ["records_deleted"]
    assert names(configure("retention.ms", None, own)) == []
    compacted = broker_config("log.cleanup.policy", "compact")
    assert names(configure("cleanup.policy", "delete", compacted)) == ["records_deleted"]
    assert names(configure("cleanup.policy", None, compacted, topic_config("cleanup.policy", "delete"))) == [
        "records_deleted"
    ]
    change = ConfigureTopics(("orders",), {"retention.ms": "604800000"})
    made = plan_topics(loaded(), TopicQuestion(change, {"log.retention.hours": "-1"}))
    assert names(made) == ["records_deleted"]
    made = plan_topics(loaded(), TopicQuestion(change))
    assert any(each.startswith("log.retention.ms: ") for each in made.missing)


def test_a_default_that_kafka_does_not_accept_is_none() -> None:
    change = ConfigureTopics(("orders",), {"cleanup.policy": "delete"})
    made = plan_topics(loaded(), TopicQuestion(change, {"log.cleanup.policy": "compacted"}))
    assert (made.verdict, made.missing) == (
        "not_known",
        ("log.cleanup.policy: it has a value that Kafka does not accept",),
    )
    wrong, own = broker_config(MIN_ISR, "two"), topic_config(MIN_ISR, "1")
    assert configure(MIN_ISR, None, wrong, own, partition(0, isr=(11,))).verdict == "not_known"


def test_a_min_isr_that_only_the_leaders_file_has_then() -> None:
    own, shrunken = topic_config(MIN_ISR, "1"), partition(0, isr=(11,))
    made = configure(MIN_ISR, None, WITHOUT_MIN_ISR, own, shrunken)
    assert (made.verdict, made.missing[0][:31]) == ("not_known", "min.insync.replicas of orders 0")
    assert configure(MIN_ISR, None, WITHOUT_MIN_ISR, own).verdict == "safe"
    assert configure(MIN_ISR, None, own, shrunken).verdict == "safe"


def test_unclean_elections_by_the_default_of_the_cluster() -> None:
    name = "unclean.leader.election.enable"
    waiting, off = partition(0, isr=(), leader=-1, last_known_elr=(13,)), topic_config(name, "false")
    assert names(configure(name, None, waiting, off, broker_config(name, "true"))) == ["unclean_election"]
    change = ConfigureTopics(("orders",), {name: None})
    assert names(plan_topics(loaded(waiting, off), TopicQuestion(change, {name: "true"}))) == [
        "unclean_election"
    ]
    assert names(plan_topics(loaded(waiting, off), TopicQuestion(change, FILE))) == []
    made = plan_topics(loaded(waiting, off), TopicQuestion(change))
    assert any(each.startswith(f"{name}: ") for each in made.missing)


def test_keys_move_where_the_cluster_compacts() -> None:
    compacted = broker_config("log.cleanup.policy", "compact")
    assert names(add(3, compacted)) == ["keys_move"]
    change = AddPartitions((NewPartitions("orders", 3),))
    assert names(plan_topics(loaded(), TopicQuestion(change, {"log.cleanup.policy": "compact"}))) == [
        "keys_move"
    ]
    assert names(add(3, compacted, topic_config("cleanup.policy", "delete"))) == []


def test_keys_may_move_where_the_policy_is_in_no_log() -> None:
    change = TopicQuestion(AddPartitions((NewPartitions("orders", 3),)))
    made = plan_topics(loaded(), change)
    assert made.verdict == "not_known"
    assert [each.split(":")[0] for each in made.missing] == ["log.cleanup.policy"]
    for known in (
        topic_config("cleanup.policy", "delete"),
        broker_config("log.cleanup.policy", "delete"),
    ):
        assert plan_topics(loaded(known), change).verdict == "safe"


def test_a_leader_that_demands_more() -> None:
    """min.insync.replicas of a topic without it is that of its leader."""
    preferred = partition(0, (12, 11, 13), leader=11, isr=(11, 12))
    assert elect(ElectionType.PREFERRED, preferred).verdict == "safe"
    made = elect(ElectionType.PREFERRED, preferred, broker_config(MIN_ISR, "3", "12"))
    assert (made.verdict, names(made)) == ("risky", ["under_min_isr"])
    made = elect(ElectionType.PREFERRED, preferred, WITHOUT_MIN_ISR)
    assert (made.verdict, made.missing[0][:31]) == ("not_known", "min.insync.replicas of orders 0")
    in_sync = partition(0, (12, 11, 13), leader=11)
    assert elect(ElectionType.PREFERRED, in_sync, WITHOUT_MIN_ISR).verdict == "safe"


def test_a_deletion_is_for_good() -> None:
    made = asked(DeleteTopics(("orders",)), broker(12, fenced=True))
    assert (made.verdict, names(made)) == ("risky", ["irreversible"])
    assert "orders: 12 delete their replicas only when they are back" in made.evidence
    made = asked(DeleteTopics(("missing",)))
    assert (made.verdict, made.error) == ("refused", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    off = TopicQuestion(DeleteTopics(("orders",)), {"delete.topic.enable": "false"})
    assert plan_topics(loaded(), off).error is ErrorCode.TOPIC_DELETION_DISABLED
    unknown = TopicQuestion(DeleteTopics(("orders",)), None)
    assert (
        plan_topics(loaded(), unknown)
        .missing[0]
        .startswith("delete.topic.enable: the controllers' files are not in the log")
    )


def test_a_name_with_periods_is_a_regular_expression_for_kafkas_tool() -> None:
    dotted = Change(TOPICS, ("other",), Topic("other", "a.b"))
    part = replace(partition(0).value, topic_id="other", topic_name="a.b")
    made = asked(DeleteTopics(("a.b",)), dotted, Change(PARTITIONS, ("other", 0), part))
    assert (made.steps[0].command or "").endswith(r"--delete --topic 'a\.b'")


def test_elections() -> None:
    assert elect(ElectionType.PREFERRED).reason == "nothing would change"
    made = elect(ElectionType.PREFERRED, partition(0, leader=12))
    assert made.verdict == "safe"
    assert (
        made.evidence[1] == "orders-0: leader 12, ISR 11, 12 of 11, 12; then leader 11, ISR 11, 12 of 11, 12"
    )
    made = elect(ElectionType.PREFERRED, partition(0, leader=12, isr=(12,)))
    assert made.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    lost = partition(0, leader=-1, isr=())
    made = elect(ElectionType.UNCLEAN, lost)
    assert (made.verdict, names(made)) == ("risky", ["unclean_election"])
    made = elect(ElectionType.UNCLEAN, lost, broker(11, fenced=True), broker(12, fenced=True))
    assert made.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    made = asked(ElectLeaders(ElectionType.PREFERRED, {}), partition(1, leader=12))
    assert made.results[0]["name"] == "orders-1"
    assert (made.steps[0].command or "").endswith("--election-type preferred --all-topic-partitions")


def test_reassignments() -> None:
    made = reassign((13, 11))
    assert (made.verdict, made.risks) == ("safe", ())
    assert made.steps[0].command == (
        'echo \'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[13,11]}]}\' '
        "> reassignment.json"
    )
    (record,) = made.results[0]["records"]
    assert record["value"]["addingReplicas"] == [13]
    assert names(reassign((11, 13), broker(13, fenced=True))) == ["replicas_down"]
    alone = partition(0, (12, 13), isr=(12,), leader=-1)
    assert names(reassign((11, 13), alone, broker(12, fenced=True))) == ["replicas_down"]
    assert names(reassign((11,))) == ["fewer_replicas"]
    under_way = partition(0, (11, 12, 13), isr=(11, 12), adding_replicas=(13,))
    assert names(reassign((12, 13), under_way)) == ["reassignment_replaced"]
    assert reassign(None, under_way).verdict == "safe"
    assert reassign(None).error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassign((11, 99)).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("in_progress", [{"adding_replicas": (13,)}, {"removing_replicas": (12,)}])
def test_kafkas_tool_needs_an_option_while_others_are_reassigned(in_progress: dict[str, Any]) -> None:
    """Not where nothing else moves."""
    other = partition(1, **in_progress)
    for changes, option in ((), "--execute"), ((other,), "--execute --additional"):
        (command,) = (step.command for step in reassign((12, 11), *changes).steps if step.what == "move")
        assert (command or "").endswith(f"--reassignment-json-file reassignment.json {option}")


def test_a_partition_that_changed_twice_in_what_is_not_committed() -> None:
    found = replace(loaded(), unproven=((partition(0, leader=12),), (partition(0),)))
    for election in ({"orders": (0,)}, {"orders": ()}, {}):
        made = plan_topics(found, TopicQuestion(ElectLeaders(ElectionType.PREFERRED, election), FILE))
        assert made.verdict == "not_known"
        assert made.missing == ("it depends on records at the log's end that are not proven committed",)
    other = ElectLeaders(ElectionType.PREFERRED, {"orders": (1,)})
    assert plan_topics(found, TopicQuestion(other, FILE)).verdict == "safe"


def test_a_reassignment_after_which_another_leader_demands_more() -> None:
    """The leader goes when it ends, and 13, which then leads, has 2 as min.insync.replicas. It was SAFE."""
    lagging = partition(0, isr=(11,))
    assert names(reassign((13, 12), lagging, broker_config(MIN_ISR, "2", "13"))) == ["under_min_isr"]
    assert reassign((13, 12), lagging).verdict == "safe"
    made = reassign((13, 12), lagging, WITHOUT_MIN_ISR)
    assert made.verdict == "not_known"
    assert made.reason.startswith("min.insync.replicas of orders 0: neither the topic nor the cluster has it")


def test_a_reassignment_during_which_a_leader_demands_more() -> None:
    """Kafka demands no more than there are replicas, but until it ends there are more. It was SAFE."""
    alone = partition(0, (11,))
    assert names(reassign((11, 12, 13), alone, topic_config(MIN_ISR, "2"))) == ["under_min_isr"]
    for replicas in ((11, 12), (12,)):
        made = reassign(replicas, alone, WITHOUT_MIN_ISR)
        assert made.verdict == "not_known"
        assert made.reason.startswith(
            "min.insync.replicas of orders 0: neither the topic nor the cluster has"
        )
    assert reassign((13, 12), WITHOUT_MIN_ISR).verdict == "not_known"
    assert reassign((12, 11), WITHOUT_MIN_ISR).verdict == "safe"
    # If acks=all works with one of two in sync, the leader demands one, also of three.
    assert reassign((11, 13, 12), partition(0, isr=(11,)), WITHOUT_MIN_ISR).verdict == "safe"


def test_a_reassignment_whose_end_leaves_too_few_in_sync() -> None:
    """The added replica 13 goes at once, and 11 alone is in sync."""
    under_way = partition(0, (11, 12, 13), isr=(11, 13), adding_replicas=(13,))
    assert names(reassign(None, under_way, topic_config(MIN_ISR, "2"))) == ["under_min_isr"]


CHANGES: tuple[TopicChange, ...] = (
    CreateTopics((ORDERS,)),
    AddPartitions((NewPartitions("orders", 3),)),
    ConfigureTopics(("orders",), {"max.message.bytes": "5"}),
    ElectLeaders(ElectionType.PREFERRED, {"orders": (0,)}),
    ReassignPartitions((PartitionMove("orders", 0, (12, 11)),)),
)
# What only some requests need: their brokers, and room in the quota.
NEEDED = {"leader", "log start", "a record", "committed", "image", "metadata.version", "controllers", "newer"}


@given(
    st.sampled_from(CHANGES[1:]),
    st.sets(st.sampled_from(sorted(NEEDED)), min_size=1),
)
def test_without_evidence_nothing_is_safe(change: TopicChange, gone: set[str]) -> None:
    found = loaded(partition(0, leader=12))
    assert plan_topics(found, TopicQuestion(change, FILE)).verdict == "safe"
    for name in sorted(gone):
        if found.image is not None and found.committed is not None:
            found = WITHOUT[name](found)
    assert plan_topics(found, TopicQuestion(change, FILE)).verdict in ("not_known", "refused")


def test_so_many_partitions_that_the_controller_fails() -> None:
    made = add((1 << 31) - 1)
    assert (made.verdict, made.error, names(made)) == (
        "refused",
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ["controller_fails"],
    )
