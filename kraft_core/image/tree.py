"""The image as a tree of names, as in kafka-metadata-shell: /image/topics/byName/orders/0 and so on.

Nodes are created on demand, so a million partitions cost nothing until they are read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.image import kafka_text, tables
from kraft_core.image.delegation_tokens import token_digest
from kraft_core.image.features import METADATA_VERSION
from kraft_core.image.glob import compile_glob
from kraft_core.image.image import Image
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.names import SCRAM_MECHANISMS, ZK_MIGRATION_STATES, word

Path = tuple[str, ...]
"""Names from the root; the root itself is ()."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """text: as the shell prints it. data: the same for JSON. Neither contains secrets."""

    text: str
    data: Any


@dataclass(frozen=True, slots=True)
class Directory:
    """names: of the children, in any order. child: the node of a name, or None."""

    names: Callable[[], Iterable[str]]
    child: Callable[[str], "Node | None"]

    def children(self) -> Iterator[tuple[str, "Node"]]:
        """By name."""
        for name in sorted(self.names()):
            node = self.child(name)
            if node is not None:
                yield name, node


Node = Leaf | Directory


def root(image: Image) -> Directory:
    """The tree over an image; a node shows the image as of when it is read."""
    things = image.tables
    parts: Mapping[str, Callable[[], Node]] = {
        "acls": lambda: _fixed({"byId": lambda: _things(things.group(tables.ACLS), tables.ACLS)}),
        "clientQuotas": lambda: _client_quotas(image),
        "cluster": lambda: _fixed(
            {
                "brokers": lambda: _things(things.group(tables.BROKERS), tables.BROKERS),
                "controllers": lambda: _things(things.group(tables.CONTROLLERS), tables.CONTROLLERS),
            }
        ),
        "configs": lambda: _configs(image),
        "delegationToken": lambda: _delegation_tokens(image),
        "features": lambda: _features(image),
        "producerIds": lambda: _fixed({"nextProducerId": lambda: _next_producer_id(image)}),
        "provenance": lambda: _provenance(image),
        "scram": lambda: _scram(image),
        "topics": lambda: _topics(image),
    }
    return _fixed({"image": lambda: _fixed(parts)})


def leaf(kind: str, value: Any) -> Leaf:
    """The tree's leaf for a thing."""
    return Leaf(_TEXTS[kind](value), BY_NAME[kind].row(value))


def paths(kind: str, value: Any) -> tuple[Path, ...]:
    """The paths of a thing: topics and partitions have one by id and one by name."""
    return tuple(("image", *path) for path in _PLACES[kind](value))


def find(node: Node, pattern: Path, above: Path = ()) -> Iterator[tuple[Path, Node]]:
    """The nodes whose paths match a pattern, part by part, ordered by name (GlobVisitor)."""
    if not pattern:
        yield above, node
        return
    if isinstance(node, Leaf):
        return
    expression = compile_glob(pattern[0])
    if expression is None:
        child = node.child(pattern[0])
        if child is not None:
            yield from find(child, pattern[1:], (*above, pattern[0]))
        return
    for name, child in node.children():
        if expression.fullmatch(name):
            yield from find(child, pattern[1:], (*above, name))


def touches(pattern: Path, path: Path) -> bool:
    """Whether a path lies at or below a pattern's match, or above one."""
    for part, name in zip(pattern, path, strict=False):
        expression = compile_glob(part)
        if not (part == name if expression is None else expression.fullmatch(name)):
            return False
    return True


def to_json(node: Node) -> Any:
    """A node and its descendants: directories become objects, leaves their data."""
    if isinstance(node, Leaf):
        return node.data
    return {name: to_json(child) for name, child in node.children()}


def _fixed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    def child(name: str) -> Node | None:
        return children[name]() if name in children else None

    return Directory(children.keys, child)


def _things(group: Mapping[Any, Any], kind: str) -> Directory:
    """A directory of things by the last element of their key."""
    return _by_text(group, str, lambda value: leaf(kind, value))


def _by_text(given: Mapping[Any, Any], text: Callable[[Any], str], node: Callable[[Any], Node]) -> Directory:
    def child(name: str) -> Node | None:
        key = next((key for key in _candidates(given, name) if text(key) == name), None)
        return None if key is None else node(given[key])

    return Directory(lambda: map(text, given), child)


def _candidates(given: Mapping[Any, Any], name: str) -> Iterable[Any]:
    """Keys that may have that text: most keys are the text itself, or its number."""
    if name in given:
        return (name,)
    if name.isascii() and name.removeprefix("-").isdigit() and int(name) in given:
        return (int(name),)
    return given


def _client_quotas(image: Image) -> Directory:
    entities = image.tables.groups(tables.CLIENT_QUOTAS)
    return _by_text(
        entities,
        lambda prefix: kafka_text.entity(prefix[0]),
        lambda quotas: _things(quotas, tables.CLIENT_QUOTAS),
    )


def _configs(image: Image) -> Directory:
    resources = image.tables.groups(tables.CONFIGS)
    return _by_text(
        resources,
        lambda prefix: kafka_text.config_resource(*prefix),
        lambda configs: _things(configs, tables.CONFIGS),
    )


