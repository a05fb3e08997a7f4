"""The state that an image of the metadata is in, and what of the image it leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_core.desired.state import (
    SECTIONS,
    AclBinding,
    Authority,
    Configs,
    ConfigValue,
    DesiredState,
    TopicState,
)
from kraft_core.image import names, tables
from kraft_core.image.acls import Acl
from kraft_core.image.client_quotas import ClientQuota
from kraft_core.image.configs import TOPIC_RESOURCE, Config, is_secret
from kraft_core.image.from_rows import REDACTED
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.scram_users import ScramUser
from kraft_core.image.topics import Topic
from kraft_core.wording import count


def state_in(image: Image) -> DesiredState:
    """The whole state, sorted by names."""
    held = image.tables
    acls: list[Acl] = [acl for _, acl in held.items(tables.ACLS)]
    users: list[ScramUser] = sorted((u for _, u in held.items(tables.SCRAM_USERS)), key=lambda u: u.name)
    return DesiredState(
        topics={topic.name: topic for topic in _topics(image)},
        configs=dict(sorted(_configs(image))),
        acls={_binding(acl) for acl in acls},
        users={(u.name, names.word(names.SCRAM_MECHANISMS, u.mechanism)): u.iterations for u in users},
        quotas=_quotas(image),
        features=dict(sorted((key[0], each.level) for key, each in held.items(tables.FEATURES))),
        authority=Authority(sections=set(SECTIONS)),
    )


def left_out(image: Image) -> Iterator[str]:
    """What administrators decided and the state does not hold, in words."""
    tokens = image.tables.count(tables.DELEGATION_TOKENS)
    if tokens:
        yield f"{count(tokens, 'delegation token')}: the log does not contain their secrets"


def _topics(image: Image) -> Iterator[TopicState]:
    topics: list[Topic] = sorted((t for _, t in image.tables.items(tables.TOPICS)), key=lambda t: t.name)
    for topic in topics:
        held: Mapping[int, Partition] = image.tables.group(tables.PARTITIONS, topic.topic_id)
        assignment = tuple(target_replicas(held[partition]) for partition in sorted(held))
        factors = {len(replicas) for replicas in assignment}
        whole = sorted(held) == list(range(len(held)))
        configs: Mapping[str, Config] = image.tables.group(tables.CONFIGS, TOPIC_RESOURCE, topic.name)
        yield TopicState(
            topic.name,
            len(held),
            factors.pop() if len(factors) == 1 and whole else None,
            _values(configs),
            assignment,
        )


def target_replicas(partition: Partition) -> tuple[int, ...]:
    """The replicas, after a reassignment that is under way."""
    return tuple(each for each in partition.replicas if each not in partition.removing_replicas)


def _values(configs: Mapping[str, Config]) -> Configs:
    return {name: _value(configs[name]) for name in sorted(configs)}


def _value(config: Config) -> ConfigValue:
    # As plain text: a value of a lake is a ShownValue.
    return ConfigValue(None if config.value == REDACTED else str(config.value), is_secret(config))


def _configs(image: Image) -> Iterator[tuple[tuple[str, str], Configs]]:
    for (kind, name), configs in image.tables.groups(tables.CONFIGS).items():
        if kind != TOPIC_RESOURCE:
            yield (names.word(names.CONFIG_RESOURCE_TYPES, kind), name), _values(configs)


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        names.word(names.ACL_RESOURCE_TYPES, acl.resource_type),
        acl.resource_name,
        names.word(names.PATTERN_TYPES, acl.pattern_type),
        acl.principal,
        acl.host,
        names.word(names.ACL_PERMISSION_TYPES, acl.permission_type),
        names.word(names.ACL_OPERATIONS, acl.operation),
    )


def _quotas(image: Image) -> dict[tuple[tuple[str, str | None], ...], Mapping[str, float]]:
    """By entity; names before the default of their type."""
    quotas: list[ClientQuota] = [quota for _, quota in image.tables.items(tables.CLIENT_QUOTAS)]
    quotas.sort(key=lambda q: ([(kind, name is None, name or "") for kind, name in q.entity], q.key))
    found: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
    for quota in quotas:
        found.setdefault(quota.entity, {})[quota.key] = quota.value
    return dict(found)
