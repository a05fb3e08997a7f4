"""The metadata that administrators decide, by the names that they use; no ids, leaders or epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraft_core.image.client_quotas import Entity

TOPICS = "topics"
CONFIGS = "configs"
ACLS = "acls"
USERS = "users"
QUOTAS = "quotas"
FEATURES = "features"
SECTIONS = (FEATURES, TOPICS, CONFIGS, ACLS, USERS, QUOTAS)

Resource = tuple[str, str]
"""Type (BROKER, CLIENT_METRICS, GROUP, ...) and name, "" for the default of a type."""

Credential = tuple[str, str]
"""A user's name and the SCRAM mechanism."""

Assignment = tuple[tuple[int, ...], ...]
"""The replicas of each partition, in the order of partitions."""


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """text: None if it is set, but to what is not stated or not known. is_secret: text must not be shown."""

    text: str | None
    is_secret: bool = False

    @property
    def shown(self) -> str | None:
        return None if self.is_secret else self.text


Configs = Mapping[str, ConfigValue]


@dataclass(frozen=True, slots=True)
class TopicState:
    """partitions, replication_factor, assignment: None where nothing is stated.

    Of a topic of a cluster all are known, but for the replication factor if partitions differ in it. What is
    being reassigned counts with its target replicas.
    """

    name: str
    partitions: int | None
    replication_factor: int | None
    configs: Configs
    assignment: Assignment | None = None


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """An ACL without its id, in Kafka's words (ResourcePattern, AccessControlEntry)."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    permission_type: str
    operation: str

    @property
    def words(self) -> str:
        where = f"{self.resource_type} {self.resource_name} ({self.pattern_type})"
        return f"{self.permission_type} {self.operation} on {where} to {self.principal} from {self.host}"


@dataclass(slots=True)
class Authority:
    """Of what a state is complete: what the cluster has beyond it, should not be there.

    sections: whole. principals: with all their ACLs. credentials: whether there is one or not.
    """

    sections: set[str] = field(default_factory=set[str])
    principals: set[str] = field(default_factory=set[str])
    credentials: set[Credential] = field(default_factory=set[Credential])


@dataclass(slots=True)
class DesiredState:
    """topics: by name. users: iterations, None if not stated. quotas: of an entity, by key. features: levels.

    A topic, a config resource or an entity that is there is so with exactly its configs or quotas.
    """

    topics: dict[str, TopicState] = field(default_factory=dict[str, TopicState])
    configs: dict[Resource, Configs] = field(default_factory=dict[Resource, Configs])
    acls: set[AclBinding] = field(default_factory=set[AclBinding])
    users: dict[Credential, int | None] = field(default_factory=dict[Credential, "int | None"])
    quotas: dict[Entity, Mapping[str, float]] = field(default_factory=dict[Entity, Mapping[str, float]])
    features: dict[str, int] = field(default_factory=dict[str, int])
    authority: Authority = field(default_factory=Authority)

    @property
    def states_anything(self) -> bool:
        held = (self.topics, self.configs, self.acls, self.users, self.quotas, self.features)
        return any(held) or bool(self.authority.sections or self.authority.principals)


def resource_words(resource: Resource) -> str:
    """ "BROKER 1", or "BROKER default" of all resources of the type."""
    return f"{resource[0]} {resource[1] or 'default'}"


def entity_words(entity: Entity) -> str:
    """ "user alice, client-id default"."""
    return ", ".join(f"{kind} {'default' if name is None else name}" for kind, name in reversed(entity))
