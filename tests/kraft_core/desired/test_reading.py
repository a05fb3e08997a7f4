"""YAML files are read strictly; Strimzi's resources state what its operators make of them."""

from __future__ import annotations

import pytest

from kraft_core.desired.drift import drift, not_named
from kraft_core.desired.read_state import read_state
from kraft_core.desired.state import AclBinding, Authority, ConfigValue, DesiredState, TopicState
from kraft_core.desired.yaml_tree import InvalidFileError

USER = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: alice, labels: {strimzi.io/cluster: prod}}
spec:
  authentication: {type: scram-sha-512}
  authorization:
    type: simple
    acls:
    - resource: {type: topic, name: orders, patternType: prefix}
      operations: [Read, DescribeConfigs]
      host: 10.0.0.1
    - type: deny
      resource: {type: cluster}
      operation: ClusterAction
  quotas: {producerByteRate: 1048576, requestPercentage: 55}
"""
TOPIC = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: orders-topic}
spec:
  topicName: orders
  partitions: 12
  replicas: 3
  config:
    retention.ms: 7_200
    min.insync.replicas: 2
    preallocate: True
    cleanup.policy: [compact, delete]
    leader.replication.throttled.replicas: 1:2
"""


def read(*texts: str, others: list[str] | None = None) -> DesiredState:
    state = DesiredState()
    for text in texts:
        read_state(state, text, others=others)
    return state


def test_a_strimzi_topic() -> None:
    topic = read(TOPIC).topics["orders"]
    assert (topic.partitions, topic.replication_factor) == (12, 3)
    assert {name: value.text for name, value in topic.configs.items()} == {
        "retention.ms": "7_200",
        "min.insync.replicas": "2",
        "preallocate": "true",
        "cleanup.policy": "compact,delete",
        "leader.replication.throttled.replicas": "1:2",
    }