def _delegation_tokens(image: Image) -> Directory:
    tokens = image.tables.group(tables.DELEGATION_TOKENS)
    return _by_text(tokens, token_digest, lambda token: leaf(tables.DELEGATION_TOKENS, token))


def _features(image: Image) -> Directory:
    children: dict[str, Callable[[], Node]] = {
        "metadataVersion": lambda: Leaf(kafka_text.metadata_version(None), None)
    }
    migration = image.tables.group(tables.ZK_MIGRATION)
    for kind, group in (
        (tables.FEATURES, image.tables.group(tables.FEATURES)),
        (tables.ZK_MIGRATION, migration),
    ):
        for value in group.values():
            name = _PLACES[kind](value)[0][-1]
            children[name] = lambda kind=kind, value=value: leaf(kind, value)
    return _fixed(children)


def _next_producer_id(image: Image) -> Leaf:
    given = next(iter(image.tables.group(tables.PRODUCER_IDS).values()), None)
    return Leaf("-1", {"next_producer_id": -1}) if given is None else leaf(tables.PRODUCER_IDS, given)


def _provenance(image: Image) -> Leaf:
    text = kafka_text.provenance(image.offset, image.leader_epoch, image.timestamp)
    data = {"offset": image.offset, "leader_epoch": image.leader_epoch, "timestamp": image.timestamp}
    return Leaf(text, data)


def _scram(image: Image) -> Directory:
    mechanisms = {mechanism for (mechanism,) in image.tables.groups(tables.SCRAM_USERS)} | {*SCRAM_MECHANISMS}
    return _fixed(
        {
            word(SCRAM_MECHANISMS, mechanism): lambda mechanism=mechanism: _things(
                image.tables.group(tables.SCRAM_USERS, mechanism), tables.SCRAM_USERS
            )
            for mechanism in mechanisms
        }
    )


def _topics(image: Image) -> Directory:
    ids = image.tables.topic_ids

    def topic(topic_id: str) -> Directory:
        return _topic(image, topic_id)

    return _fixed(
        {
            "byId": lambda: _by_text(
                image.tables.group(tables.TOPICS), str, lambda value: topic(value.topic_id)
            ),
            "byName": lambda: _by_text(ids, str, topic),
        }
    )


def _topic(image: Image, topic_id: str) -> Directory:
    topic = image.tables.group(tables.TOPICS)[topic_id]
    partitions = _things(image.tables.group(tables.PARTITIONS, topic_id), tables.PARTITIONS)
    own = {"id": Leaf(topic_id, topic_id), "name": Leaf(topic.name, topic.name)}

    def child(name: str) -> Node | None:
        return own[name] if name in own else partitions.child(name)

    return Directory(lambda: [*own, *partitions.names()], child)


def _feature_text(value: Any) -> str:
    if value.name == METADATA_VERSION:
        return kafka_text.metadata_version(value.level)
    return str(value.level)


_TEXTS: Mapping[str, Callable[[Any], str]] = {
    tables.TOPICS: lambda value: value.name,
    tables.PARTITIONS: kafka_text.partition,
    tables.BROKERS: kafka_text.broker,
    tables.CONTROLLERS: kafka_text.controller,
    tables.CONFIGS: kafka_text.config,
    tables.ACLS: kafka_text.acl,
    tables.CLIENT_QUOTAS: lambda value: kafka_text.double(value.value),
    tables.SCRAM_USERS: kafka_text.scram_user,
    tables.DELEGATION_TOKENS: kafka_text.delegation_token,
    tables.FEATURES: _feature_text,
    tables.PRODUCER_IDS: lambda value: str(value.next_producer_id),
    tables.ZK_MIGRATION: lambda value: word(ZK_MIGRATION_STATES, value.state),
}

_PLACES: Mapping[str, Callable[[Any], tuple[Path, ...]]] = {
    tables.TOPICS: lambda value: (
        ("topics", "byId", value.topic_id),
        ("topics", "byName", value.name),
    ),
    tables.PARTITIONS: lambda value: (
        ("topics", "byId", value.topic_id, str(value.partition_id)),
        ("topics", "byName", value.topic_name, str(value.partition_id)),
    ),
    tables.BROKERS: lambda value: (("cluster", "brokers", str(value.broker_id)),),
    tables.CONTROLLERS: lambda value: (("cluster", "controllers", str(value.controller_id)),),
    tables.CONFIGS: lambda value: (
        ("configs", kafka_text.config_resource(value.resource_type, value.resource_name), value.name),
    ),
    tables.ACLS: lambda value: (("acls", "byId", value.id),),
    tables.CLIENT_QUOTAS: lambda value: (("clientQuotas", kafka_text.entity(value.entity), value.key),),
    tables.SCRAM_USERS: lambda value: (("scram", word(SCRAM_MECHANISMS, value.mechanism), value.name),),
    tables.DELEGATION_TOKENS: lambda value: (("delegationToken", token_digest(value.token_id)),),
    tables.FEATURES: lambda value: (
        (
            "features",
            "metadataVersion" if value.name == METADATA_VERSION else f"finalized_{value.name}",
        ),
    ),
    tables.PRODUCER_IDS: lambda _: (("producerIds", "nextProducerId"),),
    tables.ZK_MIGRATION: lambda _: (("features", "zkMigrationState"),),
}
