"""Changes as text without secrets: "partition 0 of orders: leader 1 -> 2, isr [1, 2] -> [2]"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from kraft_core.image import kafka_text, tables
from kraft_core.image.delegation_tokens import token_digest
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.names import SCRAM_MECHANISMS, word

SAME = "rewritten without a change"
UNSEEN = "changed in a hidden value"
"""Only a secret changed."""


def thing(kind: str, value: Any) -> str:
    """The name of a thing: "partition 0 of orders"."""
    return _CALLED[kind](value)


def what_changed(kind: str, before: Any | None, after: Any | None) -> str:
    """The change from one value to another (None: absent), without the thing's name."""
    if after is None:
        return "removed"
    new = BY_NAME[kind].row(after)
    if before is None:
        columns = [f"{column} {_text(value)}" for column, value in new.items() if not _is_blank(value)]
        return "added: " + ", ".join(columns)
    old = BY_NAME[kind].row(before)
    if before == after:
        return SAME
    steps = [
        f"{column} {_text(old[column])} -> {_text(new[column])}"
        for column in changed_columns(kind, before, after)
    ]
    return ", ".join(steps) or UNSEEN


def changed_columns(kind: str, before: Any, after: Any) -> list[str]:
    """The columns in which two values of a thing differ."""
    old, new = BY_NAME[kind].row(before), BY_NAME[kind].row(after)
    return [column for column in new if old[column] != new[column]]


def _is_blank(value: Any) -> bool:
    return value is None or value is False or value == [] or value == ""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(element) for element in cast(list[Any], value))}]"
    if isinstance(value, dict):
        return _struct(cast(dict[str, Any], value))
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _struct(value: dict[str, Any]) -> str:
    """An endpoint, a supported feature or a part of a quota's entity."""
    if "host" in value:
        return f"{value['name']} {value['host']}:{value['port']} {value['security_protocol']}"
    if "entity_type" in value:
        return f"{value['entity_type']} {value['entity_name'] or '<default>'}"
    return f"{value['name']} {value['min_supported_version']} to {value['max_supported_version']}"


_CALLED: Mapping[str, Callable[[Any], str]] = {
    tables.TOPICS: lambda value: f"topic {value.name}",
    tables.PARTITIONS: lambda value: f"partition {value.partition_id} of {value.topic_name}",
    tables.BROKERS: lambda value: f"broker {value.broker_id}",
    tables.CONTROLLERS: lambda value: f"controller {value.controller_id}",
    tables.CONFIGS: lambda value: (
        f"config {value.name} of {kafka_text.config_resource(value.resource_type, value.resource_name)}"
    ),
    tables.ACLS: lambda value: f"ACL {value.id}",
    tables.CLIENT_QUOTAS: lambda value: f"quota {value.key} of {kafka_text.entity(value.entity)}",
    tables.SCRAM_USERS: lambda value: f"{word(SCRAM_MECHANISMS, value.mechanism)} credential of {value.name}",
    tables.DELEGATION_TOKENS: lambda value: f"delegation token {token_digest(value.token_id)}",
    tables.FEATURES: lambda value: f"feature {value.name}",
    tables.PRODUCER_IDS: lambda _: "next producer id",
    tables.ZK_MIGRATION: lambda _: "migration from ZooKeeper",
}
