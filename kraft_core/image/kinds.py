"""Every kind of thing in the image, and the replay rule of each record type."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kraft_core.image import (
    acls,
    brokers,
    client_quotas,
    configs,
    controllers,
    delegation_tokens,
    features,
    partitions,
    producer_ids,
    scram_users,
    tables,
    topics,
    zk_migration,
)
from kraft_core.image.change import Change, Refusal
from kraft_core.image.tables import Tables

Rule = Callable[[Tables, Mapping[str, Any]], Iterable[Change]]
"""The changes of a record of one type; raises RecordRefusedError. Reads the tables, changes nothing."""

ControllerCheck = Callable[[Tables, Mapping[str, Any]], Refusal | None]
"""Why a controller refuses a record of one type that brokers apply; None if it does not."""


@dataclass(frozen=True, slots=True)
class Kind:
    """row: columns of a value, without secrets. to_record: record type and fields that produce the value."""

    name: str
    row: Callable[[Any], dict[str, Any]]
    to_record: Callable[[Any], tuple[str, dict[str, Any]]]


_MODULES: Mapping[str, ModuleType] = {
    tables.FEATURES: features,
    tables.ZK_MIGRATION: zk_migration,
    tables.CONTROLLERS: controllers,
    tables.BROKERS: brokers,
    tables.TOPICS: topics,
    tables.PARTITIONS: partitions,
    tables.CONFIGS: configs,
    tables.CLIENT_QUOTAS: client_quotas,
    tables.PRODUCER_IDS: producer_ids,
    tables.ACLS: acls,
    tables.SCRAM_USERS: scram_users,
    tables.DELEGATION_TOKENS: delegation_tokens,
}

BY_NAME: Mapping[str, Kind] = {
    name: Kind(name, module.row, module.to_record) for name, module in _MODULES.items()
}

RULES: Mapping[str, Rule] = {
    record_type: rule for module in _MODULES.values() for record_type, rule in module.RULES.items()
}

CONTROLLER_CHECKS: Mapping[str, ControllerCheck] = {
    record_type: check
    for module in (topics, brokers, controllers, scram_users, producer_ids)
    for record_type, check in module.CONTROLLER_CHECKS.items()
}
