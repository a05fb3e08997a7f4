"""A desired state from YAML: this project's own form, which export writes, or Strimzi's resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial

from kraft_core.desired import strimzi
from kraft_core.desired.fields import (
    Fields,
    configs_of,
    decimal_of,
    mapping_of,
    number_of,
    sequence_of,
    text_of,
)
from kraft_core.desired.state import (
    ACLS,
    CONFIGS,
    FEATURES,
    QUOTAS,
    TOPICS,
    USERS,
    AclBinding,
    Assignment,
    DesiredState,
    TopicState,
)
from kraft_core.desired.yaml_tree import YamlNode, documents
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.image import names
from kraft_core.image.client_quotas import Entity
from kraft_core.wording import did_you_mean

_ENTITY_TYPES = ("user", "client-id", "ip")


def read_state(
    state: DesiredState, text: str, allowed: Set[str] = NONE_ALLOWED, others: list[str] | None = None
) -> None:
    """Add what a file states. Raises InvalidFileError, also for what the state already has.

    allowed: as in secrets.is_secret_config. others: receives the names of Kubernetes resources that state
    nothing here.
    """
    for document in documents(text):
        for resource in strimzi.resources(document):
            if strimzi.is_resource(resource):
                strimzi.add(state, resource, allowed, others)
            else:
                _add(state, resource, allowed)


def _add(state: DesiredState, document: YamlNode, allowed: Set[str]) -> None:
    """A document of the own form: each section that it has is complete."""
    fields = Fields(document, "a desired state")
    sections: Mapping[str, Callable[[DesiredState, YamlNode], None]] = {
        FEATURES: _add_feature_levels,
        TOPICS: partial(_add_topics, allowed=allowed),
        CONFIGS: partial(_add_configs, allowed=allowed),
        ACLS: _add_acls,
        USERS: _add_users,
        QUOTAS: _add_quotas,
    }
    for name, add in sections.items():
        if fields.has(name):
            if name in state.authority.sections:
                raise document.error(f"{name} are already given, and a section is complete")
            state.authority.sections.add(name)
            found = fields.take(name)
            if found is not None:
                add(state, found)
    fields.done()


def _add_feature_levels(state: DesiredState, node: YamlNode) -> None:
    for name, level in mapping_of(node, FEATURES).items():
        if name in state.features:
            raise level.error(f"feature {name} is given twice")
        state.features[name] = number_of(level, name)


def _add_topics(state: DesiredState, node: YamlNode, allowed: Set[str]) -> None:
    for each in sequence_of(node, TOPICS):
        fields = Fields(each, "a topic")
        name = fields.text("name")
        strimzi.add_topic(
            state,
            each,
            TopicState(
                name,
                fields.number("partitions"),
                fields.number("replication_factor"),
                configs_of(fields.mapping("configs"), allowed),
                _assignment(fields.take("assignment")),
            ),
        )
        fields.done()


def _assignment(node: YamlNode | None) -> Assignment | None:
    if node is None:
        return None
    return tuple(
        tuple(number_of(replica, "a replica") for replica in sequence_of(replicas, "replicas of a partition"))
        for replicas in sequence_of(node, "assignment")
    )


def _add_configs(state: DesiredState, node: YamlNode, allowed: Set[str]) -> None:
    for each in sequence_of(node, CONFIGS):
        fields = Fields(each, "configs of a resource")
        kind = _word(fields, "resource_type", names.CONFIG_RESOURCE_TYPES.values())
        if kind == "TOPIC":
            raise each.error(f"configs of a topic belong to {TOPICS}")
        resource = (kind, fields.text("resource_name", ""))
        if resource in state.configs:
            raise each.error(f"configs of {kind} {resource[1]} are given twice")
        state.configs[resource] = configs_of(fields.mapping("configs"), allowed)
        fields.done()


def _add_acls(state: DesiredState, node: YamlNode) -> None:
    for each in sequence_of(node, ACLS):
        fields = Fields(each, "an ACL")
        kind = _word(fields, "resource_type", names.ACL_RESOURCE_TYPES.values())
        name = fields.text("resource_name", strimzi.CLUSTER_NAME if kind == "CLUSTER" else None)
        pattern = _word(fields, "pattern_type", names.PATTERN_TYPES.values(), "LITERAL")
        principal, host = fields.text("principal"), fields.text("host", "*")
        permission = _word(fields, "permission_type", names.ACL_PERMISSION_TYPES.values(), "ALLOW")
        for operation in sequence_of(fields.need("operations"), "operations"):
            word = _known(operation, text_of(operation, "an operation"), names.ACL_OPERATIONS.values())
            state.acls.add(AclBinding(kind, name, pattern, principal, host, permission, word))
        fields.done()


def _add_users(state: DesiredState, node: YamlNode) -> None:
    for each in sequence_of(node, USERS):
        fields = Fields(each, "a user")
        name = fields.text("name")
        for mechanism, iterations in fields.mapping("mechanisms").items():
            _known(iterations, mechanism, names.SCRAM_MECHANISMS.values())
            if (name, mechanism) in state.users:
                raise iterations.error(f"{mechanism} of user {name} is given twice")
            stated = None if iterations.content is None else number_of(iterations, mechanism)
            state.users[name, mechanism] = stated
        fields.done()


def _add_quotas(state: DesiredState, node: YamlNode) -> None:
    for each in sequence_of(node, QUOTAS):
        fields = Fields(each, "quotas of an entity")
        entity = _entity(fields)
        if entity in state.quotas:
            raise each.error("the quotas of this entity are given twice")
        given = fields.mapping("quotas")
        state.quotas[entity] = {key: decimal_of(given[key], key) for key in sorted(given)}
        fields.done()


def _entity(fields: Fields) -> Entity:
    """Names by type; null: the default of that type."""
    parts: list[tuple[str, str | None]] = []
    for kind, name in mapping_of(fields.need("entity"), "entity").items():
        _known(name, kind, _ENTITY_TYPES)
        parts.append((kind, None if name.content is None else text_of(name, kind)))
    if not parts:
        raise fields.node.error("an entity is a user, a client-id or an ip")
    return tuple(sorted(parts))


def _word(fields: Fields, name: str, words: Iterable[str], default: str | None = None) -> str:
    node = fields.need(name) if default is None else fields.take(name)
    return default or "" if node is None else _known(node, text_of(node, name), words)


def _known(node: YamlNode, word: str, words: Iterable[str]) -> str:
    """The word, which is one of these. Raises InvalidFileError."""
    known = list(words)
    if word not in known:
        near = did_you_mean(word, known)
        raise node.error(f"{word!r} is not one of {', '.join(known)}{near}")
    return word