def test_a_strimzi_user() -> None:
    state = read(USER)
    where = ("TOPIC", "orders", "PREFIXED", "User:alice", "10.0.0.1", "ALLOW")
    cluster = ("CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "*", "DENY")
    assert state.acls == {
        AclBinding(*where, "READ"),
        AclBinding(*where, "DESCRIBE_CONFIGS"),
        AclBinding(*cluster, "CLUSTER_ACTION"),
    }
    assert state.users == {("alice", "SCRAM-SHA-512"): None}
    assert state.quotas == {(("user", "alice"),): {"producer_byte_rate": 1048576, "request_percentage": 55}}


def test_a_tls_user_is_another_principal_and_has_no_credential() -> None:
    state = read(USER.replace("scram-sha-512", "tls"))
    assert {acl.principal for acl in state.acls} == {"User:CN=alice"}
    assert list(state.quotas) == [(("user", "CN=alice"),)]
    actual = DesiredState(users={("alice", "SCRAM-SHA-512"): 4096}, acls=state.acls, quotas=state.quotas)
    assert [each.words for each in drift(actual, state)] == ["SCRAM-SHA-512 credential of alice: undesired"]


def test_only_what_a_resource_names_is_compared() -> None:
    """But all of that: configs and ACLs that it does not state should not be there."""
    state = read(f"{TOPIC}---{USER}")
    topic = state.topics["orders"]
    more = TopicState("orders", 12, 3, {**topic.configs, "segment.ms": ConfigValue("9")})
    actual = DesiredState(
        topics={"orders": more, "other": TopicState("other", 1, 1, {})},
        users={("alice", "SCRAM-SHA-512"): 8192, ("bob", "SCRAM-SHA-256"): 4096},
        acls={
            *state.acls,
            AclBinding("GROUP", "g", "LITERAL", "User:alice", "*", "ALLOW", "READ"),
            AclBinding("GROUP", "g", "LITERAL", "User:bob", "*", "ALLOW", "READ"),
        },
        quotas={**state.quotas, (("user", None),): {"producer_byte_rate": 1.0}},
        features={"metadata.version": 30},
    )
    assert [each.words for each in drift(actual, state)] == [
        "topic orders: config segment.ms 9, desired not set",
        "ACL ALLOW READ on GROUP g (LITERAL) to User:alice from *: undesired",
    ]
    assert not_named(actual, state) == {"features": 1, "topics": 1, "acls": 1, "users": 1, "quotas": 1}


def test_lists_and_other_kinds_of_resources() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n"
    unmanaged = TOPIC.replace("orders-topic", 'x, annotations: {strimzi.io/managed: "false"}')
    others: list[str] = []
    state = read(text, unmanaged, others=others)
    assert (others, state.topics) == (["Pod p", "KafkaTopic x"], {})
    assert not state.states_anything


def test_a_topic_states_only_what_it_says() -> None:
    state = read("topics:\n- name: t\n")
    assert state.topics == {"t": TopicState("t", None, None, {})}
    assert state.authority == Authority(sections={"topics"})
    actual = DesiredState(topics={"t": TopicState("t", 9, 3, {}), "u": TopicState("u", 1, 1, {})})
    assert [each.words for each in drift(actual, state)] == ["topic u: undesired"]


def test_an_empty_section_is_complete() -> None:
    actual = DesiredState(acls={AclBinding("TOPIC", "t", "LITERAL", "User:a", "*", "ALLOW", "READ")})
    assert [each.change for each in drift(actual, read("acls: []\n"))] == ["undesired"]
    assert list(drift(actual, read("topics: []\n"))) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("topics: [", "line 2: "),
        ("topics:\n- name: t\n  name: u\n", "line 3: 'name' is a duplicate; it is first in line 2"),
        ("topics:\n- name: t\n- name: t\n", "line 3: topic t is given twice"),
        ("topics:\n- partitions: 1\n", "line 2: a topic has no name"),
        ("topics:\n- name: t\n  partition: 1\n", "a topic has no key partition: .*did you mean partitions?"),
        ("topics:\n- name: t\n  partitions: many\n", "line 3: partitions is not a whole number"),
        ("topics:\n- name: t\n  configs: [a]\n", "line 3: configs is not a mapping"),
        (
            "topic: []\n",
            "a desired state has no key topic: features, topics, configs, .*did you mean topics?",
        ),
        ("- a\n", "a desired state is not a mapping"),
        ("a: &a\n- *a\n", "a value contains itself"),
        ("topics:\n- <<: {}\n", "merge keys"),
        ("? [a]\n: b\n", "a key is not text"),
        ("topics: []\n---\ntopics: []\n", "topics are already given"),
        (
            "acls:\n- {resource_type: TOPIK, resource_name: t}\n",
            "'TOPIK' is not one of ANY, TOPIC.*mean TOPIC",
        ),
        ("quotas:\n- {entity: {users: a}}\n", "'users' is not one of user, client-id, ip"),
        ("quotas:\n- {entity: {user: a}, quotas: {x: nan}}\n", "x is not a finite number"),
        ("quotas:\n- {entity: {user: a}, quotas: {x: 1_000}}\n", "x is not a number"),
        ("configs:\n- {resource_type: TOPIC, resource_name: t}\n", "configs of a topic belong to topics"),
        ("users:\n- {name: a, mechanisms: {SCRAM-SHA-1: 1}}\n", "'SCRAM-SHA-1' is not one of"),
        (USER.replace("producerByteRate", "byteRate"), "byteRate is not one of producerByteRate"),
        (USER.replace("Read", "Reads"), "'Reads' is not an operation"),
        (USER.replace("type: simple", "type: opa"), "only authorization of type simple"),
        (TOPIC.replace("replicas: 3", "replica: 3"), "spec has no key replica"),
        (USER + "---" + USER, "KafkaUser alice is given twice"),
    ],
)
def test_an_error_names_its_line(text: str, error: str) -> None:
    with pytest.raises(InvalidFileError, match=error) as raised:
        read(text)
    assert str(raised.value).startswith("line ")
