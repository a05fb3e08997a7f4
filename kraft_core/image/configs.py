"""Configs of topics, brokers, groups and the rest (ConfigurationsDelta)."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from kraft_core.format.secrets import is_secret_config
from kraft_core.image.change import Change
from kraft_core.image.names import CONFIG_RESOURCE_TYPES, word
from kraft_core.image.tables import CONFIGS, Tables

TOPIC_RESOURCE = 2


class ShownValue(str):
    """A value that was judged when it was read: from a lake, or of a name that the settings allow."""


@dataclass(frozen=True, slots=True)
class Config:
    """resource_name "": the default for all resources of that type."""

    resource_type: int
    resource_name: str
    name: str
    value: str


def set_or_delete(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """CONFIG_RECORD; a null value deletes."""
    key = (value["resourceType"], value["resourceName"], value["name"])
    yield Change(CONFIGS, key, None if value["value"] is None else Config(*key, value["value"]))


def without_topic(tables: Tables, topic_name: str) -> Iterator[Change]:
    """Remove the configs of a removed topic."""
    for name in tables.group(CONFIGS, TOPIC_RESOURCE, topic_name):
        yield Change(CONFIGS, (TOPIC_RESOURCE, topic_name, name), None)


def marked(value: dict[str, Any], allowed: Set[str]) -> dict[str, Any]:
    """A CONFIG_RECORD's fields, its value as a ShownValue where its name is allowed (is_secret_config)."""
    name, held = value["name"], value["value"]
    if name not in allowed or held is None or is_secret_config(name, held, allowed):
        return value
    return {**value, "value": ShownValue(held)}


def is_secret(config: Config) -> bool:
    """Whether the value must not be shown."""
    return not isinstance(config.value, ShownValue) and is_secret_config(config.name, config.value)


def row(config: Config) -> dict[str, Any]:
    redacted = is_secret(config)
    return {
        "resource_type": word(CONFIG_RESOURCE_TYPES, config.resource_type),
        "resource_name": config.resource_name,
        "name": config.name,
        "value": None if redacted else config.value,
        "redacted": redacted,
    }


def to_record(config: Config) -> tuple[str, dict[str, Any]]:
    return "CONFIG_RECORD", {
        "resourceType": config.resource_type,
        "resourceName": config.resource_name,
        "name": config.name,
        "value": config.value,
    }


RULES = {"CONFIG_RECORD": set_or_delete}
