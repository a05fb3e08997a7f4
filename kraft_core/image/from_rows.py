"""From rows of the history tables back to the things they describe: the inverse of Kind.row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from typing import Any

from kraft_core.format.secrets import HIDDEN
from kraft_core.image import names, tables
from kraft_core.image.acls import Acl
from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change, Key
from kraft_core.image.client_quotas import ClientQuota
from kraft_core.image.configs import Config, ShownValue
from kraft_core.image.controllers import Controller
from kraft_core.image.delegation_tokens import DelegationToken, TokenDigest
from kraft_core.image.endpoints import EndPoint, SupportedFeature
from kraft_core.image.features import Feature
from kraft_core.image.partitions import Partition
from kraft_core.image.producer_ids import ProducerIds
from kraft_core.image.scram_users import ScramUser
from kraft_core.image.topics import Topic
from kraft_core.image.zk_migration import ZkMigration

Row = Mapping[str, Any]
REDACTED = HIDDEN
"""Takes the place of a config's value that is a secret, which no row holds; it is never shown."""


def change_of(kind: str, row: Row) -> Change:
    """The change that puts the row's thing into an image, without its secrets: no row holds them."""
    key, value = _READ[kind](row)
    return Change(kind, key, value)


def things_of(kind: str, columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Key, Any]]:
    """Key and value of the thing of each row; columns: the rows' values by column, all of one length.

    As change_of, which takes several times as long with many partitions.
    """
    if kind == tables.PARTITIONS:
        return _partitions(columns)
    rows = zip(*columns.values(), strict=True)
    return (_READ[kind](dict(zip(columns, values, strict=True))) for values in rows)


def _made(of: type[Any], row: Row, **others: Any) -> Any:
    """The thing whose fields are the columns of their names, but for the others."""
    held = {field.name: row[field.name] for field in fields(of) if field.name not in others}
    return of(**held, **others)


def _number(words: Mapping[int, str], word: str) -> int:
    for number, known in words.items():
        if known == word:
            return number
    return int(word.removeprefix("UNKNOWN(").removesuffix(")"))


def _endpoints(rows: Sequence[Row]) -> tuple[EndPoint, ...]:
    return tuple(
        _made(EndPoint, row, security_protocol=_number(names.SECURITY_PROTOCOLS, row["security_protocol"]))
        for row in rows
    )


def _features(rows: Sequence[Row]) -> tuple[SupportedFeature, ...]:
    return tuple(SupportedFeature(**row) for row in rows)


def _topic(row: Row) -> tuple[Key, Any]:
    return (row["topic_id"],), Topic(row["topic_id"], row["topic_name"])


_RECOVERY_STATE = cache(partial(_number, names.LEADER_RECOVERY_STATES))
# By the column of that name, where the two differ.
_PARTITION_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "replicas": tuple,
    "directories": tuple,
    "isr": tuple,
    "removing_replicas": tuple,
    "adding_replicas": tuple,
    "eligible_leader_replicas": tuple,
    "last_known_elr": tuple,
    "leader_recovery_state": _RECOVERY_STATE,
}
# The fields of Partition in their order: there may be millions, and by name it takes longer to make one.
_OF_PARTITION: tuple[tuple[str, Callable[[Any], Any] | None], ...] = tuple(
    (field.name, _PARTITION_VALUES.get(field.name)) for field in fields(Partition)
)


def _partition(row: Row) -> tuple[Key, Any]:
    held = [row[name] if made is None else made(row[name]) for name, made in _OF_PARTITION]
    return (row["topic_id"], row["partition_id"]), Partition(*held)


def _partitions(columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Key, Any]]:
    """As _partition, by column."""
    keys = zip(columns["topic_id"], columns["partition_id"], strict=True)
    held = (columns[name] if made is None else map(made, columns[name]) for name, made in _OF_PARTITION)
    return zip(keys, map(Partition, *held), strict=True)


def _broker(row: Row) -> tuple[Key, Any]:
    cordoned = row["cordoned_log_dirs"]
    return (row["broker_id"],), _made(
        Broker,
        row,
        endpoints=_endpoints(row["endpoints"]),
        features=_features(row["features"]),
        log_dirs=tuple(row["log_dirs"]),
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
    )


def _controller(row: Row) -> tuple[Key, Any]:
    listeners, features = _endpoints(row["endpoints"]), _features(row["features"])
    return (row["controller_id"],), _made(Controller, row, endpoints=listeners, features=features)


def _config(row: Row) -> tuple[Key, Any]:
    key = (
        _number(names.CONFIG_RESOURCE_TYPES, row["resource_type"]),
        row["resource_name"],
        row["name"],
    )
    return key, Config(*key, REDACTED if row["redacted"] else ShownValue(row["value"]))


def _acl(row: Row) -> tuple[Key, Any]:
    return (row["id"],), _made(
        Acl,
        row,
        resource_type=_number(names.ACL_RESOURCE_TYPES, row["resource_type"]),
        pattern_type=_number(names.PATTERN_TYPES, row["pattern_type"]),
        operation=_number(names.ACL_OPERATIONS, row["operation"]),
        permission_type=_number(names.ACL_PERMISSION_TYPES, row["permission_type"]),
    )


def _client_quota(row: Row) -> tuple[Key, Any]:
    entity = tuple((part["entity_type"], part["entity_name"]) for part in row["entity"])
    return (entity, row["key"]), ClientQuota(entity, row["key"], row["value"])


def _scram_user(row: Row) -> tuple[Key, Any]:
    mechanism = _number(names.SCRAM_MECHANISMS, row["mechanism"])
    user = ScramUser(mechanism, row["name"], row["iterations"], None, None, None)
    return (mechanism, row["name"]), user


def _delegation_token(row: Row) -> tuple[Key, Any]:
    token_id = TokenDigest(row["token_digest"])
    return (token_id,), _made(DelegationToken, row, token_id=token_id, renewers=tuple(row["renewers"]))


def _feature(row: Row) -> tuple[Key, Any]:
    return (row["name"],), Feature(row["name"], row["level"])


def _producer_ids(row: Row) -> tuple[Key, Any]:
    ids = ProducerIds(row["next_producer_id"], row["broker_id"], row["broker_epoch"])
    return ("nextProducerId",), ids


def _zk_migration(row: Row) -> tuple[Key, Any]:
    state = _number(names.ZK_MIGRATION_STATES, row["zk_migration_state"])
    return ("zkMigrationState",), ZkMigration(state)


_READ: Mapping[str, Callable[[Row], tuple[Key, Any]]] = {
    tables.FEATURES: _feature,
    tables.ZK_MIGRATION: _zk_migration,
    tables.CONTROLLERS: _controller,
    tables.BROKERS: _broker,
    tables.TOPICS: _topic,
    tables.PARTITIONS: _partition,
    tables.CONFIGS: _config,
    tables.CLIENT_QUOTAS: _client_quota,
    tables.PRODUCER_IDS: _producer_ids,
    tables.ACLS: _acl,
    tables.SCRAM_USERS: _scram_user,
    tables.DELEGATION_TOKENS: _delegation_token,
}
