"""Strimzi's KafkaTopic and KafkaUser resources as a desired state.

A resource states what the operators make of it (Strimzi's BatchingTopicController, KafkaUserModel,
SimpleAclRuleResource and QuotaUtils): a topic's configs, a user's ACLs and quotas, and whether it has a SCRAM
credential, are exactly those; other topics and users are not touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from kraft_core.desired.fields import Fields, configs_of, decimal_of, sequence_of, text_of
from kraft_core.desired.state import AclBinding, DesiredState, TopicState
from kraft_core.desired.yaml_tree import YamlNode
from kraft_core.image.names import ACL_OPERATIONS

CLUSTER_NAME = "kafka-cluster"
"""The name of the cluster as a resource of ACLs (Resource.CLUSTER_NAME)."""

_SCRAM = "SCRAM-SHA-512"
_GROUP = "kafka.strimzi.io/"
_MANAGED = "strimzi.io/managed"
_QUOTAS = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
}
_RESOURCES = {"topic": "TOPIC", "group": "GROUP", "cluster": "CLUSTER", "transactionalId": "TRANSACTIONAL_ID"}
_PATTERNS = {"literal": "LITERAL", "prefix": "PREFIXED"}
_OPERATIONS = {word.replace("_", "").lower(): word for word in ACL_OPERATIONS.values()}


def is_resource(document: YamlNode) -> bool:
    """Whether it is a Kubernetes resource of any kind."""
    return isinstance(document.content, Mapping) and {"apiVersion", "kind"} <= set(document.content)


def resources(document: YamlNode) -> Iterator[YamlNode]:
    """The document, or what a list of resources holds, as `kubectl get -o yaml` prints one."""
    content = document.content
    if not is_resource(document) or not isinstance(content, Mapping) or "items" not in content:
        yield document
        return
    for each in sequence_of(content["items"], "items"):
        if not is_resource(each):
            raise each.error("an item is not a Kubernetes resource")
        yield each


def add(state: DesiredState, resource: YamlNode, allowed: Set[str], others: list[str] | None) -> None:
    """Add what a resource states. Raises InvalidFileError. others: as in read_state."""
    fields = Fields(resource, "a resource")
    kind, version = fields.text("kind"), fields.text("apiVersion")
    metadata = Fields(fields.need("metadata"), "metadata")
    name = metadata.text("name")
    annotations = metadata.mapping("annotations")
    managed = text_of(annotations[_MANAGED], _MANAGED) if _MANAGED in annotations else "true"
    ours = version.startswith(_GROUP) and kind in ("KafkaTopic", "KafkaUser")
    if not ours or managed == "false":
        if others is not None:
            others.append(f"{kind} {name}")
    elif kind == "KafkaTopic":
        _add_topic(state, resource, name, fields.take("spec"), allowed)
    else:
        _add_user(state, resource, name, fields.take("spec"))


def add_topic(state: DesiredState, node: YamlNode, topic: TopicState) -> None:
    """Raises InvalidFileError for a topic that is already there."""
    if topic.name in state.topics:
        raise node.error(f"topic {topic.name} is given twice")
    state.topics[topic.name] = topic


def _add_topic(
    state: DesiredState, resource: YamlNode, name: str, spec: YamlNode | None, allowed: Set[str]
) -> None:
    if spec is None:
        add_topic(state, resource, TopicState(name, None, None, {}))
        return
    fields = Fields(spec, "spec")
    topic = TopicState(
        fields.text("topicName", name),
        fields.number("partitions"),
        fields.number("replicas"),
        configs_of(fields.mapping("config"), allowed),
    )
    fields.done()
    add_topic(state, resource, topic)


def _add_user(state: DesiredState, resource: YamlNode, name: str, spec: YamlNode | None) -> None:
    if spec is None:
        raise resource.error(f"KafkaUser {name} has no spec")
    fields = Fields(spec, "spec")
    authentication = fields.mapping("authentication")
    kind = text_of(authentication["type"], "type") if "type" in authentication else None
    user = f"CN={name}" if kind in ("tls", "tls-external") else name
    if f"User:{user}" in state.authority.principals:
        raise resource.error(f"KafkaUser {name} is given twice")
    state.authority.principals.add(f"User:{user}")
    state.authority.credentials.add((name, _SCRAM))
    if kind == "scram-sha-512":
        state.users[name, _SCRAM] = None
    _add_acls(state, f"User:{user}", fields.take("authorization"))
    quotas = fields.mapping("quotas")
    for key, node in quotas.items():
        if key not in _QUOTAS:
            raise node.error(f"{key} is not one of {', '.join(_QUOTAS)}")
    stated = {_QUOTAS[key]: decimal_of(node, key) for key, node in quotas.items() if node.content is not None}
    state.quotas[("user", user),] = stated
    fields.take("template")
    fields.done()


def _add_acls(state: DesiredState, principal: str, authorization: YamlNode | None) -> None:
    if authorization is None:
        return
    fields = Fields(authorization, "authorization")
    if fields.text("type") != "simple":
        raise authorization.error("only authorization of type simple is known")
    for node in fields.sequence("acls"):
        rule = Fields(node, "an ACL rule")
        resource = _resource(rule.need("resource"))
        host, permission = rule.text("host", "*"), rule.text("type", "allow").upper()
        if permission not in ("ALLOW", "DENY"):
            raise node.error("type is neither allow nor deny")
        single = rule.take("operation")
        operations = list(rule.sequence("operations")) + ([] if single is None else [single])
        for each in operations:
            word = _OPERATIONS.get(text_of(each, "an operation").lower())
            if word is None:
                raise each.error(f"{each.content!r} is not an operation")
            state.acls.add(AclBinding(*resource, principal, host, permission, word))
        rule.done()
    fields.done()


def _resource(node: YamlNode) -> tuple[str, str, str]:
    """Type, name and pattern type."""
    fields = Fields(node, "a resource")
    kind = _one_of(node, _RESOURCES, fields.text("type"))
    pattern = _one_of(node, _PATTERNS, fields.text("patternType", "literal"))
    if kind == "CLUSTER":
        return kind, CLUSTER_NAME, "LITERAL"
    return kind, fields.text("name"), pattern


def _one_of(node: YamlNode, words: Mapping[str, Any], word: str) -> str:
    if word not in words:
        raise node.error(f"{word!r} is not one of {', '.join(words)}")
    return words[word]
